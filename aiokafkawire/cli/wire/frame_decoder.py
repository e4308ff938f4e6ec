"""Decodes a frame to its header and message, or to a description of the problem."""

import re
from collections import deque
from collections.abc import Callable, Iterator
from struct import unpack_from
from typing import Final

import attrs

from ...errors import KafkaError, UnsupportedVersion, WireError
from ...protocol.api import (
    ApiKey,
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from ...protocol.compiler import decode, decode_prefix
from ...protocol.message_registry import request_of
from ...protocol.schema import Message, Request, Response
from .apis import name_of

__all__ = ("PendingRequests", "Reading", "position_of", "read_request", "read_response")

_POSITION: Final = re.compile(r": no [^(]*? at byte (\d+) of|after its end at byte (\d+)$")
_UNSUPPORTED_VERSION: Final = 35

AnyRequest = type[Request[Response]]


@attrs.frozen
class Reading:
    """The result of decoding a frame, which may be incomplete."""

    kind: str
    """``request``, ``response``, ``message`` (without a header) or ``SASL`` (bytes of a mechanism)."""
    request: AnyRequest | None = None
    """The request class of the frame's API, if the API is known."""
    version: int | None = None
    header: Message | None = None
    header_version: int = 0
    message: Message | None = None
    """The decoded message; None if decoding failed, with the reason in ``problem``."""
    notes: tuple[str, ...] = ()
    problem: str = ""
    position: int | None = None
    """The problem's position in the frame, in bytes."""
    others: tuple[int, ...] = ()
    """If decoding failed, other versions of the message that decode the bytes, newest first."""

    @property
    def correlation_id(self) -> int | None:
        """The id that matches a response with its request; None if the header was not decoded."""
        return getattr(self.header, "correlation_id", None)


class PendingRequests:
    """A collection of the requests that still await a response, by connection and correlation id."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, int], deque[tuple[AnyRequest, int]]] = {}
        self._connections: set[str] = set()
        self.bare_sasl: bool = False
        """Whether a SaslHandshake v0 was added: the SASL mechanism's bytes that follow it have no headers."""

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, reading: Reading, connection: str = "") -> None:
        """Add a request; ignore it if its API is unknown."""
        self._connections.add(connection)
        if reading.request is not None and reading.version is not None and reading.correlation_id is not None:
            pending = self._waiting.setdefault((connection, reading.correlation_id), deque())
            pending.append((reading.request, reading.version))
            if reading.request.api_key == ApiKey.SASL_HANDSHAKE and reading.version == 0:
                self.bare_sasl = True

    def of(self, data: bytes, connection: str = "") -> tuple[AnyRequest, int] | None:
        """Return the class and version of the oldest request with the response's correlation id, or None.

        Requests of other connections are used only if none of this connection was added.
        """
        key = self._key(data, connection)
        return None if key is None else self._waiting[key][0]

    def answered(self, data: bytes, connection: str = "") -> None:
        """Remove the request that the response ``data`` answers."""
        key = self._key(data, connection)
        assert key is not None
        waiting = self._waiting[key]
        waiting.popleft()
        if not waiting:
            del self._waiting[key]

    def _key(self, data: bytes, connection: str) -> tuple[str, int] | None:
        if len(data) < 4:
            return None
        (correlation_id,) = unpack_from(">i", data)
        if connection in self._connections:
            return (connection, correlation_id) if (connection, correlation_id) in self._waiting else None
        return next((key for key in self._waiting if key[1] == correlation_id), None)


def read_request(data: bytes) -> Reading:
    """Decode a request of the API that its header names. Errors are in :attr:`Reading.problem`."""
    if len(data) < 8:
        return Reading("request", problem=f"{len(data)} bytes, but a request's header has at least 8", position=0)
    api_key, version = unpack_from(">hh", data)
    try:
        request = request_of(api_key)
    except UnsupportedVersion as error:
        return Reading("request", problem=f"{error}{_other_protocol(data)}", position=0)
    known = version in request.versions
    # The header of an unknown newer version begins like that of the newest known version.
    header_version = request_header_version(request, version if known else request.versions.last)
    started = Reading("request", request, version, header_version=header_version)
    try:
        header, position = decode_prefix(RequestHeader, header_version, data)
    except WireError as error:
        return _failed(started, error, data)
    started = attrs.evolve(started, header=header)
    if not known:
        problem = f"{name_of(request)} v{version} is unknown; known versions: {request.versions}"
        return attrs.evolve(started, problem=problem, others=_others(started, data))
    try:
        return attrs.evolve(started, message=decode(request, version, data, position))
    except WireError as error:
        return _failed(started, error, data)


