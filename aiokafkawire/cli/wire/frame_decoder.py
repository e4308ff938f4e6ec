"""One frame's bytes to its header and message, or to what is wrong with them."""

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

__all__ = ("PendingRequest", "Reading", "position_of", "read_request", "read_response")

_POSITION: Final = re.compile(r": no [^(]*? at byte (\d+) of|after its end at byte (\d+)$")
_UNSUPPORTED_VERSION: Final = 35

AnyRequest = type[Request[Response]]


@attrs.frozen
class Reading:
    """What a frame is, as far as it can be read."""

    kind: str
    """``request``, ``response`` or ``message``."""
    request: AnyRequest | None = None
    """The API it belongs to."""
    version: int | None = None
    header: Message | None = None
    header_version: int = 0
    message: Message | None = None
    """None if it could not be read; ``problem`` says why."""
    notes: tuple[str, ...] = ()
    problem: str = ""
    position: int | None = None
    """The byte of the frame that the problem is at."""
    others: tuple[int, ...] = ()
    """The versions of the same message that do read the bytes, newest first."""

    @property
    def correlation_id(self) -> int | None:
        """What ties a response to its request."""
        return getattr(self.header, "correlation_id", None)


class PendingRequest:
    """The requests that were seen and not answered yet, by correlation id."""

    def __init__(self) -> None:
        self._waiting: dict[int, deque[tuple[AnyRequest, int]]] = {}
        self.bare_sasl: bool = False
        """Whether a SaslHandshake v0 was seen: what follows it are the mechanism's bytes, without headers."""

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, reading: Reading) -> None:
        """Remember a request; one of which not even the API is known is left out."""
        if reading.request is not None and reading.version is not None and reading.correlation_id is not None:
            asked = self._waiting.setdefault(reading.correlation_id, deque())
            asked.append((reading.request, reading.version))
            if reading.request.api_key == ApiKey.SASL_HANDSHAKE and reading.version == 0:
                self.bare_sasl = True

    def of(self, data: bytes) -> tuple[AnyRequest, int] | None:
        """The request that a response to it would answer; where ids come again, the oldest."""
        if len(data) < 4:
            return None
        waiting = self._waiting.get(unpack_from(">i", data)[0])
        return waiting[0] if waiting else None

    def answered(self, data: bytes) -> None:
        """Forget that request."""
        (correlation_id,) = unpack_from(">i", data)
        waiting = self._waiting[correlation_id]
        waiting.popleft()
        if not waiting:
            del self._waiting[correlation_id]


def read_request(data: bytes) -> Reading:
    """Read a request: its header says which. Nothing is raised, see :attr:`Reading.problem`."""
    if len(data) < 8:
        return Reading("request", problem=f"{len(data)} bytes, and a request's header has 8 at least", position=0)
    api_key, version = unpack_from(">hh", data)
    try:
        request = request_of(api_key)
    except UnsupportedVersion as error:
        return Reading("request", problem=f"{error}{_other_protocol(data)}", position=0)
    known = version in request.versions
    # The header has not changed its beginning for a version that is newer than what we know.
    header_version = request_header_version(request, version if known else request.versions.last)
    started = Reading("request", request, version, header_version=header_version)
    try:
        header, position = decode_prefix(RequestHeader, header_version, data)
    except WireError as error:
        return _failed(started, error, data)
    started = attrs.evolve(started, header=header)
    if not known:
        problem = f"{name_of(request)} v{version} is not known here, only {request.versions}"
        return attrs.evolve(started, problem=problem, others=_others(started, data))
    try:
        return attrs.evolve(started, message=decode(request, version, data, position))
    except WireError as error:
        return _failed(started, error, data)


def read_response(data: bytes, request: AnyRequest, version: int | None, *, alone: bool = False) -> Reading:
    """Read a response to a request. Nothing is raised, see :attr:`Reading.problem`.

    Args:
        data: the frame.
        request: which request it answers.
        version: and of which version; None for the newest that reads it.
        alone: not to look at other versions.
    """
    if version is not None:
        return _response(data, request, version, alone)
    readings = [_response(data, request, one, alone=True) for one in _newest_first(request)]
    whole = [one for one in readings if not one.problem]
    if whole:
        versions = tuple(one.version for one in whole[1:] if one.version is not None)
        told = f"no version was given: this is the newest that reads it, {_listed(versions)} would too"
        notes = (told,) if versions else ("no version was given: no other one reads it",)
        return attrs.evolve(whole[0], notes=(*whole[0].notes, *notes))
    furthest = max(readings, key=lambda one: one.position or 0)
    name = request.response.__name__
    problem = f"no version of {name} ({request.versions}) reads it; the one that got furthest: {furthest.problem}"
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


def _answer_in_version_0(asked: Reading, data: bytes) -> Reading | None:
    """ApiVersions alone is answered in version 0 when the broker does not know the version asked (KIP-511)."""
    assert asked.request is not None
    if asked.request.api_key != ApiKey.API_VERSIONS or not asked.version:
        return None
    answer = _response(data, asked.request, 0, alone=True)
    if getattr(answer.message, "error_code", None) != _UNSUPPORTED_VERSION:
        return None
    note = f"v{asked.version} was asked; the broker does not know it and answers in version 0 (KIP-511)"
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

    return tuple(one for one in _newest_first(request) if one != failed.version and reads(one))


def _newest_first(request: AnyRequest) -> Iterator[int]:
    return iter(range(request.versions.last, request.versions.first - 1, -1))


def position_of(error: KafkaError) -> int | None:
    """The byte that the error of a decoder names, if it names one."""
    found = _POSITION.search(str(error))
    return int(found[1] or found[2]) if found is not None else None


def _listed(versions: tuple[int, ...]) -> str:
    return ", ".join(f"v{version}" for version in versions)


def _other_protocol(data: bytes) -> str:
    if data[:2] == b"\x16\x03" or data[:2] == b"\x17\x03":
        return "; these are bytes of TLS: capture where it is decrypted"
    if data[:5] == b"HTTP/" or data[:4] in (b"GET ", b"POST"):
        return "; this is HTTP"
    return ""
