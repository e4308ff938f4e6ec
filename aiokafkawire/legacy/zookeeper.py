"""A ZooKeeper client with the calls that groups of Kafka 0.7 need, based on kazoo."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import StrEnum
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

import anyio
import attrs

from ..config import parse_servers
from ..errors import (
    ConfigError,
    ConnectionLost,
    KafkaError,
    RequestTimeout,
    UsageError,
    WireError,
    as_kafka_error,
    copy_for_reraise,
)
from ..runtime import Owner, new_event
from ..types import Address, Event
from .errors import NodeExists, NoNode, SessionExpired, zookeeper_error

__all__ = ("ANY_VERSION", "EventType", "Stat", "Watch", "WatchEvent", "ZooKeeper")

ANY_VERSION: Final = -1
"""The version that matches any version of a node."""

_DEFAULT_PORT: Final = 2181
_CONNECTION_LOSS: Final = -4


class EventType(StrEnum):
    """The type of a watch's event."""

    CREATED = "CREATED"
    DELETED = "DELETED"
    DATA_CHANGED = "CHANGED"
    CHILDREN_CHANGED = "CHILD"
    RECONNECTED = "RECONNECTED"
    """The connection was lost and is open again. The node may have changed meanwhile."""
    EXPIRED = "EXPIRED"
    """The session has expired."""


@attrs.frozen
class WatchEvent:
    """The event that a watch receives. A watch receives one event; then it is no longer registered."""

    type: EventType
    path: str


Watch: TypeAlias = Callable[[WatchEvent], None]
"""A function that receives one event. It is called between other callbacks, so it should only note the event and
return."""


@attrs.frozen
class Stat:
    """The metadata of a node."""

    version: int
    ephemeral_owner: int
    """The id of the session that an ephemeral node belongs to; 0 for a persistent node."""


@attrs.define(eq=False)
class _Call:
    """A request that waits for its answer."""

    name: str
    event: anyio.Event = attrs.field(factory=anyio.Event)
    value: Any = None
    error: KafkaError | None = None

    def resolve(self, value: Any, error: KafkaError | None = None) -> None:
        if not self.event.is_set():
            self.value, self.error = value, error
            self.event.set()


