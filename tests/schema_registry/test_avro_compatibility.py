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


def test_decimals_of_another_scale_are_not_compatible() -> None:
    first, second = (
        parse_avro_types(json.dumps({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": scale}), {})
        for scale in (2, 3)
    )
    assert "DECIMAL_MISMATCH" in avro_differences(first, second)[0]


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
    ],
)
def test_a_schema_that_is_not_valid_is_refused(schema: str) -> None:
    with pytest.raises(InvalidAvro):
        parse_avro_types(schema, {})
