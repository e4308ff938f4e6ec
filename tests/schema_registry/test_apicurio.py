"""Our registry client and serializers, and confluent-kafka's, with a real registry that is not Confluent's."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, cast

import anyio
import anyio.to_thread
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirAvroDeserializer
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirAvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField
from confluent_kafka.serialization import SerializationContext as TheirContext
from support.guarded_process import BootFailed
from support.jars import NEEDS, missing
from support.needing import require
from support.schema_registries import QUICK, context, finished, message_classes

from aiokafkawire.errors import SchemaMismatch, SchemaRegistryError
from aiokafkawire.schema_registry import (
    AvroDeserializer,
    AvroSerializer,
    CompatibilityLevel,
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    Schema,
    SchemaReference,
    SchemaRegistry,
    SchemaType,
)

from .apicurio import Apicurio, fetch

pytestmark = [pytest.mark.anyio, pytest.mark.thorough, pytest.mark.timeout(900)]

AVRO = {
    "type": "record",
    "name": "Flight",
    "namespace": "air",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "delay", "type": ["null", "int"], "default": None},
        {"name": "cost", "type": {"type": "map", "values": "double"}},
    ],
}
JSON = {"title": "Flight", "type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
VALUE = {"id": "UA1545", "delay": 2, "cost": {"a": 1.5}}
CLASSES = message_classes(
    {
        "city.proto": 'syntax = "proto3"; package geo; message City { string name = 1; }',
        "trip.proto": """
            syntax = "proto3";
            package air;
            import "city.proto";
            import "google/protobuf/timestamp.proto";
            message First { int32 a = 1; }
            message Trip {
                map<string, int32> counts = 3;
                message Stop { geo.City city = 1; }
                repeated Stop stops = 1;
                google.protobuf.Timestamp at = 2;
            }
        """,
        "words.proto": """
            syntax = "proto2";
            package words;
            message Words { optional string a = 1 [default = "\u00e9"]; }
        """,
        "group.proto": """
            syntax = "proto2";
            package odd;
            message Odd { optional group In = 1 { optional int32 a = 1; } }
        """,
    }
)
FORMATS: dict[str, Callable[[SchemaRegistry, SchemaRegistryClient], tuple[Any, ...]]] = {
    "avro": lambda registry, client: (
        AvroSerializer(registry, AVRO),
        AvroDeserializer(registry),
        TheirAvroSerializer(client, json.dumps(AVRO)),
        TheirAvroDeserializer(client),
    ),
    "json": lambda registry, client: (
        JsonSchemaSerializer(registry, JSON),
        JsonSchemaDeserializer(registry),
        JSONSerializer(json.dumps(JSON), client),
        JSONDeserializer(None, schema_registry_client=client),
    ),
}


@pytest.fixture(scope="session")
def apicurio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apicurio]:
    """The running registry, which all tests of the session share.

    Without Java or Maven its tests are skipped, or fail when ``AIOKAFKAWIRE_REQUIRE_KAFKA=1`` is in the environment.
    They are skipped where the registry cannot be fetched.
    """
    require(missing())
    folder = tmp_path_factory.mktemp("apicurio")
    try:
        fetch(folder)
    except BootFailed as failed:
        pytest.skip(f"{NEEDS}Apicurio's registry is not there: {failed}")
    with Apicurio(folder) as server:
        yield server


@pytest.fixture
def registry(apicurio: Apicurio) -> SchemaRegistry:
    return SchemaRegistry(apicurio.url, latest_cache_ttl_sec=0, **QUICK)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no other test has."""
    return re.sub(r"\W+", "-", request.node.name).strip("-")


def named(name: str) -> Any:
    return CLASSES[name]


def trip() -> Any:
    message = named("air.Trip")(stops=[{"city": {"name": "Newark"}}], counts={"a": 1})
    message.at.seconds = 9
    return message


async def called(function: Callable[..., Any], *args: Any) -> Any:
    """The result of one of their functions, which block."""
    return await anyio.to_thread.run_sync(function, *args)


@pytest.mark.parametrize("name", FORMATS)
async def test_each_reads_what_the_other_writes(
    apicurio: Apicurio, registry: SchemaRegistry, topic: str, name: str
) -> None:
    with SchemaRegistryClient({"url": apicurio.url}) as client, anyio.fail_after(100):
        writer, reader, their_writer, their_reader = FORMATS[name](registry, client)
        ours, other = context(topic), context(f"{topic}-theirs")
        data = await finished(writer.serialize(VALUE, ours))
        assert await finished(reader.deserialize(data, ours)) == VALUE
        assert await called(their_reader, data, TheirContext(topic, MessageField.VALUE)) == VALUE
        data = await called(their_writer, VALUE, TheirContext(other.topic, MessageField.VALUE))
        assert await finished(reader.deserialize(data, other)) == VALUE


@pytest.mark.parametrize(
    "message", [trip(), named("words.Words")(a="b"), named("odd.Odd")()], ids=["imports", "words", "groups"]
)
async def test_messages_are_read_by_their_class(registry: SchemaRegistry, topic: str, message: Any) -> None:
    with anyio.fail_after(100):
        writer = ProtobufSerializer(registry, type(message))
        data = await finished(writer.serialize(message, context(topic)))
        reader = ProtobufDeserializer(registry, type(message))
        assert await finished(reader.deserialize(data, context(topic))) == message
        again = ProtobufSerializer(registry, type(message), auto_register=False)
        assert await finished(again.serialize(message, context(topic))) == data


