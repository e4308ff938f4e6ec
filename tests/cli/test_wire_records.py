"""Every batch is told, however damaged the one before it is."""

import base64
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.message_sets import message, wrapper
from support.vectors import vectors

from aiokafkawire.cli.wire.batches import describe_batches
from aiokafkawire.cli.wire.describe import Describer
from aiokafkawire.cli.wire.json_renderer import json_of
from aiokafkawire.cli.wire.text_renderer import Style, lines_of
from aiokafkawire.cli.wire.view_model import Leaf, NamedValue, Struct
from aiokafkawire.protocol.compiler import encode
from aiokafkawire.protocol.messages.control_records import ControlRecordTypeSchema, EndTxnMarker, LeaderChangeMessage
from aiokafkawire.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from aiokafkawire.records.batch import BatchBuilder, set_base_offset
from aiokafkawire.records.compression import Codec

NOON = 1_700_000_000_123


def batch(*values: bytes, offset: int = 0, codec: Codec = Codec.NONE, **state: Any) -> bytes:
    builder = BatchBuilder(limit=1 << 20, codec=codec)
    for value in values:
        builder.append(NOON, b"key", value, [("trace", b"\x01"), ("none", None)])
    return set_base_offset(builder.build(**state), offset, 7)


def told(data: bytes, style: Style | None = None) -> tuple[list[str], bool]:
    describer = Describer()
    shown = Struct((NamedValue("records", Leaf(data, holds=describer.records(data))),))
    return list(lines_of(shown, style or Style())), describer.damaged


def as_json(data: bytes) -> Any:
    return json_of(Struct((NamedValue("records", Leaf(data, holds=Describer().records(data))),)))["records_means"]


def test_a_batch_and_its_records() -> None:
    data = batch(b"hello", b"\xff", offset=40, codec=Codec.GZIP, producer_id=9, producer_epoch=1, base_sequence=5)
    lines, damaged = told(data)
    (crc,) = struct.unpack_from(">I", data, 17)
    title = f"offsets 40-41, 2 records, {len(data)} bytes at byte 0, magic 2, gzip, CRC {crc:#010x} ok, CreateTime, "
    title += "producer 9 epoch 1 sequence 5, leader epoch 7"
    assert lines == [
        f"records: {len(data)} bytes, 1 batch",
        f"  [0] {title}",
        "    records: 2",
        "      [0] offset 40, 2023-11-14T22:13:20.123Z (1700000000123 ms)",
        '        key: 3 bytes "key"',
        '        value: 5 bytes "hello"',
        "        headers: 2",
        "          [0]",
        '            name: "trace"',
        "            value: 1 byte 01",
        "          [1]",
        '            name: "none"',
        "            value: null",
        "      [1] offset 41, 2023-11-14T22:13:20.123Z (1700000000123 ms)",
        '        key: 3 bytes "key"',
        "        value: 1 byte ff",
        "        headers: 2",
        "          [0]",
        '            name: "trace"',
        "            value: 1 byte 01",
        "          [1]",
        '            name: "none"',
        "            value: null",
    ]
    assert not damaged


def test_full_tells_the_header_field_by_field() -> None:
    lines, _ = told(batch(b"v", transactional=True), Style(full=True))
    assert {"    transactional: true", "    crc_ok: true", "    producer_id: -1"} <= set(lines)


def test_a_bad_checksum_is_told_and_the_records_too() -> None:
    damaged = bytearray(batch(b"hello"))
    damaged[17] ^= 1
    lines, bad = told(bytes(damaged) + batch(b"next", offset=1))
    assert bad
    assert " BAD, " in lines[1]
    assert lines[2].startswith('    damage: ["CRC32C is 0x')
    assert any('"hello"' in line for line in lines)
    assert any('"next"' in line for line in lines)


def test_records_up_to_a_damaged_one_are_told() -> None:
    data = bytearray(batch(b"first", b"second"))
    data[data.index(b"second") - 5] = 0x7F  # no longer the key's length
    lines, bad = told(bytes(data))
    assert bad
    assert any('"first"' in line for line in lines)
    assert any("record at byte" in line for line in lines if "damage" in line)


@pytest.mark.parametrize("at", [16, 8 + 16])
def test_what_is_no_batch_is_stepped_over(at: int) -> None:
    first, second = batch(b"one"), batch(b"two", offset=5)
    broken = bytearray(first)
    broken[at] = 0x77
    lines, bad = told(bytes(broken) + second)
    assert bad
    assert any('"two"' in line for line in lines)


