"""What a partition's log knows of transactions: stable offsets, aborted ones, and both after cutting and deleting."""

from __future__ import annotations

import pytest
from support.raw_client import batch_of

from aiokafkawire.errors import ErrorCode
from aiokafkawire.records.batch import RecordBatch
from aiokafkawire.testing.cluster.api_error import ApiError
from aiokafkawire.testing.logs.end_marker import EndMarker, end_marker
from aiokafkawire.testing.logs.log import PartitionLog
from aiokafkawire.testing.logs.log_cleaner import compact


def send(log: PartitionLog, producer_id: int, sequence: int = 0, *, epoch: int = 0, transactional: bool = True) -> int:
    """Append one record; its offset."""
    batch = batch_of(
        b"x", producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=transactional
    )
    offset, _ = log.append(RecordBatch.parse(memoryview(batch)))
    return offset


def end(log: PartitionLog, producer_id: int, *, commit: bool = False, epoch: int = 1) -> int:
    return log.append_marker(producer_id, epoch, commit, 0, timestamp=2000)


def commit_all(log: PartitionLog) -> None:
    """Let every replica have all of it."""
    log.high_watermark = log.log_end_offset


def test_markers_are_as_kafka_writes_them() -> None:
    # What Apache Kafka 4.3.1 had in its log, but for the base offset.
    written = bytes.fromhex(
        "000000000000000000000042000000000297e728b5003000000000000001a1fdefc39b000001a1fdefc39b000000000000000000"
        "01ffffffff000000012000000008000000000c00000000000000"
    )
    marker = end_marker(0, 1, commit=False, coordinator_epoch=0, timestamp=1795261711259)
    assert bytes(marker.view)[:12] == written[:12]
    assert bytes(marker.view)[16:] == written[16:]
    for commit in (True, False):
        read = EndMarker(end_marker(5, 2, commit=commit, coordinator_epoch=77, timestamp=1))
        assert (read.commit, read.coordinator_epoch) == (commit, 77)


def test_the_stable_offset_stays_below_the_high_watermark() -> None:
    log = PartitionLog("t", 0)
    send(log, 1)
    send(log, 2)
    assert (log.high_watermark, log.last_stable_offset) == (0, 0)
    log.high_watermark = 1
    assert log.last_stable_offset == 0
    commit_all(log)
    end(log, 1)  # at 2, and nobody else has it
    assert log.last_stable_offset == 0
    commit_all(log)
    assert log.last_stable_offset == 1
    end(log, 2, commit=True)
    assert log.last_stable_offset == 1
    commit_all(log)
    assert log.last_stable_offset == 4


def test_the_stable_offset_is_not_before_the_start() -> None:
    log = PartitionLog("t", 0)
    for sequence in range(3):
        send(log, 1, sequence)
    commit_all(log)
    log.delete_before(2)
    assert (log.log_start_offset, log.last_stable_offset) == (2, 2)
    end(log, 1)
    commit_all(log)
    assert log.last_stable_offset == 4
    assert log.aborted_in(2, 4) == [(1, 0)]


def test_aborted_transactions_are_found_by_range() -> None:
    log = PartitionLog("t", 0)
    for producer_id in (1, 2, 3):
        send(log, producer_id)  # 0, 1, 2
    end(log, 2)  # 3
    end(log, 3, commit=True)  # 4
    send(log, 2, epoch=1)  # 5
    end(log, 1)  # 6
    end(log, 2, epoch=2)  # 7
    commit_all(log)
    assert log.aborted_in(0, 8) == [(2, 1), (1, 0), (2, 5)]
    assert log.aborted_in(4, 8) == [(1, 0), (2, 5)]
    assert log.aborted_in(7, 8) == [(2, 5)]
    assert log.aborted_in(0, 1) == [(1, 0)]
    assert log.aborted_in(2, 5) == [(2, 1), (1, 0)]
    log.delete_before(4)
    assert log.aborted_in(0, 8) == [(1, 0), (2, 5)]


def test_cutting_off_a_marker_opens_the_transaction_again() -> None:
    log = PartitionLog("t", 0)
    send(log, 1)
    commit_all(log)
    end(log, 1)
    assert log.aborted_in(0, 2) == [(1, 0)]
    log.truncate(1)
    assert (log.aborted_in(0, 2), log.last_stable_offset) == ([], 0)
    assert send(log, 1, 1) == 1  # the epoch and sequence go on where they were
    end(log, 1, commit=True)
    commit_all(log)
    assert (log.aborted_in(0, 9), log.last_stable_offset) == ([], 3)


def test_cutting_off_records_forgets_their_transaction() -> None:
    log = PartitionLog("t", 0)
    send(log, 1, transactional=False)
    send(log, 2)
    end(log, 2)
    send(log, 3)
    log.truncate(3)
    assert [producer.producer_id for producer in log.producers.active()] == [1, 2]
    assert log.aborted_in(0, 9) == [(2, 1)]
    commit_all(log)
    assert log.last_stable_offset == 3
    log.truncate(1)
    assert [producer.producer_id for producer in log.producers.active()] == [1]
    assert log.aborted_in(0, 9) == []
    commit_all(log)
    assert log.last_stable_offset == 1


def test_producers_are_forgotten_unless_their_transaction_is_open() -> None:
    log = PartitionLog("t", 0)
    send(log, 1, transactional=False)
    send(log, 2)
    log.producers.forget()
    assert [producer.producer_id for producer in log.producers.active()] == [2]
    assert send(log, 1, 55, transactional=False) == 2  # who is not known begins anywhere
    with pytest.raises(ApiError) as refused:
        send(log, 2, 55)
    assert refused.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_compaction_keeps_the_sequence_numbers_of_a_producer_whose_transaction_has_ended() -> None:
    log = PartitionLog("t", 0)
    send(log, 1)
    log.append_marker(1, 0, True, 0, timestamp=2000, version=0)  # which leaves the epoch
    send(log, 2, transactional=False)  # the same key
    send(log, 3, transactional=False)
    commit_all(log)
    compact(log)
    log.truncate(3)  # a new leader reads the states of producers from what is left
    assert {state.producer_id: state.last_sequence for state in log.producers.active()} == {1: 0, 2: 0}
    assert send(log, 1, 1) == 3
