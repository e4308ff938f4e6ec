"""Objects for ``with`` that a Ctrl-C just after their opening, or just before their end, leaves closed."""

from types import TracebackType
from typing import Self

from ..loop_thread import LoopThread

__all__ = ("ClosedOnInterruption",)


class ClosedOnInterruption:
    """An object whose ``with`` calls the loop's thread: consumers, producers and transactions."""

    _loop: LoopThread

    def __enter__(self) -> Self:
        try:
            self._open()
        except BaseException as interruption:
            self._leave_after(interruption)
            raise
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._end(exc_type, error, trace)
        except BaseException as interruption:
            self._leave_after(interruption)
            raise

    def _leave_after(self, error: BaseException) -> None:
        """Leave what is open nevertheless, if an interruption came after the opening or before the end."""
        if not isinstance(error, Exception):
            self._loop.call_while_running(self._leave_open, error)

    def _open(self) -> None:
        """Open the object."""
        raise NotImplementedError

    def _end(
        self, exc_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the object, with the error that has ended the body."""
        raise NotImplementedError

    async def _leave_open(self, error: BaseException) -> None:
        """End the object on the loop's thread, because of this interruption, if it is open."""
        raise NotImplementedError
