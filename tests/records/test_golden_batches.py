"""Batches written by Kafka's own Java classes: what we read from them, and that we write the same bytes."""

import base64
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from aiokafkawire.records.batch import (
    BatchBuilder,
    RecordBatch,
    RecordReader,
    set_base_offset,
    set_log_append_time,
    split,
)
from aiokafkawire.records.compression import Codec
from aiokafkawire.types import TimestampType

READABLE_MAGICS = (2,)  # 0 and 1 wait for message sets; the vectors that hold them are left out until then

DIRECTORY = Path(os.environ.get("AIOKAFKAWIRE_VECTORS") or Path(__file__).parent.parent / "data")


def load() -> list[Any]:
    with gzip.open(DIRECTORY / "batches.jsonl.gz", "rt", encoding="utf-8") as lines:
        vectors = [json.loads(line) for line in lines]
    return [
        pytest.param(bytes.fromhex(vector["hex"]), vector["decoded"], id=vector["spec"]["id"])
        for vector in vectors
        if vector["decoded"]["batches"]
        and all(batch["magic"] in READABLE_MAGICS for batch in vector["decoded"]["batches"])
    ]


VECTORS = load()


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


def read_records(batch: RecordBatch, topic: str = "t") -> list[Any]:
    reader: RecordReader[bytes, bytes] = batch.records(topic, 3)
    records = []
    for record in reader:
        assert (record.topic, record.partition) == (topic, 3)
        assert record.timestamp_type is batch.header.timestamp_type
        assert record.leader_epoch == (None if batch.header.leader_epoch < 0 else batch.header.leader_epoch)
        records.append((record.offset, record.timestamp, record.raw_key, record.raw_value, record.headers))
    assert reader.next_offset == batch.header.next_offset
    return records


def test_the_vectors_cover_every_codec_and_feature() -> None:
    batches = [batch for vector in VECTORS for batch in vector.values[1]["batches"]]
    for codec in Codec:
        of_codec = [batch for batch in batches if batch["codec"] == codec.name.lower()]
        for timestamp_type in TimestampType:
            assert any(batch["timestamp_type"] == timestamp_type.name for batch in of_codec)
        assert any(batch["transactional"] for batch in of_codec)
        assert any(batch["producer_id"] >= 0 and not batch["transactional"] for batch in of_codec)
        assert any(record.get("headers") for batch in of_codec for record in batch["records"])
        assert any(record["key"] is None for batch in of_codec for record in batch["records"])
        assert any(record["value"] is None for batch in of_codec for record in batch["records"])
    assert any(batch["control"] for batch in batches)
    assert any(not batch["count"] for batch in batches)
    assert any("delete_horizon_ms" in batch for batch in batches)
    assert any(vector.values[1]["size"] > vector.values[1]["valid_bytes"] for vector in VECTORS)


@pytest.mark.parametrize(("data", "decoded"), VECTORS)
def test_reading_gives_what_java_reads(data: bytes, decoded: dict[str, Any]) -> None:
    batches = list(split(memoryview(data), "t-3"))
    assert sum(batch.header.size for batch in batches) == decoded["valid_bytes"]
    assert len(batches) == len(decoded["batches"])
    for batch, expected in zip(batches, decoded["batches"], strict=True):
        header = batch.header
        batch.check()
        assert header.magic == expected["magic"]
        assert header.size == len(batch.view) == expected["size"]
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


def as_appended(built: bytes, original: RecordBatch) -> bytes:
    """What the leader makes of a batch that a producer has sent."""
    header = original.header
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        built = set_log_append_time(built, header.max_timestamp)
    return set_base_offset(built, header.base_offset, header.leader_epoch)


@pytest.mark.parametrize(("data", "decoded"), VECTORS)
def test_building_gives_what_java_writes(data: bytes, decoded: dict[str, Any]) -> None:
    for batch, expected in zip(split(memoryview(data)), decoded["batches"], strict=True):
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
        (ours,) = split(memoryview(built))  # compressors differ, contents must not
        ours.check()
        assert ours.header.attributes == header.attributes
        assert read_records(ours) == expected_records(expected)


def test_only_what_compaction_leaves_is_not_built_again() -> None:
    compared = 0
    for vector in VECTORS:
        data, decoded = vector.values
        for batch, expected in zip(split(memoryview(data)), decoded["batches"], strict=True):
            offsets = [record["offset"] - expected["base_offset"] for record in expected["records"]]
            # one may span 2**31 offsets: count them, never list them
            span = expected["last_offset"] - expected["base_offset"] + 1
            gaps = span != len(offsets) or any(offset != index for index, offset in enumerate(offsets))
            assert (append_as_sent(batch) is None) == (gaps or "delete_horizon_ms" in expected)
            compared += expected["codec"] == "none" and not gaps
    assert compared > 50