async def test_messages_of_other_types_are_refused(registry: SchemaRegistry, topic: str) -> None:
    with anyio.fail_after(100):
        first = named("air.First")
        data = await finished(ProtobufSerializer(registry, first).serialize(first(a=5), context(topic)))
        for other in ("air.Trip", "air.Trip.Stop", "geo.City", "odd.Odd"):
            with pytest.raises(SchemaMismatch, match=rf"is a message air\.First, .* reads messages {re.escape(other)}"):
                await finished(ProtobufDeserializer(registry, named(other)).deserialize(data, context(topic)))
        with pytest.raises(SchemaMismatch, match=r"no message with the indexes \[77\]"):
            wrong = data[:5] + b"\x02\x9a\x01" + data[6:]
            await finished(ProtobufDeserializer(registry, first).deserialize(wrong, context(topic)))
        with pytest.raises(SchemaMismatch, match="as text alone: give the deserializer a message_type"):
            await finished(ProtobufDeserializer(registry).deserialize(data, context(topic)))


async def test_the_latest_version_gives_the_indexes(registry: SchemaRegistry, topic: str) -> None:
    text = 'syntax = "proto3";\npackage air;\nmessage Zero { int32 z = 1; }\nmessage First { int32 a = 1; }\n'
    with anyio.fail_after(100):
        await registry.register_schema(f"{topic}-value", Schema(text, SchemaType.PROTOBUF))
        writer = ProtobufSerializer(registry, named("air.First"), use_latest_version=True)
        data = await finished(writer.serialize(named("air.First")(a=5), context(topic)))
        assert data[5:] == b"\x02\x02\x08\x05"
        missing = ProtobufSerializer(registry, named("air.Trip"), use_latest_version=True)
        with pytest.raises(SchemaMismatch, match=r"has no message air\.Trip"):
            await finished(missing.serialize(named("air.Trip")(), context(topic)))


async def test_schemas_refer_to_others(registry: SchemaRegistry, topic: str) -> None:
    city = {"type": "record", "name": "City", "namespace": "geo", "fields": [{"name": "name", "type": "string"}]}
    fields = [{"name": "to", "type": "geo.City"}]
    with anyio.fail_after(100):
        await registry.register_schema(f"{topic}-city", Schema(json.dumps(city)))
        references = [SchemaReference("geo.City", f"{topic}-city", 1)]
        trip_schema = Schema(json.dumps({"type": "record", "name": "Trip", "fields": fields}), references=references)
        value = {"to": {"name": "Newark"}}
        data = await finished(AvroSerializer(registry, trip_schema).serialize(value, context(topic)))
        assert await finished(AvroDeserializer(registry).deserialize(data, context(topic))) == value
        found = (await registry.get_version(f"{topic}-value")).schema
        assert found.references == trip_schema.references
        assert [*await registry.get_references(found)] == ["geo.City"]

        name = {"type": "object", "properties": {"name": {"type": "string"}}}
        await registry.register_schema(f"{topic}-name", Schema(json.dumps(name), SchemaType.JSON))
        place = Schema(
            json.dumps({"title": "Place", "type": "object", "properties": {"to": {"$ref": "name.json"}}}),
            SchemaType.JSON,
            [SchemaReference("name.json", f"{topic}-name", 1)],
        )
        data = await finished(JsonSchemaSerializer(registry, place).serialize(value, context(f"{topic}-json")))
        reader = JsonSchemaDeserializer(registry)
        assert await finished(reader.deserialize(data, context(f"{topic}-json"))) == value


async def test_levels_of_compatibility(registry: SchemaRegistry, topic: str) -> None:
    one, more = ({"name": name, "type": "string"} for name in ("id", "gate"))
    schema, default, bad = (
        Schema(json.dumps({"type": "record", "name": "Flight", "fields": fields}))
        for fields in ([one], [one, {**more, "default": ""}], [one, more])
    )
    with anyio.fail_after(100):
        await registry.register_schema(topic, schema)
        await registry.set_compatibility("BACKWARD", topic)
        assert await registry.get_compatibility(topic) is CompatibilityLevel.BACKWARD
        assert (await registry.check_compatibility(topic, default)).is_compatible
        assert not (await registry.check_compatibility(topic, bad)).is_compatible
        with pytest.raises(SchemaRegistryError) as refused:
            await registry.register_schema(topic, bad)
        assert refused.value.status == 409
        assert (await registry.register_schema(topic, default)).schema_id
        assert await registry.list_versions(topic) == (1, 2)
        await registry.delete_compatibility(topic)
        assert topic in await registry.list_subjects()


async def test_what_is_not_there(registry: SchemaRegistry, topic: str) -> None:
    with anyio.fail_after(100):
        for call, code in (
            (lambda: registry.get_schema(987_654), 40403),
            (lambda: registry.get_version(topic), 40401),
            (lambda: registry.list_versions(topic), 40401),
            (lambda: registry.delete_subject(topic), 40401),
        ):
            with pytest.raises(SchemaRegistryError) as refused:
                await cast("Any", call())
            assert (refused.value.status, refused.value.error_code) == (404, code)
