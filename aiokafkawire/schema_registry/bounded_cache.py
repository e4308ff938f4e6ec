"""A dictionary of limited size, which forgets the oldest entries, and entries after their time."""

from threading import Lock
from typing import Generic, TypeVar

__all__ = ("BoundedCache",)

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Up to ``capacity`` values, each until its time; any thread may use it."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._values: dict[K, tuple[V, float | None]] = {}
        self._lock = Lock()

    def get(self, key: K, now: float = 0) -> V | None:
        """Return a key's value; None if there is none at the time ``now``."""
        found = self._values.get(key)
        if found is None or (found[1] is not None and found[1] <= now):
            return None
        return found[0]

    def put(self, key: K, value: V, until: float | None = None) -> None:
        """Keep a value, until a time if one is given."""
        with self._lock:
            self._values.pop(key, None)
            if len(self._values) >= self._capacity:
                del self._values[next(iter(self._values))]
            self._values[key] = (value, until)

    def discard(self, key: K) -> None:
        """Forget a key's value."""
        with self._lock:
            self._values.pop(key, None)

    def clear(self) -> None:
        """Forget all values."""
        with self._lock:
            self._values.clear()
