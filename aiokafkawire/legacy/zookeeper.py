"""A client of ZooKeeper: as much of it as brokers and groups of Kafka 0.7 need."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final, Self, TypeVar

import anyio

from ..config import parse_servers
from ..errors import ConfigError, ConnectionLost, UsageError
from ..network.connector import Connector, connect_tcp
from ..runtime import Runtime
from ..types import Address
from . import jute
from .errors import NodeExists, NoNode, SessionExpired
from .jute import ANY_VERSION, Op, Reader, Stat
from .watches import Watch
from .zookeeper_session import Session

__all__ = ("ZooKeeper",)

T = TypeVar("T")

_DEFAULT_PORT: Final = 2181


class ZooKeeper:
    """One session with ZooKeeper; use it as ``async with``.

    A connection that breaks is replaced, by one to another server if need be, and the session goes on with its
    ephemeral nodes and watches. Once no server was reached for ``session_timeout_ms``, or one says so, the session has
    expired: every call raises SessionExpired, watches hear of it, and a new session needs a new object.

    Args:
        servers: ``"host:port,host:port"``, and perhaps a path behind it under which all others are meant, such as
            ``"zk1:2181,zk2:2181/kafka"``.
        session_timeout_ms: how long the servers keep the session of a silent client; they may decide on another time.
        request_timeout_ms: how long one call may take, reconnecting included.

    Raises:
        ConfigError: the servers, or a time, cannot be.
        ConnectionLost: entering found no server within ``request_timeout_ms``.

    Every call raises:
        ZooKeeperError: a server answered so; NoNode, NodeExists, BadVersion, NotEmpty and SessionExpired are such.
        ConnectionLost: the connection broke; a change may have been made or not. What only reads is asked again.
        RequestTimeout: there was no answer in time.
        UsageError: a path is none.
    """

    def __init__(
        self,
        servers: str,
        *,
        session_timeout_ms: int = 6_000,
        request_timeout_ms: int = 30_000,
        connector: Connector = connect_tcp,
        runtime: Runtime | None = None,
    ) -> None:
        for name, number in (("session_timeout_ms", session_timeout_ms), ("request_timeout_ms", request_timeout_ms)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise ConfigError(f"{name} must be a whole number from 1 on, got {number!r}")
        addresses, root = _parse(servers)
        limit = request_timeout_ms / 1000
        self._session = Session(addresses, root, session_timeout_ms, limit, connector, runtime or Runtime())

    @property
    def session_id(self) -> int:
        """The session's number, which its ephemeral nodes have in ``Stat.ephemeral_owner``."""
        return self._session.id

    @property
    def session_timeout(self) -> float:
        """After how many seconds of silence the servers give the session up, as they have decided."""
        return self._session.timeout

    @property
    def expired(self) -> bool:
        """Whether the session is over by itself."""
        return isinstance(self._session.failure, SessionExpired)

    async def __aenter__(self) -> Self:
        await self._session.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def create(self, path: str, data: bytes | None = None, *, ephemeral: bool = False) -> None:
        """Make a node whose parent is there; an ephemeral one goes with the session."""
        full = self._full(path)
        await self._session.call(Op.CREATE, path, lambda xid: jute.create_request(xid, full, data, ephemeral=ephemeral))

    async def ensure(self, path: str) -> None:
        """Make a persistent node and its parents, as far as they are not there."""
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
        """Delete a node that has no children, if it has this version."""
        full = self._full(path)
        await self._session.call(Op.DELETE, path, lambda xid: jute.delete_request(xid, full, version))

    async def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Stat:
        """Give a node other data, if it has this version."""
        full = self._full(path)
        return await self._session.call(
            Op.SET_DATA, path, lambda xid: jute.set_request(xid, full, data, version), jute.read_stat
        )

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes | None, Stat]:
        """A node's data; ``watch`` hears once when that changes, or the node goes."""
        return await self._ask(Op.GET_DATA, path, watch, lambda reader: (reader.buffer(), jute.read_stat(reader)))

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        """What is known of a node, or None; ``watch`` hears once when it comes, changes or goes."""
        try:
            return await self._ask(Op.EXISTS, path, watch, jute.read_stat)
        except NoNode:
            return None

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """The names of a node's children; ``watch`` hears once when one comes or goes."""
        return await self._ask(Op.GET_CHILDREN, path, watch, Reader.strings)

    async def _ask(self, op: Op, path: str, watch: Watch | None, decode: Callable[[Reader], T]) -> T:
        """Ask until it is answered: it changes nothing."""
        full, watched = self._full(path), watch is not None
        deadline = anyio.current_time() + self._session.limit
        while True:
            try:
                return await self._session.call(
                    op, path, lambda xid: jute.path_request(xid, op, full, watch=watched), decode, watch, deadline
                )
            except ConnectionLost:
                if anyio.current_time() >= deadline:
                    raise

    def _full(self, path: str) -> str:
        wrong = not path.startswith("/") or (len(path) > 1 and path.endswith("/")) or "//" in path or "\0" in path
        if wrong or {".", ".."} & set(path.split("/")):
            raise UsageError(f"not a path in ZooKeeper: {path!r:.300}; such as '/brokers/ids'")
        root = self._session.root
        return root + path if path != "/" or not root else root


def _parse(servers: str) -> tuple[Sequence[Address], str]:
    if not isinstance(servers, str):
        raise ConfigError(f"ZooKeeper's servers must be a string such as 'zk1:2181,zk2:2181', got {servers!r:.200}")
    hosts, slash, root = servers.partition("/")
    named = [one.strip() for one in hosts.split(",")]
    found = parse_servers([one if ":" in one.rpartition("]")[2] else f"{one}:{_DEFAULT_PORT}" for one in named if one])
    root = root.strip("/")
    return found, f"/{root}" if slash and root else ""
