"""Between our messages and the JSON that Kafka's own JsonConverter prints, for the golden vectors."""

import base64
import re
from typing import Any
from uuid import UUID

from aiokafkawire.protocol.primitives import WireType
from aiokafkawire.protocol.schema import FieldSchema, Message, schema_of


def to_json(message: Any, version: int) -> dict[str, Any]:
    """The message as Kafka prints it: camel case, absent fields and default tagged ones left out."""
    out: dict[str, Any] = {}
    for field in schema_of(type(message)).fields:
        value = getattr(message, field.name)
        if version not in field.versions:
            continue
        if field.tag is not None and value == _fresh(field.default):
            continue
        out[_camel(field.name)] = _value_to_json(field, value, version)
    if message.unknown_tagged_fields:
        tags = message.unknown_tagged_fields.items()
        out["_unknownTaggedFields"] = [{"tag": tag, "data": data.hex()} for tag, data in tags]
    return out


def from_json(cls: type[Message] | type[Any], text: dict[str, Any]) -> Any:
    """The message that Kafka printed."""
    given = dict(text)
    unknown = given.pop("_unknownTaggedFields", None)
    fields = {_camel(field.name): field for field in schema_of(cls).fields}
    # A misspelt name must fail here, not be dropped.
    values = {fields[name].name: _value_from_json(fields[name], value) for name, value in given.items()}
    message: Any = cls(**values)
    if unknown:
        message.unknown_tagged_fields = {one["tag"]: bytes.fromhex(one["data"]) for one in unknown}
    return message


def _value_to_json(field: FieldSchema, value: Any, version: int) -> Any:
    if value is None:
        return None
    if field.array:
        return [_element_to_json(field.kind, one, version) for one in value]
    return _element_to_json(field.kind, value, version)


def _element_to_json(kind: Any, value: Any, version: int) -> Any:
    if kind is WireType.UUID:
        return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    if kind in (WireType.BYTES, WireType.RECORDS):
        return _base64(value)
    return value if isinstance(kind, WireType) else to_json(value, version)


def _value_from_json(field: FieldSchema, value: Any) -> Any:
    if value is None:
        return None
    if field.array:
        return [_element_from_json(field.kind, one) for one in value]
    return _element_from_json(field.kind, value)


def _element_from_json(kind: Any, value: Any) -> Any:
    if kind is WireType.UUID:
        return UUID(bytes=base64.urlsafe_b64decode(value + "=="))
    if kind in (WireType.BYTES, WireType.RECORDS):
        return base64.b64decode(value)
    return value if isinstance(kind, WireType) else from_json(kind, value)


def _base64(data: Any) -> str:
    return base64.b64encode(bytes(data)).decode()


def _fresh(default: Any) -> Any:
    return default() if callable(default) else default


def _camel(name: str) -> str:
    return re.sub(r"_([a-z0-9])", lambda found: found[1].upper(), name)
