"""The compiled decoder's view of a message: its structs and fields in one version, and the slots they fill."""

import sysconfig
from typing import Any

if sysconfig.get_config_var("Py_GIL_DISABLED"):
    raise ImportError("the compiled decoder is not made for a Python without the global lock")

from ._hot import Field, Struct
from .primitives import WireType
from .schema import FieldSchema, Message
from .source_builder import is_flexible, present_fields

__all__ = ("plan_of",)


def plan_of(cls: type[Message], version: int) -> Struct:
    """How the compiled decoder reads one message in one version."""
    return _Planner(cls, version).struct(cls)


class _Planner:
    def __init__(self, cls: type[Message], version: int) -> None:
        self.message, self.version = cls, version
        self.structs: dict[type[Any], Struct] = {}

    def struct(self, cls: type[Any]) -> Struct:
        found = self.structs.get(cls)
        if found is None:
            inline, tagged, absent = present_fields(cls, self.version)
            parts = [tuple(self.field(cls, one) for one in fields) for fields in (inline, tagged)]
            # Fields that are not read: only their slots and defaults count.
            lacked = tuple(Field(cls, one.name, "bool", None, False, False, False, None, one.default) for one in absent)
            flexible = self.version in self.message.flexible
            found = self.structs[cls] = Struct(cls, parts[0], parts[1], lacked, flexible)
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
