"""Runs kazoo's ZooKeeper client on one thread, which posts results and events to the event loop."""

import errno
import logging
import math
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import anyio
import attrs
from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry

from ..event_log import EventLog
from ..runtime import call_soon_threadsafe

if TYPE_CHECKING:
    from .zookeeper import ZooKeeper

__all__ = ("KazooThread",)

_PAUSE_SECONDS: Final = 0.1
"""The pause between two attempts to reach a server."""
_CONNECT_SECONDS: Final = 2.0
_CLOSE_SECONDS: Final = 2.0
"""How long a server may take to end the session before the connection is closed."""
_CUT_SECONDS: Final = _CONNECT_SECONDS + 0.5
_LONGEST_MS: Final = 60_000
"""The limit of a session timeout that the server chooses instead of the requested one."""
_log: Final = EventLog("aiokafkawire.legacy.kazoo")


class KazooThread:
    """A session with ZooKeeper on kazoo's thread.

    Args:
        hosts: the servers' addresses and the root path, in kazoo's form.
        timeout_ms: the session timeout to request.
        session: the object whose ``on_`` methods are called with events, on the event loop that runs at construction.
    """

    def __init__(self, hosts: str, timeout_ms: int, session: "ZooKeeper") -> None:
        self._session, self._timeout_ms = session, timeout_ms
        self._call_soon = call_soon_threadsafe()
        self._is_over = False
        self._lock = threading.Lock()
        """Held by calls and by the end of the session, so that no call gets into kazoo's next session."""
        self._handler = _Handler(self._on_end)
        self._kazoo_log = _KazooLog(logging.getLogger("aiokafkawire.legacy.kazoo"))
        # kazoo retries without a limit; ``session`` decides when the session has expired.
        retry = KazooRetry(
            max_tries=-1, delay=_PAUSE_SECONDS, backoff=1, max_jitter=0, sleep_func=self._handler.sleep_func
        )
        timeout = timeout_ms / 1000
        self._client = KazooClient(
            hosts, timeout=timeout, handler=self._handler, connection_retry=retry, logger=self._kazoo_log
        )
        self._client.add_listener(self._on_state)
        # kazoo does not expose the session timeout that the server grants: replace the method that receives it.
        self._kazoo_connect = self._client._connection._connect
        self._client._connection._connect = self._connect
        self._session_id = 0
        self._stopping: threading.Thread | None = None
        self._stopped = anyio.Event()

    @property
    def last_cause(self) -> str:
        """kazoo's last warning, which says why there is no connection; empty if there was none."""
        return self._kazoo_log.last_warning

    def start(self) -> None:
        """Start the thread, which connects to a server."""
        self._client.start_async()

    def call(
        self, method: str, *args: Any, watch: tuple[str, Any] | None, done: Callable[[Any], None], **how: Any
    ) -> None:
        """Start a call of kazoo, unless the session is over.

        Args:
            method: the name of a method of KazooClient, without ``_async``.
            watch: a path, and the function that receives the next event of this path.
            done: called with kazoo's result, on the event loop.
        """
        if watch is not None:
            how["watch"] = _Watcher(self, *watch)
        with self._lock:
            if self._is_over:
                return
            result = getattr(self._client, f"{method}_async")(*args, **how)
        result.rawlink(lambda result: self.post(done, result))

    def end(self) -> None:
        """Mark the session as over: ignore later calls, and refuse connections."""
        with self._lock:
            self._is_over = self._handler.is_closing = True

    def stop_soon(self) -> None:
        """Stop kazoo on another thread, without waiting. Calling it again has no effect."""
        if self._stopping is not None:
            return
        if self._is_over or not self._client.connected:
            self._handler.cut()
        self._stopping = threading.Thread(target=self._stop, name="aiokafkawire-zookeeper-stop", daemon=True)
        self._stopping.start()

    async def close(self) -> None:
        """Close the session, so that its ephemeral nodes are deleted at once; wait a limited time for its thread."""
        self.stop_soon()
        for limit in (_CLOSE_SECONDS, _CUT_SECONDS):
            with anyio.move_on_after(limit, shield=True):
                await self._stopped.wait()
                return
            self._handler.cut()
        _log.debug("the thread of a ZooKeeper session is still busy, perhaps resolving a name; it ends by itself")

    def post(self, function: Callable[..., object], *args: Any) -> None:
        """Schedule a function on the event loop, unless the loop has ended."""
        with suppress(RuntimeError):
            self._call_soon(function, *args)

    # --- on threads ------------------------------------------------------------------------------------------------

    def _stop(self) -> None:
        try:
            self._client.stop()
            self._client.close()
        except Exception as error:
            _log.debug("closing a ZooKeeper session failed: %(error)r", error=error)
        self.post(self._stopped.set)

    def _connect(self, *args: Any) -> tuple[float, float]:
        """Connect by kazoo's method; return the timeouts in ms for reading (2/3 of the session timeout) and writing."""
        # A server that is starting may accept a connection and never answer, so limit the wait and try the next server.
        self._handler.longest_wait = max(self._timeout_ms / 3000, 0.01)
        try:
            read_ms, write_ms = self._kazoo_connect(*args)
        finally:
            self._handler.longest_wait = math.inf
        session_id = self._client.client_id[0]
        if self._session_id not in (0, session_id):
            self.end()
            self.post(self._session.on_lost, "the server began another session")
        self._session_id = session_id
        timeout_ms = min(read_ms * 3 / 2, max(self._timeout_ms, _LONGEST_MS))
        self.post(self._session.on_connected, session_id, timeout_ms / 1000)
        return timeout_ms * 2 / 3, min(write_ms, timeout_ms)

    def _on_state(self, state: str) -> None:
        if state == KazooState.SUSPENDED:
            self.post(self._session.on_suspended)
        elif state == KazooState.LOST:
            self.end()
            self.post(self._session.on_lost, self.last_cause or "the server ended it")

    def _on_end(self, error: Exception | None) -> None:
        """End the session when the connection's thread has ended, with its ``error`` if there is one."""
        self.end()
        if error is not None:
            self.post(self._session.on_lost, f"kazoo failed: {error!r}")

    def on_watch(self, watch: Any, path: str, kind: str) -> None:
        """Send a watch's event to the event loop."""
        self.post(self._session.on_watch, watch, path, kind)


