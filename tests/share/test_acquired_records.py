"""The acquired records of a fetch, the gaps between them, and those that cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from aiokafkawire.errors import CorruptBatch, DeserializationError
from aiokafkawire.protocol.messages.share_fetch import AcquiredRecords
from aiokafkawire.records.batch import BatchBuilder, set_base_offset
from aiokafkawire.records.compression import Codec
from aiokafkawire.share.acknowledgements import GAP, Acknowledge
from aiokafkawire.share.acquired_partition import Delivered, RecordForm, batches_of, delivered_records
from aiokafkawire.types import TopicPartition

PARTITION = TopicPartition("t", 0)


def batch(base: int, *values: bytes) -> bytes:
    builder = BatchBuilder(limit=10_000, codec=Codec.NONE, level=None)
    for value in values:
        builder.append(0, None, value, ())
    return set_base_offset(builder.build(), base, 0)


def delivered(data: bytes, *acquired: tuple[int, int, int], **form: Any) -> Delivered:
    found = [AcquiredRecords(first_offset=first, last_offset=last, delivery_count=n) for first, last, n in acquired]
    return delivered_records(batches_of(data, PARTITION), found, PARTITION, RecordForm(**form))


def summary(found: Delivered) -> tuple[list[tuple[int, int]], list[tuple[int, int, int]]]:
    records = [(record.offset, count) for record, count in zip(found.records, found.counts, strict=True)]
    return records, [part[:3] for part in found.acknowledged]


def test_only_acquired_records_are_delivered() -> None:
    data = batch(0, b"a", b"b", b"c") + batch(3, b"d", b"e")
    assert summary(delivered(data, (1, 1, 1), (4, 4, 3))) == ([(1, 1), (4, 3)], [])
    assert summary(delivered(data, (0, 4, 2))) == ([(offset, 2) for offset in range(5)], [])
    assert summary(delivered(data)) == ([], [])


def test_offsets_without_a_record_are_gaps() -> None:
    data = batch(2, b"a") + batch(5, b"b")
    assert summary(delivered(data, (0, 5, 1))) == ([(2, 1), (5, 1)], [(0, 1, GAP), (3, 4, GAP)])


def test_records_that_have_not_arrived_are_released_and_not_lost() -> None:
    data = batch(0, b"a") + batch(1, b"b")[:-1]
    assert summary(delivered(data, (0, 1, 1))) == ([(0, 1)], [(1, 1, Acknowledge.RELEASE)])
    assert summary(delivered(b"", (0, 1, 1))) == ([], [(0, 1, Acknowledge.RELEASE)])


def test_what_cannot_be_deserialized_is_released_and_reported() -> None:
    found = delivered(batch(0, b"1", b"x", b"3"), (0, 2, 1), value_deserializer=int)
    assert summary(found) == ([(0, 1), (2, 1)], [(1, 1, Acknowledge.RELEASE)])
    (error,) = found.errors
    assert isinstance(error, DeserializationError)
    assert error.offset == 1


def test_each_acquired_range_has_its_own_count() -> None:
    data = batch(0, b"a", b"b", b"c") + batch(5, b"d")
    expected = [(0, 1), (1, 1), (2, 3), (5, 2)]
    assert summary(delivered(data, (2, 2, 3), (0, 1, 1), (5, 5, 2))) == (expected, [])


def test_an_unreadable_record_at_either_end_of_a_range_is_released() -> None:
    found = delivered(batch(0, b"x", b"2", b"y"), (0, 2, 1), value_deserializer=int)
    assert summary(found) == ([(1, 1)], [(0, 0, Acknowledge.RELEASE), (2, 2, Acknowledge.RELEASE)])
    assert len(found.errors) == 2


def test_what_others_have_acquired_is_not_reported() -> None:
    found = delivered(batch(0, b"1", b"x", b"3"), (2, 2, 1), value_deserializer=int)
    assert (summary(found), found.errors) == (([(2, 1)], []), [])


@pytest.mark.parametrize("check_crcs", [True, False])
def test_a_damaged_batch_is_released(check_crcs: bool) -> None:
    damaged = bytearray(batch(1, b"b", b"c"))
    damaged[-3] ^= 0xFF
    data = batch(0, b"a") + bytes(damaged) + batch(3, b"d")
    found = delivered(data, (0, 3, 1), check_crcs=check_crcs)
    if check_crcs:
        assert summary(found) == ([(0, 1), (3, 1)], [(1, 1, Acknowledge.RELEASE), (2, 2, Acknowledge.RELEASE)])
        (error,) = found.errors
        assert isinstance(error, CorruptBatch)
