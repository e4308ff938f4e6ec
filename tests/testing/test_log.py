"""The log of a partition, and what it remembers of producers."""

from __future__ import annotations

import pytest
from support.raw_client import batch_of

from aiokafkawire.errors import ErrorCode
from aiokafkawire.records.batch import BatchBuilder, RecordBatch, split
from aiokafkawire.testing.cluster.api_error import ApiError
from aiokafkawire.testing.logs.log import PartitionLog
from aiokafkawire.types import OffsetAndTimestamp


def parsed(batch: bytes) -> RecordBatch:
    return RecordBatch.parse(memoryview(batch))


def log_of(*batches: bytes) -> PartitionLog:
    log = PartitionLog("t", 0)
    for batch in batches:
        log.append(parsed(batch))
    log.high_watermark = log.log_end_offset
    return log


def base_offsets(records: bytes) -> list[int]:
    return [batch.header.base_offset for batch in split(memoryview(records))]


def test_appending_sets_offset_and_epoch_and_nothing_else() -> None:
    log = log_of(batch_of(b"a", b"b"))
    assert log.append(parsed(batch_of(b"c")), leader_epoch=7) == (2, -1)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (0, 3, 2)
    first, second = log.batches()
    second.check()
    assert (first.header.base_offset, first.header.leader_epoch) == (0, 0)
    assert (second.header.base_offset, second.header.leader_epoch) == (2, 7)
    assert log.size == first.header.size + second.header.size


def test_reading_gives_whole_batches_within_the_limit() -> None:
    batch = batch_of(b"x" * 50)
    log = log_of(*[batch] * 5)
    size = len(batch)
    assert base_offsets(log.read(1, 3 * size)) == [1, 2, 3]
    assert base_offsets(log.read(1, 3 * size - 1)) == [1, 2]
    assert base_offsets(log.read(1, 1)) == [1]
    assert log.read(1, size - 1, at_least_one=False) == b""
    assert log.read(5, 3 * size) == b""


def test_reading_from_inside_a_batch() -> None:
    log = log_of(batch_of(b"a", b"b", b"c"), batch_of(b"d"))
    assert base_offsets(log.read(2, 1 << 20)) == [0, 3]
    assert base_offsets(log.read(3, 1 << 20)) == [3]


def test_a_batch_read_alone_is_not_copied() -> None:
    log = log_of(batch_of(b"a"), batch_of(b"b"))
    assert log.read(1, 1 << 20) is log.read(1, 1 << 20)


@pytest.mark.parametrize("offset", [-1, 3, 100])
def test_reading_out_of_range(offset: int) -> None:
    with pytest.raises(ApiError) as refused:
        log_of(batch_of(b"a", b"b")).read(offset, 100)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_the_start_moves_and_drops_whole_batches() -> None:
    log = log_of(*[batch_of(b"a", b"b")] * 3)
    log.delete_before(3)
    assert (log.log_start_offset, log.log_end_offset) == (3, 6)
    assert base_offsets(log.read(3, 1 << 20)) == [2, 4]
    with pytest.raises(ApiError):
        log.read(2, 1 << 20)
    log.delete_before(1)
    assert log.log_start_offset == 3
    log.delete_before(6)
    assert (log.size, log.read(6, 100)) == (0, b"")
    assert log.append(parsed(batch_of(b"c"))) == (6, -1)
    log.high_watermark = log.log_end_offset
    assert base_offsets(log.read(6, 100)) == [6]


def test_the_start_cannot_move_beyond_the_end() -> None:
    with pytest.raises(ApiError) as refused:
        log_of(batch_of(b"a")).delete_before(2)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_searches_by_time_begin_at_the_start() -> None:
    log = log_of(batch_of(b"a", b"b", timestamp=900), batch_of(b"c", timestamp=500), batch_of(b"d", timestamp=700))
    assert log.find_timestamp(600) == OffsetAndTimestamp(0, 900, 0)
    log.delete_before(1)
    assert log.find_timestamp(600) == OffsetAndTimestamp(1, 901, 0)
    log.delete_before(2)
    assert log.find_timestamp(600) == OffsetAndTimestamp(3, 700, 0)
    assert log.find_max_timestamp() == OffsetAndTimestamp(3, 700, 0)
    assert log.find_timestamp(701) is None


def test_a_search_by_time_goes_on_where_the_matching_records_are_deleted() -> None:
    falling = BatchBuilder(limit=1 << 20)
    falling.append(800, None, b"x")
    falling.append(100, None, b"y")
    log = log_of(falling.build(), batch_of(b"z", timestamp=850))
    log.delete_before(1)
    assert log.find_timestamp(750) == OffsetAndTimestamp(2, 850, 0)


def test_an_empty_log_has_no_times() -> None:
    log = PartitionLog("t", 0)
    assert log.find_timestamp(0) is None
    assert log.find_max_timestamp() is None
