"""confluent-kafka's registry client and serializers against ours, both ways, at the registry in memory."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio.to_thread
import pytest
from confluent_kafka.schema_registry import (
    Schema as TheirSchema,
)
from confluent_kafka.schema_registry import (
    SchemaReference as TheirReference,
)
from confluent_kafka.schema_registry import (
    SchemaRegistryClient,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirAvroDeserializer
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirAvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError as TheirError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer as TheirProtobufDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer as TheirProtobufSerializer
from confluent_kafka.serialization import MessageField
from confluent_kafka.serialization import SerializationContext as TheirContext
from support.schema_registries import context, finished, message_classes, running_registry

from aiokafkawire.schema_registry import (
    AvroDeserializer,
    AvroSerializer,
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    Schema,
    SchemaReference,
    SchemaRegistry,
)
from aiokafkawire.serialization import SerializationContext
from aiokafkawire.testing import SchemaRegistryServer

pytestmark = pytest.mark.anyio

AVRO = json.dumps(
    {
        "type": "record",
        "name": "Flight",
        "namespace": "air",
        "fields": [
            {"name": "id", "type": "string"},
            {"name": "delay", "type": ["null", "int"], "default": None},
            {"name": "cost", "type": {"type": "map", "values": "double"}},
        ],
    }
)
JSON = json.dumps({"title": "Flight", "type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]})
VALUE = {"id": "UA1545", "delay": 2, "cost": {"a": 1.5}}
CLASSES = message_classes(
    {
        "city.proto": 'syntax = "proto3"; package geo; message City { string name = 1; }',
        "trip.proto": 'syntax = "proto3"; package air; import "city.proto"; import "google/protobuf/timestamp.proto";'
        "message First { int32 a = 1; } message Trip { message Stop { geo.City city = 1; } repeated Stop stops = 1; "
        "google.protobuf.Timestamp at = 2; }",
    }
)


def trip() -> Any:
    message = CLASSES["air.Trip"](stops=[{"city": {"name": "Newark"}}])
    message.at.seconds = 9
    return message


def theirs(given: SerializationContext) -> TheirContext:
    """Their context of the same record; both have one list of headers."""
    return TheirContext(
        given.topic, MessageField.KEY if given.is_key else MessageField.VALUE, cast("Any", given.headers)
    )


async def called(function: Callable[..., Any], *args: Any) -> Any:
    """The result of one of their functions, which block."""
    return await anyio.to_thread.run_sync(function, *args)


@asynccontextmanager
async def running() -> AsyncIterator[tuple[SchemaRegistry, SchemaRegistryClient, SchemaRegistryServer]]:
    """Our client and theirs, at one registry."""
    async with running_registry() as (server, registry):
        with SchemaRegistryClient({"url": server.url}) as client:
            yield registry, client, server


HEADER: dict[str, Any] = {"schema.id.serializer": header_schema_id_serializer}


def serializers(registry: SchemaRegistry, client: SchemaRegistryClient, header: bool) -> dict[str, tuple[Any, ...]]:
    """By format: a value, our serializer and deserializer, and theirs."""
    location: Any = "header" if header else "prefix"
    conf: dict[str, Any] = HEADER if header else {}
    message = CLASSES["air.Trip"]
    return {
        "avro": (
            VALUE,
            AvroSerializer(registry, AVRO, schema_id_location=location),
            AvroDeserializer(registry),
            TheirAvroSerializer(client, AVRO, conf=conf),
            TheirAvroDeserializer(client),
        ),
        "bytes": (
            b"at least as long as an id",
            AvroSerializer(registry, '"bytes"', schema_id_location=location),
            AvroDeserializer(registry),
            TheirAvroSerializer(client, '"bytes"', conf=conf),
            TheirAvroDeserializer(client),
        ),
        "json": (
            VALUE,
            JsonSchemaSerializer(registry, JSON, schema_id_location=location),
            JsonSchemaDeserializer(registry),
            JSONSerializer(JSON, client, conf=conf),
            JSONDeserializer(None, schema_registry_client=client),
        ),
        "protobuf": (
            trip(),
            ProtobufSerializer(registry, message, schema_id_location=location),
            ProtobufDeserializer(registry, message),
            TheirProtobufSerializer(message, client, conf={"use.deprecated.format": False, **conf}),
            TheirProtobufDeserializer(message, {"use.deprecated.format": False}, client),
        ),
    }


@pytest.mark.parametrize("is_key", [True, False], ids=["key", "value"])
@pytest.mark.parametrize("header", [True, False], ids=["header", "prefix"])
@pytest.mark.parametrize("name", ["avro", "bytes", "json", "protobuf"])
async def test_each_reads_what_the_other_writes(name: str, header: bool, is_key: bool) -> None:
    async with running() as (registry, client, _):
        value, writer, reader, their_writer, their_reader = serializers(registry, client, header)[name]

        ours = context(is_key=is_key)
        data = await finished(writer.serialize(value, ours))
        assert await called(their_reader, data, theirs(ours)) == value

        other = context("other", is_key=is_key)
        data = await called(their_writer, value, theirs(other))
        assert await finished(reader.deserialize(data, other)) == value
        assert bool(other.headers) is header


@pytest.mark.parametrize("name", ["avro", "json"])
async def test_both_write_the_same_bytes_with_the_same_id(name: str) -> None:
    async with running() as (registry, client, _):
        value, writer, _, their_writer, _ = serializers(registry, client, False)[name]
        ours = await finished(writer.serialize(value, context()))
        other = await called(their_writer, value, theirs(context()))
        assert ours[:5] == other[:5] == b"\x00\x00\x00\x00\x01"
        if name == "avro":
            assert ours == other


async def test_their_message_without_a_class_of_ours() -> None:
    async with running() as (registry, client, _):
        _, _, _, their_writer, _ = serializers(registry, client, False)["protobuf"]
        data = await called(their_writer, trip(), theirs(context()))
        made = await finished(ProtobufDeserializer(registry).deserialize(data, context()))
        assert made.stops[0].city.name == "Newark"


async def test_their_client_finds_what_ours_registers_and_refers_to() -> None:
    async with running() as (registry, client, _):
        city = '{"type":"record","name":"City","fields":[{"name":"name","type":"string"}]}'
        await registry.register_schema("city", Schema(city))
        assert (await called(client.get_latest_version, "city")).schema.schema_str == city
        day = '{"type":"record","name":"Day","fields":[{"name":"city","type":"City"}]}'
        their = TheirSchema(day, "AVRO", [TheirReference("City", "city", 1)])
        assert await called(client.register_schema, "day", their) == 2
        ours = Schema(day, references=[SchemaReference("City", "city", 1)])
        assert await registry.get_schema(2) == ours
        assert (await registry.lookup_schema("day", ours)).version == 1
        assert await called(client.get_subjects) == ["city", "day"]
        assert await called(client.get_versions, "day") == [1]
        assert await called(client.get_referenced_by, "city", 1) == [2]
        assert (await called(client.get_version, "city", 1)).schema_id == 1


async def test_their_client_gets_the_errors_that_it_knows() -> None:
    async with running() as (registry, client, _):
        with pytest.raises(TheirError) as caught:
            await called(client.get_schema, 1)
        assert (caught.value.http_status_code, caught.value.error_code) == (404, 40403)
        await registry.register_schema("a", Schema('"int"'))
        with pytest.raises(TheirError) as caught:
            await called(client.register_schema, "a", TheirSchema('"string"', "AVRO"))
        assert (caught.value.http_status_code, caught.value.error_code) == (409, 40901)
        assert not await called(client.test_compatibility, "a", TheirSchema('"string"', "AVRO"))
        assert await called(client.test_compatibility, "a", TheirSchema('"long"', "AVRO"))
        assert await called(client.get_compatibility) == "BACKWARD"
        await called(client.set_compatibility, "a", "FULL")
        assert await called(client.get_compatibility, "a") == "FULL"
        assert await called(client.get_global_mode) == "READWRITE"
        assert await called(client.delete_version, "a", 1) == 1
