"""A client's connection on which the answers of chosen requests are altered before the client gets them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

import anyio
import attrs
from anyio.abc import ByteStream
from support.made import made

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey, ResponseHeader, response_header_version
from aiokafkawire.protocol.compiler import decode, decode_prefix, encode
from aiokafkawire.protocol.message_registry import request_of
from aiokafkawire.protocol.messages.metadata import ApiVersion, ApiVersionsResponse
from aiokafkawire.protocol.schema import Message
from aiokafkawire.testing.virtual.network import Dial

from .alterations import UNWRITABLE
from .wire import Pieces

__all__ = ("Hostility", "hostile_dial")

_REQUEST = Struct(">ihhi")
_SUBSTITUTE = Struct(">ihhih")
"""A whole request for the versions, which goes to the broker instead of a request that it does not know."""
_SIZE = Struct(">i")
_UNSUPPORTED = int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2, "big")
_SIZE_AND_ID = Struct(">ii")
_MARK = UNWRITABLE.encode()
_NO_TEXT = b"\xff\xfe\x80" * (len(_MARK) // 3)


class _Asked(NamedTuple):
    api_key: int
    version: int


@attrs.define(eq=False)
class Hostility:
    """What is done to the answers, while it is on, and what came of it."""

    api_key: int
    encode: Callable[[Message, int], bytes] | None = None
    """Makes the bytes of an altered answer from the honest one and its version."""
    wire: Callable[[bytes], Pieces] | None = None
    """Makes what is sent from a whole frame."""
    cap: int | None = None
    """The newest version of the request that the broker offers."""
    is_served: bool = True
    """Whether the brokers know the request; answers to others are made here, from default values."""
    is_on: bool = False
    altered: int = 0
    requests: int = 0

    def pieces(self, asked: _Asked, frame: bytes) -> Pieces:
        """Return what the client gets for a frame of the broker."""
        if asked.api_key == ApiKey.API_VERSIONS:
            if frame[8:10] == _UNSUPPORTED:  # in v0, so that every client can read it (KIP-511)
                asked = _Asked(asked.api_key, 0)
            frame = _rewritten(asked, frame, self._offer)
        if not self.is_on or asked.api_key != self.api_key:
            return iter((frame,))
        self.altered += 1
        if self.wire is not None:
            return self.wire(frame)
        assert self.encode is not None
        return iter((_rewritten(asked, frame, self.encode),))

    def _offer(self, message: Message, version: int) -> bytes:
        """Encode the answer to ApiVersions with the versions that this case needs."""
        assert isinstance(message, ApiVersionsResponse)
        if message.error_code:
            return encode(message, version)
        offered = {one.api_key: one for one in message.api_keys}
        if self.api_key not in offered:
            newest = request_of(self.api_key).stable
            one = ApiVersion(api_key=self.api_key, min_version=newest.first, max_version=newest.last)
            message.api_keys.append(one)
            self.is_served = False
        elif self.cap is not None:
            one = offered[self.api_key]
            one.max_version = max(one.min_version, min(one.max_version, self.cap))
        return encode(message, version)


def _rewritten(asked: _Asked, frame: bytes, change: Callable[[Message, int], bytes]) -> bytes:
    request = request_of(asked.api_key)
    version = asked.version
    _, at = decode_prefix(ResponseHeader, response_header_version(request, version), frame, _SIZE.size)
    body = change(decode(request.response, version, frame, at), version).replace(_MARK, _NO_TEXT)
    rest = frame[_SIZE.size : at] + body
    return _SIZE.pack(len(rest)) + rest


def _made_frame(asked: _Asked, correlation_id: int) -> bytes:
    request = request_of(asked.api_key)
    version = response_header_version(request, asked.version)
    header = encode(ResponseHeader(correlation_id=correlation_id), version)
    rest = header + encode(made(request.response), asked.version)
    return _SIZE.pack(len(rest)) + rest


class _HostileStream(ByteStream):
    """The client's end of a connection."""

    def __init__(self, inner: ByteStream, hostility: Hostility) -> None:
        self._inner, self._hostility = inner, hostility
        self._asked: dict[int, _Asked] = {}
        self._sent, self._received = bytearray(), bytearray()
        self._pending: deque[Pieces] = deque()

    async def send(self, item: bytes) -> None:
        self._sent += item
        while len(self._sent) >= _REQUEST.size:
            size, key, version, correlation_id = _REQUEST.unpack_from(self._sent)
            if len(self._sent) < size + _SIZE.size:
                break
            self._hostility.requests += 1
            self._asked[correlation_id] = _Asked(key, version)
            if key == self._hostility.api_key and not self._hostility.is_served:
                item = _SUBSTITUTE.pack(_SUBSTITUTE.size - _SIZE.size, ApiKey.API_VERSIONS, 0, correlation_id, -1)
            del self._sent[: size + _SIZE.size]
        await self._inner.send(item)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        while True:
            while self._pending:
                piece = next(self._pending[0], b"")
                if piece == b"":
                    self._pending.popleft()
                elif piece is None:
                    await self._inner.aclose()
                    raise anyio.EndOfStream
                elif isinstance(piece, float):
                    await anyio.sleep(piece)
                elif len(piece) > max_bytes:
                    self._pending.appendleft(iter((piece[max_bytes:],)))
                    return piece[:max_bytes]
                else:
                    return piece
            self._received += await self._inner.receive()
            self._take_frames()

    def _take_frames(self) -> None:
        while len(self._received) >= 8:
            size, correlation_id = _SIZE_AND_ID.unpack_from(self._received)
            if len(self._received) < size + _SIZE.size:
                return
            frame = bytes(self._received[: size + _SIZE.size])
            del self._received[: size + _SIZE.size]
            asked = self._asked.pop(correlation_id)
            if asked.api_key == self._hostility.api_key and not self._hostility.is_served:
                frame = _made_frame(asked, correlation_id)
            self._pending.append(self._hostility.pieces(asked, frame))

    async def send_eof(self) -> None:
        await self._inner.send_eof()

    async def aclose(self) -> None:
        await self._inner.aclose()


def hostile_dial(dial: Dial, hostility: Hostility) -> Dial:
    """Return a connector whose connections are altered."""

    async def connect(host: str, port: int) -> ByteStream:
        return _HostileStream(await dial(host, port), hostility)

    return connect
