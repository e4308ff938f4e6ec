"""The buffer of acquired records: which locks end soon."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock
from uuid import UUID

from aiokafkawire import ConsumerRecord, ShareRecord, TopicPartition
from aiokafkawire.share.acquired_partition import AcquiredPartition
from aiokafkawire.share.fetch_size import FetchSize
from aiokafkawire.share.share_buffer import ShareBuffer


def records(lock_end: float, *offsets: int) -> list[ShareRecord[Any, Any]]:
    acquisition = AcquiredPartition((UUID(int=1), 0), TopicPartition("t", 0), 1, lock_end)
    return [ShareRecord(ConsumerRecord("t", 0, offset), 1, acquisition, Mock()) for offset in offsets]


def ending(buffer: ShareBuffer, before: float) -> list[int]:
    return [record.offset for record in buffer.ending(before)]


def test_locks_that_end_soon_are_found_whatever_was_added_renewed_or_taken() -> None:
    buffer = ShareBuffer(FetchSize(500))
    assert ending(buffer, 99.0) == []
    late, early = records(30.0, 0, 1), records(20.0, 5, 6)
    buffer.put(late, 0.0)
    buffer.put(early, 0.0)
    assert ending(buffer, 20.0) == []
    assert ending(buffer, 25.0) == [5, 6]
    early[0].acquisition.renewed[5] = 50.0
    assert ending(buffer, 25.0) == [6]
    assert ending(buffer, 35.0) == [0, 1, 6]
    assert buffer.take(1, 1.0, 30.0) == [late[:1]]
    assert ending(buffer, 35.0) == [1, 6]
    assert buffer.drop(lambda record: record.offset == 1) == [late[1]]
    assert buffer.take(4, 1.0, 30.0) == [early]
    assert ending(buffer, 99.0) == []
    buffer.put(records(10.0, 7), 0.0)
    assert ending(buffer, 15.0) == [7]


def test_records_are_taken_in_parts_without_those_whose_locks_have_ended() -> None:
    buffer = ShareBuffer(FetchSize(500))
    early, late = records(20.0, *range(5)), records(30.0, 8, 9)
    buffer.put(early, 0.0)
    buffer.put(late, 0.0)
    assert buffer.take(2, 1.0, 30.0) == [early[:2]]
    assert len(buffer) == 5
    early[3].acquisition.renewed[3] = 40.0
    assert buffer.take(2, 25.0, 30.0) == [early[3:4], late[:1]]
    assert [record.offset for record in buffer] == [9]
    assert buffer.take(9, 35.0, 30.0) == []
    assert not buffer
