"""Avro values that would overflow the stack, or cost memory without bytes, are refused before they are read."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokafkawire.errors import SchemaMismatch
from aiokafkawire.schema_registry.avro_codec import AvroSchema, parse_avro, read_avro, write_avro
from aiokafkawire.schema_registry.schemas import Schema, SchemaType

NODE = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
TREE = {
    "type": "record",
    "name": "Tree",
    "namespace": "woods",
    "fields": [
        {"name": "size", "type": {"type": "fixed", "name": "Two", "size": 2}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "height", "type": ["null", "double", "long", "string"]},
        {"name": "known", "type": "boolean"},
        {"name": "children", "type": {"type": "array", "items": "Tree"}},
        {"name": "named", "type": {"type": "map", "values": "woods.Tree"}},
        {"name": "nothing", "type": "null"},
    ],
}
ENDLESS = {"type": "record", "name": "Endless", "fields": [{"name": "again", "type": "Endless"}]}
BRANCH = b"\x02"


def avro(schema: Any) -> AvroSchema:
    return parse_avro(Schema(json.dumps(schema), SchemaType.AVRO), {})


def number(value: int) -> bytes:
    """A number as Avro has it: zigzag, then seven bits in each byte."""
    value = (value << 1) ^ (value >> 63)
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])


def doubled(levels: int) -> Any:
    """Records of two records each, without a byte: 2**levels of them."""
    schema: Any = {"type": "record", "name": "R0", "fields": []}
    for level in range(1, levels + 1):
        fields = [{"name": "a", "type": schema}, {"name": "b", "type": f"R{level - 1}"}]
        schema = {"type": "record", "name": f"R{level}", "fields": fields}
    return schema


@pytest.mark.parametrize(
    ("schema", "data", "reason"),
    [
        (NODE, BRANCH * 600 + b"\0", "more than 500 values one inside the other"),
        ({"type": "array", "items": NODE}, number(1) + BRANCH * 600 + b"\0\0", "one inside the other"),
        ({"type": "map", "values": NODE}, number(-1) + b"\0\0" + BRANCH * 600, "one inside the other"),
        (ENDLESS, b"", "one inside the other"),
        ({"type": "array", "items": "null"}, number(200_000) + b"\0", "more than 100000 Avro values that take none"),
        ({"type": "array", "items": "null"}, number(2**62) + b"\0", "that take none"),
        (
            {"type": "array", "items": {"type": "record", "name": "E", "fields": []}},
            number(200_000) + b"\0",
            "that take none",
        ),
        (
            {"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}},
            number(200_000) + b"\0",
            "that take none",
        ),
        (doubled(40), b"", "that take none"),
        # Numbers that fastavro would read otherwise than the check.
        (NODE, b"\x82" + b"\x80" * 9 + b"\0", "more than 64 bits"),
        (NODE, b"\x82" + b"\x80" * 8 + b"\x02", "more than 64 bits"),
        (NODE, number(-1) * 600, "no branch -1"),
        ({"type": "array", "items": NODE}, number(-(2**63)) + b"\0", "is no number of Avro values"),
    ],
)
def test_what_would_cost_the_stack_or_memory_is_refused(schema: Any, data: bytes, reason: str) -> None:
    with pytest.raises(SchemaMismatch, match=reason):
        read_avro(data, avro(schema), None)


def test_a_schema_that_nests_too_deeply_is_refused() -> None:
    schema: Any = "int"
    for _ in range(600):
        schema = {"type": "array", "items": schema}
    with pytest.raises(SchemaMismatch, match=r"more than 500 types one inside the other|recursion"):
        avro(schema)


def test_the_deepest_value_that_is_allowed_fits_into_a_small_stack() -> None:
    """fastavro's recursion in C takes less than half of it: a thread of musl has 1 MB."""
    writer, read = avro(NODE), list[Any]()
    data = BRANCH * 248 + b"\0"
    before = threading.stack_size(512 * 1024)
    try:
        thread = threading.Thread(target=lambda: read.append(read_avro(data, writer, writer)))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    (value,), depth = read, 0
    while value is not None:
        value, depth = value["next"], depth + 1
    assert depth == 249


TREES = st.recursive(
    st.just(list[Any]()),
    lambda children: st.lists(children, max_size=3),
    max_leaves=20,
)


@given(TREES, st.sampled_from([None, 1.5, -(2**63), "oak"]))
def test_values_within_the_limits_are_read(shape: list[Any], height: Any) -> None:
    def tree(children: list[Any]) -> dict[str, Any]:
        grown = [tree(one) for one in children]
        named = {f"n{index}": one for index, one in enumerate(grown[:1])}
        plain = {"size": b"ab", "kind": "B", "height": height, "known": True, "nothing": None}
        return {**plain, "children": grown, "named": named}

    schema, value = avro(TREE), tree(shape)
    assert schema.named is not None
    assert read_avro(write_avro(schema, value, strict=True), schema, None) == value


@pytest.mark.parametrize("size", range(6))
def test_truncated_bytes_are_left_to_the_reader(size: int) -> None:
    value = {"size": b"ab", "kind": "A", "height": "oak", "known": True, "children": [], "named": {}, "nothing": None}
    schema = avro(TREE)
    with pytest.raises(SchemaMismatch, match="cannot be read by the Avro schema"):
        read_avro(write_avro(schema, value, strict=True)[:size], schema, None)


@pytest.mark.parametrize(
    "schema",
    [
        "string",
        ["null", "string"],
        {"type": "array", "items": ["null", {"type": "null"}, "int"]},
        {"type": "map", "values": "long"},
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "int", "logicalType": "date"}}]},
    ],
)
def test_schemas_of_values_as_large_as_their_bytes_need_no_check(schema: Any) -> None:
    assert avro(schema).named is None
