"""Schemas as the registry keeps them: their text, type and references, and their versions under subjects."""

from enum import Enum
from typing import Final, Literal, TypeAlias

import attrs

from ..argument_checks import INT32, check_integer, check_text, items_of, shown
from ..errors import UsageError

__all__ = (
    "CompatibilityLevel",
    "CompatibilityResult",
    "RegisteredSchema",
    "Schema",
    "SchemaReference",
    "SchemaType",
    "Version",
    "check_version",
)

Version: TypeAlias = int | Literal["latest"]
"""A version of a subject: a number from 1 on, or ``"latest"``."""

_REFERENCES: Final = "[SchemaReference(name, subject, version)]"


class SchemaType(Enum):
    """The language of a schema."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


class CompatibilityLevel(Enum):
    """Which versions of a subject a new schema must be compatible with, and in which direction."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"


@attrs.frozen
class SchemaReference:
    """A schema that another schema uses.

    Attributes:
        name: the name by which the other schema uses it: an Avro type, the ``$ref`` of a JSON schema, or the file of a
            Protobuf import.
        subject: the subject under which it is registered.
        version: its version there.
    """

    name: str
    subject: str
    version: int

    def __attrs_post_init__(self) -> None:
        check_text("the name of a schema reference", self.name)
        check_text("the subject of a schema reference", self.subject)
        check_integer("the version of a schema reference", self.version, -1, INT32)


def _as_references(given: object) -> tuple[SchemaReference, ...]:
    references = tuple(items_of("the references of a schema", given, _REFERENCES))
    for reference in references:
        if not isinstance(reference, SchemaReference):
            raise UsageError(f"the references of a schema must be like {_REFERENCES}, got {shown(reference)}")
    return references


@attrs.frozen
class Schema:
    """A schema: its text, its type, and the schemas that it references.

    Attributes:
        text: the schema: JSON for Avro and JSON Schema; for Protobuf a ``.proto`` file, or a serialized
            ``FileDescriptorProto`` in base64.
        schema_type: the schema's language.
        references: the registered schemas that it uses.
    """

    text: str
    schema_type: SchemaType = SchemaType.AVRO
    references: tuple[SchemaReference, ...] = attrs.field(default=(), converter=_as_references)

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text:
            raise UsageError(f"the text of a schema must be a string that is not empty, got {shown(self.text)}")
        if not isinstance(self.schema_type, SchemaType):
            raise UsageError(f"schema_type must be a SchemaType such as SchemaType.AVRO, got {shown(self.schema_type)}")


@attrs.frozen
class RegisteredSchema:
    """A schema under a subject.

    Attributes:
        subject: the subject.
        schema_id: the schema's id, which all subjects share.
        schema: the schema.
        version: the version under this subject; None if the registry did not name it.
        guid: the schema's globally unique id; None if the registry has none (Confluent Platform before 8.0).
    """

    subject: str
    schema_id: int
    schema: Schema
    version: int | None = None
    guid: str | None = None


@attrs.frozen
class CompatibilityResult:
    """Whether a schema is compatible with others, and what the registry says against it.

    Attributes:
        is_compatible: whether it is compatible.
        messages: the differences that make it incompatible, in the registry's words.
    """

    is_compatible: bool
    messages: tuple[str, ...] = ()


def check_version(version: object, *more: str) -> None:
    """Raise UsageError unless the value is a version, ``"latest"``, or one of ``more``."""
    words = ("latest", *more)
    is_number = isinstance(version, int) and not isinstance(version, bool) and 1 <= version <= INT32
    if not is_number and version not in words:
        names = " or ".join(repr(word) for word in words)
        raise UsageError(f"version must be an integer from 1 on, or {names}, got {shown(version)}")