class ZooKeeper:
    """A ZooKeeper session; use it as ``async with``.

    If the connection breaks, it is replaced, perhaps by a connection to another server. The session continues with its
    ephemeral nodes, and watches receive RECONNECTED. The session expires if no server is reachable for
    ``session_timeout_ms``, or if a server says so. Then every call raises SessionExpired, watches receive EXPIRED, and
    a new session needs a new object.

    Args:
        servers: ``"host:port,host:port"``, optionally followed by a root path for all paths, as in
            ``"zk1:2181,zk2:2181/kafka"``.
        session_timeout_ms: how long the servers keep the session of an unresponsive client; they may choose another
            time.
        request_timeout_ms: how long a call may take, including reconnecting.

    Raises:
        ConfigError: the servers or a time are invalid, or kazoo is not installed.
        ConnectionLost: on entering, no server was reachable within ``request_timeout_ms``.

    Every call raises:
        ZooKeeperError: a server returned an error: NoNode, NodeExists, BadVersion, NotEmpty, SessionExpired or another.
        ConnectionLost: the connection broke; a change may have been made or not. Calls that only read are
            retried first.
        RequestTimeout: there was no answer in time. A change that still waits for a connection is made if the session
            continues.
        UsageError: a path is invalid.
    """

    def __init__(self, servers: str, *, session_timeout_ms: int = 6_000, request_timeout_ms: int = 30_000) -> None:
        for name, number in (("session_timeout_ms", session_timeout_ms), ("request_timeout_ms", request_timeout_ms)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise ConfigError(f"{name} must be a whole number from 1 on, got {number!r}")
        try:
            from .kazoo_thread import KazooThread
        except ImportError:
            raise ConfigError("ZooKeeper needs the library kazoo: pip install 'aiokafkawire[legacy]'") from None
        addresses, root = _parse(servers)
        self._servers = ", ".join(map(str, addresses))
        self._hosts = ",".join(map(str, addresses)) + root
        self._new_thread: Callable[[], KazooThread] = lambda: KazooThread(self._hosts, session_timeout_ms, self)
        self._thread: KazooThread | None = None
        self._limit = request_timeout_ms / 1000
        self._owner = Owner()
        self._failure: KafkaError | None = None
        """The error that ended the session; None while the session lasts."""
        self._calls: set[_Call] = set()
        self._connected: Event = anyio.Event()
        self._suspended: Event = anyio.Event()
        self._unset: dict[tuple[Watch, str], None] = {}
        """The watches that kazoo removed when the connection was lost."""
        self.session_id: int = 0
        """The session's id, which is the ``Stat.ephemeral_owner`` of its ephemeral nodes."""
        self.session_timeout: float = session_timeout_ms / 1000
        """The session timeout that the servers have chosen, in seconds."""

    @property
    def expired(self) -> bool:
        """Whether the session has ended with SessionExpired."""
        return isinstance(self._failure, SessionExpired)

    async def __aenter__(self) -> Self:
        await self._owner.open()
        try:
            self._thread = self._new_thread()
            self._owner.spawn(self._expire_in_time)
            self._thread.start()
            with anyio.move_on_after(self._limit):
                await self._connected.wait()
            if not self.session_id:
                cause = self._failure or self._thread.last_cause
                raise ConnectionLost(f"no ZooKeeper server of {self._servers} within {self._limit:g} s: {cause}")
            self._require_alive()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._fail(UsageError("this ZooKeeper session is closed"))
        thread, self._thread = self._thread, None
        if thread is not None:
            with anyio.CancelScope(shield=True):
                await thread.close()
        await self._owner.close()

    # --- calls ------------------------------------------------------------------------------------------------------

    async def create(self, path: str, data: bytes | None = None, *, ephemeral: bool = False) -> None:
        """Create a node whose parent exists. An ephemeral node is deleted when the session ends."""
        await self._call("create", path, data, ephemeral=ephemeral)

    async def ensure(self, path: str) -> None:
        """Create a persistent node and its parents, unless they exist."""
        with suppress(NodeExists):
            try:
                await self.create(path)
            except NoNode:
                parent = path.rpartition("/")[0]
                if not parent:
                    raise
                await self.ensure(parent)
                await self.create(path)

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Delete a node that has no children; if ``version`` is given, only if the node has this version."""
        await self._call("delete", path, version)

    async def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Stat:
        """Set a node's data; if ``version`` is given, only if the node has this version."""
        return _stat(await self._call("set", path, data, version))

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes | None, Stat]:
        """Return a node's data; ``watch`` receives an event when the data changes, or the node is deleted."""
        data, found = await self._read("get", path, watch)
        return data, _stat(found)

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        """Return a node's metadata or None; ``watch`` receives an event at the node's creation, change or deletion."""
        found = await self._read("exists", path, watch)
        return None if found is None else _stat(found)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Return the names of a node's children; ``watch`` receives an event when a child is created or deleted."""
        found: list[str] = await self._read("get_children", path, watch)
        return found

    async def _read(self, method: str, path: str, watch: Watch | None) -> Any:
        """Call a method that only reads; retry it after a lost connection, until the request timeout."""
        deadline = anyio.current_time() + self._limit
        while True:
            try:
                return await self._call(method, path, watch=watch, deadline=deadline)
            except ConnectionLost:
                if anyio.current_time() >= deadline:
                    raise

    async def _call(
        self, method: str, path: str, *args: Any, watch: Watch | None = None, deadline: float | None = None, **how: Any
    ) -> Any:
        _check_path(path)
        self._owner.require_open()
        self._require_alive()
        call, seconds = _Call(f"{method} {path}"), self._limit
        self._calls.add(call)
        try:
            assert self._thread is not None
            watched = None if watch is None else (path, watch)
            self._thread.call(method, path, *args, watch=watched, done=lambda result: _resolve(call, result), **how)
            # If the session has just ended, the thread has posted the end, which fails this call, too.
            with anyio.move_on_after(seconds if deadline is None else deadline - anyio.current_time()):
                await call.event.wait()
        finally:
            self._calls.discard(call)
        if not call.event.is_set():
            raise RequestTimeout(f"no answer from ZooKeeper to {call.name} within {seconds:g} s")
        if call.error is not None:
            raise copy_for_reraise(call.error)
        return call.value

    def _require_alive(self) -> None:
        if self._failure is not None:
            raise copy_for_reraise(self._failure)

    # --- called by kazoo's thread, on the event loop -----------------------------------------------------------------

    def on_connected(self, session_id: int, timeout: float) -> None:
        """Note the session and its timeout, and notify watches of the new connection."""
        self.session_id, self.session_timeout = session_id, timeout
        self._connected.set()
        self._notify(EventType.RECONNECTED)

    def on_suspended(self) -> None:
        """Note that the connection is lost, and start the session timeout."""
        self._connected = new_event()
        self._suspended.set()

    def on_lost(self, cause: str) -> None:
        """Let the session expire, with this cause."""
        self._fail(SessionExpired(f"the ZooKeeper session is over: {cause}"))

    def on_watch(self, watch: Watch, path: str, kind: str) -> None:
        """Call a watch with its event; the kind NONE means that kazoo removed the watch since the connection broke."""
        if kind != "NONE":
            self._tell(watch, WatchEvent(EventType(kind), path))
            return
        self._unset[watch, path] = None
        if self.expired:
            self._notify(EventType.EXPIRED)

    def _notify(self, kind: EventType) -> None:
        unset, self._unset = self._unset, {}
        for watch, path in unset:
            self._tell(watch, WatchEvent(kind, path))

    def _tell(self, watch: Watch, event: WatchEvent) -> None:
        if self._failure is not None and not self.expired:
            return
        try:
            watch(event)
        except Exception as fault:  # a user's watch may raise any error
            self._fail(as_kafka_error(fault, "a watch of a ZooKeeper session"))

    def _fail(self, error: KafkaError) -> None:
        """End the session with an error: fail all calls, and notify watches if the session has expired."""
        if self._failure is not None:
            return
        self._failure = error
        if self._thread is not None and not isinstance(error, UsageError):
            self._thread.end()
        for call in self._calls:
            call.resolve(None, error)
        self._connected.set()
        self._suspended.set()
        if self.expired:
            self._notify(EventType.EXPIRED)

    async def _expire_in_time(self) -> None:
        """Let the session expire when there was no connection for the session timeout."""
        try:
            while True:
                await self._suspended.wait()
                self._suspended = new_event()
                with anyio.move_on_after(self.session_timeout) as limit:
                    await self._connected.wait()
                if limit.cancelled_caught and self._thread is not None:
                    reached = f"no ZooKeeper server was reached for {self.session_timeout:g} s"
                    cause = self._thread.last_cause
                    self._fail(SessionExpired(f"{reached}, so the session counts as expired: {cause}"))
                if self._failure is not None:
                    return
        finally:
            if self._thread is not None:  # the event loop ends before close()
                self._thread.stop_soon()


