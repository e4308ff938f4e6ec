"""A ZooKeeper in memory, for tests on a clock that jumps: nodes, sessions and ephemeral nodes, and no watches."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from struct import Struct

import anyio
import attrs
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream

from aiokafkawire.legacy.errors import NodeExists, NoNode
from aiokafkawire.legacy.jute import Op, Reader
from aiokafkawire.testing.serving.memory import memory_connection

__all__ = ("MemoryZooKeeper", "memory_zookeeper")

_SIZE, _REPLY, _STAT = Struct(">i"), Struct(">iqi"), Struct(">qqqqiiiqiiq")


@attrs.define
class _Node:
    data: bytes | None
    owner: int = 0


class MemoryZooKeeper:
    """One server. It is reached by :meth:`connect`, until :meth:`leave` and again from :meth:`come_back` on."""

    def __init__(self, tasks: anyio.abc.TaskGroup, timeout_ms: int) -> None:
        self.nodes: dict[str, _Node] = {}
        self.sessions = 0
        """How many were begun."""
        self._tasks, self._timeout_ms = tasks, timeout_ms
        self._streams: list[ByteStream] = []
        self._away = False

    async def connect(self, host: str, port: int) -> ByteStream:
        await anyio.lowlevel.checkpoint()
        if self._away:
            raise ConnectionRefusedError("ZooKeeper is away")
        theirs, ours = memory_connection()
        self._streams.append(ours)
        self._tasks.start_soon(self._serve, ours)
        return theirs

    async def leave(self) -> None:
        """Hang up on everybody, and listen no longer."""
        self._away = True
        for stream in self._streams:
            await stream.aclose()

    def come_back(self) -> None:
        """Listen again; the sessions of before have expired, and their nodes are gone."""
        self._away = False
        self.nodes = {path: node for path, node in self.nodes.items() if not node.owner}

    async def _serve(self, stream: ByteStream) -> None:
        frames = BufferedByteReceiveStream(stream)
        broken = (anyio.IncompleteRead, anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)
        with suppress(*broken):
            await self._frame(frames)  # whoever asks for an old session gets a new number: it has expired
            self.sessions += 1
            session = self.sessions
            head = bytes(4) + self._timeout_ms.to_bytes(4) + session.to_bytes(8) + b"\0\0\0\x10" + bytes(17)
            await stream.send(_SIZE.pack(len(head)) + head)
            while True:
                answer = self._answer(Reader(await self._frame(frames), "request"), session)
                await stream.send(_SIZE.pack(len(answer)) + answer)

    async def _frame(self, frames: BufferedByteReceiveStream) -> bytes:
        return await frames.receive_exactly(_SIZE.unpack(await frames.receive_exactly(4))[0])

    def _answer(self, request: Reader, session: int) -> bytes:
        xid, op = request.int32(), request.int32()
        try:
            return _REPLY.pack(xid, 1, 0) + self._do(op, request, session)
        except (NoNode, NodeExists) as error:
            return _REPLY.pack(xid, 1, error.code)

    def _do(self, op: int, request: Reader, session: int) -> bytes:
        if op == Op.CLOSE_SESSION:
            self.nodes = {path: node for path, node in self.nodes.items() if node.owner != session}
        if op not in (Op.CREATE, Op.DELETE, Op.EXISTS, Op.GET_DATA, Op.SET_DATA, Op.GET_CHILDREN):
            return b""
        path = request.string()
        if op == Op.CREATE:
            return self._create(path, request, session)
        node = self.nodes.get(path)
        if node is None:
            raise NoNode
        if op == Op.DELETE:
            del self.nodes[path]
        if op == Op.SET_DATA:
            node.data = request.buffer()
        if op == Op.GET_CHILDREN:
            found = [one.rpartition("/")[2] for one in self.nodes if one.rpartition("/")[0] == path]
            return _SIZE.pack(len(found)) + b"".join(_SIZE.pack(len(one)) + one.encode() for one in found)
        data = b"" if op != Op.GET_DATA else _buffer(node.data)
        return data + _STAT.pack(0, 0, 0, 0, 0, 0, 0, node.owner, 0, 0, 0)

    def _create(self, path: str, request: Reader, session: int) -> bytes:
        data, parent = request.buffer(), path.rpartition("/")[0]
        request.take(request.left - 4)
        if path in self.nodes:
            raise NodeExists
        if parent and parent not in self.nodes:
            raise NoNode
        self.nodes[path] = _Node(data, session if request.int32() else 0)
        return _buffer(path.encode())


def _buffer(data: bytes | None) -> bytes:
    return _SIZE.pack(-1) if data is None else _SIZE.pack(len(data)) + data


@asynccontextmanager
async def memory_zookeeper(timeout_ms: int = 6_000) -> AsyncIterator[MemoryZooKeeper]:
    """A server that grants this session timeout."""
    async with anyio.create_task_group() as tasks:
        yield MemoryZooKeeper(tasks, timeout_ms)
        tasks.cancel_scope.cancel()
