"""Serializes keys and values as Avro, with the ids of their schemas."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..argument_checks import check_flag
from ..serialization import SerializationContext
from .avro_codec import parse_avro, read_avro, write_avro
from .registry import SchemaRegistry
from .schema_ids import SchemaIdLocation, SchemaIds, check_registry
from .schema_reader import SchemaReader
from .schema_writer import SchemaWriter, as_schema
from .schemas import Schema, SchemaType
from .subjects import SubjectNameStrategy

__all__ = ("AvroDeserializer", "AvroSerializer")


class AvroSerializer:
    """Serializes values as Avro; registers the schema at the first record of a topic.

    Args:
        registry: the schema registry.
        schema: the schema: JSON text, its objects (a dict, or a list for a union), or a
            :class:`~aiokafkawire.schema_registry.Schema` with references; None with ``use_latest_version``.
        auto_register: whether to register the schema; otherwise it must be registered.
        use_latest_version: whether to write by the latest version of the subject instead of by ``schema``.
        normalize: whether the registry compares normal forms of schemas.
        subject_name_strategy: ``"topic"``, ``"record"``, ``"topic-record"``, or a function of the context and the
            record's name.
        schema_id_location: ``"prefix"`` for the id before the data, ``"header"`` for the GUID in a header.
        to_dict: a function that makes a value for fastavro of a value of your own.
        strict: whether a field that the schema does not have is an error; otherwise it is left out.

    Raises:
        UsageError: an argument is wrong.
        SchemaMismatch: the schema is not valid.
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        schema: str | Mapping[str, Any] | Sequence[Any] | Schema | None = None,
        *,
        auto_register: bool = True,
        use_latest_version: bool = False,
        normalize: bool = False,
        subject_name_strategy: SubjectNameStrategy = "topic",
        schema_id_location: SchemaIdLocation = "prefix",
        to_dict: Callable[[Any], Any] | None = None,
        strict: bool = False,
    ) -> None:
        ids = SchemaIds(
            registry,
            auto_register=auto_register,
            use_latest_version=use_latest_version,
            normalize=normalize,
            subject_name_strategy=subject_name_strategy,
            schema_id_location=schema_id_location,
        )
        check_flag("strict", strict)
        own = as_schema(schema, SchemaType.AVRO)
        self._writer = SchemaWriter(ids, own, SchemaType.AVRO, parse_avro, partial(write_avro, strict=strict), to_dict)

    def serialize(self, value: Any, context: SerializationContext) -> bytes | Awaitable[bytes]:
        """Return the bytes of a value, or an awaitable of them if the registry must be asked first.

        Raises:
            SchemaMismatch: the value does not fit the schema.
            SchemaRegistryError: the registry refused the schema, or failed.
        """
        return self._writer.write(value, context)


class AvroDeserializer:
    """Deserializes values that were written as Avro with the id of their schema, by any client.

    Args:
        registry: the schema registry.
        schema: the reader's schema, to which values of older and newer schemas are converted; None for values as they
            were written.
        from_dict: a function that makes a value of your own of fastavro's.

    Raises:
        UsageError: an argument is wrong.
        SchemaMismatch: the schema is not valid.
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        schema: str | Mapping[str, Any] | Sequence[Any] | Schema | None = None,
        *,
        from_dict: Callable[[Any], Any] | None = None,
    ) -> None:
        check_registry(registry)
        own = as_schema(schema, SchemaType.AVRO)
        parse_writer = partial(parse_avro, has_defaults=False)
        self._reader = SchemaReader(registry, own, SchemaType.AVRO, parse_avro, read_avro, from_dict, parse_writer)

    def deserialize(self, data: bytes, context: SerializationContext) -> Any:
        """Return the value of bytes, or an awaitable of it if the registry must be asked first.

        Raises:
            SchemaMismatch: the bytes have no schema id, or do not fit their schema, or the reader's schema cannot read
                them.
            SchemaRegistryError: the schema is unknown, or the registry failed.
        """
        return self._reader.read(data, context)
