"""Calls the user's handler: as a coroutine function or on a worker thread, within its time."""

import inspect
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from ..cluster.cluster import Cluster
from ..errors import KafkaError
from ..runtime import Runtime, was_cancelled

__all__ = ("HandlerCall", "cancellation_in")


class HandlerCall:
    """The calls of one handler.

    Args:
        cluster: has the runtime, and the tracing system.
        handle: the user's function or coroutine function.
        group: the group that processes the records.
        takes_batch: whether the handler takes a list of records.
        timeout: the seconds that a call may take; None for no limit.
        threads: the largest number of threads for a plain function.
    """

    def __init__(
        self,
        cluster: Cluster,
        handle: Callable[[Any], Any],
        *,
        group: str,
        takes_batch: bool,
        timeout: float | None,
        threads: int,
    ) -> None:
        self._cluster, self._handle = cluster, handle
        self.group: str = group
        """The group that processes the records."""
        self._takes_batch, self._timeout = takes_batch, timeout
        self._is_async = _is_coroutine_function(handle)
        self._awaited, self._most_threads = 0, threads
        self._threads: set[object] = set()
        # Trio counts the threads that go on after their calls were cancelled, too.
        self._limiter = None if self._is_async else anyio.CapacityLimiter(2 * threads)

    def __call__(self, records: list[Any]) -> Awaitable[None]:
        """Let the handler process the records.

        Raises:
            TimeoutError: the handler has not returned in time.
            KafkaError: the handler has raised a cancellation of its own.
            Exception: any other error of the handler.
        """
        if self._timeout is None and self._cluster.tracing is None:
            return self._run(records)
        return self._run_limited(records)

    async def _run_limited(self, records: list[Any]) -> None:
        """Run the handler in a span and within its time, as far as there are such."""
        tracing = self._cluster.tracing
        with nullcontext() if tracing is None else tracing.processing(records, self.group):
            with anyio.move_on_after(self._timeout) as limit:
                await self._run(records)
            if limit.cancel_called:  # also if the handler has caught the cancellation, and returned
                raise TimeoutError(f"the handler did not return within {self._timeout:g} s (handler_timeout)")

    async def _run(self, records: list[Any]) -> None:
        # A list of its own: a handler may use up its list, and all records are finished, or tried again.
        argument = records.copy() if self._takes_batch else records[0]
        try:
            if self._is_async:
                await self._handle(argument)
                return
            result = await self._on_thread(partial(self._handle, argument))
            if inspect.isawaitable(result):
                await result
        except anyio.get_cancelled_exc_class() as error:
            if was_cancelled():
                raise
            # It would end the tasks of the run without an error.
            name = type(error).__name__
            raise KafkaError(
                f"the handler has raised {name}, and nobody has cancelled it: it may have awaited a cancelled task"
            ) from error
        except BaseExceptionGroup as group:
            # As of a nursery of trio that is cancelled, perhaps with errors of its tasks meanwhile.
            cancelled = cancellation_in(group)
            if cancelled is None or not was_cancelled():
                raise
            raise cancelled from None

    @property
    def abandoned(self) -> int:
        """The number of threads that go on with a call that was cancelled."""
        return max(0, len(self._threads) - self._awaited)

    def check_threads(self) -> None:
        """Raise KafkaError if as many threads go on with cancelled calls as there may be calls."""
        if self._threads and self.abandoned >= self._most_threads:
            raise KafkaError(
                f"{self.abandoned} threads go on with calls of the handler that were cancelled, as many as there may "
                "be calls at once (concurrency), and Python cannot end them: give what the handler waits for a timeout "
                "of its own, shorter than handler_timeout"
            )

    async def _on_thread(self, call: Callable[[], Any]) -> Any:
        def run() -> Any:
            thread = object()
            self._threads.add(thread)
            try:
                return call()
            finally:
                self._threads.discard(thread)

        runtime = self._cluster.runtime
        self._awaited += 1
        try:
            if runtime.offload is not _DEFAULT_OFFLOAD:
                return await runtime.offload(run)
            return await anyio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=self._limiter)
        finally:
            self._awaited -= 1


_DEFAULT_OFFLOAD: Callable[..., Awaitable[Any]] = Runtime().offload


def cancellation_in(group: BaseExceptionGroup[BaseException]) -> BaseException | None:
    """Return a cancellation in the group; None without one, or if the group also has an error that ends programs."""
    cancelled, others = group.split(anyio.get_cancelled_exc_class())
    if cancelled is None or not (others is None or isinstance(others, Exception)):
        return None
    found: BaseException = cancelled
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


def _is_coroutine_function(function: object) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
