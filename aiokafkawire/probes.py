"""Health probes for Kubernetes and others: an ASGI application, and a file that is touched while a client is well."""

import json
import os
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias

import anyio

from .argument_checks import check_flag, shown
from .client import Client
from .client_health import HealthSource
from .either_client import asynchronous_client
from .errors import ConfigError, UsageError
from .event_log import EventLog
from .loop_thread import LoopThread

if TYPE_CHECKING:
    from .blocking import Client as BlockingClient
    from .client_health import ClientHealth

__all__ = ("HealthApp", "TouchedFile", "touch_file")

_log = EventLog("aiokafkawire.health")

_Scope: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_PROBES: Final = ("live", "ready")


class HealthApp:
    """An ASGI application with the probes ``/live`` and ``/ready`` of a client: status 200 if it is, 503 if not.

    The body is a JSON object with ``live``, ``ready`` and ``why``. Mount it in a web application of the client's own
    event loop (``app.mount("/health", HealthApp(kafka))``), or let a server such as uvicorn serve it by itself.

    Args:
        kafka: the client; or the :class:`~aiokafkawire.asgi.KafkaLifespan` that opens it.
        details: whether the body has the whole health, with all partitions, addresses and errors.

    Raises:
        UsageError: an argument is not valid; blocking clients have no event loop that could serve the application.
    """

    def __init__(self, kafka: Client | HealthSource, *, details: bool = False) -> None:
        if not isinstance(kafka, Client | HealthSource):
            raise UsageError(
                f"kafka must be an aiokafkawire.Client, got {shown(kafka)}; with a blocking client, answer probes with "
                "kafka.health(), or use touch_file()"
            )
        check_flag("details", details)
        self._kafka, self._details = kafka, details

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """Answer a request, as ASGI defines it."""
        if scope["type"] == "lifespan":
            await _live_through(receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
        elif scope["type"] == "http":
            status, body = self._answer(scope["method"], scope["path"])
            await _respond(send, status, body, with_body=scope["method"] != "HEAD")

    def _answer(self, method: str, path: str) -> tuple[HTTPStatus, dict[str, Any]]:
        probe = path.rstrip("/").rpartition("/")[2]
        if probe not in _PROBES:
            return HTTPStatus.NOT_FOUND, {"error": "the probes are /live and /ready"}
        if method not in ("GET", "HEAD"):
            return HTTPStatus.METHOD_NOT_ALLOWED, {"error": "use GET"}
        health = self._kafka.health()
        status = HTTPStatus.OK if _is_well(health, probe) else HTTPStatus.SERVICE_UNAVAILABLE
        return status, health.to_dict() if self._details else _brief(health)


async def _live_through(receive: _Receive, send: _Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def _respond(send: _Send, status: HTTPStatus, body: dict[str, Any], *, with_body: bool) -> None:
    content = json.dumps(body).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
        (b"cache-control", b"no-store"),
    ]
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        headers.append((b"allow", b"GET, HEAD"))
    await send({"type": "http.response.start", "status": int(status), "headers": headers})
    await send({"type": "http.response.body", "body": content if with_body else b""})


def touch_file(
    path: "str | os.PathLike[str]",
    kafka: "Client | BlockingClient",
    *,
    every: float = 5.0,
    probe: Literal["live", "ready"] = "live",
) -> "TouchedFile":
    """Write a file every few seconds while a client is live, for probes that look at the file's age.

    Use the result as ``async with``, or as ``with`` for a blocking client, inside the client's own ``with``. The file
    has the JSON object that :class:`HealthApp` sends. While the client is not live, or its event loop is blocked, the
    file is not written, and grows old. Leaving removes the file.

    Args:
        path: the file, in a local folder that exists. Each write replaces the file as a whole.
        kafka: the client.
        every: the seconds between writes.
        probe: what the file shows: ``"live"``, or ``"ready"``.

    Raises:
        ConfigError: on entering, the file cannot be written.
        UsageError: an argument is not valid or, on entering, the client is not open.
    """
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str) or not os.fspath(path):
        raise UsageError(f"path must be the path of a file, got {shown(path)}")
    if isinstance(every, bool) or not isinstance(every, int | float) or not 0 < every < float("inf"):
        raise UsageError(f"every must be a number of seconds, more than 0, got {shown(every)}")
    if probe not in _PROBES:
        raise UsageError(f"probe must be 'live' or 'ready', got {shown(probe)}")
    client = asynchronous_client(kafka)
    thread = None if isinstance(kafka, Client) else kafka.loop
    return TouchedFile(Path(path), client, thread, every, probe)


class TouchedFile:
    """A file that is written while a client is live, made by :func:`touch_file`."""

    def __init__(self, path: Path, kafka: Client, thread: LoopThread | None, every: float, probe: str) -> None:
        self._path, self._kafka, self._loop, self._every, self._probe = path, kafka, thread, every, probe
        self._scope: anyio.CancelScope | None = None
        self._ended = anyio.Event()
        self._has_failed = False

    async def __aenter__(self) -> Self:
        if self._loop is not None:
            raise UsageError("this client is a blocking one: use touch_file(...) as 'with', not as 'async with'")
        await self._begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    def __enter__(self) -> Self:
        if self._loop is None:
            raise UsageError("this client is asynchronous: use touch_file(...) as 'async with', not as 'with'")
        self._loop.call(self._begin)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None and self._loop.is_running and not self._loop.is_gone:
            self._loop.call(self._end)

    async def _begin(self) -> None:
        if self._scope is not None:
            raise UsageError("this touch_file() was used before: make another")
        self._kafka._cluster.owner.require_open()
        self._scope = anyio.CancelScope()
        try:
            self._touch(is_first=True)
        except OSError as error:
            raise ConfigError(
                f"cannot write {self._path}: {error}; give a file in a folder that exists and may be written"
            ) from error
        self._kafka._cluster.owner.spawn(self._run, self._scope)

    async def _end(self) -> None:
        assert self._scope is not None
        self._scope.cancel()
        with anyio.CancelScope(shield=True):
            await self._ended.wait()

    async def _run(self, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                while True:
                    await anyio.sleep(self._every)
                    self._touch_if_possible()
        finally:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
            self._ended.set()

    def _touch_if_possible(self) -> None:
        try:
            self._touch()
        except OSError as error:
            if not self._has_failed:
                text = {"path": self._path}
                message = "cannot write %(path)s, so that probes may find it too old: %(error)s"
                _log.warning(message, text=text, error=error)
            self._has_failed = True
        else:
            self._has_failed = False

    def _touch(self, *, is_first: bool = False) -> None:
        """Write the file if the client is well; otherwise, at first, only check that it can be written."""
        health = self._kafka.health()
        is_well = _is_well(health, self._probe)
        if not is_well and not is_first:
            return
        part = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            part.unlink(missing_ok=True)
            # In a folder such as /tmp, the name may have become another user's link to any file.
            with part.open("x") as file:
                file.write(json.dumps(_brief(health)) + "\n")
            if is_well:
                part.replace(self._path)
            else:
                self._path.unlink(missing_ok=True)  # that of a process before
                part.unlink()
        except BaseException:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise


def _is_well(health: "ClientHealth", probe: str) -> bool:
    return health.live if probe == "live" else health.ready


def _brief(health: "ClientHealth") -> dict[str, Any]:
    return {"live": health.live, "ready": health.ready, "why": health.why}
