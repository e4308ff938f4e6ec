"""JSON Schema: validation both ways, references, and values and bytes that do not fit."""

from __future__ import annotations

from typing import Any

import pytest
from support.schema_registries import context, finished, running_registry

from aiokafkawire.errors import SchemaMismatch, SchemaRegistryError, UsageError
from aiokafkawire.schema_registry import (
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    Schema,
    SchemaReference,
    SchemaRegistry,
    SchemaType,
)

pytestmark = pytest.mark.anyio

FLIGHT: dict[str, Any] = {
    "title": "Flight",
    "type": "object",
    "properties": {"id": {"type": "string"}, "delay": {"type": ["integer", "null"]}},
    "required": ["id"],
}
NOWHERE = SchemaRegistry("http://localhost:1")


@pytest.mark.parametrize("location", ["prefix", "header"])
async def test_values_are_read_as_written_and_only_the_first_asks(location: Any) -> None:
    async with running_registry() as (server, registry):
        writer = JsonSchemaSerializer(registry, FLIGHT, schema_id_location=location)
        reader = JsonSchemaDeserializer(registry)
        value = {"id": "é", "delay": 5}
        record = context()
        data = await finished(writer.serialize(value, record))
        assert data.endswith('{"id":"é","delay":5}'.encode())
        assert await finished(reader.deserialize(data, record)) == value
        count = len(server.requests)
        again = context()
        assert writer.serialize(value, again) == data
        assert reader.deserialize(data, again) == value
        assert len(server.requests) == count


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({}, "at \\$: 'id' is a required property"),
        ({"id": "a", "delay": 1.5}, r"at \$\.delay: 1\.5 is not of type"),
        ([], "is not of type 'object'"),
        ({"id": object()}, "cannot be written as JSON"),
        ({"id": float("nan")}, "cannot be written as JSON"),
        ({"id": "\ud800"}, "cannot be written as JSON"),
    ],
)
async def test_a_value_that_does_not_fit_is_an_error(value: Any, reason: str) -> None:
    async with running_registry() as (_, registry):
        writer = JsonSchemaSerializer(registry, FLIGHT)
        for _ in range(2):
            with pytest.raises(SchemaMismatch, match=reason):
                await finished(writer.serialize(value, context()))


async def test_bytes_that_do_not_fit_are_an_error_unless_validation_is_off() -> None:
    async with running_registry() as (_, registry):
        lenient = JsonSchemaSerializer(registry, FLIGHT, validate=False)
        data = await finished(lenient.serialize({"delay": "x"}, context()))
        reader = JsonSchemaDeserializer(registry)
        for _ in range(2):
            with pytest.raises(SchemaMismatch, match=r"'id' is a required property|'x' is not of type"):
                await finished(reader.deserialize(data, context()))
        reading = JsonSchemaDeserializer(registry, validate=False)
        assert await finished(reading.deserialize(data, context())) == {"delay": "x"}
        for size in range(len(data)):
            with pytest.raises(SchemaMismatch):
                await finished(reading.deserialize(data[:size], context()))
        for wrong in (b"[" * 100_000, b"\xff", b"{}{}"):
            with pytest.raises(SchemaMismatch, match="are not JSON"):
                await finished(reading.deserialize(data[:5] + wrong, context()))


async def test_a_reader_s_own_schema_takes_the_place_of_the_writer_s() -> None:
    async with running_registry() as (_, registry):
        data = await finished(JsonSchemaSerializer(registry, FLIGHT).serialize({"id": "a"}, context()))
        reader = JsonSchemaDeserializer(registry, {"required": ["gate"]})
        with pytest.raises(SchemaMismatch, match="'gate' is a required property"):
            await finished(reader.deserialize(data, context()))


async def test_a_writer_s_schema_that_no_value_must_fit_may_be_wrong() -> None:
    """Registries other than Confluent's take schemas that their metaschema refuses."""
    wrong = Schema('{"type": "object", "required": true}', SchemaType.JSON)
    async with running_registry() as (_, registry):
        await registry.register_schema("flights-value", wrong)
        readers = [
            JsonSchemaDeserializer(registry, validate=False),
            JsonSchemaDeserializer(registry, {"type": "object"}),
        ]
        for reader in readers:
            assert await finished(reader.deserialize(b"\x00\x00\x00\x00\x01{}", context())) == {}
        with pytest.raises(SchemaMismatch, match="not a valid JSON schema"):
            await finished(JsonSchemaDeserializer(registry).deserialize(b"\x00\x00\x00\x00\x01{}", context()))


@pytest.mark.parametrize("name", ["https://example.org/city.json", "city.json"])
async def test_references_are_found(name: str) -> None:
    city = Schema('{"type":"object","required":["name"]}', SchemaType.JSON)
    trip = Schema(
        '{"$id":"https://example.org/trip.json","title":"Trip","properties":{"to":{"$ref":"city.json"}}}',
        SchemaType.JSON,
        (SchemaReference(name, "city", 1),),
    )
    async with running_registry() as (_, registry):
        await registry.register_schema("city", city)
        writer = JsonSchemaSerializer(registry, trip, subject_name_strategy="record")
        data = await finished(writer.serialize({"to": {"name": "Newark"}}, context()))
        assert await registry.list_subjects() == ("Trip", "city")
        with pytest.raises(SchemaMismatch, match=r"at \$\.to: 'name' is a required property"):
            await finished(writer.serialize({"to": {}}, context()))
        reader = JsonSchemaDeserializer(registry)
        assert await finished(reader.deserialize(data, context())) == {"to": {"name": "Newark"}}


async def test_a_reference_that_is_missing_is_an_error_and_nothing_is_downloaded() -> None:
    schema = {"properties": {"to": {"$ref": "http://127.0.0.1:1/city.json"}}}
    async with running_registry() as (_, registry):
        with pytest.raises(SchemaMismatch, match=r"cannot be validated by the JSON schema.*city\.json"):
            await finished(JsonSchemaSerializer(registry, schema).serialize({"to": 1}, context()))


async def test_the_latest_version_may_validate() -> None:
    async with running_registry() as (_, registry):
        writer = JsonSchemaSerializer(registry, use_latest_version=True)
        with pytest.raises(SchemaRegistryError, match="not found"):
            await finished(writer.serialize({}, context()))
        await registry.register_schema("flights-value", Schema('{"required":["a"]}', SchemaType.JSON))
        with pytest.raises(SchemaMismatch, match="'a' is a required property"):
            await finished(writer.serialize({}, context()))
        assert await finished(writer.serialize({"a": 1}, context())) == b'\x00\x00\x00\x00\x01{"a":1}'


@pytest.mark.parametrize(
    ("schema", "reason"), [("{", "not valid JSON"), ("[]", "not a JSON schema"), ('{"type":"strng"}', "strng")]
)
def test_a_schema_that_is_not_valid_is_an_error(schema: str, reason: str) -> None:
    with pytest.raises(SchemaMismatch, match=reason):
        JsonSchemaSerializer(NOWHERE, schema)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"schema": None}, "schema is None"),
        ({"schema": b"{}"}, "schema must be JSON text"),
        ({"schema": Schema('"int"')}, "must be of type JSON"),
        ({"validate": 1}, "validate must be"),
        ({"to_dict": 1}, "to_dict must be"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        JsonSchemaSerializer(**{"registry": NOWHERE, "schema": "{}", **arguments})
    if "from_dict" not in arguments:
        with pytest.raises(UsageError, match="from_dict must be"):
            JsonSchemaDeserializer(NOWHERE, from_dict=5)  # type: ignore[arg-type]
