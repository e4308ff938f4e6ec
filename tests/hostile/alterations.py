"""Alterations of one field: values that its type allows and no honest broker sends."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from support.made import made

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.primitives import ZERO_UUID, WireType
from aiokafkawire.protocol.schema import FieldSchema, schema_of

from .paths import Change
from .record_damage import RECORD_ALTERATIONS, AlwaysTheFirst

__all__ = ("UNWRITABLE", "alterations", "is_error_code")

_BITS = {WireType.INT8: 8, WireType.INT16: 16, WireType.INT32: 32, WireType.INT64: 64}
_MANY, _FEW = 1_000, 200

_LARGE_BYTES = b"x" * 10_000_000
_CONTROL = "a\r\n2026-01-01 CRITICAL forged\x1b[31m\x00\x7f\u2028b"
UNWRITABLE = "\ue000" * 4
"""Text that the frame has in the place of bytes that are no UTF-8."""
_UNKNOWN_CODES = (200, 999, 32767, -2, -32768)


def is_error_code(field: FieldSchema) -> bool:
    """Return whether the field is one of the protocol's error codes."""
    return field.kind is WireType.INT16 and field.name.endswith("error_code")


def alterations(field: FieldSchema) -> dict[str, Change]:
    """Return the alterations of a field by their names."""
    if field.array:
        return dict(_of_arrays(field))
    if isinstance(field.kind, type):
        return {"null": _null} if field.nullable.last >= 0 else {}
    found = dict(_OF_KINDS[field.kind](field)) if field.kind in _OF_KINDS else dict(_of_integers(field))
    if field.nullable.last >= 0:
        found["null"] = _null
    return found


def _to(value: Any) -> Change:
    def change(parent: Any, field: FieldSchema) -> None:
        setattr(parent, field.name, value)

    return change


def _by(make: Callable[[Any], Any]) -> Change:
    def change(parent: Any, field: FieldSchema) -> None:
        setattr(parent, field.name, make(getattr(parent, field.name)))

    return change


_null = _to(None)


def _of_integers(field: FieldSchema) -> Iterator[tuple[str, Change]]:
    if is_error_code(field):
        yield from ((code.name, _to(int(code))) for code in ErrorCode)
        yield from ((f"code {code}", _to(code)) for code in _UNKNOWN_CODES)
        return
    if field.kind is WireType.UINT16:
        least, most = 0, 65535
    else:
        bits = _BITS[field.kind]  # type: ignore[index]
        least, most = -(1 << bits - 1), (1 << bits - 1) - 1
    for value in sorted({max(least, value) for value in (0, 1, -1, -2, least, most)}):
        yield str(value), _to(value)
    yield "plus 1", _by(lambda value: min(most, value + 1))
    yield "minus 1", _by(lambda value: max(least, value - 1))
    yield "plus 100", _by(lambda value: min(most, value + 100))


def _of_strings(field: FieldSchema) -> Iterator[tuple[str, Change]]:
    yield "empty", _to("")
    yield "another", _to("another")
    yield "prolonged", _by(lambda value: (value or "")[:30_000] + "-x")
    yield "with control characters", _to(_CONTROL)
    yield "as long as can be", _to("x" * 32_767)
    yield "no UTF-8", _to(UNWRITABLE)
    yield "astral", _to("\U0001f600" * 10)
    if field.name.endswith("host"):
        yield "with a scheme", _to("http://[::1]:80/x?y")
    if field.name.endswith("regex"):
        yield "no pattern", _to("(*")


