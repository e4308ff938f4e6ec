"""One connection of a broker: frames in, requests answered one after the other, frames out."""

import logging
from struct import Struct
from typing import Final

import anyio
from anyio.abc import ByteReceiveStream, ByteStream

from ..errors import WireError
from ..protocol.api import ApiKey, RequestHeader, ResponseHeader, request_header_version, response_header_version
from ..protocol.compiler import decode, decode_prefix, encode_into
from ..protocol.messages.metadata import ApiVersionsRequest
from ..protocol.primitives import Buffer
from ..protocol.schema import Message
from .apis import APIS
from .call import Call, Peer
from .handlers.metadata import unsupported_api_versions
from .refused import Disconnect
from .state import Node

__all__ = ("MAX_FRAME", "serve")

MAX_FRAME: Final = 100 * 1024 * 1024
"""``socket.request.max.bytes``: a client that announces a larger frame is cut off."""

_CHUNK: Final = 256 * 1024
_SIZE: Final = Struct(">i")
_KEY_AND_VERSION: Final = Struct(">hh")

_log = logging.getLogger(__name__)


async def serve(node: Node, stream: ByteStream, peer: Peer) -> None:
    """Answer the requests of one connection in their order, until it ends or is beyond repair.

    Closes the stream. What a handler raises comes out: it is a bug.
    """
    frames = _Frames(stream)
    try:
        while (frame := await frames.next()) is not None:
            answer = await _answer(node, peer, frame)
            if answer is not None:
                await stream.send(answer)
    except Disconnect as reason:
        _log.warning("node %d hangs up on %s: %s", node.node_id, peer.name, reason)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        _log.debug("node %d: %s is gone", node.node_id, peer.name)
    finally:
        with anyio.CancelScope(shield=True):  # closing a stream takes no time, and must not be left half done
            await stream.aclose()


class _Frames:
    """Cuts a stream into frames; holds one frame at most, and less than a chunk of the next."""

    def __init__(self, stream: ByteReceiveStream) -> None:
        self._stream = stream
        self._chunk = b""
        self._position = 0

    async def next(self) -> bytes | None:
        """The next frame without its size; None at the end of the stream.

        Raises:
            Disconnect: the size cannot be, or the stream ends in the middle of a frame.
        """
        prefix = await self._exactly(_SIZE.size)
        if prefix is None:
            return None
        (size,) = _SIZE.unpack(prefix)
        if not 0 <= size <= MAX_FRAME:
            raise Disconnect(f"a frame of {size} bytes, with {MAX_FRAME} the most")
        frame = await self._exactly(size)
        if frame is None:
            raise Disconnect(f"the connection ended before a frame of {size} bytes")
        return frame

    async def _exactly(self, size: int) -> bytes | None:
        end = self._position + size
        if end <= len(self._chunk):
            taken = self._chunk[self._position : end]
            self._position = end
            return taken
        parts = [self._chunk[self._position :]]
        missing = size - len(parts[0])
        self._chunk, self._position = b"", 0
        while missing > 0:
            try:
                chunk = await self._stream.receive(_CHUNK)
            except anyio.EndOfStream:
                if missing == size:
                    return None
                raise Disconnect(f"the connection ended with {missing} of {size} bytes missing") from None
            if len(chunk) > missing:
                self._chunk, self._position = chunk, missing
                chunk = chunk[:missing]
            parts.append(chunk)
            missing -= len(chunk)
        return b"".join(parts)


async def _answer(node: Node, peer: Peer, frame: bytes) -> bytes | None:
    """The frame that answers a request's frame; None if none does.

    Raises:
        Disconnect: nothing can.
    """
    if len(frame) < _KEY_AND_VERSION.size:
        raise Disconnect(f"a request of {len(frame)} bytes")
    key, version = _KEY_AND_VERSION.unpack_from(frame)
    api = APIS.get(key)
    if api is None:
        raise Disconnect(f"a request with API key {key}, which is not served")
    if version not in api.served:
        if key == ApiKey.API_VERSIONS:
            header, _ = _header(frame, request_header_version(ApiVersionsRequest, version))
            # The one answer in another version than asked: v0, which every client can read (KIP-511).
            return _frame(header.correlation_id, 0, unsupported_api_versions(node), 0)
        raise Disconnect(f"{api.request.__name__} v{version}, with {api.served} served")
    header, position = _header(frame, request_header_version(api.request, version))
    try:
        request = decode(api.request, version, frame, position)
    except WireError as fault:
        raise Disconnect(str(fault)) from fault
    response = await api.handle(Call(node, peer, version, header.client_id), request)
    if response is None:
        return None
    return _frame(header.correlation_id, response_header_version(api.request, version), response, version)


def _header(frame: bytes, version: int) -> tuple[RequestHeader, int]:
    try:
        return decode_prefix(RequestHeader, version, frame)
    except WireError as fault:
        raise Disconnect(str(fault)) from fault


def _frame(correlation_id: int, header_version: int, response: Message, version: int) -> bytes:
    parts: list[Buffer] = [b""]
    encode_into(ResponseHeader(correlation_id=correlation_id), header_version, parts)
    encode_into(response, version, parts)
    parts[0] = _SIZE.pack(sum(map(len, parts)))
    return b"".join(parts)
