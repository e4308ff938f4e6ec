"""Schemas in the schema registry: their ids, their identity and their validity."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import attrs

from .avro_types import InvalidAvro, parse_avro_types
from .registry_error import RegistryRefusal
from .schema_identity import schema_identity

__all__ = ("SCHEMA_TYPES", "StoredReference", "StoredSchema", "check_schema")

SCHEMA_TYPES: Final = ("JSON", "PROTOBUF", "AVRO")


@attrs.frozen
class StoredReference:
    """A reference to a version of a subject."""

    name: str
    subject: str
    version: int


@attrs.frozen
class StoredSchema:
    """A schema, which is equal to another if both have the same identity.

    Attributes:
        text: the schema as it was given.
        schema_type: ``AVRO``, ``JSON`` or ``PROTOBUF``.
        references: the schemas that it references.
        identity: the text without differences that mean nothing.
    """

    text: str = attrs.field(eq=False)
    schema_type: str
    references: tuple[StoredReference, ...]
    identity: str = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "identity", schema_identity(self.text, self.schema_type))

    @property
    def guid(self) -> str:
        """An id that this schema has in all registries."""
        seed = json.dumps([self.identity, self.schema_type, [attrs.astuple(one) for one in self.references]])
        return str(UUID(bytes=hashlib.md5(seed.encode(), usedforsecurity=False).digest()))

    def as_json(self) -> dict[str, Any]:
        """Return the schema's fields in responses."""
        fields: dict[str, Any] = {"schema": self.text}
        if self.schema_type != "AVRO":
            fields["schemaType"] = self.schema_type
        if self.references:
            fields["references"] = [attrs.asdict(one) for one in self.references]
        return fields


def check_schema(schema: StoredSchema, references: Mapping[str, str]) -> None:
    """Refuse a schema that is not valid: Avro, or no JSON. Protobuf is not checked.

    Args:
        schema: the schema.
        references: the texts of the schemas that it references, each after those that it references itself.
    """
    if schema.schema_type == "AVRO":
        try:
            parse_avro_types(schema.text, references)
        except InvalidAvro as invalid:
            raise RegistryRefusal(42201, f"Invalid schema {schema.text:.200}, details: {invalid}") from None
    elif schema.schema_type == "JSON":
        try:
            contents = json.loads(schema.text)
        except (ValueError, RecursionError):
            contents = None
        if not isinstance(contents, dict | bool):
            raise RegistryRefusal(42201, f"Invalid schema {schema.text:.200}, details: it is not a JSON schema")
