"""The messages in the text of .proto files, and registries that return no descriptors, or broken ones."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from support.schema_registries import compiled, context, finished, message_classes, running_registry

from aiokafkawire.errors import SchemaMismatch
from aiokafkawire.schema_registry import ProtobufDeserializer, ProtobufSerializer, Schema, SchemaType
from aiokafkawire.schema_registry.proto_messages import ProtoMessage, messages_in_text
from aiokafkawire.schema_registry.protobuf_codec import messages_of
from aiokafkawire.testing.schema_registry import rest_api
from aiokafkawire.testing.schema_registry.registry_error import RegistryRefusal
from aiokafkawire.testing.schema_registry.serialized_protobuf import serialized

pytestmark = pytest.mark.anyio

HARD = r"""
// message Comment { }
syntax = "proto2"; /* message Comment { } " */ /**/
package a . b/**/.c;
import 'google/protobuf/descriptor.proto';
option java_package = "message Text { } \" // {";
option (of_file) = { text: "}" inner { numbers: [1, 2] } };
extend google.protobuf.FileOptions { optional Value of_file = 50000; }
extend google.protobuf.FieldOptions { optional Value of_field = 50001; }
message Value { optional string text = 1; optional Inner inner = 2; message Inner { repeated int32 numbers = 1; } };
message First {
  enum Kind { message = 0; group = 1 [deprecated = true]; reserved 5; }
  map<string, .a.b.c.Value> map = 1;
  optional Kind kind = 2 [default = group, (of_field) = { text: 'message Text { }' inner { } }];
  message Second { message Third { } message Fourth { } }
  oneof oneof { string string = 3; Second option = 4; }
  reserved "message", 'group'; reserved 10 to 20, 30; extensions 100 to max;
  extend First { optional int32 package = 100; }
  message Fifth { option deprecated = true; ; }
}
enum Last { NONE = 0; }
service Service {
  rpc message (First) returns (stream First) { option deprecated = true; }
  rpc Other (First) returns (First);
}
message message_ { }
"""
ONE = 'syntax = "proto3"; package air; message First { int32 number = 1; } message Second { int32 number = 1; }'
OTHER_ORDER = """
syntax = "proto3";
package air;
message Zero { map<string, int32> counts = 1; message Inner { } message First { } }
message First { int32 number = 1; }
"""
CLASSES = message_classes({"one.proto": ONE})


def shape(messages: Any) -> list[Any]:
    return [(message.name, shape(message.nested)) for message in messages]


def named(name: str) -> Any:
    return CLASSES[name]


@pytest.mark.parametrize("source", [HARD, ONE, OTHER_ORDER, "\ufeff" + ONE, "message A { }", ""])
def test_the_text_has_the_messages_that_protoc_finds(source: str) -> None:
    (file,) = [one for one in compiled({"a.proto": source}).file if one.name == "a.proto"]
    found, expected = messages_in_text(source), messages_of(file)
    assert (found.package, shape(found.messages)) == (expected.package, shape(expected.messages))


def test_entries_of_maps_do_not_count() -> None:
    entry = "message E { option map_entry = true; optional string key = 1; optional string value = 2; }"
    found = messages_in_text(f"message A {{ message B {{ }} {entry} repeated E e = 1; message C {{ }} }}")
    assert shape(found.messages) == [("A", [("B", []), ("C", [])])]


def test_messages_have_indexes_and_names() -> None:
    found = messages_in_text(HARD)
    for indexes, name in (
        ((0,), "Value"),
        ((0, 0), "Value.Inner"),
        ((1,), "First"),
        ((1, 0), "First.Second"),
        ((1, 0, 1), "First.Second.Fourth"),
        ((1, 1), "First.Fifth"),
        ((2,), "message_"),
    ):
        assert found.name_of(indexes) == f"a.b.c.{name}"
        assert found.indexes_of(f"a.b.c.{name}") == indexes
    for name in ("Value", "a.b.Value", "a.b.c", "a.b.c.Second", "a.b.c.First.Last", ""):
        assert found.indexes_of(name) is None
    with pytest.raises(SchemaMismatch, match=r"no message with the indexes \[3\]: its file has 3 messages"):
        found.name_of((3,))
    with pytest.raises(SchemaMismatch, match=r"no message with the indexes \[1, 1, 0\]: First\.Fifth has 0 messages"):
        found.name_of((1, 1, 0))


@pytest.mark.parametrize(
    "group",
    [
        "optional group G = 1 { optional int32 a = 1; }",
        "repeated group G = 0x1 [deprecated = true] { }",
        "oneof o { int32 b = 2; group G = 1 { } }",
        "extend A { optional group G = 11 { } }",
    ],
)
def test_what_follows_a_group_cannot_be_told(group: str) -> None:
    found = messages_in_text(
        f"message A {{ extensions 10 to 20; message B {{ }} {group} message C {{ }} }} message D {{ }}"
    )
    assert shape(found.messages) == [("A", [("B", []), ("G", []), ("C", [])]), ("D", [])]
    assert (found.indexes_of("A.B"), found.name_of((1,))) == ((0, 0), "D")
    for indexes, name in (((0, 1), "A.G"), ((0, 2), "A.C")):
        with pytest.raises(SchemaMismatch, match="the group 'G', which clients count differently"):
            found.name_of(indexes)
        with pytest.raises(SchemaMismatch, match="the group 'G', which clients count differently"):
            found.indexes_of(name)


@pytest.mark.parametrize(
    "text",
    [
        "message A {",
        "message A { } }",
        "message A { int32 a = 1 }",
        "message A",
        "message A { /* }",
        'message A { } option a = "',
        "message A { } option a = 'x\n';",
        "message A { int32 a = 1 [(b) = { c: [1 } ]; }",
        "message A { int32 a = 1 [(b) = 1; }",
        "option a = { message A { }",
        "package a; package b; message A { }",
        "package a-b; message A { }",
        "message 1 { }",
        "message A B { }",
        "messages A { }",
        "some group G = 1 { }",
        "{ }",
        '{"type": "record"}',
        "hello",
        "\n\x04City\x12\x03geo\x1a\x14\n",
    ],
)
def test_what_is_no_proto_file_is_refused(text: str) -> None:
    with pytest.raises(SchemaMismatch, match="the messages of the Protobuf schema cannot be told"):
        messages_in_text(text)


def test_text_that_is_nested_without_end_takes_no_stack() -> None:
    depth = 20_000
    found: list[ProtoMessage] = list(messages_in_text("message A {" * depth + "}" * depth).messages)
    for _ in range(depth - 1):
        found = found[0].nested
    assert shape(found) == [("A", [])]


# --- registries ------------------------------------------------------------------------------------------------


def as_text(text: str, _references: Mapping[str, str]) -> str:
    return text


def as_an_error(_text: str, _references: Mapping[str, str]) -> str:
    raise RegistryRefusal(500, "java.lang.IllegalStateException: Syntax error")


def as_broken_bytes(text: str, references: Mapping[str, str]) -> str:
    return base64.b64decode(serialized(text, references)).decode("utf-8", "replace")


@pytest.fixture(params=[as_text, as_an_error, as_broken_bytes])
def _no_descriptors(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the registry answer to ``format=serialized`` as others do."""
    answer: Callable[[str, Mapping[str, str]], str] = request.param
    monkeypatch.setattr(rest_api, "serialized", answer)