def _of_bytes(field: FieldSchema) -> Iterator[tuple[str, Change]]:
    yield "empty", _to(b"")
    yield "one byte", _to(b"\0")
    yield "garbage", _to(bytes(range(256)))
    yield "ones", _to(b"\xff" * 64)
    yield "half", _by(lambda value: bytes(value or b"")[: len(value or b"") // 2])
    yield "with a tail", _by(lambda value: bytes(value or b"") + b"\xff" * 9)
    yield "of 10 MB", _to(_LARGE_BYTES)
    if field.name == "auth_bytes":
        for name, text in (
            ("r without i", b"r=x,s=eA=="),
            ("i of 2**31", b"r=x,s=eA==,i=2147483648"),
            ("i of 0", b"r=x,s=eA==,i=0"),
            ("many digits", b"r=x,s=eA==,i=" + b"9" * 5000),
            ("no base64", b"r=x,s=***,i=4096"),
            ("server error", b"e=a\r\nforged\x1b[31m"),
            ("json", b'{"status":"a\\r\\nforged"}'),
            ("deep json", b"[" * 100_000),
            ("no UTF-8", b"\xff\xfe,\xff"),
        ):
            yield name, _to(text)


def _of_flags(field: FieldSchema) -> Iterator[tuple[str, Change]]:
    yield "inverted", _by(lambda value: not value)


def _of_floats(field: FieldSchema) -> Iterator[tuple[str, Change]]:
    for value in (math.nan, math.inf, -math.inf, 0.0, -1.0, 1e308):
        yield str(value), _to(value)


def _of_ids(field: FieldSchema) -> Iterator[tuple[str, Change]]:
    yield "zero", _to(ZERO_UUID)
    yield "another", _to(UUID(int=12345))
    yield "max", _to(UUID(int=2**128 - 1))


def _of_records(field: FieldSchema) -> Iterator[tuple[str, Change]]:
    for name, make in RECORD_ALTERATIONS.items():
        yield name, _by(make)
    yield "always the first batch", _by(AlwaysTheFirst())


_OF_KINDS: dict[Any, Callable[[FieldSchema], Iterator[tuple[str, Change]]]] = {
    WireType.STRING: _of_strings,
    WireType.BYTES: _of_bytes,
    WireType.BOOL: _of_flags,
    WireType.FLOAT64: _of_floats,
    WireType.UUID: _of_ids,
    WireType.RECORDS: _of_records,
}


def _of_arrays(field: FieldSchema) -> Iterator[tuple[str, Change]]:
    def strange(entries: list[Any]) -> Any:
        return _strange(entries[0] if entries else _first(field), field)

    yield "empty", _to([])
    yield "duplicated", _by(lambda value: [*(value or [_first(field)]), *(value or [_first(field)])])
    yield "reversed", _by(lambda value: (value or [])[::-1])
    yield "without its first", _by(lambda value: (value or [])[1:])
    yield "with a default", _by(lambda value: [*(value or []), _first(field)])
    yield "with a stranger", _by(lambda value: [*(value or []), strange(value or [])])
    yield "strangers alone", _by(lambda value: [strange(value or [])] * 2)
    many = _FEW if isinstance(field.kind, type) and any(inner.array for inner in _schema(field.kind)) else _MANY
    yield f"{many} entries", _by(lambda value: [(value or [_first(field)])[0]] * many)
    if field.kind is WireType.INT32:
        yield "extremes", _to([-1, -(2**31), 2**31 - 1, 0, 0])
        yield "multiples of 65536", _to([n << 16 for n in range(20_000)])
    if field.kind is WireType.STRING:
        yield "odd names", _to(["", _CONTROL, "another", "x" * 30_000])
    if field.nullable.last >= 0:
        yield "null", _null


def _first(field: FieldSchema) -> Any:
    if isinstance(field.kind, type):
        return made(field.kind)
    return {WireType.STRING: "", WireType.BYTES: b"", WireType.UUID: ZERO_UUID}.get(field.kind, 0)


def _strange(entry: Any, field: FieldSchema) -> Any:
    """Return a copy of an array's entry with another name, id and number, so that nobody has asked for it."""
    if not isinstance(field.kind, type):
        return {str: "stranger", UUID: UUID(int=77), bytes: b"stranger"}.get(type(entry), 1_000_000)
    made_strange = copy.copy(entry)
    for name in (inner.name for inner in _schema(field.kind) if not inner.array):
        value = getattr(made_strange, name)
        if isinstance(value, str):
            setattr(made_strange, name, "stranger")
        elif isinstance(value, UUID):
            setattr(made_strange, name, UUID(int=77))
        elif type(value) is int and ("partition" in name or name.endswith(("id", "index", "key"))):
            setattr(made_strange, name, 100)
    return made_strange


def _schema(cls: type[Any]) -> tuple[FieldSchema, ...]:
    return schema_of(cls).fields
