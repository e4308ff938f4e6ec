"""The in-memory registry's check of Avro schemas, against the library of Apache Avro."""

from __future__ import annotations

import itertools
import json
from typing import Any

import avro.compatibility
import avro.errors
import avro.schema
import pytest
from support.rows import every_row

from aiokafkawire.testing.schema_registry.avro_compatibility import avro_differences
from aiokafkawire.testing.schema_registry.avro_types import InvalidAvro, parse_avro_types


def record(*fields: Any, name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


A = {"name": "a", "type": "int"}
B = {"name": "b", "type": "string"}
B_DEFAULT = {"name": "b", "type": "string", "default": ""}
ENUM: dict[str, Any] = {"type": "enum", "name": "E", "symbols": ["X", "Y"]}
TREE = record({"name": "children", "type": {"type": "array", "items": "R"}})

SCHEMAS: list[Any] = [
    "null",
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "string",
    "bytes",
    ["null", "int"],
    ["null", "string", "long"],
    ["double"],
    {"type": "array", "items": "int"},
    {"type": "array", "items": "long"},
    {"type": "map", "values": "int"},
    {"type": "map", "values": ["null", "int"]},
    {"type": "fixed", "name": "F", "size": 2},
    {"type": "fixed", "name": "F", "size": 3},
    {"type": "fixed", "name": "G", "size": 2},
    ENUM,
    {**ENUM, "symbols": ["X"]},
    {**ENUM, "symbols": ["X"], "default": "X"},
    {**ENUM, "name": "Other"},
    record(A),
    record(A, B),
    record(A, B_DEFAULT),
    record({"name": "a", "type": "long"}),
    record({"name": "new", "type": "int", "aliases": ["a"]}),
    record(A, name="S"),
    {**record(A, name="S"), "aliases": ["R"]},
    record({"name": "inner", "type": record(A, name="Inner")}),
    record({"name": "inner", "type": record(A, B, name="Inner")}),
    record({"name": "inner", "type": ["null", record(A, name="Inner")], "default": None}),
    TREE,
    record({"name": "children", "type": {"type": "array", "items": "R"}}, B_DEFAULT),
    record({"name": "children", "type": {"type": "array", "items": "R"}}, B),
]


@every_row(("reader", "writer"), list(itertools.product(SCHEMAS, SCHEMAS)))
def test_every_pair_is_judged_as_by_apache_avro(reader: Any, writer: Any) -> None:
    texts = [json.dumps(schema) for schema in (reader, writer)]
    parsed = [avro.schema.parse(text) for text in texts]
    checker: Any = avro.compatibility.ReaderWriterCompatibilityChecker  # its types are wrong
    result = checker().get_compatibility(*parsed)
    compatible = result.compatibility is avro.compatibility.SchemaCompatibilityType.compatible
    ours = avro_differences(*(parse_avro_types(text, {}) for text in texts))
    assert (not ours) == compatible, (reader, writer, ours, result.messages)


@every_row("schema", SCHEMAS)
def test_a_schema_is_compatible_with_itself(schema: Any) -> None:
    text = json.dumps(schema)
    assert avro_differences(parse_avro_types(text, {}), parse_avro_types(text, {})) == ()


def test_decimals_of_another_scale_are_compatible_as_for_avro_1_12() -> None:
    first, second = (
        parse_avro_types(json.dumps({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": scale}), {})
        for scale in (2, 3)
    )
    assert avro_differences(first, second) == ()


@pytest.mark.parametrize(
    "schema",
    [
        "{",
        "strnig",
        "{}",
        '{"type":"record","name":"A"}',
        '{"type":"record","fields":[]}',
        '{"type":"record","name":"1","fields":[]}',
        '{"type":"record","name":"A","fields":[{"name":"a"}]}',
        '{"type":"record","name":"A","fields":[{"name":"a","type":"B"}]}',
        '{"type":"enum","name":"A"}',
        '{"type":"fixed","name":"A"}',
        '{"type":"array"}',
        '["int","int"]',
        '["int",["string"]]',
        "5",
        '[{"type":"fixed","name":"A","size":1},{"type":"fixed","name":"A","size":1}]',
        "int",
        '{"type":{"type":"int"}}',
        '{"type":["null","int"]}',
        '{"type":"fixed","name":"A","size":-1}',
        '{"type":"fixed","name":"A","size":true}',
        '{"type":"fixed","name":"A","namespace":"a-b","size":1}',
        '{"type":"fixed","name":"int","size":1}',
        '{"type":"fixed","name":"A","aliases":"B","size":1}',
        '{"type":"fixed","name":"A","aliases":[1],"size":1}',
        '{"type":"enum","name":"A","symbols":["B","B"]}',
        '{"type":"enum","name":"A","symbols":["B-C"]}',
        '{"type":"enum","name":"A","symbols":["B"],"default":"C"}',
        '{"type":"array","items":' * 5000 + '"int"' + "}" * 5000,
        "[" * 100_000,
    ],
)
def test_a_schema_that_is_not_valid_is_refused(schema: str) -> None:
    with pytest.raises(InvalidAvro):
        parse_avro_types(schema, {})


INNER = {"type": "record", "name": "N", "fields": [A, {"name": "b", "type": "int", "default": 1}]}
WIDE = {"type": "array", "items": ["null", {"type": "map", "values": "long"}]}


@every_row(
    ("field", "is_valid"),
    [
        ({"name": "x", "type": "int"}, True),
        ({"name": "a", "type": "int"}, False),
        ({"name": "x-y", "type": "int"}, False),
        ({"name": "x.y", "type": "int"}, False),
        ({"name": "x", "type": "int", "order": "ignore"}, True),
        ({"name": "x", "type": "int", "order": "sideways"}, False),
        ({"name": "x", "type": "int", "aliases": ["y"]}, True),
        ({"name": "x", "type": "int", "aliases": "y"}, False),
        ({"name": "x", "type": "null", "default": None}, True),
        ({"name": "x", "type": "null", "default": 0}, False),
        ({"name": "x", "type": "boolean", "default": True}, True),
        ({"name": "x", "type": "boolean", "default": 1}, False),
        ({"name": "x", "type": "int", "default": -(2**31)}, True),
        ({"name": "x", "type": "int", "default": 2**31}, False),
        ({"name": "x", "type": "int", "default": True}, False),
        ({"name": "x", "type": "int", "default": 1.0}, False),
        ({"name": "x", "type": "int", "default": "1"}, False),
        ({"name": "x", "type": "long", "default": 2**31}, True),
        ({"name": "x", "type": "long", "default": 2**63}, False),
        ({"name": "x", "type": "float", "default": 1}, True),
        ({"name": "x", "type": "double", "default": 1.5}, True),
        ({"name": "x", "type": "double", "default": "1.5"}, True),
        ({"name": "x", "type": "double", "default": "a"}, False),
        ({"name": "x", "type": "double", "default": None}, False),
        ({"name": "x", "type": "string", "default": ""}, True),
        ({"name": "x", "type": "string", "default": None}, False),
        ({"name": "x", "type": "bytes", "default": "\u00ff"}, True),
        ({"name": "x", "type": {"type": "enum", "name": "E", "symbols": ["Y"]}, "default": "Y"}, True),
        ({"name": "x", "type": {"type": "enum", "name": "E", "symbols": ["Y"]}, "default": 1}, False),
        ({"name": "x", "type": {"type": "fixed", "name": "F", "size": 1}, "default": "a"}, True),
        ({"name": "x", "type": ["null", "int"], "default": 3}, True),
        ({"name": "x", "type": ["int", "null"], "default": None}, True),
        ({"name": "x", "type": ["int", "null"], "default": "a"}, False),
        ({"name": "x", "type": WIDE, "default": [None, {"a": 1}]}, True),
        ({"name": "x", "type": WIDE, "default": [{"a": "b"}]}, False),
        ({"name": "x", "type": WIDE, "default": {}}, False),
        ({"name": "x", "type": INNER, "default": {"a": 1}}, True),
        ({"name": "x", "type": INNER, "default": {"a": 1, "b": "c"}}, False),
        ({"name": "x", "type": INNER, "default": {}}, False),
        ({"name": "x", "type": INNER, "default": []}, False),
    ],
)
def test_fields_are_checked_with_their_defaults(field: dict[str, Any], is_valid: bool) -> None:
    text = json.dumps(record(A, field))
    if is_valid:
        assert parse_avro_types(text, {}).kind == "record"
    else:
        with pytest.raises(InvalidAvro):
            parse_avro_types(text, {})
