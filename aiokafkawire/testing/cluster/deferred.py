"""An answer that comes later: machines set it, handlers wait for it."""

from typing import Generic, TypeVar

import anyio

__all__ = ("Deferred",)

T = TypeVar("T")


class Deferred(Generic[T]):
    """A value that is set once."""

    __slots__ = ("_event", "_kept", "_value")

    def __init__(self) -> None:
        self._value: T | None = None
        self._kept = False
        self._event: anyio.Event | None = None

    @property
    def kept(self) -> bool:
        """Whether the value is there."""
        return self._kept

    def keep(self, value: T) -> None:
        """Set the value and wake who waits. A second value is ignored: whoever asked has been answered."""
        if self._kept:
            return
        self._value, self._kept = value, True
        if self._event is not None:
            self._event.set()

    async def wait(self) -> T:
        """The value, as soon as it is there."""
        if not self._kept:
            if self._event is None:
                self._event = anyio.Event()
            await self._event.wait()
        return self._value  # type: ignore[return-value]  # T may be None
