"""A broker of Kafka 0.7 in memory, for one test: `async with LegacyServer() as server`, then `server.connect`."""

from collections.abc import Callable
from struct import Struct
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import ByteStream, TaskGroup
from anyio.lowlevel import checkpoint
from anyio.streams.buffered import BufferedByteReceiveStream
from support.legacy_log import HangUp, LegacyLogs, LegacySettings

from aiokafkawire.errors import WireError
from aiokafkawire.legacy.decoding import decode_request
from aiokafkawire.legacy.requests import Request, encode_answer
from aiokafkawire.network.stream import Connector
from aiokafkawire.testing.serving.memory import memory_connection

__all__ = ("LegacyServer", "connector")

_SIZE = Struct(">i")


class LegacyServer:
    """Serves connections over memory while its context is open.

    `requests` is what it was asked. What `held` says yes to is not answered, nor is what comes behind it, until
    `release` is called.
    """

    def __init__(
        self, logs: LegacyLogs | None = None, *, host: str = "legacy", port: int = 9092, **settings: object
    ) -> None:
        self.host, self.port = host, port
        self.logs = logs or LegacyLogs(LegacySettings(**settings))  # type: ignore[arg-type]
        self.requests: list[Request] = []
        self.held: Callable[[Request], bool] = lambda request: False
        self.connections = 0
        self._streams: set[ByteStream] = set()
        self._released = anyio.Event()
        self._tasks: TaskGroup | None = None

    def release(self) -> None:
        """Answer what was held."""
        self.held = lambda request: False
        self._released.set()

    async def connect(self, host: str, port: int) -> ByteStream:
        """The connector."""
        await checkpoint()
        if self._tasks is None or (host, port) != (self.host, self.port):
            raise ConnectionRefusedError(f"nothing listens at {host}:{port}")
        theirs, ours = memory_connection()
        self.connections += 1
        self._streams.add(ours)
        self._tasks.start_soon(self._serve, ours)
        return theirs

    async def hang_up(self) -> None:
        """Close all connections."""
        for stream in list(self._streams):
            await stream.aclose()

    async def __aenter__(self) -> Self:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks, self._tasks = self._tasks, None
        assert tasks is not None
        tasks.cancel_scope.cancel()
        await tasks.__aexit__(kind, error, trace)

    async def _serve(self, stream: ByteStream) -> None:
        frames = BufferedByteReceiveStream(stream)
        try:
            while True:
                (size,) = _SIZE.unpack(await frames.receive_exactly(_SIZE.size))
                if not 0 < size <= self.logs.settings.max_socket_request_bytes:
                    return
                request = decode_request(await frames.receive_exactly(size))
                self.requests.append(request)
                if self.held(request):
                    self._released = anyio.Event()
                    await self._released.wait()
                answer = self.logs.answer(request)
                if answer is not None:
                    await stream.send(encode_answer(answer))
        except HangUp as end:
            await stream.send(end.answer)
        except (WireError, anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return
        finally:
            self._streams.discard(stream)
            with anyio.CancelScope(shield=True):
                await stream.aclose()


def connector(*servers: LegacyServer) -> Connector:
    """One connector for several."""
    by_address = {(server.host, server.port): server for server in servers}

    async def connect(host: str, port: int) -> ByteStream:
        server = by_address.get((host, port))
        if server is None:
            await checkpoint()
            raise ConnectionRefusedError(f"nothing listens at {host}:{port}")
        return await server.connect(host, port)

    return connect
