"""A ZooKeeper in this process: nodes, sessions and ephemeral nodes, and no watches. It goes away and comes back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from struct import Struct

import attrs
from anyio.abc import ByteStream, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream
from support.tcp_servers import tcp_server

__all__ = ("MemoryZooKeeper", "memory_zookeeper")

_INT, _LONG, _REPLY, _STAT = Struct(">i"), Struct(">q"), Struct(">iqi"), Struct(">qqqqiiiqiiq")
_CREATE, _DELETE, _EXISTS, _GET_DATA, _SET_DATA, _GET_CHILDREN, _CLOSE = 1, 2, 3, 4, 5, 8, -11
_NO_NODE, _NODE_EXISTS = -101, -110


@attrs.define
class _Node:
    data: bytes | None
    owner: int = 0


class _Refused(Exception):
    """An error code for an answer."""


class _Request:
    """The fields of a request, one after another."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self) -> int:
        found: int = _INT.unpack(self.take(4))[0]
        return found

    def long(self) -> int:
        found: int = _LONG.unpack(self.take(8))[0]
        return found

    def buffer(self) -> bytes | None:
        size = self.number()
        return None if size < 0 else self.take(size)

    def flags(self) -> int:
        """The last field of a create request, behind ACLs that do not matter here."""
        found: int = _INT.unpack(self._data[-4:])[0]
        return found


class MemoryZooKeeper:
    """One server at ``address``; nobody reaches it from :meth:`leave` until :meth:`come_back`."""

    def __init__(self, timeout_ms: int) -> None:
        self.address = ""
        self.nodes: dict[str, _Node] = {}
        self.sessions = 0
        """How many were begun."""
        self.dialled = 0
        self._timeout_ms = timeout_ms
        self._streams: list[ByteStream] = []
        self._away = False
        self._lost_sessions = 0

    async def leave(self) -> None:
        """Hang up on everybody, and on whoever comes."""
        self._away = True
        streams, self._streams = self._streams, []
        for stream in streams:
            await stream.aclose()

    def come_back(self) -> None:
        """Serve again; the sessions of before have expired, and their nodes are gone."""
        self._away, self._lost_sessions = False, self.sessions
        self.nodes = {path: node for path, node in self.nodes.items() if not node.owner}

    async def serve(self, stream: SocketStream) -> None:
        self.dialled += 1
        if self._away:
            return
        self._streams.append(stream)
        frames = BufferedByteReceiveStream(stream)
        greeting = _Request(await self._frame(frames))
        greeting.take(16)
        session = greeting.long()
        timeout_ms = self._timeout_ms
        if not session:
            self.sessions += 1
            session = self.sessions
        elif session <= self._lost_sessions:
            session = timeout_ms = 0
        head = bytes(4) + _INT.pack(timeout_ms) + _LONG.pack(session) + _buffer(bytes(16)) + b"\0"
        await stream.send(_buffer(head))
        while timeout_ms:
            await stream.send(_buffer(self._answer(_Request(await self._frame(frames)), session)))

    async def _frame(self, frames: BufferedByteReceiveStream) -> bytes:
        return await frames.receive_exactly(_INT.unpack(await frames.receive_exactly(4))[0])

    def _answer(self, request: _Request, session: int) -> bytes:
        xid, op = request.number(), request.number()
        try:
            return _REPLY.pack(xid, 1, 0) + self._do(op, request, session)
        except _Refused as refused:
            return _REPLY.pack(xid, 1, refused.args[0])

    def _do(self, op: int, request: _Request, session: int) -> bytes:
        if op == _CLOSE:
            self.nodes = {path: node for path, node in self.nodes.items() if node.owner != session}
        if op not in (_CREATE, _DELETE, _EXISTS, _GET_DATA, _SET_DATA, _GET_CHILDREN):
            return b""
        path = (request.buffer() or b"").decode()
        if op == _CREATE:
            return self._create(path, request, session)
        node = self.nodes.get(path)
        if node is None:
            raise _Refused(_NO_NODE)
        if op == _DELETE:
            del self.nodes[path]
            return b""
        if op == _SET_DATA:
            node.data = request.buffer()
        if op == _GET_CHILDREN:
            names = [name.rpartition("/")[2] for name in self.nodes if name.rpartition("/")[0] == path]
            return _INT.pack(len(names)) + b"".join(_buffer(name.encode()) for name in names)
        data = b"" if op != _GET_DATA else _buffer(node.data)
        return data + _STAT.pack(0, 0, 0, 0, 0, 0, 0, node.owner, 0, 0, 0)

    def _create(self, path: str, request: _Request, session: int) -> bytes:
        data, parent = request.buffer(), path.rpartition("/")[0]
        if path in self.nodes:
            raise _Refused(_NODE_EXISTS)
        if parent and parent not in self.nodes:
            raise _Refused(_NO_NODE)
        self.nodes[path] = _Node(data, session if request.flags() else 0)
        return _buffer(path.encode())


def _buffer(data: bytes | None) -> bytes:
    return _INT.pack(-1) if data is None else _INT.pack(len(data)) + data


@asynccontextmanager
async def memory_zookeeper(timeout_ms: int = 600) -> AsyncIterator[MemoryZooKeeper]:
    """A server that grants this session timeout."""
    zookeeper = MemoryZooKeeper(timeout_ms)
    async with tcp_server(zookeeper.serve) as zookeeper.address:
        yield zookeeper
