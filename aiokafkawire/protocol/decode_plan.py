"""Makes the compiled decoder's plans: a plan lists the structs and fields that one version of a message has."""

from typing import Any

from ._hot import Field, Struct
from .primitives import WireType
from .schema import FieldSchema, Message
from .source_builder import is_flexible, present_fields

__all__ = ("plan_of",)


def plan_of(cls: type[Message], version: int) -> Struct:
    """Return the compiled decoder's plan of one message in one version."""
    return _Planner(cls, version).struct(cls)


class _Planner:
    def __init__(self, cls: type[Message], version: int) -> None:
        self.message, self.version = cls, version
        self.structs: dict[type[Any], Struct] = {}

    def struct(self, cls: type[Any]) -> Struct:
        found = self.structs.get(cls)
        if found is None:
            inline, tagged, absent = present_fields(cls, self.version)
            parts = [tuple(self.field(cls, field) for field in fields) for fields in (inline, tagged)]
            # Absent fields are not decoded: only their slots and defaults matter.
            defaults = tuple(
                Field(cls, field.name, "bool", None, False, False, False, None, field.default) for field in absent
            )
            flexible = self.version in self.message.flexible
            found = self.structs[cls] = Struct(cls, parts[0], parts[1], defaults, flexible)
        return found

    def field(self, owner: type[Any], field: FieldSchema) -> Field:
        wire, struct = (field.kind.value, None) if isinstance(field.kind, WireType) else ("", self.struct(field.kind))
        return Field(
            owner,
            field.name,
            wire,
            struct,
            field.array,
            self.version in field.nullable,
            is_flexible(field, self.message.flexible, self.version),
            field.tag,
            field.default,
        )
