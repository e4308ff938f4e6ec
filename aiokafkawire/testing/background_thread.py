"""A context that runs a broker or a tap on a thread of its own, for callers on other threads."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack
from inspect import isawaitable
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, overload

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

__all__ = ("BackgroundThread",)

S = TypeVar("S", bound=AbstractAsyncContextManager[Any])
T = TypeVar("T")


class BackgroundThread(Generic[S]):
    """A thread with an event loop on which ``target`` is open while this context is open.

    Args:
        target: the broker or the tap; no other thread may call its methods.
        name: what it is, for errors.
    """

    def __init__(self, target: S, name: str) -> None:
        self._target = target
        self._name = name
        self._portal: BlockingPortal | None = None
        self._stack = ExitStack()

    @overload
    def do(self, function: Callable[[S], Awaitable[T]]) -> T: ...

    @overload
    def do(self, function: Callable[[S], T]) -> T: ...

    def do(self, function: Callable[[S], Any]) -> Any:
        """Call ``function`` with the broker or the tap, on its thread, and return the result; it may be async.

        Ctrl-C, or another exception of a signal handler, cancels an async function: the end of the context would wait
        for it.

        Raises:
            RuntimeError: the context is not open.
        """
        portal = self._portal
        if portal is None:
            raise RuntimeError(f"this {self._name} is not open: use it as a context manager")
        scope = portal.call(anyio.CancelScope)

        async def call() -> Any:
            with scope:
                found = function(self._target)
                return await found if isawaitable(found) else found

        try:
            return portal.call(call)
        except BaseException:
            portal.call(scope.cancel)
            raise

    def __enter__(self) -> Self:
        if self._portal is not None:
            raise RuntimeError(f"this {self._name} is open already")
        with ExitStack() as stack:
            portal = stack.enter_context(start_blocking_portal())
            running: AbstractContextManager[Any] = portal.wrap_async_context_manager(self._target)
            stack.enter_context(running)
            self._portal, self._stack = portal, stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        try:
            return self._stack.__exit__(kind, error, traceback)
        finally:
            self._portal = None
