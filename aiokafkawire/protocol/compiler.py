"""The encoding and decoding of messages: one flat function per message, version and direction, compiled on first use.

The functions are compiled from Python source that is generated from the declared schema: nested structs are inlined,
and neighbouring fixed-width fields share one :func:`struct.pack`. The source is registered with :mod:`linecache`, so
tracebacks and debuggers show it. The functions do not record the current field: after an error, the number of the
failing line identifies the field.

Lengths and counts are checked when they are read. A count never exceeds the remaining bytes, and structs are not
recursive, so time and memory are proportional to the message's size: the objects of the smallest structs take about 80
bytes for each byte of the message.

Decoding has a compiled twin (``_hot.pyx``), which is several times as fast. The twin rejects the same bytes without
details; the generated function then decodes them again to identify the field. The environment variable
``AIOKAFKAWIRE_MESSAGES``, ``pure`` or ``cython``, selects the implementation.
"""

import linecache
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from .._accelerators import load_twin
from ..errors import InvalidMessage, KafkaError, UnsupportedVersion, WireError
from .emit_decode import emit_decoder
from .emit_encode import emit_encoder
from .primitives import Buffer
from .schema import Message, Versions
from .source_builder import Unit, locate

__all__ = ("DECODERS", "IMPLEMENTATION", "decode", "decode_prefix", "encode", "encode_into")

M = TypeVar("M", bound=Message)

IMPLEMENTATION, _twin = load_twin(
    __package__ or "", {"cython": "decode_plan", "pure": "emit_decode"}, "AIOKAFKAWIRE_MESSAGES"
)
"""The name of the decoder in use: ``cython`` or ``pure``."""


def encode_into(message: Message, version: int, parts: list[Buffer]) -> None:
    """Append the message's bytes in ``version`` to ``parts``; byte fields are not copied.

    Raises:
        InvalidMessage: a field's value does not fit the field's type; the error has the field's path.
        UnsupportedVersion: the message sets a field that the version lacks, or the version is not declared.
    """
    unit, function = _encoder(type(message), version)
    try:
        function(message, parts)
    except KafkaError:
        raise
    except Exception as cause:
        raise InvalidMessage(locate(unit, cause).describe(type(message).__name__, version)) from cause


def encode(message: Message, version: int) -> bytes:
    """Encode the message in ``version``. Raise as :func:`encode_into`."""
    parts: list[Buffer] = []
    encode_into(message, version, parts)
    return b"".join(parts)


def decode(cls: type[M], version: int, data: bytes, position: int = 0) -> M:
    """Decode one message that fills ``data`` from ``position`` to the end of ``data``.

    Byte fields are memoryviews of ``data``.

    Raises:
        WireError: the bytes are not such a message; the error names the field and the position.
        UnsupportedVersion: the version is not declared.
    """
    message: M
    message, end = _decode_prefix(cls, version, data, position)
    if end != len(data):
        raise WireError(f"{cls.__name__} v{version}: {len(data) - end} bytes left over after its end at byte {end}")
    return message


def decode_prefix(cls: type[M], version: int, data: bytes, position: int = 0) -> tuple[M, int]:
    """Decode the message at ``position``; return it and the position after it. Raise as :func:`decode`."""
    read: tuple[M, int] = _decode_prefix(cls, version, data, position)
    return read


def _decode_pure(cls: type[Any], version: int, data: bytes, position: int) -> tuple[Any, int]:
    unit, function = _decoder(cls, version)
    try:
        read: tuple[Any, int] = function(data, position)
    except Exception as cause:
        raise WireError(locate(unit, cause).describe(cls.__name__, version)) from cause
    return read


def _decode_compiled(cls: type[Any], version: int, data: bytes, position: int) -> tuple[Any, int]:
    function = _plans.get((cls, version))
    if function is None:
        _require_declared(cls, version)
        function = _plans[cls, version] = _twin.plan_of(cls, version).decode
    try:
        return function(data, position)
    except (ValueError, TypeError, OverflowError):
        return _decode_pure(cls, version, data, position)  # raises an error with field and cause


_Decode = Callable[[type[Any], int, bytes, int], tuple[Any, int]]
_plans: dict[tuple[type[Any], int], Callable[[bytes, int], tuple[Any, int]]] = {}

DECODERS: Final[Mapping[str, _Decode]] = (
    {"pure": _decode_pure} if IMPLEMENTATION == "pure" else {"pure": _decode_pure, "cython": _decode_compiled}
)
"""The available decoders, by name; they are equivalent, and tests compare them."""

_decode_prefix: Final[_Decode] = DECODERS[IMPLEMENTATION]


_Compiled = tuple[Unit, Any]
_encoders: dict[tuple[type[Any], int], _Compiled] = {}
_decoders: dict[tuple[type[Any], int], _Compiled] = {}


def _encoder(cls: type[Any], version: int) -> _Compiled:
    found = _encoders.get((cls, version))
    if found is None:
        _require_declared(cls, version)
        found = _encoders[cls, version] = _compile(emit_encoder(cls, version), "encode")
    return found


def _decoder(cls: type[Any], version: int) -> _Compiled:
    found = _decoders.get((cls, version))
    if found is None:
        _require_declared(cls, version)
        found = _decoders[cls, version] = _compile(emit_decoder(cls, version), "decode")
    return found


def _require_declared(cls: type[Message], version: int) -> None:
    declared: Versions = cls.versions
    if version not in declared:
        raise UnsupportedVersion(f"{cls.__name__} has versions {declared}, not {version}")


def _compile(unit: Unit, name: str) -> _Compiled:
    source = unit.text()
    # attrs and doctest register sources the same way; with None as mtime linecache never checks for a file.
    linecache.cache[unit.filename] = (len(source), None, source.splitlines(keepends=True), unit.filename)
    namespace: dict[str, Any] = dict(unit.constants)
    exec(compile(source, unit.filename, "exec"), namespace)  # noqa: S102  # source made here, from declarations only
    return unit, namespace[name]
