"""Messages of the protocol from plain values: nested fields as dictionaries; what is required is empty if not given."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import attrs

from aiokafkawire.protocol.primitives import ZERO_UUID, WireType
from aiokafkawire.protocol.schema import schema_of

__all__ = ("made",)

M = TypeVar("M")

_EMPTY: dict[object, object] = {
    WireType.BOOL: False,
    WireType.FLOAT64: 0.0,
    WireType.UUID: ZERO_UUID,
    WireType.STRING: "",
    WireType.BYTES: b"",
    WireType.RECORDS: b"",
}


def made(cls: type[M], **given: Any) -> M:
    """A message: ``made(ListOffsetsRequest, topics=[{"name": "t", "partitions": [{"timestamp": -1}]}])``."""
    fields = {field.name: field for field in schema_of(cls).fields}
    assert set(given) <= set(fields), f"{cls.__name__} has the fields {', '.join(fields)}"
    values = {}
    for name, field in fields.items():
        if name in given:
            values[name] = _nested(field.kind, given[name])
        elif field.default is attrs.NOTHING:
            values[name] = [] if field.array else _empty(field.kind)
    make: Any = cls
    return cast("M", make(**values))


def _nested(kind: Any, value: Any) -> Any:
    if isinstance(kind, type) and isinstance(value, dict):
        return made(kind, **value)
    return [_nested(kind, one) for one in value] if isinstance(kind, type) and isinstance(value, list) else value


def _empty(kind: Any) -> Any:
    return made(kind) if isinstance(kind, type) else _EMPTY.get(kind, 0)
