"""Allows one task at a time to take records from a consumer; a second one gets an error, as in the Java client."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, TypeAlias
from weakref import ref

from ..errors import UsageError
from ..runtime import current_task, has_ended
from ._implementation import IteratorState

__all__ = ("SingleUser",)

# The task that last took records of each consumer. Tasks started by that task inherit the value, and may take records.
_Actors: TypeAlias = tuple[tuple["ref[Any]", "ref[Any]"], ...]
_acting_for: Final[ContextVar[_Actors]] = ContextVar("aiokafkawire_acting_for", default=())


class SingleUser:
    """A guard that lets one task at a time take a consumer's records.

    A call raises while another task's call is in progress, and while another running task has unfinished records.
    But tasks that this other task has started since it took the records may take records too: ``asyncio.wait_for`` and
    ``create_task`` start a task per call.

    Args:
        iterator_state: its ``changes`` grows when another task takes over, so that iterators check the task again.
        holds: returns whether records that were handed out are unfinished.
        require_own_loop: raises UsageError unless the consumer's event loop is running.
    """

    __slots__ = ("__weakref__", "_calling", "_holds", "_iterator_state", "_require_own_loop", "_user")

    def __init__(
        self, iterator_state: IteratorState, holds: Callable[[], bool], require_own_loop: Callable[[], None]
    ) -> None:
        self._iterator_state, self._holds, self._require_own_loop = iterator_state, holds, require_own_loop
        self._calling: Any = None
        self._user: ref[Any] | None = None

    def check(self) -> Any:
        """Make this task the one that takes the records, and return it.

        Raises:
            UsageError: another task uses the consumer, or the running event loop is not the consumer's.
        """
        task = current_task()
        if task is None:  # the coroutine runs outside an event loop
            return None
        if self._calling is not None and self._calling is not task:
            raise UsageError(
                "another task is waiting for records of this consumer: have one task iterate or poll it, or make a "
                "consumer for each task"
            )
        if self._user is not None and self._user() is task:
            return task
        self._require_own_loop()
        if self._is_held_by_another(task):
            raise UsageError(
                "another task has records of this consumer in hand: have one task iterate or poll it, or make a "
                "consumer for each task; to hand it over, the other task calls commit() or ends"
            )
        self._user = ref(task)
        self._iterator_state.changes += 1
        others = [(of, user) for of, user in _acting_for.get() if of() is not None and of() is not self]
        _acting_for.set((*others, (ref(self), self._user)))
        return task

    def begin(self) -> None:
        """Record that this task begins to wait for records. Raises as :meth:`check`."""
        self._calling = self.check()

    def end(self) -> None:
        """Record that the task no longer waits for records."""
        self._calling = None

    def require_commit(self) -> None:
        """Raise if this task may not commit all records that were handed out, since another task has taken them.

        Raises:
            UsageError: another task waits for records, or has unfinished ones.
        """
        task = current_task()
        if task is None:
            return
        if (self._calling is not None and self._calling is not task) or self._is_held_by_another(task):
            raise UsageError(
                "commit() without offsets would cover records that another task has in hand: call it in the task that "
                "iterates or polls, or pass the offsets that are finished, as commit({partition: offset})"
            )

    def _is_held_by_another(self, task: Any) -> bool:
        user = self._user() if self._user is not None else None
        if user is None or user is task or has_ended(user) or not self._holds():
            return False
        return not any(of() is self and actor is self._user for of, actor in _acting_for.get())
