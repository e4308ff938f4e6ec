"""Batches of all formats, written by Kafka's own Java classes: what we read, and that we write the same bytes."""

import base64
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.rows import every_row

from aiokafkawire.records.batch import (
    AnyBatch,
    AnyReader,
    BatchBuilder,
    RecordBatch,
    RecordReader,
    set_base_offset,
    set_log_append_time,
    split,
)
from aiokafkawire.records.compression import Codec
from aiokafkawire.records.message_set import MessageSet
from aiokafkawire.records.message_set_writer import Content, encode_message_set
from aiokafkawire.types import TimestampType

DIRECTORY = Path(os.environ.get("AIOKAFKAWIRE_VECTORS") or Path(__file__).parent.parent / "data")


def load() -> list[dict[str, Any]]:
    with gzip.open(DIRECTORY / "batches.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


LOADED = load()
VECTORS = [pytest.param(bytes.fromhex(one["hex"]), one["decoded"], id=one["spec"]["id"]) for one in LOADED]
OLD = [
    pytest.param(bytes.fromhex(one["hex"]), one["spec"]["batches"], one["decoded"]["batches"], id=one["spec"]["id"])
    for one in LOADED
    if any(batch["magic"] < 2 for batch in one["decoded"]["batches"])
]


def from_base64(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def expected_records(batch: dict[str, Any]) -> list[Any]:
    return [
        (
            record["offset"],
            record["timestamp"],
            from_base64(record["key"]),
            from_base64(record["value"]),
            tuple((name, from_base64(content)) for name, content in record.get("headers", ())),
        )
        for record in batch["records"]
    ]


def read_records(batch: AnyBatch, topic: str = "t") -> list[Any]:
    reader: AnyReader[bytes, bytes] = batch.records(topic, 3)
    records = []
    for record in reader:
        assert (record.topic, record.partition) == (topic, 3)
        assert record.timestamp_type is batch.header.timestamp_type
        assert record.leader_epoch == (None if batch.header.leader_epoch < 0 else batch.header.leader_epoch)
        records.append((record.offset, record.timestamp, record.raw_key, record.raw_value, record.headers))
    assert reader.next_offset == batch.header.next_offset
    return records


def of_magic(*magics: int) -> list[dict[str, Any]]:
    batches = [batch for vector in LOADED for batch in vector["decoded"]["batches"]]
    return [batch for batch in batches if batch["magic"] in magics]


def v2(batches: list[Any]) -> list[Any]:
    return [batch for batch in batches if batch["magic"] == 2]


def assert_nulls(batches: list[dict[str, Any]]) -> None:
    for field in ("key", "value"):
        assert any(record[field] is None for batch in batches for record in batch["records"])


def test_the_vectors_cover_every_codec_and_feature() -> None:
    batches = of_magic(2)
    for codec in Codec:
        of_codec = [batch for batch in batches if batch["codec"] == codec.name.lower()]
        for timestamp_type in (TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME):
            assert any(batch["timestamp_type"] == timestamp_type.name for batch in of_codec)
        assert any(batch["transactional"] for batch in of_codec)
        assert any(batch["producer_id"] >= 0 and not batch["transactional"] for batch in of_codec)
        assert any(record.get("headers") for batch in of_codec for record in batch["records"])
    assert_nulls(batches)
    assert any(batch["control"] for batch in batches)
    assert any(not batch["count"] for batch in batches)
    assert any("delete_horizon_ms" in batch for batch in batches)
    assert any(vector["decoded"]["size"] > vector["decoded"]["valid_bytes"] for vector in LOADED)


@pytest.mark.parametrize("magic", [0, 1])
def test_the_vectors_cover_the_message_sets(magic: int) -> None:
    for codec in (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
        of_codec = [batch for batch in of_magic(magic) if batch["codec"] == codec.name.lower()]
        kinds = ("CREATE_TIME", "LOG_APPEND_TIME") if magic else ("NO_TIMESTAMP_TYPE",)
        assert {batch["timestamp_type"] for batch in of_codec} == set(kinds)
    assert_nulls(of_magic(magic))
    mixed = [{batch["magic"] for batch in vector["decoded"]["batches"]} for vector in LOADED]
    assert any(magic in magics and len(magics) > 1 for magics in mixed)


@every_row(("data", "decoded"), VECTORS)
def test_reading_gives_what_java_reads(data: bytes, decoded: dict[str, Any]) -> None:
    batches = list(split(memoryview(data), "t-3"))
    assert sum(batch.header.size for batch in batches) == decoded["valid_bytes"]
    left = list(decoded["batches"])
    for batch in batches:
        batch.check()
        assert batch.header.size == len(batch.view)
        if isinstance(batch, RecordBatch):
            check_record_batch(batch, left.pop(0))
            continue
        # A run of messages is one for us, and as many batches for Java.
        covered: list[Any] = []
        while sum(one["size"] for one in covered) < batch.header.size:
            covered.append(left.pop(0))
        check_message_set(batch, covered)
    assert left == []


def check_message_set(batch: AnyBatch, covered: list[Any]) -> None:
    assert sum(one["size"] for one in covered) == batch.header.size
    assert read_records(batch) == [record for one in covered for record in expected_records(one)]
    assert batch.header.max_timestamp == max(one["max_timestamp"] for one in covered)
    assert batch.header.last_offset == covered[-1]["last_offset"]
    assert batch.header.base_offset == (-1 if batch.header.codec else covered[0]["base_offset"])
    position = 0
    for expected in covered:
        alone = MessageSet.parse(batch.view[position : position + expected["size"]])
        header = alone.header
        alone.check()
        assert (header.magic, header.size) == (expected["magic"], expected["size"])
        assert Codec(header.codec) is Codec.parse(expected["codec"])
        assert header.timestamp_type.name == expected["timestamp_type"]
        assert header.last_offset == expected["last_offset"]
        assert header.max_timestamp == expected["max_timestamp"]
        assert header.crc == expected["crc"]
        records = read_records(alone)
        assert records == expected_records(expected)
        assert records[0][0] == expected["base_offset"]
        position += header.size


def check_record_batch(batch: RecordBatch, expected: dict[str, Any]) -> None:
    header = batch.header
    assert header.magic == expected["magic"]
    assert header.size == expected["size"]
    assert Codec(header.codec) is Codec.parse(expected["codec"])
    assert header.timestamp_type.name == expected["timestamp_type"]
    assert header.base_offset == expected["base_offset"]
    assert header.last_offset == expected["last_offset"]
    assert header.base_timestamp == expected["base_timestamp"]
    assert header.max_timestamp == expected["max_timestamp"]
    assert header.crc == expected["crc"]
    assert header.producer_id == expected["producer_id"]
    assert header.producer_epoch == expected["producer_epoch"]
    assert header.base_sequence == expected["base_sequence"]
    assert header.leader_epoch == expected["partition_leader_epoch"]
    assert header.is_transactional is expected["transactional"]
    assert header.is_control is expected["control"]
    assert header.delete_horizon == expected.get("delete_horizon_ms")
    assert header.count == expected["count"]
    assert read_records(batch) == expected_records(expected)


# --- writing -------------------------------------------------------------------------------------------------


def append_as_sent(batch: RecordBatch) -> BatchBuilder | None:
    """The batch's records in a builder, or None where no producer could have written it."""
    header = batch.header
    # The producer's own timestamps are still in a batch that the broker's time was set for.
    as_sent: RecordReader[bytes, bytes] = RecordReader(
        batch.prepare(),
        count=header.count,
        base_offset=header.base_offset,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        timestamp_type=TimestampType.CREATE_TIME,
        topic="t",
        partition=3,
    )
    builder = BatchBuilder(limit=1 << 30, codec=Codec(header.codec))
    for record in as_sent:
        if builder.append(record.timestamp, record.raw_key, record.raw_value, record.headers) != (
            record.offset - header.base_offset
        ):
            return None  # compaction left a gap
    compacted = header.delete_horizon is not None or header.last_offset_delta != builder.count - 1
    return None if compacted else builder


def record_batches(data: bytes) -> list[RecordBatch]:
    return [batch for batch in split(memoryview(data)) if isinstance(batch, RecordBatch)]


def as_appended(built: bytes, original: RecordBatch) -> bytes:
    """What the leader makes of a batch that a producer has sent."""
    header = original.header
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        built = set_log_append_time(built, header.max_timestamp)
    return set_base_offset(built, header.base_offset, header.leader_epoch)


@every_row(("data", "decoded"), VECTORS)
def test_building_gives_what_java_writes(data: bytes, decoded: dict[str, Any]) -> None:
    for batch, expected in zip(record_batches(data), v2(decoded["batches"]), strict=True):
        builder = append_as_sent(batch)
        if builder is None:
            continue
        header = batch.header
        built = as_appended(
            builder.build(
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                base_sequence=header.base_sequence,
                transactional=header.is_transactional,
                control=header.is_control,
            ),
            batch,
        )
        if header.codec == Codec.NONE:
            assert built == batch.view
            continue
        (ours,) = record_batches(built)  # compressors differ, contents must not
        ours.check()
        assert ours.header.attributes == header.attributes
        assert read_records(ours) == expected_records(expected)


def test_only_what_compaction_leaves_is_not_built_again() -> None:
    compared = 0
    for vector in LOADED:
        data, decoded = bytes.fromhex(vector["hex"]), vector["decoded"]
        for batch, expected in zip(record_batches(data), v2(decoded["batches"]), strict=True):
            offsets = [record["offset"] - expected["base_offset"] for record in expected["records"]]
            # one may span 2**31 offsets: count them, never list them
            span = expected["last_offset"] - expected["base_offset"] + 1
            gaps = span != len(offsets) or any(offset != index for index, offset in enumerate(offsets))
            assert (append_as_sent(batch) is None) == (gaps or "delete_horizon_ms" in expected)
            compared += expected["codec"] == "none" and not gaps
    assert compared


def written(spec: dict[str, Any]) -> bytes:
    """What we make of what Java was told to write."""
    contents: list[Content] = [
        (record["timestamp"], from_base64(record["key"]), from_base64(record["value"]), ())
        for record in spec["records"]
    ]
    return encode_message_set(
        contents,
        spec["magic"],
        Codec.parse(spec["codec"]),
        offsets=[record["offset"] for record in spec["records"]],
        log_append_time=spec.get("log_append_time") if spec["timestamp_type"] == "LOG_APPEND_TIME" else None,
    )


@every_row(("data", "specs", "outer"), OLD)
def test_message_sets_are_written_as_java_writes_them(
    data: bytes, specs: list[dict[str, Any]], outer: list[dict[str, Any]]
) -> None:
    position, left, compared = 0, list(outer), 0
    for spec in specs:
        if not left:
            break  # what follows was cut
        if spec["magic"] == 2:
            position += left.pop(0)["size"]
            continue
        ours = written(spec)
        if spec["codec"] == "none":
            assert ours[: len(data) - position] == data[position : position + len(ours)]
            position += len(ours)
            compared += len(left[: len(spec["records"])])
            left = left[len(spec["records"]) :]
            continue
        # Compressors differ; all else, and all that is inside, is the same to the byte.
        theirs = MessageSet.parse(memoryview(data), position)
        mine = MessageSet.parse(memoryview(ours))
        mine.check()
        assert bytes(mine.prepare()) == bytes(theirs.prepare())
        names = ("magic", "attributes", "last_offset", "max_timestamp")
        assert [getattr(mine.header, name) for name in names] == [getattr(theirs.header, name) for name in names]
        if spec["codec"] == "lz4":  # magic, flags, block size and their checksum, which in magic 0 is wrong on purpose
            start = {0: 26, 1: 34}[spec["magic"]]
            assert mine.view[start : start + 7] == theirs.view[start : start + 7]
        position += theirs.header.size
        compared += 1
        left.pop(0)
    assert left == []
    assert compared == sum(batch["magic"] < 2 for batch in outer) > 0


@pytest.mark.parametrize("magic", [0, 1])
def test_message_sets_are_compared_byte_for_byte(magic: int) -> None:
    specs = [spec for vector in LOADED for spec in vector["spec"]["batches"] if spec["magic"] == magic]
    assert any(spec["codec"] == "none" for spec in specs)
    assert any(spec["codec"] != "none" for spec in specs)
