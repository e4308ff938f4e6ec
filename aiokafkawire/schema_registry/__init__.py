"""Avro, JSON Schema and Protobuf with a schema registry: Confluent's REST API and wire format."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from .._lazy_exports import lazy_exports

if TYPE_CHECKING:
    from .avro import AvroDeserializer, AvroSerializer
    from .json_schema import JsonSchemaDeserializer, JsonSchemaSerializer
    from .protobuf import ProtobufDeserializer, ProtobufSerializer
    from .registry import SchemaRegistry
    from .schemas import (
        CompatibilityLevel,
        CompatibilityResult,
        RegisteredSchema,
        Schema,
        SchemaReference,
        SchemaType,
    )
    from .settings import SchemaRegistryConfig
    from .subjects import record_subject, topic_record_subject, topic_subject

__all__ = (
    "AvroDeserializer",
    "AvroSerializer",
    "CompatibilityLevel",
    "CompatibilityResult",
    "JsonSchemaDeserializer",
    "JsonSchemaSerializer",
    "ProtobufDeserializer",
    "ProtobufSerializer",
    "RegisteredSchema",
    "Schema",
    "SchemaReference",
    "SchemaRegistry",
    "SchemaRegistryConfig",
    "SchemaType",
    "record_subject",
    "topic_record_subject",
    "topic_subject",
)

# Each format needs a library of its own, which is imported at the first use of its classes.
_MODULES = {
    "AvroDeserializer": ".avro",
    "AvroSerializer": ".avro",
    "CompatibilityLevel": ".schemas",
    "CompatibilityResult": ".schemas",
    "JsonSchemaDeserializer": ".json_schema",
    "JsonSchemaSerializer": ".json_schema",
    "ProtobufDeserializer": ".protobuf",
    "ProtobufSerializer": ".protobuf",
    "RegisteredSchema": ".schemas",
    "Schema": ".schemas",
    "SchemaReference": ".schemas",
    "SchemaRegistry": ".registry",
    "SchemaRegistryConfig": ".settings",
    "SchemaType": ".schemas",
    "record_subject": ".subjects",
    "topic_record_subject": ".subjects",
    "topic_subject": ".subjects",
}
__getattr__: Callable[[str], object] = lazy_exports(__name__, _MODULES)
