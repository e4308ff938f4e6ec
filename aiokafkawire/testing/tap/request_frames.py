"""Frames of requests and responses as a proxy sees them: decoded where possible, with their bytes kept."""

from struct import Struct
from typing import Any, Final

import attrs

from ...errors import ErrorCode, KafkaError, UnsupportedVersion, WireError
from ...protocol.api import (
    ApiKey,
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from ...protocol.compiler import decode_prefix, encode_into
from ...protocol.message_registry import request_of
from ...protocol.messages.metadata import ApiVersionsResponse
from ...protocol.messages.produce import ProduceRequest
from ...protocol.primitives import Buffer
from ...protocol.schema import Message, Request, Response

__all__ = ("ParsedRequest", "ParsedResponse", "parse_request", "parse_response", "prefixed")

_HEAD: Final = Struct(">hhi")
_SIZE: Final = Struct(">i")
_NO_API: Final = -1


@attrs.frozen(eq=False)
class ParsedRequest:
    """A request frame, decoded as far as its API and version are known."""

    frame: bytes = attrs.field(repr=False)
    """The frame's bytes, without the size field."""
    api_key: int = _NO_API
    """The number in the header; -1 if the frame has no header."""
    version: int = -1
    correlation_id: int = -1
    client_id: str | None = None
    request: type[Request[Response]] | None = None
    """The request's class; None if the API or the version is unknown."""
    message: Request[Response] | None = None
    """The decoded request; None if it cannot be decoded."""
    body: int = 0
    """The position of the message in the frame."""
    note: str = ""
    """The reason why there is no message."""

    @property
    def api(self) -> str:
        """The API's name in Kafka's documentation, such as ``ListOffsets``; ``API 99`` for an unknown key."""
        if self.api_key == _NO_API:
            return "SASL token" if self.is_token else "unknown"
        try:
            return ApiKey(self.api_key).name.title().replace("_", "")
        except ValueError:
            return f"API {self.api_key}"

    @property
    def is_token(self) -> bool:
        """Whether the frame is a token of a SASL mechanism, which has no header after SaslHandshake v0."""
        return self.note == _TOKEN_NOTE

    @property
    def has_response(self) -> bool:
        """Whether the broker answers the request: it does not answer Produce with acks=0."""
        return not (isinstance(self.message, ProduceRequest) and self.message.acks == 0)

    def replaced(self, message: Request[Response]) -> "ParsedRequest":
        """Return this request with another message; the header is the same."""
        parts: list[Buffer] = [self.frame[: self.body]]
        encode_into(message, self.version, parts)
        return attrs.evolve(self, frame=b"".join(parts), message=message)


_TOKEN_NOTE: Final = "a token of the SASL mechanism, passed on unread"  # noqa: S105  # not a password


def parse_request(frame: bytes, *, expects_tokens: bool = False) -> ParsedRequest:
    """Decode a request frame as far as possible.

    Args:
        frame: the frame without its size field.
        expects_tokens: whether a frame that is no request is a SASL token: the client has sent SaslHandshake v0.
    """
    if len(frame) < _HEAD.size:
        note = _TOKEN_NOTE if expects_tokens else f"{len(frame)} bytes are no request, passed on unread"
        return ParsedRequest(frame, note=note)
    key, version, correlation_id = _HEAD.unpack_from(frame)
    try:
        request = request_of(key)
    except UnsupportedVersion:
        if expects_tokens:
            return ParsedRequest(frame, note=_TOKEN_NOTE)
        return _unknown(frame, f"unknown API key {key}, passed on unread")
    if version not in request.versions:
        if expects_tokens:
            return ParsedRequest(frame, note=_TOKEN_NOTE)
        return _unknown(frame, f"unknown version, passed on unread; known versions: {request.versions}")
    try:
        header, body = decode_prefix(RequestHeader, request_header_version(request, version), frame)
        # Kafka ignores bytes after a request, and librdkafka's Metadata v13 has three.
        message, _ = decode_prefix(request, version, frame, body)
    except WireError as fault:
        if expects_tokens:
            return ParsedRequest(frame, note=_TOKEN_NOTE)
        return attrs.evolve(_unknown(frame, f"not decoded, passed on unread: {fault}"), request=request)
    return ParsedRequest(frame, key, version, correlation_id, header.client_id, request, message, body)


def _unknown(frame: bytes, note: str) -> ParsedRequest:
    key, version, correlation_id = _HEAD.unpack_from(frame)
    try:
        client_id = decode_prefix(RequestHeader, 1, frame)[0].client_id
    except WireError:
        client_id = None
    return ParsedRequest(frame, key, version, correlation_id, client_id, note=note)


@attrs.define(eq=False)
class ParsedResponse:
    """A response frame, decoded if the request was."""

    frame: bytes = attrs.field(repr=False)
    """The frame's bytes, without the size field."""
    version: int = -1
    """The version of the message; not that of the request for ApiVersions that the broker does not support."""
    message: Response | None = None
    """The decoded response; None if it cannot be decoded."""
    body: int = 0
    """The position of the message in the frame."""
    note: str = ""
    """The reason why there is no message."""
    changed: bool = False
    """Whether the message was changed, so that the frame must be encoded again."""

    def encoded(self) -> bytes:
        """Return the frame to send, with its size: the bytes of the broker, or those of the changed message."""
        if self.message is None or not self.changed:
            return prefixed(self.frame)
        return prefixed(self.frame[: self.body], self.message, self.version)


def prefixed(head: bytes, message: Message | None = None, version: int = 0) -> bytes:
    """Return a frame with its size field: ``head``, and a message after it, if any."""
    parts: list[Buffer] = [b"", head]
    if message is not None:
        encode_into(message, version, parts)
    parts[0] = _SIZE.pack(sum(map(len, parts)))
    return b"".join(parts)


def parse_response(asked: ParsedRequest, frame: bytes) -> ParsedResponse:
    """Decode the response to a request as far as possible."""
    if asked.request is None:
        return ParsedResponse(frame, note=asked.note)
    try:
        return _response(asked.request, asked.version, asked.version, frame)
    except KafkaError as fault:
        if asked.api_key == ApiKey.API_VERSIONS and asked.version:
            refused = _refused_version(asked.request, asked.version, frame)
            if refused is not None:
                return refused
        return ParsedResponse(frame, note=f"not decoded, passed on unread: {fault}")


def _refused_version(request: type[Request[Response]], version: int, frame: bytes) -> ParsedResponse | None:
    """Decode the response to ApiVersions in an unsupported version, which is in v0 (KIP-511); None for others."""
    try:
        response = _response(request, version, 0, frame)
    except KafkaError:
        return None
    message: Any = response.message
    is_refused = isinstance(message, ApiVersionsResponse) and message.error_code == ErrorCode.UNSUPPORTED_VERSION
    return response if is_refused else None


def _response(request: type[Request[Response]], asked: int, version: int, frame: bytes) -> ParsedResponse:
    _, body = decode_prefix(ResponseHeader, response_header_version(request, asked), frame)
    message, _ = decode_prefix(request.response, version, frame, body)
    return ParsedResponse(frame, version, message, body)