@pytest.mark.usefixtures("_no_descriptors")
async def test_messages_of_other_types_are_refused_without_descriptors() -> None:
    async with running_registry(max_retries=0) as (server, registry):
        first = named("air.First")
        data = await finished(ProtobufSerializer(registry, first).serialize(first(number=5), context()))
        assert await finished(ProtobufDeserializer(registry, first).deserialize(data, context())) == first(number=5)
        reader = ProtobufDeserializer(registry, named("air.Second"))
        for _ in range(2):
            with pytest.raises(
                SchemaMismatch, match=r"is a message air\.First, and this deserializer reads messages air\.Second"
            ):
                await finished(reader.deserialize(data, context()))
        with pytest.raises(SchemaMismatch, match=r"no message with the indexes \[77\]"):
            other = data[:5] + b"\x02\x9a\x01" + data[6:]
            await finished(ProtobufDeserializer(registry, first).deserialize(other, context()))
        assert server.requests == ["POST /subjects/flights-value/versions", "GET /schemas/ids/1"]


@pytest.mark.usefixtures("_no_descriptors")
async def test_the_latest_version_gives_the_indexes_without_descriptors() -> None:
    async with running_registry(max_retries=0) as (_, registry):
        await registry.register_schema("flights-value", Schema(OTHER_ORDER, SchemaType.PROTOBUF))
        writer = ProtobufSerializer(registry, named("air.First"), use_latest_version=True)
        data = await finished(writer.serialize(named("air.First")(number=5), context()))
        assert data == b"\x00\x00\x00\x00\x01\x02\x02\x08\x05"
        missing = ProtobufSerializer(registry, named("air.Second"), use_latest_version=True)
        with pytest.raises(SchemaMismatch, match=r"has no message air\.Second"):
            await finished(missing.serialize(named("air.Second")(), context()))


async def test_messages_of_another_package_are_of_another_type() -> None:
    sea = ONE.replace("package air", "package sea")
    async with running_registry() as (_, registry):
        await registry.register_schema("flights-value", Schema(sea, SchemaType.PROTOBUF))
        with pytest.raises(SchemaMismatch, match=r"is a message sea\.First, and .* reads messages air\.First"):
            await finished(
                ProtobufDeserializer(registry, named("air.First")).deserialize(b"\x00\x00\x00\x00\x01\x00", context())
            )
        writer = ProtobufSerializer(registry, named("air.First"), use_latest_version=True)
        with pytest.raises(SchemaMismatch, match=r"has no message air\.First"):
            await finished(writer.serialize(named("air.First")(), context()))


async def test_a_schema_whose_messages_cannot_be_told_is_refused() -> None:
    async with running_registry() as (_, registry):
        await registry.register_schema("flights-value", Schema("message First {", SchemaType.PROTOBUF))
        with pytest.raises(SchemaMismatch, match="cannot be told"):
            await finished(
                ProtobufDeserializer(registry, named("air.First")).deserialize(b"\x00\x00\x00\x00\x01\x00", context())
            )
        writer = ProtobufSerializer(registry, named("air.First"), use_latest_version=True)
        with pytest.raises(SchemaMismatch, match="cannot be told"):
            await finished(writer.serialize(named("air.First")(), context()))
