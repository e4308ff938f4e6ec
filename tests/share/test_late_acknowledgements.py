"""Acknowledgements of records whose locks have ended, and which the same member has acquired again, in virtual time."""

from __future__ import annotations

import anyio
import pytest
from support.share_simulation import A0, LOCK, share

from aiokafkawire import Acknowledge, AcknowledgementFailed, ShareConsumer, ShareRecord
from aiokafkawire.errors import InvalidRecordState
from aiokafkawire.testing.simulation import Simulation


async def again(consumer: ShareConsumer[bytes, bytes]) -> ShareRecord[bytes, bytes]:
    """Wait for the next record, and check that it was delivered before."""
    (record,) = await consumer.poll(1, timeout=5)
    assert record.delivery_count == 2
    return record


@pytest.mark.parametrize("kind", Acknowledge)
def test_a_late_acknowledgement_does_not_count_for_the_next_delivery(kind: Acknowledge) -> None:
    async def body(_: Simulation, consumer: ShareConsumer[bytes, bytes]) -> None:
        (late,) = await consumer.poll(1)
        await again(consumer)
        consumer.acknowledge(late, kind)
        with pytest.raises(AcknowledgementFailed) as raised:
            await consumer.commit()
        assert isinstance(raised.value.errors[A0], InvalidRecordState)
        assert raised.value.acknowledged == {}

    share(body)


def test_the_next_delivery_is_acknowledged_for_itself() -> None:
    async def body(_: Simulation, consumer: ShareConsumer[bytes, bytes]) -> None:
        (late,) = await consumer.poll(1)
        record = await again(consumer)
        consumer.acknowledge(late, Acknowledge.RELEASE)
        consumer.acknowledge(record)
        with pytest.raises(AcknowledgementFailed) as raised:
            await consumer.commit()
        assert raised.value.acknowledged == {A0: 1}
        assert await consumer.poll(timeout=2 * LOCK) == []

    share(body)


def test_an_acknowledgement_that_waits_is_refused_when_the_record_comes_again() -> None:
    async def body(sim: Simulation, consumer: ShareConsumer[bytes, bytes]) -> None:
        (late,) = await consumer.poll(1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(again, consumer)
            await anyio.sleep(LOCK - 0.01)
            # It waits for the response to the fetch, which brings the record again.
            sim.network.slow(1, latency=(0.1, 0.1))
            consumer.acknowledge(late)
            with pytest.raises(AcknowledgementFailed) as raised:
                await consumer.commit()
        assert isinstance(raised.value.errors[A0], InvalidRecordState)

    share(body)
