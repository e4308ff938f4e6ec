"""How a command ends: its exit status, and the one line that says why."""

import signal
from collections.abc import Awaitable, Callable, Iterator

import anyio
from anyio.abc import TaskStatus

from ..errors import KafkaError

__all__ = ("INTERRUPTED", "CommandFailed", "explain", "run_until_signalled")

FAILED = 1
MISSING = 2
INTERRUPTED = 128 + signal.SIGINT


class CommandFailed(Exception):
    """The command cannot go on; its text is for the user."""

    def __init__(self, said: str, status: int = FAILED) -> None:
        super().__init__(said)
        self.status = status


def explain(error: BaseException) -> tuple[int, str] | None:
    """The exit status for an error, and the line to print, which may be empty.

    None for a bug, which needs its traceback. Task groups raise groups: in one a bug counts before an interruption,
    and that before an error.
    """
    causes = list(_leaves(error))
    expected = KeyboardInterrupt | SystemExit | CommandFailed | KafkaError | OSError
    if any(not isinstance(cause, expected) for cause in causes):
        return None
    if any(isinstance(cause, KeyboardInterrupt) for cause in causes):
        return INTERRUPTED, ""
    if any(isinstance(cause, SystemExit) for cause in causes):  # rich's way to end when its reader has gone
        return FAILED, ""
    first = causes[0]
    said = " ".join(str(first).split())
    if isinstance(first, CommandFailed):
        return first.status, said
    return FAILED, f"{type(first).__name__}: {said}"


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


async def run_until_signalled(command: Callable[[], Awaitable[object]]) -> signal.Signals | None:
    """Run a command, cancelled at SIGINT (Ctrl-C) or SIGTERM: the signal that ended it, or None.

    Only the first signal is taken. After it Ctrl-C is Python's own again, so that nobody is kept by a slow clean-up.
    """
    received: signal.Signals | None = None

    async def watch(*, task_status: TaskStatus[None]) -> None:
        nonlocal received
        try:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
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
