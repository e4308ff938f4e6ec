"""Protobuf: message indexes, imports, the text of schemas, and values and bytes that do not fit."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.timestamp_pb2 import Timestamp
from support.schema_registries import compiled, context, finished, message_classes, running_registry

from aiokafkawire.errors import SchemaMismatch, SchemaRegistryError, UsageError
from aiokafkawire.schema_registry import (
    ProtobufDeserializer,
    ProtobufSerializer,
    Schema,
    SchemaRegistry,
    SchemaType,
)
from aiokafkawire.schema_registry.proto_text import proto_text

pytestmark = pytest.mark.anyio

CITY = """
syntax = "proto3";
package geo;
message City { string name = 1; }
"""
TRIP = """
syntax = "proto3";
package air;
import "city.proto";
import public "google/protobuf/timestamp.proto";
option java_package = "org.example";
option optimize_for = SPEED;
message First { int32 number = 1; }
message Trip {
  option deprecated = true;
  reserved 20, 30 to 35, 1000 to max;
  reserved "old";
  enum Kind { option allow_alias = true; UNKNOWN = 0; NONE = 0; FAST = 5 [deprecated = true]; reserved 7 to 9; }
  map<string, geo.City> by_name = 1;
  repeated sint64 delays = 2 [packed = false];
  optional bytes raw = 3;
  oneof what { Kind kind = 4; Inner inner = 5; }
  google.protobuf.Timestamp at = 6 [json_name = "when"];
  message Inner { message Deep { double value = 1; } Deep deep = 1; }
  message Other { bool yes = 1; }
}
service Trips {
  rpc Get (First) returns (stream Trip) { option deprecated = true; }
  rpc Put (stream Trip) returns (First);
}
"""
PROTO2 = r"""
syntax = "proto2";
message Old {
  required string name = 1 [default = "a\"\\\n\u00e9"];
  optional bytes raw = 2 [default = "\000\377'\""];
  optional float ratio = 3 [default = -inf];
  optional Color color = 4 [default = RED];
  repeated int32 packed = 5 [packed = true];
  optional bool yes = 6 [default = true];
  enum Color { GREEN = 1; RED = 2; }
}
"""
NOT_ASCII = """
syntax = "proto2";
package text;
option java_package = "caf\u00e9";
message Words {
  optional string words = 1 [default = "\u00e9\u2028\U0001f600 \\001\\177\\\\\\"", json_name = "\u00fc"];
}
"""
SOURCES = {"city.proto": CITY, "trip.proto": TRIP, "old.proto": PROTO2, "words.proto": NOT_ASCII}
CLASSES = message_classes(SOURCES)
CUSTOM_OPTION = """
syntax = "proto3";
import "google/protobuf/descriptor.proto";
extend google.protobuf.FieldOptions { string a = 50000; }
message A { int32 b = 1 [(a) = "x"]; }
"""
NOWHERE = SchemaRegistry("http://localhost:1")


def named(name: str) -> Any:
    return CLASSES[name]


@pytest.mark.parametrize(
    ("name", "indexes"),
    [
        ("air.First", b"\x00"),
        ("air.Trip", b"\x02\x02"),
        ("air.Trip.Inner", b"\x04\x02\x00"),  # the entries of the map, which come before, do not count
        ("air.Trip.Inner.Deep", b"\x06\x02\x00\x00"),
        ("air.Trip.Other", b"\x04\x02\x02"),
    ],
)
async def test_records_have_the_indexes_of_their_message_as_java_counts(name: str, indexes: bytes) -> None:
    async with running_registry() as (server, registry):
        writer, reader = ProtobufSerializer(registry, named(name)), ProtobufDeserializer(registry, named(name))
        data = await finished(writer.serialize(named(name)(), context()))
        assert data == b"\x00\x00\x00\x00\x02" + indexes  # the imported file has id 1
        assert await finished(reader.deserialize(data, context())) == named(name)()
        made = await finished(ProtobufDeserializer(registry).deserialize(data, context()))
        assert made.DESCRIPTOR.full_name == name
        count = len(server.requests)
        assert writer.serialize(named(name)(), context()) == data
        assert reader.deserialize(data, context()) == named(name)()
        assert len(server.requests) == count


@pytest.mark.parametrize("location", ["prefix", "header"])
async def test_messages_are_read_as_written_by_their_class_and_by_none(location: Any) -> None:
    trip = named("air.Trip")(delays=[-1, 5], raw=b"")
    trip.at.seconds = 9
    trip.by_name["EWR"].name = "Newark"
    trip.inner.deep.value = 0.5
    async with running_registry() as (_, registry):
        record = context()
        writer = ProtobufSerializer(registry, named("air.Trip"), schema_id_location=location)
        data = await finished(writer.serialize(trip, record))
        assert await finished(ProtobufDeserializer(registry, named("air.Trip")).deserialize(data, record)) == trip
        made = await finished(ProtobufDeserializer(registry).deserialize(data, record))
        assert made.SerializeToString(deterministic=True) == trip.SerializeToString(deterministic=True)
        assert made.by_name["EWR"].name == "Newark"
        assert await registry.list_subjects() == ("city.proto", "flights-value")
        registered = await registry.get_version("flights-value")
        assert [(one.name, one.subject, one.version) for one in registered.schema.references] == [
            ("city.proto", "city.proto", 1)
        ]


async def test_a_file_may_import_one_of_any_name() -> None:
    """Also of the name that classes give to the schema itself, which has none in a registry."""
    classes = message_classes({"schema.proto": CITY, "trip.proto": TRIP.replace("city.proto", "schema.proto")})
    trip = classes["air.Trip"]()
    trip.by_name["EWR"].name = "Newark"
    async with running_registry() as (_, registry):
        data = await finished(ProtobufSerializer(registry, classes["air.Trip"]).serialize(trip, context()))
        made = await finished(ProtobufDeserializer(registry).deserialize(data, context()))
    assert made.by_name["EWR"].name == "Newark"


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_the_text_of_a_schema_is_compiled_to_the_same_descriptor(name: str) -> None:
    (file,) = [one for one in compiled(SOURCES).file if one.name == name]
    text = proto_text(file)
    assert text is not None
    (again,) = [one for one in compiled({**SOURCES, name: text}).file if one.name == name]
    assert again == file


def test_the_entries_of_maps_are_told_from_messages_of_the_same_name() -> None:
    other = 'syntax = "proto3"; package other; message FooEntry { int32 number = 1; }'
    source = """
    syntax = "proto3"; package air; import "other.proto";
    message Trip {
      map<string, int32> foo = 1;
      repeated other.FooEntry bars = 2;
      message Inner { map<string, bool> foo = 1; repeated other.FooEntry bars = 2; }
    }
    """
    files = {"other.proto": other, "same.proto": source}
    (file,) = [one for one in compiled(files).file if one.name == "same.proto"]
    text = proto_text(file)
    assert text is not None
    assert text.count("map<") == 2
    (again,) = [one for one in compiled({**files, "same.proto": text}).file if one.name == "same.proto"]
    assert again == file


def test_text_has_characters_beyond_ascii_as_they_are_and_escapes_of_ascii() -> None:
    (file,) = [one for one in compiled(SOURCES).file if one.name == "words.proto"]
    text = proto_text(file)
    assert text is not None
    assert 'default = "\u00e9\u2028\U0001f600 \\001\\177\\134\\042", json_name = "\u00fc"' in text
    assert 'java_package = "caf\u00e9"' in text
    file = FileDescriptorProto(syntax="proto2")
    file.message_type.add(name="A").field.add(name="a", number=1, label=1, type=12, default_value=r"\303\251")
    assert r'optional bytes a = 1 [default = "\303\251"];' in (proto_text(file) or "")


@pytest.mark.parametrize(
    "source",
    [
        'syntax = "proto2"; message A { extensions 5; }',
        'syntax = "proto2"; message A { optional group B = 1 { optional int32 c = 1; } }',
        'syntax = "proto2"; message A { extensions 5; } extend A { optional int32 b = 5; }',
        CUSTOM_OPTION,
        'edition = "2023"; message A { int32 b = 1; }',
    ],
)
async def test_a_schema_that_text_cannot_express_is_sent_serialized(source: str) -> None:
    (file,) = [one for one in compiled({"a.proto": source}).file if one.name == "a.proto"]
    assert proto_text(file) is None
    message = message_classes({"a.proto": source})["A"]
    async with running_registry() as (_, registry):
        await finished(ProtobufSerializer(registry, message).serialize(message(), context()))
        sent = FileDescriptorProto.FromString(base64.b64decode((await registry.get_schema(1)).text))
        assert sent.message_type[0].name == "A"


async def test_the_latest_version_gives_the_indexes() -> None:
    latest = 'syntax = "proto3"; package air; message Zero { } message One { } message First { int32 number = 1; }'
    async with running_registry() as (_, registry):
        writer = ProtobufSerializer(registry, named("air.First"), use_latest_version=True)
        await registry.register_schema("flights-value", Schema(latest, SchemaType.PROTOBUF))
        data = await finished(writer.serialize(named("air.First")(number=1), context()))
        assert data == b"\x00\x00\x00\x00\x01\x02\x04\x08\x01"
        assert (await finished(ProtobufDeserializer(registry).deserialize(data, context()))).number == 1
        missing = ProtobufSerializer(registry, named("air.Trip"), use_latest_version=True)
        with pytest.raises(SchemaMismatch, match=r"has no message air\.Trip"):
            await finished(missing.serialize(named("air.Trip")(), context()))


async def test_without_auto_register_the_schemas_must_be_there() -> None:
    async with running_registry() as (_, registry):
        writer = ProtobufSerializer(registry, named("air.Trip"), auto_register=False)
        with pytest.raises(SchemaRegistryError, match=r"'city\.proto' not found"):
            await finished(writer.serialize(named("air.Trip")(), context()))
        await finished(ProtobufSerializer(registry, named("air.Trip")).serialize(named("air.Trip")(), context()))
        assert await finished(writer.serialize(named("air.Trip")(), context())) == b"\x00\x00\x00\x00\x02\x02\x02"


async def test_a_message_of_another_type_is_an_error() -> None:
    async with running_registry() as (_, registry):
        data = await finished(ProtobufSerializer(registry, named("air.Trip")).serialize(named("air.Trip")(), context()))
        reader = ProtobufDeserializer(registry, named("air.First"))
        with pytest.raises(
            SchemaMismatch, match=r"the data is a message air\.Trip, and this deserializer reads messages air\.First"
        ):
            await finished(reader.deserialize(data, context()))
        writer: Any = ProtobufSerializer(registry, named("air.First"))
        for wrong in (named("air.Trip")(), {"number": 1}, None):
            with pytest.raises(SchemaMismatch, match=r"must be a message air\.First"):
                await finished(writer.serialize(wrong, context()))
        with pytest.raises(SchemaMismatch, match="cannot be written"):
            await finished(ProtobufSerializer(registry, named("Old")).serialize(named("Old")(), context()))


async def test_bytes_that_do_not_fit_are_an_error() -> None:
    async with running_registry() as (_, registry):
        first = named("air.First")
        data = await finished(ProtobufSerializer(registry, first).serialize(first(number=300), context()))
        for reader in (ProtobufDeserializer(registry, first), ProtobufDeserializer(registry)):
            for size in range(6):
                with pytest.raises(SchemaMismatch):
                    await finished(reader.deserialize(data[:size], context()))
            with pytest.raises(SchemaMismatch, match=r"are not a message air\.First"):
                await finished(reader.deserialize(data[:-1], context()))
            with pytest.raises(SchemaMismatch, match=r"no message with the indexes \[5\]"):
                await finished(reader.deserialize(data[:5] + b"\x02\x0a", context()))


async def test_schemas_that_the_registry_has_as_other_things_are_errors() -> None:
    async with running_registry() as (_, registry):
        await registry.register_schema("a", Schema('"int"'))
        with pytest.raises(SchemaMismatch, match="schema 1 is of type AVRO, and this deserializer reads PROTOBUF"):
            await finished(ProtobufDeserializer(registry).deserialize(b"\x00\x00\x00\x00\x01\x00", context()))
        file = FileDescriptorProto(name="b.proto", dependency=["google/protobuf/nothing.proto"], syntax="proto3")
        file.message_type.add(name="B")
        text = base64.b64encode(file.SerializeToString()).decode()
        await registry.register_schema("b", Schema(text, SchemaType.PROTOBUF))
        with pytest.raises(SchemaMismatch, match=r"imports 'google/protobuf/nothing\.proto', which is neither"):
            await finished(ProtobufDeserializer(registry).deserialize(b"\x00\x00\x00\x00\x02\x00", context()))


@pytest.mark.parametrize("wrong", [None, int, "x", Timestamp()])
def test_wrong_arguments_are_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match="message_type must be a class that protoc has generated"):
        ProtobufSerializer(NOWHERE, wrong)
    if wrong is not None:
        with pytest.raises(UsageError, match="message_type must be a class that protoc has generated"):
            ProtobufDeserializer(NOWHERE, wrong)
