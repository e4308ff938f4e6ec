"""The exit status of a command, and its error message."""

import signal
from collections.abc import Awaitable, Callable, Iterator

import anyio
from anyio.abc import TaskStatus

from ..errors import AdminError, KafkaError
from .standard_streams import watch_signals

__all__ = ("INTERRUPTED", "CommandFailed", "explain", "run_until_signalled")

FAILED = 1
MISSING = 2
INTERRUPTED = 128 + signal.SIGINT


class CommandFailed(Exception):
    """An error that ends the command; the message is for the user."""

    def __init__(self, message: str, status: int = FAILED) -> None:
        super().__init__(message)
        self.status = status


def explain(error: BaseException) -> tuple[int, str] | None:
    """Return the exit status for an error and the message to print, which may be empty.

    Return None for a bug, whose traceback must be printed. An AdminError has a line for each resource that failed. In
    an exception group, bugs take precedence over interruptions, and interruptions over other errors.
    """
    # Imported here, so that commands such as --help start faster.
    from .error_text import error_text, one_line, resource_text

    causes = list(_leaves(error))
    expected = KeyboardInterrupt | SystemExit | CommandFailed | KafkaError | OSError
    if any(not isinstance(cause, expected) for cause in causes):
        return None
    if any(isinstance(cause, KeyboardInterrupt) for cause in causes):
        return INTERRUPTED, ""
    if any(isinstance(cause, SystemExit) for cause in causes):  # rich exits when its output pipe is closed
        return FAILED, ""
    first = causes[0]
    if isinstance(first, AdminError):
        each = (f"  {resource_text(resource)}: {error_text(failure)}" for resource, failure in first.errors.items())
        return FAILED, "\n".join((f"{first.message}:", *each))
    if isinstance(first, CommandFailed):
        return first.status, one_line(first)
    return FAILED, error_text(first)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup) and not isinstance(error, AdminError):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


async def run_until_signalled(command: Callable[[], Awaitable[object]]) -> signal.Signals | None:
    """Run a command, and cancel it at SIGINT (Ctrl-C) or SIGTERM; return the signal, or None without a signal.

    Only the first signal is handled. A second Ctrl-C raises KeyboardInterrupt, which also ends a slow clean-up.
    """
    received: signal.Signals | None = None

    async def watch(*, task_status: TaskStatus[None]) -> None:
        nonlocal received
        try:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                watch_signals(signal.SIGINT, signal.SIGTERM)
                task_status.started()
                async for number in signals:
                    received = number
                    break
        except NotImplementedError:  # asyncio on Windows, where Ctrl-C is a KeyboardInterrupt
            task_status.started()
            return
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        await tasks.start(watch)
        await command()
        tasks.cancel_scope.cancel()
    return received
