"""One task at a time takes records from a consumer; a second one gets an error, as in Kafka's Java client."""

from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeAlias, TypeVar
from weakref import ref

from ..errors import UsageError
from ..runtime import current_task, has_ended
from .iterating import Marks

__all__ = ("SingleUser", "UsedBySingleTask", "one_call_at_a_time")

P = ParamSpec("P")
T = TypeVar("T")

# The task that last took records of any consumer in this context: tasks that it starts inherit it, and act for it.
_acting_for: Final[ContextVar["ref[Any] | None"]] = ContextVar("aiokafkawire_acting_for", default=None)


class SingleUser:
    """The task that takes a consumer's records.

    A call is refused while another task's call is in progress, and while another task, which still runs, has records in
    hand. A task that this other one has started since it took records acts for it: ``asyncio.wait_for`` and
    ``create_task`` make a task for each call.

    Args:
        marks: are changed when another task takes over, so that a compiled iterator asks before it goes on.
        holds: tells whether the records that were handed out last are not finished.
    """

    __slots__ = ("_calling", "_holds", "_marks", "_user")

    def __init__(self, marks: Marks, holds: Callable[[], bool]) -> None:
        self._marks, self._holds = marks, holds
        self._calling: Any = None
        self._user: ref[Any] | None = None

    def begin(self) -> None:
        """Note that this task's call begins.

        Raises:
            UsageError: another task uses the consumer.
        """
        task = current_task()
        if task is None:  # driven by hand
            return
        if self._calling is not None and self._calling is not task:
            raise UsageError(
                "another task is waiting for records of this consumer: have one task iterate or poll it, or make a "
                "consumer for each task"
            )
        this = ref(task)
        if self._user is not this:
            if self._is_held_by_another(task):
                raise UsageError(
                    "another task has records of this consumer in hand: have one task iterate or poll it, or make a "
                    "consumer for each task; to hand it over, the other task calls commit() or ends"
                )
            self._user = this
            self._marks.changes += 1
            _acting_for.set(this)
        self._calling = task

    def end(self) -> None:
        """Note that this task's call is over."""
        self._calling = None

    def require_commit(self) -> None:
        """Refuse a commit of everything that was handed out, by a task that does not take the records.

        Raises:
            UsageError: another task waits for records, or has some in hand.
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
        return _acting_for.get() is not self._user


class UsedBySingleTask(Protocol):
    """A consumer, as :func:`one_call_at_a_time` needs it."""

    _user: SingleUser

    def _require_open(self) -> None: ...
    def _has_been_closed(self) -> bool: ...


S = TypeVar("S", bound=UsedBySingleTask)

_Method: TypeAlias = Callable[Concatenate[S, P], Coroutine[Any, Any, T]]


def one_call_at_a_time(*, ends: bool = False) -> Callable[[_Method[S, P, T]], _Method[S, P, T]]:
    """Guard a method that takes records: refuse it while another task uses the consumer, and after closing.

    One that ``ends`` is of an iteration that began before, which closing ends with StopAsyncIteration.
    """

    def guard(call: _Method[S, P, T]) -> _Method[S, P, T]:
        @wraps(call)
        async def guarded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
            if ends and self._has_been_closed():
                raise StopAsyncIteration
            self._require_open()
            self._user.begin()
            try:
                return await call(self, *args, **kwargs)
            finally:
                self._user.end()

        return guarded

    return guard
