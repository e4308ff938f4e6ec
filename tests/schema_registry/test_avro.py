"""Avro: types, evolution, references, subjects, and values and bytes that do not fit."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import attrs
import pytest
from support.schema_registries import context, finished, running_registry

from aiokafkawire.errors import SchemaMismatch, SchemaRegistryError, UsageError
from aiokafkawire.schema_registry import (
    AvroDeserializer,
    AvroSerializer,
    JsonSchemaDeserializer,
    Schema,
    SchemaReference,
    SchemaRegistry,
    SchemaType,
)
from aiokafkawire.testing import SchemaRegistryServer

pytestmark = pytest.mark.anyio

FLIGHT: dict[str, Any] = {
    "type": "record",
    "name": "Flight",
    "namespace": "air",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "delay", "type": ["null", "int"], "default": None},
    ],
}
NOWHERE = SchemaRegistry("http://localhost:1")


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("string", "é"),
        ("bytes", b"\x00\xff"),
        ("int", -5),
        (["null", "string", "long"], 7),
        ({"type": "array", "items": "boolean"}, [True, False]),
        ({"type": "map", "values": "double"}, {"a": 1.5}),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B"),
        ({"type": "fixed", "name": "F", "size": 2}, b"ab"),
        ({"type": "int", "logicalType": "date"}, date(2013, 1, 1)),
        ({"type": "long", "logicalType": "timestamp-millis"}, datetime(2013, 1, 1, 5, tzinfo=UTC)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, Decimal("-12.34")),
        ({"type": "string", "logicalType": "uuid"}, UUID(int=5)),
        (FLIGHT, {"id": "UA1545", "delay": None}),
    ],
)
async def test_values_of_every_type_are_read_as_written(schema: Any, value: object) -> None:
    async with running_registry() as (_, registry):
        given = json.dumps(schema) if isinstance(schema, str) else schema
        writer, reader = AvroSerializer(registry, given), AvroDeserializer(registry)
        for _ in range(2):  # the first asks the registry
            data = await finished(writer.serialize(value, context()))
            assert data.startswith(b"\x00\x00\x00\x00\x01")
            assert await finished(reader.deserialize(data, context())) == value


async def test_only_the_first_record_asks_the_registry() -> None:
    async with running_registry() as (server, registry):
        writer, reader = AvroSerializer(registry, FLIGHT), AvroDeserializer(registry)
        data = await finished(writer.serialize({"id": "a"}, context()))
        await finished(reader.deserialize(data, context()))
        count = len(server.requests)
        assert writer.serialize({"id": "a"}, context()) == data
        assert reader.deserialize(data, context()) == {"id": "a", "delay": None}
        assert len(server.requests) == count


async def test_bytes_are_written_without_their_length_as_java_does() -> None:
    async with running_registry() as (_, registry):
        assert await finished(AvroSerializer(registry, '"bytes"').serialize(b"ab", context())) == b"\0\0\0\0\1ab"


async def test_a_reader_s_schema_reads_older_and_newer_values() -> None:
    newer = json.loads(json.dumps(FLIGHT))
    newer["fields"].append({"name": "gate", "type": "string", "default": "?"})
    newer["fields"][1]["aliases"] = ["late"]
    async with running_registry() as (_, registry):
        old = await finished(AvroSerializer(registry, FLIGHT).serialize({"id": "a", "delay": 5}, context()))
        new = await finished(AvroSerializer(registry, newer).serialize({"id": "b", "delay": 6, "gate": "7"}, context()))
        assert await finished(AvroDeserializer(registry, newer).deserialize(old, context())) == {
            "id": "a",
            "delay": 5,
            "gate": "?",
        }
        assert await finished(AvroDeserializer(registry, FLIGHT).deserialize(new, context())) == {"id": "b", "delay": 6}
        with pytest.raises(SchemaMismatch, match="cannot be read by the Avro schema"):
            await finished(AvroDeserializer(registry, '"int"').deserialize(new, context()))


async def test_schemas_use_the_types_of_others() -> None:
    city = Schema('{"type":"record","name":"City","namespace":"geo","fields":[{"name":"name","type":"string"}]}')
    text = '{"type":"record","name":"Trip","fields":[{"name":"stops","type":{"type":"array","items":"geo.City"}}]}'
    trip = Schema(text, references=[SchemaReference("geo.City", "city", 1)])
    value = {"stops": [{"name": "Newark"}, {"name": "Houston"}]}
    async with running_registry() as (_, registry):
        await registry.register_schema("city", city)
        writer = AvroSerializer(registry, trip, subject_name_strategy="record")
        data = await finished(writer.serialize(value, context()))
        assert await registry.list_subjects() == ("Trip", "city")
        assert await finished(AvroDeserializer(registry, trip).deserialize(data, context())) == value
        assert await finished(AvroDeserializer(registry).deserialize(data, context())) == value


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (["null", "geo.City", "geo.Town"], {"size": 3, "kind": "OLD"}),
        (["geo.City", "geo.Town"], ("geo.City", {"name": "Newark", "next": {"name": "Houston", "next": None}})),
        ([{"type": "array", "items": "geo.Town"}, "geo.Town"], {"size": 3, "kind": "OLD"}),
        ({"type": "array", "items": "geo.City"}, [{"name": "Newark", "next": None}]),
        ({"type": "map", "values": ["null", "geo.Town"]}, {"a": {"size": 3, "kind": "NEW"}}),
        ("geo.City", {"name": "Newark", "next": None}),
        ("geo.Kind", "OLD"),
    ],
)
async def test_a_schema_may_be_made_of_the_types_of_others_alone(schema: Any, value: Any) -> None:
    next_city = {"name": "next", "type": ["null", "City"], "default": None}
    city: dict[str, Any] = {"type": "record", "name": "City", "namespace": "geo"}
    city["fields"] = [{"name": "name", "type": "string"}, next_city]
    kind = {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "OLD"]}}
    town = {"type": "record", "name": "geo.Town", "fields": [{"name": "size", "type": "int"}, kind]}
    references = [SchemaReference("geo.City", "city", 1), SchemaReference("geo.Town", "town", 1)]
    given = Schema(json.dumps(schema), references=references)
    async with running_registry() as (_, registry):
        await registry.register_schema("city", Schema(json.dumps(city)))
        await registry.register_schema("town", Schema(json.dumps(town)))
        writer = AvroSerializer(registry, given)
        data = await finished(writer.serialize(value, context()))
        assert writer.serialize(value, context()) == data
        for reader in (AvroDeserializer(registry), AvroDeserializer(registry, given)):
            wanted = value[1] if isinstance(value, tuple) else value
            assert await finished(reader.deserialize(data, context())) == wanted


async def test_what_deleted_schemas_have_written_is_read_with_the_types_of_others() -> None:
    city = Schema('{"type":"record","name":"City","namespace":"geo","fields":[{"name":"name","type":"string"}]}')
    text = '{"type":"record","name":"Trip","fields":[{"name":"to","type":"geo.City"}]}'
    async with running_registry() as (_, registry):
        await registry.register_schema("city", city)
        writer = AvroSerializer(registry, Schema(text, references=[SchemaReference("geo.City", "city", 1)]))
        data = await finished(writer.serialize({"to": {"name": "Newark"}}, context()))
        await registry.delete_subject("flights-value")
        await registry.delete_subject("city")
        assert await finished(AvroDeserializer(registry).deserialize(data, context())) == {"to": {"name": "Newark"}}
        with pytest.raises(SchemaRegistryError, match="'city' not found"):
            await registry.get_version("city", 1)


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [
        ("topic", "flights-key"),
        ("record", "air.Flight"),
        ("topic-record", "flights-air.Flight"),
        (lambda context, name: f"{context.topic}.{context.is_key}.{name}", "flights.True.air.Flight"),
    ],
)
async def test_subjects_are_named_by_the_strategy(strategy: Any, subject: str) -> None:
    async with running_registry() as (_, registry):
        writer = AvroSerializer(registry, FLIGHT, subject_name_strategy=strategy)
        await finished(writer.serialize({"id": "a"}, context(is_key=True)))
        assert await registry.list_subjects() == (subject,)


async def test_without_auto_register_the_schema_must_be_there() -> None:
    async with running_registry() as (_, registry):
        writer = AvroSerializer(registry, FLIGHT, auto_register=False)
        with pytest.raises(SchemaRegistryError, match="subject 'flights-value' does not have this schema") as caught:
            await finished(writer.serialize({"id": "a"}, context()))
        assert caught.value.error_code == 40401
        await registry.register_schema("flights-value", Schema(json.dumps(FLIGHT)))
        assert await finished(writer.serialize({"id": "a"}, context())) == b"\x00\x00\x00\x00\x01\x02a\x00"


async def test_the_latest_version_may_write() -> None:
    async with running_registry() as (server, registry):
        writer = AvroSerializer(registry, use_latest_version=True)
        with pytest.raises(SchemaRegistryError, match="Subject 'flights-value' not found"):
            await finished(writer.serialize({"id": "a"}, context()))
        await registry.register_schema("flights-value", Schema(json.dumps(FLIGHT)))
        assert await finished(writer.serialize({"id": "a"}, context())) == b"\x00\x00\x00\x00\x01\x02a\x00"
        assert writer.serialize({"id": "b"}, context()) == b"\x00\x00\x00\x00\x01\x02b\x00"
        await registry.register_schema("flights-value", Schema('["null",' + json.dumps(FLIGHT) + "]"))
        assert await finished(writer.serialize(None, context())) == b"\x00\x00\x00\x00\x02\x00"
        await SchemaRegistry(server.url).register_schema("t-value", Schema("{}", SchemaType.JSON))
        with pytest.raises(SchemaMismatch, match="is of type JSON, and this serializer writes AVRO"):
            await finished(writer.serialize(1, context("t")))


async def test_the_guid_may_be_in_a_header() -> None:
    async with running_registry() as (_, registry):
        writer = AvroSerializer(registry, FLIGHT, schema_id_location="header")
        record = context()
        data = await finished(writer.serialize({"id": "a"}, record))
        assert data == b"\x02a\x00"
        ((name, value),) = record.headers
        assert (name, value and value[:1], value and len(value)) == ("__value_schema_id", b"\x01", 17)
        assert await finished(AvroDeserializer(registry).deserialize(data, record)) == {"id": "a", "delay": None}
        with pytest.raises(SchemaMismatch, match="begins with byte 2"):
            await finished(AvroDeserializer(registry).deserialize(data, context()))


@pytest.mark.parametrize("location", ["prefix", "header"])
async def test_the_id_of_a_record_that_is_sent_on_is_replaced(location: Any) -> None:
    async with running_registry() as (_, registry):
        record = context()
        await finished(AvroSerializer(registry, '"int"', schema_id_location="header").serialize(1, record))
        record.headers.append(("other", b"1"))
        data = await finished(AvroSerializer(registry, '"long"', schema_id_location=location).serialize(5, record))
        assert [name for name, _ in record.headers if name != "other"] == ["__value_schema_id"] * (location == "header")
        assert ("other", b"1") in record.headers
        assert await finished(AvroDeserializer(registry, '"double"').deserialize(data, record)) == 5.0


async def test_the_latest_version_may_be_named_in_a_header() -> None:
    async with running_registry() as (_, registry):
        await registry.register_schema("flights-value", Schema('"int"'))
        writer = AvroSerializer(registry, use_latest_version=True, schema_id_location="header")
        for _ in range(2):
            record = context()
            assert await finished(writer.serialize(1, record)) == b"\x02"
            assert await finished(AvroDeserializer(registry).deserialize(b"\x02", record)) == 1


async def test_a_registry_without_guids_is_an_error_for_headers_alone() -> None:
    async with SchemaRegistryServer(gives_guids=False) as server:
        registry = SchemaRegistry(server.url)
        writer = AvroSerializer(registry, FLIGHT, schema_id_location="header")
        record = context()
        with pytest.raises(SchemaRegistryError, match="gives schemas no GUIDs"):
            await finished(writer.serialize({"id": "a"}, record))
        assert record.headers == []
        assert await finished(AvroSerializer(registry, FLIGHT).serialize({"id": "a"}, record)) is not None


async def test_objects_are_converted_both_ways() -> None:
    @attrs.frozen
    class Flight:
        id: str
        delay: int | None

    async with running_registry() as (_, registry):
        writer = AvroSerializer(registry, FLIGHT, to_dict=attrs.asdict)
        reader = AvroDeserializer(registry, from_dict=lambda fields: Flight(**fields))
        data = await finished(writer.serialize(Flight("a", 5), context()))
        assert await finished(reader.deserialize(data, context())) == Flight("a", 5)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({}, "id"),
        ({"id": 5}, r"Flight\.id"),
        ({"id": "a", "delay": "x"}, "delay"),
        ({"id": "a", "delay": 2**40}, "delay"),
        (None, "does not fit"),
        (5, "does not fit"),
        ({"id": "\ud800"}, "does not fit"),
    ],
)
async def test_a_value_that_does_not_fit_is_an_error(value: object, reason: str) -> None:
    async with running_registry() as (_, registry):
        writer = AvroSerializer(registry, FLIGHT)
        for _ in range(2):
            with pytest.raises(SchemaMismatch, match=reason):
                await finished(writer.serialize(value, context()))


async def test_unknown_fields_are_left_out_unless_strict() -> None:
    async with running_registry() as (_, registry):
        value = {"id": "a", "dealy": 5}
        assert (await finished(AvroSerializer(registry, FLIGHT).serialize(value, context())))[5:] == b"\x02a\x00"
        strict = AvroSerializer(registry, FLIGHT, strict=True)
        with pytest.raises(SchemaMismatch, match="dealy"):
            await finished(strict.serialize(value, context()))
        assert await finished(strict.serialize({"id": "a"}, context()))


async def test_bytes_that_do_not_fit_are_an_error() -> None:
    async with running_registry() as (_, registry):
        data = await finished(AvroSerializer(registry, FLIGHT).serialize({"id": "abc", "delay": 5}, context()))
        reader = AvroDeserializer(registry)
        assert await finished(reader.deserialize(data, context())) == {"id": "abc", "delay": 5}
        for size in range(len(data)):
            with pytest.raises(SchemaMismatch):
                await finished(reader.deserialize(data[:size], context()))
        with pytest.raises(SchemaMismatch, match=r"1 of \d+ bytes are left"):
            await finished(reader.deserialize(data + b"x", context()))
        with pytest.raises(SchemaRegistryError, match="Schema 9 not found"):
            await finished(reader.deserialize(b"\x00\x00\x00\x00\x09abc", context()))
        with pytest.raises(SchemaMismatch, match="schema 1 is of type AVRO, and this deserializer reads JSON"):
            await finished(JsonSchemaDeserializer(registry).deserialize(data, context()))


async def test_a_default_that_does_not_fit_its_type_is_no_reason_not_to_read() -> None:
    """Confluent's registry takes such schemas, unless avro.validate.defaults=true, and Java's clients read by them."""
    fields = [
        {"name": "id", "type": "string", "default": None},
        {"name": "delay", "type": {"type": "double"}, "default": 0},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A"], "default": "A"}, "default": 1},
    ]
    text = json.dumps({"type": "record", "name": "Flight", "fields": fields})
    data = b"\x00\x00\x00\x00\x01\x02a" + bytes(8) + b"\x00"
    async with running_registry() as (_, registry):
        registry._schemas.put((1, ""), Schema(text))
        found = await finished(AvroDeserializer(registry).deserialize(data, context()))
        assert found == {"id": "a", "delay": 0.0, "kind": "A"}
        with pytest.raises(SchemaMismatch, match="the schema is not valid Avro"):
            AvroDeserializer(registry, text)


@pytest.mark.parametrize("schema", ["{}", "nonsense", '{"type":"recrod"}', '{"type":"record"}', "[1]", "5"])
def test_a_schema_that_is_not_valid_is_an_error(schema: str) -> None:
    with pytest.raises(SchemaMismatch, match="the schema is not valid Avro"):
        AvroSerializer(NOWHERE, schema)
    with pytest.raises(SchemaMismatch, match="the schema is not valid Avro"):
        AvroDeserializer(NOWHERE, schema)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"schema": None}, "schema is None"),
        ({"schema": 5}, "schema must be JSON text"),
        ({"schema": {"type": object()}}, "cannot be written as JSON"),
        ({"schema": Schema("{}", SchemaType.JSON)}, "must be of type AVRO"),
        ({"registry": "http://localhost"}, "registry must be a SchemaRegistry"),
        ({"auto_register": 1}, "auto_register must be"),
        ({"use_latest_version": 1}, "use_latest_version must be"),
        ({"normalize": 1}, "normalize must be"),
        ({"strict": 1}, "strict must be"),
        ({"to_dict": 1}, "to_dict must be a function"),
        ({"subject_name_strategy": "topics"}, "subject_name_strategy must be 'topic'"),
        ({"schema_id_location": "suffix"}, "schema_id_location must be"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        AvroSerializer(**{"registry": NOWHERE, "schema": '"int"', **arguments})


async def test_a_subject_that_is_none_is_refused() -> None:
    nothing: Any = lambda context, name: ""  # noqa: E731
    with pytest.raises(UsageError, match="subject_name_strategy must return"):
        await finished(AvroSerializer(NOWHERE, '"int"', subject_name_strategy=nothing).serialize(1, context()))
    unnamed: Any = ["null", "int"]
    with pytest.raises(SchemaMismatch, match="has no name, which subject_name_strategy needs"):
        await finished(AvroSerializer(NOWHERE, unnamed, subject_name_strategy="record").serialize(1, context()))