def test_a_batch_without_a_usable_length_ends_it() -> None:
    broken = bytearray(batch(b"one"))
    broken[8:12] = struct.pack(">i", 3)
    lines, bad = told(batch(b"good") + bytes(broken) + batch(b"lost"))
    assert bad
    assert any('"good"' in line for line in lines)
    assert "damaged batch at byte" in lines[-2]
    assert not any('"lost"' in line for line in lines)


@pytest.mark.parametrize("left", [1, 16, 17, 30])
def test_a_batch_that_is_cut_off_is_no_damage(left: int) -> None:
    whole = batch(b"one")
    lines, bad = told(whole + batch(b"two", offset=1)[:left])
    assert not bad
    assert "truncated batch" in lines[-2]
    assert lines[0].endswith(f"{len(whole) + left} bytes, 2 batches")


def test_nothing_is_no_batches() -> None:
    assert told(b"") == (["records: 0 bytes"], False)


def test_control_records_are_read() -> None:
    builder = BatchBuilder(limit=1 << 20)
    key = b"\0\0" + encode(ControlRecordTypeSchema(type=1), 0)
    builder.append(NOON, key, b"\0\0" + encode(EndTxnMarker(coordinator_epoch=3), 0))
    change = LeaderChangeMessage(version=0, leader_id=2, voters=[], granting_voters=[])
    builder.append(NOON, b"\0\0" + encode(ControlRecordTypeSchema(type=2), 0), encode(change, 0))
    builder.append(NOON, b"\0\0\x7f\x7f", b"?")
    lines, bad = told(builder.build(control=True, transactional=True))
    assert not bad
    assert lines[1].endswith("transactional, control")
    assert "        key: 4 bytes, ControlRecordTypeSchema v0" in lines
    assert "          type: 1 (COMMIT)" in lines
    assert "          coordinator_epoch: 3" in lines
    assert "          leader_id: 2" in lines
    assert '        value: 1 byte "?"' in lines


def test_the_records_of_a_fetch_are_told_where_they_stand() -> None:
    partition = PartitionData(partition_index=0, error_code=0, high_watermark=1, records=batch(b"hello"))
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])
    describer = Describer()
    lines = list(lines_of(describer.message(response, 4), Style()))
    assert any(line.startswith("        records: ") and line.endswith(", 1 batch") for line in lines)
    assert any('value: 5 bytes "hello"' in line for line in lines)
    records = json_of(describer.message(response, 4))["responses"][0]["partitions"][0]
    assert base64.b64decode(records["records"]) == batch(b"hello")
    assert base64.b64decode(records["records_means"][0]["records"][0]["value"]) == b"hello"


def test_kafkas_own_batches() -> None:
    formats = set()
    for vector in vectors("batches"):
        batches, decoded = as_json(bytes.fromhex(vector["hex"])), vector["decoded"]["batches"]
        records = [record for one in decoded for record in one["records"]]
        ours = [record for one in batches if "note" not in one for record in one["records"]]
        for name in ("offset", "timestamp", "key", "value"):
            assert [one[name] for one in ours] == [one[name] for one in records], vector["spec"]["id"]
        assert {one["compression"] for one in batches if "note" not in one} == {one["codec"] for one in decoded}
        assert all(one["crc_ok"] for one in batches if "note" not in one)
        formats |= {(one["magic"], one["codec"]) for one in decoded}
    assert len(formats) > 10


def test_message_sets_are_told_by_what_they_know() -> None:
    lines, bad = told(wrapper(4, message(0, b"one"), message(1, b"two")) + message(5, None, magic=0))
    assert not bad
    assert lines[1].startswith("  [0] offsets up to 4, 2 records, ")
    assert ", magic 1, gzip, CRC 0x" in lines[1]
    assert [line for line in lines if line.startswith("      [")] == [
        "      [0] offset 3, 1970-01-01T00:00:01.000Z (1000 ms)",
        "      [1] offset 4, 1970-01-01T00:00:01.000Z (1000 ms)",
        "      [0] offset 5, timestamp -1",
    ]


@given(st.binary(max_size=300), st.integers(0, 400), st.integers(0, 255))
def test_anything_is_told(noise: bytes, at: int, value: int) -> None:
    data = bytearray(batch(b"one", b"two", codec=Codec.GZIP) + noise + batch(b"three", offset=9))
    data[at % len(data)] = value
    for tried in (noise, bytes(data)):
        array, _ = describe_batches(tried, lambda key, value: (None, None))
        assert bool(array.items) == bool(tried)
