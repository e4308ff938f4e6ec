"""The ids of schemas in records, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.schema_registries import context

from aiokafkawire.errors import SchemaMismatch
from aiokafkawire.schema_registry.wire_format import (
    FramedData,
    encode_guid,
    encode_id,
    encode_message_indexes,
    header_name,
    read_frame,
    read_message_indexes,
)

GUID = "00112233-4455-6677-8899-aabbccddeeff"


def test_an_id_is_five_bytes_and_a_guid_seventeen() -> None:
    assert encode_id(0x01020304) == b"\x00\x01\x02\x03\x04"
    assert encode_guid(GUID) == bytes.fromhex("0100112233445566778899aabbccddeeff")


@pytest.mark.parametrize(
    ("indexes", "encoded"),
    [
        ((0,), b"\x00"),
        ((1,), b"\x02\x02"),
        ((0, 0), b"\x04\x00\x00"),
        ((2, 1), b"\x04\x04\x02"),
        ((64,), b"\x02\x80\x01"),
    ],
)
def test_message_indexes_are_zigzag_varints(indexes: tuple[int, ...], encoded: bytes) -> None:
    assert encode_message_indexes(indexes) == encoded
    assert read_message_indexes(encoded, 0) == (indexes, len(encoded))


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=20), st.binary(max_size=5))
def test_message_indexes_are_read_as_written(indexes: list[int], rest: bytes) -> None:
    encoded = encode_message_indexes(indexes)
    assert read_message_indexes(encoded + rest, 0) == (tuple(indexes), len(encoded))


@given(st.integers(0, 2**32 - 1), st.binary())
def test_an_id_before_the_data_is_found(schema_id: int, data: bytes) -> None:
    assert read_frame(encode_id(schema_id) + data, context()) == FramedData(schema_id, data)
    assert read_frame(encode_guid(GUID) + data, context()) == FramedData(GUID, data)


@pytest.mark.parametrize("is_key", [True, False])
def test_an_id_in_the_header_of_this_part_is_found_first(is_key: bool) -> None:
    record = context(is_key=is_key)
    other = context(is_key=not is_key)
    record.headers.extend([("x", b""), (header_name(other), encode_id(1))])
    record.headers.append((header_name(record), encode_guid(GUID) + b"\x00"))
    assert read_frame(b"\x00data", record, has_message_indexes=True) == FramedData(GUID, b"\x00data", (0,))


def test_the_last_of_several_headers_names_the_schema_as_for_java() -> None:
    """Confluent's serializers append theirs to those of a record that is sent on."""
    record = context()
    record.headers.extend([(header_name(record), encode_id(1)), ("x", b""), (header_name(record), encode_guid(GUID))])
    assert read_frame(b"data", record) == FramedData(GUID, b"data")
    record.headers.append((header_name(record), None))
    assert read_frame(encode_id(2) + b"data", record) == FramedData(2, b"data")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the value is empty"),
        (b"\x00\x00\x00\x01", "4 bytes is too short for a schema id"),
        (b"\x01" + bytes(15), "16 bytes is too short for a schema GUID"),
        (b"\x02\x00\x00\x00\x01", "begins with byte 2"),
        (b'{"a": 1}', "begins with byte 123.*written without a schema registry"),
    ],
)
def test_data_without_an_id_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(SchemaMismatch, match=reason):
        read_frame(data, context())


@pytest.mark.parametrize(
    ("indexes", "reason"),
    [
        (b"", "ends within the message indexes"),
        (b"\x04\x00", "ends within the message indexes"),
        (b"\x80\x80\x80\x80\x80\x80", "more than 32 bits"),
        (b"\x01", "negative"),
        (b"\xfe\xff\xff\xff\x0f", "2147483647 message indexes"),
    ],
)
def test_wrong_message_indexes_are_refused(indexes: bytes, reason: str) -> None:
    with pytest.raises(SchemaMismatch, match=reason):
        read_frame(encode_id(1) + indexes, context(), has_message_indexes=True)


@given(st.binary(max_size=40), st.booleans())
def test_any_bytes_are_read_or_refused(data: bytes, has_message_indexes: bool) -> None:
    try:
        framed = read_frame(data, context(), has_message_indexes=has_message_indexes)
    except SchemaMismatch:
        return
    assert data.endswith(framed.data)
