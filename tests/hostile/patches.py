"""Alterations of a field's bytes: lengths and texts that the encoder refuses to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiokafkawire.protocol.compiler import encode
from aiokafkawire.protocol.primitives import WireType
from aiokafkawire.protocol.schema import FieldSchema, Message

from .paths import FieldPath, change_fields

__all__ = ("Patch", "patches")

Patch = Callable[[Message, int], bytes]
"""Encodes a message in a version, with wrong bytes for one of its fields."""

_COMPACT = {"max": b"\xff\xff\xff\xff\x0f", "a billion": b"\x80\x94\xeb\xdc\x03", "endless": b"\xff" * 12}


def patches(path: FieldPath) -> dict[str, Patch]:
    """Return the patches of a field that has a length: none for numbers."""
    field = path.field
    if not field.array and field.kind not in (WireType.STRING, WireType.BYTES, WireType.RECORDS):
        return {}
    found: dict[str, Patch] = {}
    for name in ("null", "min", "max", "a billion", "endless"):
        found[f"length {name}"] = _patched(path, name)
    return found


def _patched(path: FieldPath, name: str) -> Patch:
    def patch(message: Message, version: int) -> bytes:
        known: list[Any] = []
        change_fields(message, path.names, lambda parent, field: known.append(_filled(parent, field)))
        before = encode(message, version)
        for parent in known:
            value = getattr(parent, path.field.name)
            setattr(parent, path.field.name, value + value if not isinstance(value, memoryview) else bytes(value) * 2)
            after = encode(message, version)
            setattr(parent, path.field.name, value)
            at = next((at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), None)
            if at is not None:
                return _length(before, at, path.field, version in type(message).flexible, name)
        return before

    return patch


def _filled(parent: Any, field: FieldSchema) -> Any:
    """Give the field something to count, and return its parent."""
    if not getattr(parent, field.name):
        from .alterations import _first

        empty = "x" if field.kind is WireType.STRING else b"x"
        setattr(parent, field.name, [_first(field)] if field.array else empty)
    return parent


def _length(data: bytes, at: int, field: FieldSchema, is_compact: bool, name: str) -> bytes:
    """Return the data with another length at the byte that changes with the length: its last one, or its varint."""
    if is_compact:
        end = at
        while data[end] & 128:
            end += 1
        wrong = {"null": b"\0", "min": b"\x80\x80\x80\x80\x08"}.get(name) or _COMPACT[name]
        return data[:at] + wrong + data[end + 1 :]
    width = 2 if field.kind is WireType.STRING and not field.array else 4
    values = {"null": -1, "min": -(1 << width * 8 - 1), "max": (1 << width * 8 - 1) - 1}
    value = values.get(name, min(10**9, values["max"]))
    return data[: at + 1 - width] + value.to_bytes(width, "big", signed=True) + data[at + 1 :]