@attrs.frozen
class _Watcher:
    """A watch function for kazoo. Instances are compared by value, since kazoo registers equal functions only once."""

    thread: KazooThread
    path: str
    watch: Any

    def __call__(self, event: Any) -> None:
        self.thread.on_watch(self.watch, self.path, event.type)


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """A kazoo handler that runs callbacks on the thread that reads answers, in the order of the answers."""

    def __init__(self, on_end: Callable[[Exception | None], None]) -> None:
        super().__init__()
        self.is_closing = False
        self._on_end = on_end
        self._socket: socket.socket | None = None
        self.longest_wait = math.inf
        """The longest time to wait for a server, in seconds."""

    def start(self) -> None:
        """Start no threads. The handler is then not running, so kazoo calls callbacks directly."""

    def stop(self) -> None:
        """Do nothing, since there are no threads to stop."""

    def dispatch_callback(self, callback: Any) -> None:
        callback.func(*callback.args)

    def spawn(self, func: Callable[..., object], *args: Any, **kwargs: Any) -> threading.Thread:
        """Start the thread of the connection, the only thread that kazoo starts with this handler."""

        def run() -> None:
            error: Exception | None = None
            try:
                func(*args, **kwargs)
            except Exception as raised:  # such as for answers that kazoo cannot decode
                error = raised
            finally:
                self._on_end(error)

        thread = threading.Thread(target=run, name="aiokafkawire-zookeeper", daemon=True)
        thread.start()
        return thread

    def select(self, *sockets: Any) -> Any:
        *lists, timeout = sockets
        return super().select(*lists, min(timeout, self.longest_wait))

    def create_connection(
        self, address: tuple[str, int], hostname: str = "", timeout: float = _CONNECT_SECONDS, **_: Any
    ) -> socket.socket:
        server = f"{hostname or address[0]}:{address[1]}"
        if self.is_closing:
            raise ConnectionAbortedError(errno.ECONNABORTED, f"{server}: the session is over")
        try:
            connection = socket.create_connection(address, min(timeout, self.longest_wait, _CONNECT_SECONDS))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            raise OSError(error.errno or errno.ETIMEDOUT, f"{server}: {error.strerror or error}") from error
        self._socket = connection
        if self.is_closing:
            self.cut()
        return connection

    def cut(self) -> None:
        """Refuse new connections, and shut down the current one's socket, so that threads waiting for it continue."""
        self.is_closing = True
        connection = self._socket
        if connection is not None:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _KazooLog(logging.LoggerAdapter[logging.Logger]):
    """A logger for kazoo that logs at DEBUG, since ``aiokafkawire.legacy`` logs enough, and stores the last warning."""

    last_warning = ""

    def log(self, level: int, msg: object, *args: Any, **kwargs: Any) -> None:
        if level >= logging.WARNING and msg != "Transition to CONNECTING":
            self.last_warning = str(msg) % args
        super().log(min(level, logging.DEBUG), msg, *args, **kwargs)

    warn = logging.LoggerAdapter.warning  # kazoo uses the old name, too
