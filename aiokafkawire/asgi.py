"""Kafka in web services: :class:`KafkaLifespan`, a lifespan for FastAPI, Starlette, Litestar and their like."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Generic, TypeAlias, TypeVar, overload

import anyio

from .argument_checks import check_function, check_seconds, shown
from .client import Client
from .client_health import ClientHealth, HealthSource, client_health
from .errors import KafkaError, UsageError
from .event_log import EventLog
from .plain_values import error_text
from .producer.producer import Producer
from .runtime import Owner, stray_cancellation, was_cancelled
from .types import BytesLike

__all__ = ("KafkaLifespan", "LifespanWorker")

_log = EventLog("aiokafkawire.asgi")

K = TypeVar("K")
V = TypeVar("V")

LifespanWorker: TypeAlias = Callable[[Client, anyio.Event], Awaitable[object]]
"""A coroutine function that works in the background with the client, and returns soon after the event is set."""
_W = TypeVar("_W", bound=LifespanWorker)


class KafkaLifespan(HealthSource, Generic[K, V]):
    """The lifespan of an ASGI application: opens a client and a producer, and runs workers in the background.

    Give it to the application: ``FastAPI(lifespan=kafka)``, ``Starlette(lifespan=kafka)``,
    ``Litestar(lifespan=[kafka])``; or use ``async with kafka(app):`` in a lifespan of your own. Request handlers find
    it as ``app.state.kafka``. Each start of the application makes another client.

    At the end of the application the workers finish first, then the producer sends what is buffered, then the client
    closes. A worker that fails does not end the application: the error is logged, :meth:`health` is no longer ready
    nor live, ``on_failure`` is called, and the end of the application raises the error.

    Args:
        make_client: returns a client that is not open yet.
        make_producer: returns a producer of this client; by default one that sends bytes.
        on_failure: a function, plain or async, that gets the error of a worker that has failed.
        shutdown_timeout: how long the workers may take to finish in the end, in seconds, before they are cancelled.

    Raises:
        UsageError: an argument is wrong.
    """

    @overload
    def __init__(
        self: "KafkaLifespan[BytesLike, BytesLike]",
        make_client: Callable[[], Client],
        *,
        on_failure: Callable[[Exception], object] | None = None,
        shutdown_timeout: float = 60.0,
    ) -> None: ...
    @overload
    def __init__(
        self,
        make_client: Callable[[], Client],
        make_producer: Callable[[Client], Producer[K, V]],
        *,
        on_failure: Callable[[Exception], object] | None = None,
        shutdown_timeout: float = 60.0,
    ) -> None: ...
    def __init__(
        self,
        make_client: Callable[[], Client],
        make_producer: Callable[[Client], Producer[Any, Any]] = Client.producer,
        *,
        on_failure: Callable[[Exception], object] | None = None,
        shutdown_timeout: float = 60.0,
    ) -> None:
        check_function("make_client", make_client)
        check_function("make_producer", make_producer)
        if on_failure is not None:
            check_function("on_failure", on_failure)
        check_seconds("shutdown_timeout", shutdown_timeout, optional=False)
        self._make_client, self._make_producer = make_client, make_producer
        self._on_failure, self._shutdown_timeout = on_failure, shutdown_timeout
        self._workers: list[LifespanWorker] = []
        self._client: Client | None = None
        self._producer: Producer[K, V] | None = None
        self._is_running = False

    @property
    def client(self) -> Client:
        """The client, while the application runs.

        Raises:
            UsageError: the application does not run.
        """
        if self._client is None or self._producer is None:
            raise self._not_running()
        return self._client

    @property
    def producer(self) -> Producer[K, V]:
        """The producer, while the application runs.

        Raises:
            UsageError: the application does not run.
        """
        if self._producer is None:
            raise self._not_running()
        return self._producer

    def worker(self, function: _W) -> _W:
        """Run a coroutine function in the background of the application; use this method as a decorator.

        The function is called with the client and with an event, which the end of the application sets: pass the event
        as ``stop`` to ``client.process`` or ``client.transform``, or wait for it. A function that returns earlier has
        finished its work.

        Raises:
            UsageError: it is no coroutine function, or the application runs already.
        """
        is_async = inspect.iscoroutinefunction(function)
        if not is_async:
            raise UsageError(f"a worker must be a coroutine function of a client and an event, got {shown(function)}")
        if self._is_running:
            raise UsageError("the application runs already: add workers before it starts")
        self._workers.append(function)
        return function

    def health(self) -> ClientHealth:
        """Return the health of the client; if a worker has failed, the client is neither ready nor live.

        :class:`~aiokafkawire.probes.HealthApp` takes this object like a client.

        Raises:
            UsageError: another event loop is running than that of the application.
        """
        return client_health("new") if self._client is None else self._client.health()

    def __call__(self, app: object = None) -> AbstractAsyncContextManager[None]:
        """Return the context manager of one run of the application, which finds this object as ``app.state.kafka``."""
        return self._run(app)

    @asynccontextmanager
    async def _run(self, app: object) -> AsyncIterator[None]:
        if self._is_running:
            raise UsageError("this KafkaLifespan runs already: give each application its own")
        self._is_running = True
        failed: list[tuple[str, Exception]] = []
        try:
            self._client = client = self._make_client()
            if not isinstance(client, Client):
                self._client = None
                raise UsageError(f"make_client must return an aiokafkawire.Client, got {shown(client)}")
            async with client, _checked_producer(self._make_producer(client)) as self._producer:
                state = getattr(app, "state", None)
                if state is not None:
                    state.kafka = self
                async with self._running_workers(client, failed):
                    yield
        finally:
            self._is_running, self._producer = False, None
        if failed:
            (name, error), *others = failed
            error.add_note(f"the worker {name} of the application has ended with this error")
            for other, also in others:
                error.add_note(f"the worker {other} has failed as well: {error_text(also)}")
            raise error

    @asynccontextmanager
    async def _running_workers(self, client: Client, failed: list[tuple[str, Exception]]) -> AsyncIterator[None]:
        """Run the workers; collect the errors of those that fail."""
        owner, stop = Owner(), anyio.Event()
        running = [(worker, anyio.Event()) for worker in self._workers]
        await owner.open()
        try:
            for worker, ended in running:
                owner.spawn(self._work, worker, client, stop, ended, failed)
            try:
                yield
            finally:
                stop.set()
                with anyio.move_on_after(self._shutdown_timeout):
                    for _, ended in running:
                        await ended.wait()
                for worker, ended in running:
                    if not ended.is_set():
                        _log.warning(
                            "the worker %(worker)s was cancelled: it did not end in %(elapsed)g s (shutdown_timeout)",
                            text={"worker": _name(worker)},
                            elapsed=self._shutdown_timeout,
                        )
        finally:
            await owner.close()

    async def _work(
        self,
        worker: LifespanWorker,
        client: Client,
        stop: anyio.Event,
        ended: anyio.Event,
        failed: list[tuple[str, Exception]],
    ) -> None:
        name = _name(worker)
        try:
            error = await _error_of(worker, client, stop)
            if error is None:
                _log.info("the worker %(worker)s has ended", text={"worker": name})
                return
            failed.append((name, error))
            await self._report(client, name, error)
        finally:
            ended.set()

    async def _report(self, client: Client, name: str, error: Exception) -> None:
        """Make the failure of a worker known."""
        client._health.failures.append(f"the worker {name} has failed: {error_text(error)}")
        _log.error(
            "the worker %(worker)s has failed, so the application is no longer live: %(error)s",
            text={"worker": name},
            error=error,
            exc_info=error,
        )
        if self._on_failure is not None:
            try:
                result = self._on_failure(error)
                if inspect.isawaitable(result):
                    await result
            except Exception as raised:
                _log.error("on_failure has raised an error: %(error)s", error=raised, exc_info=raised)

    def _not_running(self) -> UsageError:
        return UsageError(
            "the application does not run: give it this object as its lifespan, or enter 'async with kafka(app)'"
        )


async def _error_of(worker: LifespanWorker, client: Client, stop: anyio.Event) -> Exception | None:
    """Run a worker; return the error that has ended it, if one has."""
    try:
        await worker(client, stop)
    except Exception as raised:
        return raised
    except SystemExit as ended:
        # It would end the event loop before requests are answered.
        error = KafkaError(f"the worker has raised SystemExit({ended.code!r})")
        error.__cause__ = ended
        return error
    except anyio.get_cancelled_exc_class() as cancelled:
        if was_cancelled():
            raise
        # It would end the worker without an error.
        return stray_cancellation("the worker", cancelled)
    return None


def _checked_producer(producer: Producer[K, V]) -> Producer[K, V]:
    if not isinstance(producer, Producer):
        raise UsageError(f"make_producer must return a producer of the client, got {shown(producer)}")
    return producer


def _name(worker: LifespanWorker) -> str:
    return getattr(worker, "__name__", None) or shown(worker)
