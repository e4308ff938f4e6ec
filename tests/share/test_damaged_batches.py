"""Batches that are damaged on their way to a share consumer, in virtual time."""

from __future__ import annotations

import random

import pytest
from support.share_simulation import LOCK

from aiokafkawire import CorruptBatch
from aiokafkawire.protocol import ApiKey
from aiokafkawire.protocol.messages.share_fetch import ShareFetchResponse
from aiokafkawire.testing.configs.types import ConfigKind
from aiokafkawire.testing.simulation import Simulation, simulate

LARGE = 100_000
"""The size of a record that is decompressed on a thread."""


def damage_the_last_batch(_: object, response: ShareFetchResponse) -> ShareFetchResponse:
    data = response.responses[0].partitions[0]
    records = bytearray(data.records or b"")
    if len(records) > LARGE:
        records[-100] ^= 0xFF
    data.records = bytes(records)
    return response


def test_the_other_batches_of_a_response_are_delivered_if_a_large_one_is_damaged() -> None:
    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a")
        configs = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": str(round(LOCK * 1000))}
        sim.broker._cluster.configs.replace(ConfigKind.GROUP, "g", configs)
        async with sim.client() as client:
            async with client.producer(linger_ms=0, compression_type="gzip") as producer:
                await producer.send("a", b"first")
                await producer.send("a", random.Random(1).randbytes(LARGE))
            rule = sim.broker.on(ApiKey.SHARE_FETCH, answer=damage_the_last_batch)
            async with client.share_consumer("a", group_id="g") as consumer:
                with pytest.raises(CorruptBatch):
                    await consumer.poll(2)
                (record,) = await consumer.poll(1, timeout=LOCK / 2)
                assert (record.value, record.delivery_count) == (b"first", 1)
            assert rule.count >= 1

    simulate(main)
