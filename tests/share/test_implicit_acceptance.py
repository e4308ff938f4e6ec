"""Records that are accepted with the next poll, a range at a time, in virtual time."""

from __future__ import annotations

import anyio
import pytest
from support.share_simulation import A0, LOCK, share

from aiokafkawire import Acknowledge, AcknowledgementFailed, ShareConsumer
from aiokafkawire.errors import InvalidRecordState
from aiokafkawire.testing.simulation import Simulation


def test_the_records_of_a_poll_are_accepted_by_the_next() -> None:
    async def body(_: Simulation, consumer: ShareConsumer[bytes, bytes]) -> None:
        first, second = await consumer.poll(3), await consumer.poll(2)
        assert [record.acknowledged for record in first] == [Acknowledge.ACCEPT] * 3
        assert [record.acknowledged for record in second] == [None] * 2
        assert await consumer.commit() == {A0: 5}
        assert [record.acknowledged for record in second] == [Acknowledge.ACCEPT] * 2
        assert await consumer.poll(timeout=2 * LOCK) == []

    share(body, records=5, mode="implicit")


def test_a_poll_is_not_accepted_after_its_locks_have_ended() -> None:
    async def body(_: Simulation, consumer: ShareConsumer[bytes, bytes]) -> None:
        await consumer.poll(3)
        await anyio.sleep(1.2 * LOCK)
        with pytest.raises(AcknowledgementFailed) as raised:
            await consumer.commit()
        assert isinstance(raised.value.errors[A0], InvalidRecordState)
        assert raised.value.acknowledged == {}
        assert [record.delivery_count for record in await consumer.poll(3, timeout=5)] == [2, 2, 2]

    share(body, records=3, mode="implicit")
