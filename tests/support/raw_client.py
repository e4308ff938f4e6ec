"""A Kafka client of thirty lines: one connection, requests encoded and answers decoded, nothing decided."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self, TypeVar, cast

from aiokafkawire.protocol.api import RequestHeader, ResponseHeader, request_header_version, response_header_version
from aiokafkawire.protocol.compiler import decode, decode_prefix, encode
from aiokafkawire.protocol.schema import Request, Response
from anyio import EndOfStream
from anyio.abc import ByteStream

__all__ = ("RawClient",)

R = TypeVar("R", bound=Response)


class RawClient:
    """Speaks over an open stream, which it closes with its context."""

    def __init__(self, stream: ByteStream) -> None:
        self.stream = stream
        self._correlation_id = 0
        self._received = bytearray()

    async def ask(self, request: Request[R], version: int) -> R:
        """Send one request and wait for its answer."""
        correlation_id = await self.send(request, version)
        return cast(R, await self.answer(type(request), version, correlation_id))

    async def send(self, request: Request[Any], version: int) -> int:
        """Send one request; its correlation id."""
        self._correlation_id += 1
        header = RequestHeader(
            request_api_key=request.api_key,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id="raw",
        )
        head = encode(header, request_header_version(type(request), version))
        await self.send_frame(head + encode(request, version))
        return self._correlation_id

    async def answer(self, request: type[Request[Any]], version: int, correlation_id: int) -> Response:
        """The next answer, which must be to that request."""
        frame = await self.frame()
        header, position = decode_prefix(ResponseHeader, response_header_version(request, version), frame)
        assert header.correlation_id == correlation_id
        return decode(request.response, version, frame, position)

    async def send_frame(self, frame: bytes) -> None:
        await self.stream.send(len(frame).to_bytes(4) + frame)

    async def frame(self) -> bytes:
        """The next frame; EndOfStream if the broker has hung up."""
        size = int.from_bytes(await self._exactly(4))
        return await self._exactly(size)

    async def hung_up(self) -> bool:
        """Whether the broker closes the connection, and sends nothing before."""
        try:
            await self.frame()
        except EndOfStream:
            return True
        return False

    async def _exactly(self, size: int) -> bytes:
        while len(self._received) < size:
            self._received += await self.stream.receive(1 << 18)
        taken = bytes(self._received[:size])
        del self._received[:size]
        return taken

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stream.aclose()
