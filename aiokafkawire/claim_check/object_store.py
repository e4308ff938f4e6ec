"""The interface of object stores, and calls of them on worker threads."""

import inspect
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Final, Protocol, TypeVar
from weakref import WeakKeyDictionary

import anyio
import anyio.lowlevel
import anyio.to_thread

from ..argument_checks import check_integer, check_seconds, shown
from ..errors import ClaimCheckError, UsageError
from ..plain_values import error_text
from ..runtime import call_soon_threadsafe

__all__ = ("ATTEMPTS", "ObjectStore", "StoreCalls")

T = TypeVar("T")

ATTEMPTS: Final = 3
"""How often a call is made, unless it succeeds before."""
_BACKOFF_SECONDS: Final = 0.2
"""The wait after the first attempt; it doubles with each."""
_METHODS: Final = ("write", "read", "names", "delete")


class ObjectStore(Protocol):
    """A store of objects. Worker threads call it, several at the same time."""

    def write(self, key: str, data: bytes) -> None:
        """Store an object; return once it is durable.

        Raises:
            Exception: it is not stored, or it is not known whether it is.
        """

    def read(self, key: str, limit: int) -> bytes:
        """Return the first ``limit`` bytes of an object, or all if it has less.

        Raises:
            FileNotFoundError: there is no such object.
            Exception: it cannot be read.
        """

    def names(self, folder: str) -> Iterable[str]:
        """Return the names in a folder, without those in folders below; ``""`` is the outermost folder.

        A key is a path: the object ``a/b/c`` is ``c`` in the folder ``a/b``, which is ``b`` in ``a``.
        """

    def delete(self, key: str) -> None:
        """Delete an object; ignore one that is not there."""


class StoreCalls:
    """The calls of a store on worker threads: some at a time, with a time limit, and again after errors.

    Args:
        store: the store.
        concurrency: the largest number of calls at the same time in an event loop.
        timeout: how long an attempt may take, in seconds.

    Raises:
        UsageError: an argument is wrong.
    """

    def __init__(self, store: ObjectStore, concurrency: int, timeout: float) -> None:
        if isinstance(store, type) or not all(callable(getattr(store, name, None)) for name in _METHODS):
            raise UsageError(
                f"store must be an object with the methods {', '.join(_METHODS)}, such as "
                f"FsspecStore('s3://bucket/folder'), got {shown(store)}"
            )
        awaited = [name for name in _METHODS if inspect.iscoroutinefunction(getattr(store, name))]
        if awaited:
            raise UsageError(
                f"{', '.join(awaited)} of the store {shown(store)} must be plain functions, which may block: threads "
                "call them, and await nothing"
            )
        check_integer("concurrency", concurrency, 1)
        check_seconds("timeout", timeout, optional=False)
        self.store: ObjectStore = store
        self._concurrency, self._timeout = concurrency, timeout

    async def run(self, action: str, key: str, call: Callable[[], T]) -> T:
        """Return the result of a call. Its errors become ClaimCheckErrors that name the ``action`` and the ``key``.

        A caller that is cancelled does not wait for the thread.

        Raises:
            FileNotFoundError: the call has raised it.
            ClaimCheckError: all attempts have failed, or other calls of the store do not end.
        """
        attempt = 1
        while True:
            try:
                return await self._attempt(key, call)
            except (ClaimCheckError, FileNotFoundError):
                raise
            except Exception as error:
                refused = isinstance(error, PermissionError)
                if attempt == ATTEMPTS or refused:
                    message = f"the store could not {action} the object {key}: {error_text(error)}"
                    raise ClaimCheckError(message, key, retriable=not refused) from error
            await anyio.sleep(_BACKOFF_SECONDS * 2 ** (attempt - 1))
            attempt += 1

    async def _attempt(self, key: str, call: Callable[[], T]) -> T:
        slots, borrower = self._slots(), object()
        await slots.acquire(borrower, key, self._timeout)
        waiting = [True]  # is removed by the thread when it begins, or by this task if it gives up before
        call_soon = call_soon_threadsafe()

        def run() -> T:
            waiting.pop()
            try:
                return call()
            finally:
                with suppress(RuntimeError):  # the event loop has ended
                    call_soon(partial(slots.release, borrower))

        try:
            with anyio.fail_after(self._timeout):
                # A limiter of its own: the slots count threads until they end, also those without a caller.
                return await anyio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))
        except TimeoutError as error:
            if error.args:
                raise
            raise TimeoutError(f"it did not answer within {self._timeout:g} s (timeout)") from None
        finally:
            with suppress(IndexError):
                waiting.pop()
                slots.release(borrower)

    def _slots(self) -> "_Slots":
        """Return the slots of the running event loop: several loops may share a serializer."""
        found = _slots_by_store.get(None)
        if found is None:
            found = WeakKeyDictionary()
            _slots_by_store.set(found)
        if self not in found:
            found[self] = _Slots(self._concurrency)
        return found[self]


class _Slots:
    """The calls that may run at the same time in one event loop. A call has its slot until its thread ends.

    Args:
        count: the number of slots.
    """

    def __init__(self, count: int) -> None:
        self._limiter = anyio.CapacityLimiter(count)
        self._released = 0

    async def acquire(self, borrower: object, key: str, timeout: float) -> None:
        """Wait for a slot for a call about this object.

        Raises:
            ClaimCheckError: no call has ended for ``timeout`` seconds.
        """
        while True:
            released = self._released
            with anyio.move_on_after(timeout):
                await self._limiter.acquire_on_behalf_of(borrower)
                return
            if self._released == released:
                calls = int(self._limiter.total_tokens)
                raise ClaimCheckError(
                    f"the store was not called for the object {key}: {calls} earlier calls (concurrency) have not "
                    f"ended for {timeout:g} s (timeout)",
                    key,
                    retriable=True,
                )

    def release(self, borrower: object) -> None:
        """Return a slot."""
        self._released += 1
        self._limiter.release_on_behalf_of(borrower)


_slots_by_store: anyio.lowlevel.RunVar[WeakKeyDictionary[StoreCalls, _Slots] | None] = anyio.lowlevel.RunVar(
    "aiokafkawire.claim_check"
)
