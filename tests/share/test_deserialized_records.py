"""Records of share consumers whose deserializers know the record."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest
from support.serializers import SlowReader

from aiokafkawire import DeserializationError, KafkaError
from aiokafkawire.records.batch import ConsumerRecord
from aiokafkawire.records.deserialization import RecordDeserializer
from aiokafkawire.share.acknowledgements import Acknowledge, AcknowledgedOffsets
from aiokafkawire.share.acquired_partition import Delivered
from aiokafkawire.share.deserialized_records import deserialize

pytestmark = pytest.mark.anyio


class Taking:
    """Takes all records, or fails."""

    def __init__(self, error: KafkaError | None = None) -> None:
        self.error, self.count = error, 0

    def handle(self, error: DeserializationError) -> Awaitable[None] | None:
        self.count += 1
        if self.error is not None:
            raise self.error
        return None

    async def close(self) -> None:
        """Do nothing."""


def delivered() -> Delivered:
    values = [b"1", b"x", b"3"]
    records: Any = [ConsumerRecord("a", 0, offset, raw_value=value) for offset, value in enumerate(values)]
    return Delivered(records, [1, 2, 3], [], [])


async def deserialized(failures: Taking | None) -> Delivered:
    found = delivered()
    await deserialize(found, RecordDeserializer(None, SlowReader()), failures)
    assert [(record.value, count) for record, count in zip(found.records, found.counts, strict=True)] == [
        (1, 1),
        (3, 3),
    ]
    return found


async def test_an_error_releases_the_record_and_is_raised() -> None:
    found = await deserialized(None)
    assert found.acknowledged == [AcknowledgedOffsets(1, 1, Acknowledge.RELEASE)]
    (error,) = found.errors
    assert isinstance(error, DeserializationError)
    assert (error.offset, error.raw_value) == (1, b"x")


async def test_a_record_that_is_left_out_is_rejected() -> None:
    found = await deserialized(Taking())
    assert (found.acknowledged, found.errors) == ([AcknowledgedOffsets(1, 1, Acknowledge.REJECT)], [])


async def test_a_record_that_cannot_be_left_out_is_released() -> None:
    failed = KafkaError("not written")
    found = await deserialized(Taking(failed))
    assert (found.acknowledged, found.errors) == ([AcknowledgedOffsets(1, 1, Acknowledge.RELEASE)], [failed])
