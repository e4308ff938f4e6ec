"""A broker of Kafka 0.7 in memory: ``async with LegacyServer() as server``; clients use ``server.connect``."""

import random
from collections.abc import Callable
from struct import Struct
from types import TracebackType
from typing import Any, Final, Self

import anyio
from anyio.abc import ByteStream
from anyio.lowlevel import checkpoint
from anyio.streams.buffered import BufferedByteReceiveStream

from ...errors import WireError
from ...legacy.decoding import decode_request
from ...legacy.requests import Request, encode_answer
from ...runtime import Owner, system_wall_ms
from ..serving.memory import memory_connection
from .logs import HangUp, LegacyLogs, LegacySettings

__all__ = ("LegacyServer",)

_SIZE: Final = Struct(">i")


class LegacyServer:
    """A broker of Kafka 0.7 that serves in-memory connections while its context is open.

    Args:
        logs: the logs to serve; by default new ones with ``settings``.
        host: the host name for clients.
        port: the port for clients.
        settings: see :class:`~aiokafkawire.testing.legacy.logs.LegacySettings`.

    Attributes:
        logs: the logs; ``logs.content(topic, partition)`` returns the messages.
        requests: the requests that were received.
        held: a function that a test may set; if it returns True for a request, this request and all later ones on the
            connection wait for :meth:`release`.
        connections: the number of connections opened so far.
    """

    def __init__(
        self, logs: LegacyLogs | None = None, *, host: str = "legacy", port: int = 9092, **settings: Any
    ) -> None:
        self.host: str = host
        self.port: int = port
        self.logs: LegacyLogs = logs or LegacyLogs(LegacySettings(**settings), clock=system_wall_ms, choose=_by_chance)
        self.requests: list[Request] = []
        self.held: Callable[[Request], bool] = lambda request: False
        self.connections: int = 0
        self._streams: set[ByteStream] = set()
        self._released = anyio.Event()
        self._owner: Owner | None = None

    def release(self) -> None:
        """Answer the held requests, and hold no further ones."""
        self.held = lambda request: False
        self._released.set()

    async def connect(self, host: str, port: int) -> ByteStream:
        """Open a connection; clients use this method as their connector.

        Raises:
            ConnectionRefusedError: the server is not open, or has another address.
        """
        await checkpoint()
        if self._owner is None or (host, port) != (self.host, self.port):
            raise ConnectionRefusedError(f"nothing listens at {host}:{port}")
        theirs, ours = memory_connection()
        self.connections += 1
        self._streams.add(ours)
        self._owner.spawn(self._serve, ours)
        return theirs

    async def hang_up(self) -> None:
        """Close all connections."""
        for stream in list(self._streams):
            await stream.aclose()

    async def __aenter__(self) -> Self:
        self._owner = Owner()
        await self._owner.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        owner, self._owner = self._owner, None
        if owner is not None:
            await owner.close()

    async def _serve(self, stream: ByteStream) -> None:
        frames = BufferedByteReceiveStream(stream)
        try:
            while True:
                (size,) = _SIZE.unpack(await frames.receive_exactly(_SIZE.size))
                if not 0 < size <= self.logs.settings.max_socket_request_bytes:
                    return
                request = decode_request(await frames.receive_exactly(size), whole=False)
                self.requests.append(request)
                if self.held(request):
                    if self._released.is_set():
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


def _by_chance(request: object, count: int) -> int:
    return random.randrange(count)  # noqa: S311
