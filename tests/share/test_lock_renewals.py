"""The renewal of locks, in virtual time."""

from __future__ import annotations

import anyio
import pytest
from support.share_simulation import A0, LOCK, share

from aiokafkawire import Acknowledge, ShareConsumer
from aiokafkawire.testing.simulation import Simulation


def test_unread_records_stay_locked_while_they_are_renewed() -> None:
    async def body(_: Simulation, consumer: ShareConsumer[bytes, bytes]) -> None:
        (first,) = await consumer.poll(1)
        consumer.acknowledge(first)
        await anyio.sleep(5 * LOCK)
        records = await consumer.poll(timeout=0.1)
        assert [(record.offset, record.delivery_count) for record in records] == [(1, 1), (2, 1)]

    share(body, records=3)


def test_an_unread_record_is_not_handed_out_after_its_lock_if_no_broker_has_renewed_it() -> None:
    async def body(sim: Simulation, consumer: ShareConsumer[bytes, bytes]) -> None:
        (first,) = await consumer.poll(1)
        consumer.acknowledge(first)
        await consumer.commit()
        sim.network.block(1)
        await anyio.sleep(1.2 * LOCK)
        assert await consumer.poll(timeout=0.1) == []
        sim.network.unblock(1)
        (record,) = await consumer.poll(1, timeout=10)
        assert (record.offset, record.delivery_count) == (1, 2)

    share(body, records=3)


@pytest.mark.parametrize("is_renewed", [True, False])
def test_a_lock_holds_longer_once_the_broker_has_renewed_it(is_renewed: bool) -> None:
    async def body(_: Simulation, consumer: ShareConsumer[bytes, bytes]) -> None:
        (record,) = await consumer.poll(1)
        before = record.lock_end
        await anyio.sleep(LOCK / 2)
        if is_renewed:
            consumer.acknowledge(record, Acknowledge.RENEW)
            assert record.lock_end == before
            assert await consumer.commit() == {A0: 1}
        assert (record.lock_end > before) is is_renewed

    share(body)
