"""Guesses the API of a frame: finds all requests and responses that decode the frame from first to last byte."""

from collections.abc import Iterator
from typing import Any, Final

from ...error_codes import ErrorCode
from ...errors import KafkaError
from ...protocol.compiler import encode
from ...protocol.primitives import WireType
from ...protocol.schema import schema_of
from .apis import all_requests, name_of
from .frame_decoder import Reading, read_request, read_response

__all__ = ("candidates", "spelled")

_LONGEST_THROTTLE: Final = 3_600_000
_CODES: Final = frozenset(ErrorCode)


def candidates(data: bytes) -> tuple[Reading, ...]:
    """Return the readings that decode the whole frame, sorted by API, and for each API the newest version first.

    If some of these readings are plausible, only those are returned. A plausible reading has only known error codes,
    printable strings and no unknown tagged fields, and encodes to the same bytes.
    """
    whole = [reading for reading in _whole(data) if reading.message is not None]
    plausible = [reading for reading in whole if _is_plausible(reading, data)]
    return (*(plausible or whole),)


def spelled(found: tuple[Reading, ...]) -> Iterator[str]:
    """Yield a line for each API of the candidates, such as ``response Metadata v12, v11``."""
    versions: dict[tuple[str, str], list[int]] = {}
    for reading in found:
        assert reading.request is not None
        assert reading.version is not None
        versions.setdefault((reading.kind, name_of(reading.request)), []).append(reading.version)
    for (kind, name), known in versions.items():
        yield f"{kind} {name} {', '.join(f'v{version}' for version in known)}"


def _whole(data: bytes) -> Iterator[Reading]:
    yield read_request(data)
    for request in all_requests():
        for version in range(request.versions.last, request.versions.first - 1, -1):
            yield read_response(data, request, version, alone=True)


def _is_plausible(reading: Reading, data: bytes) -> bool:
    assert reading.message is not None
    assert reading.version is not None
    assert reading.header is not None
    try:
        header = encode(reading.header, reading.header_version)
        if header + encode(reading.message, reading.version) != data:
            return False
    except KafkaError:
        return False
    return _makes_sense(reading.header) and _makes_sense(reading.message)


def _makes_sense(struct: Any) -> bool:
    if struct.unknown_tagged_fields:
        return False
    for field in schema_of(type(struct)).fields:
        value = getattr(struct, field.name)
        for element in value if field.array and value is not None else (value,):
            if element is None:
                continue
            if not isinstance(field.kind, WireType):
                sensible = _makes_sense(element)
            elif field.kind is WireType.STRING:
                sensible = all(char.isprintable() or char in "\t\r\n" for char in element)
            elif field.name.endswith("error_code"):
                sensible = element in _CODES
            else:
                sensible = field.name != "throttle_time_ms" or 0 <= element <= _LONGEST_THROTTLE
            if not sensible:
                return False
    return True
