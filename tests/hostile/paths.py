"""The fields of responses: every path through a message's schema, and changes at the end of one."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from support.made import made

from aiokafkawire.errors import WireError
from aiokafkawire.protocol.compiler import decode_prefix, encode
from aiokafkawire.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from aiokafkawire.protocol.schema import FieldSchema, Message, schema_of

__all__ = ("Change", "FieldPath", "change_fields", "paths", "succeed")

_VERSION = struct.Struct(">h")
_EMBEDDED: dict[tuple[str, ...], type[Message]] = {
    ("JoinGroupResponse", "members", "metadata"): ConsumerProtocolSubscription,
    ("SyncGroupResponse", "assignment"): ConsumerProtocolAssignment,
    ("DescribeGroupsResponse", "groups", "members", "member_metadata"): ConsumerProtocolSubscription,
    ("DescribeGroupsResponse", "groups", "members", "member_assignment"): ConsumerProtocolAssignment,
}
"""The messages in byte fields, by the class of the response and the path of the field."""

Change = Callable[[Any, FieldSchema], None]
"""Changes a field of its parent, a decoded struct."""


class FieldPath(NamedTuple):
    """A field, by the names of the fields that lead to it from the message; the last is its own."""

    names: tuple[str, ...]
    field: FieldSchema

    def __str__(self) -> str:
        return ".".join(self.names)


def paths(cls: type[Message]) -> Iterator[FieldPath]:
    """Return every field of a message with those of its nested structs, and of the messages in its byte fields."""
    return _paths(cls, (), (cls.__name__,))


def _paths(cls: type[Any], above: tuple[str, ...], key: tuple[str, ...]) -> Iterator[FieldPath]:
    for field in schema_of(cls).fields:
        names = (*above, field.name)
        yield FieldPath(names, field)
        inside = field.kind if isinstance(field.kind, type) else _EMBEDDED.get((*key, field.name))
        if inside is not None:
            yield from _paths(inside, names, (*key, field.name))


def change_fields(message: Message, names: tuple[str, ...], change: Change) -> None:
    """Change the field at a path in every struct that has it. Empty arrays and nulls on the way get a first element."""
    _walk(message, type(message), names, (type(message).__name__,), change)


def succeed(struct: Any) -> None:
    """Remove all error codes from a response, so that its other fields count."""
    for field in schema_of(type(struct)).fields:
        value = getattr(struct, field.name)
        if field.name == "error_code":
            setattr(struct, field.name, 0)
        elif isinstance(field.kind, type) and value:
            for one in value if field.array else [value]:
                succeed(one)


def _walk(parent: Any, cls: type[Any], names: tuple[str, ...], key: tuple[str, ...], change: Change) -> None:
    field = next(field for field in schema_of(cls).fields if field.name == names[0])
    if len(names) == 1:
        change(parent, field)
        return
    key = (*key, field.name)
    if not isinstance(field.kind, type):
        _change_embedded(parent, field.name, _EMBEDDED[key], names[1:], key, change)
        return
    if not getattr(parent, field.name):
        setattr(parent, field.name, [made(field.kind)] if field.array else made(field.kind))
    value = getattr(parent, field.name)
    for one in value if field.array else [value]:
        _walk(one, field.kind, names[1:], key, change)


def _change_embedded(
    parent: Any, name: str, cls: type[Message], names: tuple[str, ...], key: tuple[str, ...], change: Change
) -> None:
    data = bytes(getattr(parent, name) or b"")
    version = cls.versions.last
    try:
        inside = decode_prefix(cls, min(_VERSION.unpack_from(data)[0], version), data, _VERSION.size)[0]
    except (WireError, struct.error):
        inside = made(cls)
    _walk(inside, cls, names, key, change)
    setattr(parent, name, _VERSION.pack(version) + encode(inside, version))
