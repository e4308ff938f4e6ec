"""Converts messages to the view model."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from uuid import UUID

import attrs

from ...protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ...protocol.messages.control_records import ControlRecordTypeSchema
from ...protocol.primitives import ZERO_UUID, WireType
from ...protocol.schema import FieldSchema, Message, schema_of
from .batches import describe_batches
from .enum_names import meaning_of
from .nested_messages import control_value, read_embedded
from .view_model import Array, Hidden, Leaf, NamedValue, Scalar, Shown, Struct

__all__ = ("Describer",)

_HELD: Final[Mapping[tuple[str, str], type[Message]]] = {
    ("JoinGroupRequestProtocol", "metadata"): ConsumerProtocolSubscription,
    ("JoinGroupResponseMember", "metadata"): ConsumerProtocolSubscription,
    ("SyncGroupRequestAssignment", "assignment"): ConsumerProtocolAssignment,
    ("SyncGroupResponse", "assignment"): ConsumerProtocolAssignment,
    ("DescribedGroupMember", "member_metadata"): ConsumerProtocolSubscription,
    ("DescribedGroupMember", "member_assignment"): ConsumerProtocolAssignment,
}
"""The messages in byte fields, by struct and field; valid if the group's protocol type is "consumer"."""

_SECRETS: Final = ("auth_bytes", "hmac", "salt", "salted_password", "request_data")
_SECRET_CONFIG: Final = re.compile(
    r"password|passphrase|secret|jaas|credential|keystore\.key|private\.key", re.IGNORECASE
)


class Describer:
    """The converter of messages to the view model; ``damaged`` says whether a converted batch was damaged."""

    def __init__(self, *, secrets: bool = False) -> None:
        self.damaged: bool = False
        self._secrets = secrets

    def message(self, message: Message, version: int) -> Struct:
        """Return the view model of a message: the fields of this version in encoded order, tagged fields last."""
        return self._struct(message, version, version in message.flexible, None)

    def records(self, data: bytes) -> Array:
        """Return the view model of the batches in a fetched buffer."""
        batches, damaged = describe_batches(data, self._control)
        self.damaged = self.damaged or damaged
        return batches

    def _struct(self, struct: Any, version: int, flexible: bool, protocol_type: str | None) -> Struct:
        protocol_type = getattr(struct, "protocol_type", None) or protocol_type
        entries: list[NamedValue] = []
        for field in _present(type(struct), version, flexible):
            value = getattr(struct, field.name)
            shown = self._value(struct, field, value, (version, flexible, protocol_type))
            entries.append(NamedValue(field.name, shown, _is_default(field, value), field.tag))
        unknown = struct.unknown_tagged_fields
        if unknown:
            tags = tuple(NamedValue(str(tag), Leaf(bytes(data))) for tag, data in unknown.items())
            entries.append(NamedValue("unknown_tagged_fields", Struct(tags)))
        return Struct((*entries,))

    def _value(self, struct: Any, field: FieldSchema, value: Any, context: tuple[int, bool, str | None]) -> Shown:
        if value is None:
            return Leaf(None, _meaning_of_null(type(struct).__name__, field.name))
        if field.array:
            return Array(tuple(self._element(struct, field, element, context) for element in value))
        return self._element(struct, field, value, context)

    def _element(self, struct: Any, field: FieldSchema, value: Any, context: tuple[int, bool, str | None]) -> Shown:
        if not isinstance(field.kind, WireType):
            return self._struct(value, *context)
        name = type(struct).__name__
        if not self._secrets and _is_secret(struct, field):
            return Leaf(Hidden(len(value)))
        if field.kind is WireType.RECORDS:
            data = bytes(value)
            return Leaf(data, holds=self.records(data))
        if field.kind is WireType.BYTES:
            return Leaf(bytes(value), holds=self._held(name, field.name, value, context[2]))
        if isinstance(value, UUID):
            return Leaf(value, "none" if value == ZERO_UUID else "")
        assert isinstance(value, bool | int | float | str)
        return Leaf(value, meaning_of(name, field.name, value))

    def _held(self, struct: str, field: str, value: Any, protocol_type: str | None) -> Struct | None:
        cls = _HELD.get((struct, field))
        # Old versions of these messages do not have the protocol type.
        if cls is None or protocol_type not in (None, "consumer"):
            return None
        return self._embedded(cls, value)

    def _embedded(self, cls: type[Message], value: Any) -> Struct | None:
        read = read_embedded(cls, value)
        if read is None:
            return None
        message, version = read
        return attrs.evolve(self.message(message, version), title=f"{cls.__name__} v{version}")

    def _control(self, key: bytes | None, value: bytes | None) -> tuple[Struct | None, Struct | None]:
        """Decode the key and the value of a control record."""
        read = None if key is None else _control_type(key)
        if read is None or key is None:
            return None, None
        cls = control_value(read.type)
        held = None if cls is None or value is None else self._embedded(cls, value)
        return self._embedded(type(read), key), held


def _control_type(key: bytes) -> Any:
    read = read_embedded(ControlRecordTypeSchema, key)
    return None if read is None else read[0]


def _present(cls: type[Any], version: int, flexible: bool) -> Iterator[FieldSchema]:
    fields = [field for field in schema_of(cls).fields if version in field.versions]
    yield from (field for field in fields if field.tag is None)
    if flexible:
        yield from sorted((field for field in fields if field.tag is not None), key=lambda field: field.tag or 0)


def _is_default(field: FieldSchema, value: object) -> bool:
    if field.default is attrs.NOTHING:
        return False
    return bool((field.default() if callable(field.default) else field.default) == value)


def _is_secret(struct: Any, field: FieldSchema) -> bool:
    if field.name in _SECRETS:
        return True
    name: Scalar = getattr(struct, "name", None) if field.name == "value" else None
    return isinstance(name, str) and _SECRET_CONFIG.search(name) is not None and field.kind is WireType.STRING


def _meaning_of_null(struct: str, field: str) -> str:
    if (struct, field) == ("MetadataRequest", "topics"):
        return "all topics"
    return ""
