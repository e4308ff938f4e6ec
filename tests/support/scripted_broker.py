"""A broker whose every answer the test decides: what, when, and whether at all; and streams that misbehave."""

from collections import deque
from collections.abc import Callable, Mapping
from struct import Struct
from types import TracebackType
from typing import Any, Self

import anyio
import attrs
from anyio.abc import ByteStream, TaskGroup
from anyio.lowlevel import checkpoint
from anyio.streams.buffered import BufferedByteReceiveStream
from support.vectors import declared_messages

from aiokafkawire.protocol.api import (
    ApiKey,
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from aiokafkawire.protocol.compiler import decode, decode_prefix, encode
from aiokafkawire.protocol.messages.metadata import ApiVersion, ApiVersionsResponse
from aiokafkawire.protocol.schema import Request, Response, Versions
from aiokafkawire.testing.serving.memory import memory_connection

from .patience import SOON

__all__ = ("Asked", "HeldStream", "Peer", "ScriptedBroker", "answer_frame", "api_versions")

_REQUESTS = {cls.api_key: cls for cls in declared_messages().values() if issubclass(cls, Request)}
_SIZE = Struct(">i")
_KEY_AND_VERSION = Struct(">hh")

SPOKEN: Mapping[int, Versions] = {key: cls.stable for key, cls in _REQUESTS.items()}
"""Every version of every request that a client may choose."""


def api_versions(spoken: Mapping[int, Versions], error_code: int = 0) -> ApiVersionsResponse:
    """The answer to ApiVersions."""
    keys = [ApiVersion(api_key=key, min_version=one.first, max_version=one.last) for key, one in spoken.items()]
    return ApiVersionsResponse(error_code=error_code, api_keys=keys)


def answer_frame(request: type[Request[Any]], version: int, correlation_id: int, response: Response) -> bytes:
    """An answer as it stands on the wire, its size included."""
    header = encode(ResponseHeader(correlation_id=correlation_id), response_header_version(request, version))
    body = encode(response, version)
    return _SIZE.pack(len(header) + len(body)) + header + body


@attrs.frozen(eq=False)
class Asked:
    """A request that came, to be answered or not."""

    peer: "Peer"
    request: Any
    version: int
    correlation_id: int

    async def answer(self, response: Response, *, version: int | None = None) -> None:
        """Send the answer, in another version than asked if one is given."""
        spoken = self.version if version is None else version
        await self.peer.stream.send(answer_frame(type(self.request), spoken, self.correlation_id, response))


class Peer:
    """The broker's end of one connection."""

    def __init__(self) -> None:
        theirs, self.stream = memory_connection()
        self.client = HeldStream(theirs)
        """The client's end."""
        self.gone = False
        """Whether the client has hung up."""
        self._arrived: deque[Asked] = deque()
        self._changed = anyio.Event()

    async def next(self) -> Asked:
        """The next request that no handler took."""
        with anyio.fail_after(SOON):
            while not self._arrived:
                await self._changed.wait()
        return self._arrived.popleft()

    async def hung_up(self) -> None:
        """Wait until the client has closed the connection."""
        with anyio.fail_after(SOON):
            while not self.gone:
                await self._changed.wait()

    def _notify(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def _read(self, handle: Callable[[Asked], Response | None]) -> None:
        frames = BufferedByteReceiveStream(self.stream)
        try:
            while True:
                (size,) = _SIZE.unpack(await frames.receive_exactly(_SIZE.size))
                asked = self._asked(await frames.receive_exactly(size))
                answer = handle(asked)
                if answer is not None:
                    await asked.answer(answer)
                else:
                    self._arrived.append(asked)
                    self._notify()
        except (anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
            self.gone = True
            self._notify()

    def _asked(self, frame: bytes) -> Asked:
        key, version = _KEY_AND_VERSION.unpack_from(frame)
        cls = _REQUESTS[key]
        header, position = decode_prefix(RequestHeader, request_header_version(cls, version), frame)
        return Asked(self, decode(cls, version, frame, position), version, header.correlation_id)


class ScriptedBroker:
    """Takes connections while its context is open. ApiVersions is answered from ``spoken``, unless that is None.

    Requests with a handler in ``on`` get its answer; the others, and those whose handler gives None, wait in
    :meth:`Peer.next`. Give :meth:`connect` to the client as its connector.
    """

    def __init__(self, spoken: Mapping[int, Versions] | None = SPOKEN) -> None:
        self.peers: list[Peer] = []
        self.on: dict[int, Callable[[Asked], Response | None]] = {}
        self.seen: list[Any] = []
        """Every request that came, ApiVersions left out."""
        if spoken is not None:
            self.on[ApiKey.API_VERSIONS] = lambda _: api_versions(spoken)
        self._tasks: TaskGroup | None = None

    def count(self, request: type[Request[Any]]) -> int:
        """How many requests of a class came."""
        return sum(isinstance(one, request) for one in self.seen)

    async def connect(self, host: str, port: int) -> ByteStream:
        """The connector."""
        await checkpoint()
        if self._tasks is None:
            raise ConnectionRefusedError(f"nothing listens at {host}:{port}")
        peer = Peer()
        self.peers.append(peer)
        self._tasks.start_soon(peer._read, self._handle)
        return peer.client

    def _handle(self, asked: Asked) -> Response | None:
        key = asked.request.api_key
        if key != ApiKey.API_VERSIONS:
            self.seen.append(asked.request)
        handler = self.on.get(key)
        return handler(asked) if handler is not None else None

    async def __aenter__(self) -> Self:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks, self._tasks = self._tasks, None
        assert tasks is not None
        for peer in self.peers:
            with anyio.CancelScope(shield=True):
                await peer.stream.aclose()
        tasks.cancel_scope.cancel()
        await tasks.__aexit__(kind, error, trace)


class HeldStream(ByteStream):
    """A client's end whose sends wait for ``released``, take ``step`` bytes at a time, and may fail with ``fault``."""

    def __init__(self, stream: ByteStream) -> None:
        self.stream = stream
        self.released = anyio.Event()
        self.released.set()
        self.sending = anyio.Event()
        """Set when a send began that has to wait."""
        self.step = 1 << 20
        self.fault: Exception | None = None
        self.lingering = anyio.Event()
        """Until it is set, a close takes its time."""
        self.lingering.set()

    def hold(self) -> None:
        """Sends that begin from now on wait."""
        self.released, self.sending = anyio.Event(), anyio.Event()

    async def send(self, item: bytes) -> None:
        if not self.released.is_set():
            self.sending.set()
            await self.released.wait()
        if self.fault is not None:
            await self.stream.send(item[: len(item) // 2])
            raise self.fault
        for start in range(0, len(item), self.step):
            await self.stream.send(item[start : start + self.step])
            await checkpoint()

    async def receive(self, max_bytes: int = 65536) -> bytes:
        return await self.stream.receive(max_bytes)

    async def send_eof(self) -> None:
        await self.stream.send_eof()

    async def aclose(self) -> None:
        self.released.set()
        await self.lingering.wait()
        await self.stream.aclose()