def read_response(data: bytes, request: AnyRequest, version: int | None, *, alone: bool = False) -> Reading:
    """Decode a response to a request. Errors are in :attr:`Reading.problem`.

    Args:
        data: the frame.
        request: the request's class.
        version: the request's version; None for the newest version that decodes the response.
        alone: whether to decode only this version; otherwise a failure lists other versions that decode the bytes.
    """
    if version is not None:
        return _response(data, request, version, alone)
    readings = [_response(data, request, candidate, alone=True) for candidate in _newest_first(request)]
    whole = [reading for reading in readings if not reading.problem]
    if whole:
        versions = tuple(reading.version for reading in whole[1:] if reading.version is not None)
        several = f"no version was given: this is the newest that decodes it; others: {_listed(versions)}"
        notes = (several,) if versions else ("no version was given: only this version decodes it",)
        return attrs.evolve(whole[0], notes=(*whole[0].notes, *notes))
    furthest = max(readings, key=lambda reading: reading.position or 0)
    name = request.response.__name__
    problem = f"no version of {name} ({request.versions}) decodes it; the longest attempt: {furthest.problem}"
    return attrs.evolve(furthest, problem=problem)


def _response(data: bytes, request: AnyRequest, version: int, alone: bool = False) -> Reading:
    header_version = response_header_version(request, version)
    started = Reading("response", request, version, header_version=header_version)
    try:
        header, position = decode_prefix(ResponseHeader, header_version, data)
        started = attrs.evolve(started, header=header)
        return attrs.evolve(started, message=decode(request.response, version, data, position))
    except (WireError, UnsupportedVersion) as error:
        if alone:
            return attrs.evolve(started, problem=str(error), position=position_of(error))
        return _answer_in_version_0(started, data) or _failed(started, error, data)


def _answer_in_version_0(started: Reading, data: bytes) -> Reading | None:
    """Decode an ApiVersions response in version 0 that rejects the request's version (KIP-511); None for others."""
    assert started.request is not None
    if started.request.api_key != ApiKey.API_VERSIONS or not started.version:
        return None
    answer = _response(data, started.request, 0, alone=True)
    if getattr(answer.message, "error_code", None) != _UNSUPPORTED_VERSION:
        return None
    note = f"the request was v{started.version}, which the broker does not support; it answers in version 0 (KIP-511)"
    return attrs.evolve(answer, notes=(note,))


def _failed(started: Reading, error: KafkaError, data: bytes) -> Reading:
    return attrs.evolve(started, problem=str(error), position=position_of(error), others=_others(started, data))


def _others(failed: Reading, data: bytes) -> tuple[int, ...]:
    request = failed.request
    assert request is not None
    reads: Callable[[int], bool]
    if failed.kind == "response":

        def reads(version: int) -> bool:
            return not _response(data, request, version, alone=True).problem
    else:

        def reads(version: int) -> bool:
            try:
                _, position = decode_prefix(RequestHeader, request_header_version(request, version), data)
                decode(request, version, data, position)
            except WireError:
                return False
            return True

    return tuple(version for version in _newest_first(request) if version != failed.version and reads(version))


def _newest_first(request: AnyRequest) -> Iterator[int]:
    return iter(range(request.versions.last, request.versions.first - 1, -1))


def position_of(error: KafkaError) -> int | None:
    """Return the byte position that a decoder's error names; None if the error names no position."""
    found = _POSITION.search(str(error))
    return int(found[1] or found[2]) if found is not None else None


def _listed(versions: tuple[int, ...]) -> str:
    return ", ".join(f"v{version}" for version in versions)


def _other_protocol(data: bytes) -> str:
    if data[:2] == b"\x16\x03" or data[:2] == b"\x17\x03":
        return "; these are bytes of TLS: capture the decrypted bytes instead"
    if data[:5] == b"HTTP/" or data[:4] in (b"GET ", b"POST"):
        return "; this is HTTP"
    return ""