def _resolve(call: _Call, result: Any) -> None:
    error = result.exception
    code = getattr(error, "code", 0)
    if error is None:
        call.resolve(result.value)
    elif code == _CONNECTION_LOSS:
        lost = f"{call.name}: the connection to ZooKeeper was lost; a change that was asked for may have been made"
        call.resolve(None, ConnectionLost(lost))
    elif code:
        call.resolve(None, zookeeper_error(code, call.name))
    else:
        call.resolve(None, WireError(f"{call.name}: kazoo cannot read ZooKeeper's answer: {error!r}"))


def _stat(found: Any) -> Stat:
    return Stat(found.version, found.ephemeralOwner)


def _check_path(path: str) -> None:
    wrong = not path.startswith("/") or (len(path) > 1 and path.endswith("/")) or "//" in path or "\0" in path
    if wrong or {".", ".."} & set(path.split("/")):
        raise UsageError(f"not a path in ZooKeeper: {path!r:.300}; such as '/brokers/ids'")
    try:
        path.encode()
    except UnicodeEncodeError as cause:
        raise UsageError(f"{path!r:.300} cannot be written as UTF-8") from cause


def _parse(servers: str) -> tuple[Sequence[Address], str]:
    if not isinstance(servers, str):
        raise ConfigError(f"ZooKeeper's servers must be a string such as 'zk1:2181,zk2:2181', got {servers!r:.200}")
    hosts, slash, root = servers.partition("/")
    names = [name.strip() for name in hosts.split(",")]
    found = parse_servers(
        [name if ":" in name.rpartition("]")[2] else f"{name}:{_DEFAULT_PORT}" for name in names if name]
    )
    root = root.strip("/")
    return found, f"/{root}" if slash and root else ""
