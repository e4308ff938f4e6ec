"""A value that is not known yet, such as the response for which a JoinGroup handler waits."""

from typing import Generic, TypeVar

import anyio

__all__ = ("Deferred",)

T = TypeVar("T")


class Deferred(Generic[T]):
    """A value that is set once, and for which tasks can wait until then."""

    __slots__ = ("_event", "_kept", "_value")

    def __init__(self) -> None:
        self._value: T | None = None
        self._kept = False
        self._event: anyio.Event | None = None

    @property
    def kept(self) -> bool:
        """Whether the value is set."""
        return self._kept

    def keep(self, value: T) -> None:
        """Set the value and wake the waiting tasks. Only the first call has an effect."""
        if self._kept:
            return
        self._value, self._kept = value, True
        if self._event is not None:
            self._event.set()

    async def wait(self) -> T:
        """Wait for the value and return it."""
        if not self._kept:
            if self._event is None:
                self._event = anyio.Event()
            await self._event.wait()
        return self._value  # type: ignore[return-value]  # T may be None
