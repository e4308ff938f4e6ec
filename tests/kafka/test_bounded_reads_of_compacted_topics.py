"""Reads with an end of a log with gaps, as compaction leaves them, on real Kafka and on the in-process broker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import anyio
import pytest
from support.apache_kafka import ApacheKafka, missing
from support.needing import require
from support.patience import PATIENCE

from aiokafkawire import Client, NewTopic, OffsetSpec, TopicPartition
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio

T0 = TopicPartition("compacted", 0)
_SOON = {"log.cleaner.backoff.ms": "20", "log.cleaner.min.cleanable.ratio": "0.0001"}
_CONFIGS = {
    "cleanup.policy": "compact",
    "segment.ms": "1",
    "min.cleanable.dirty.ratio": "0.0001",
    "min.compaction.lag.ms": "0",
    "max.compaction.lag.ms": "1",
    "delete.retention.ms": "0",
}


class Undone(Exception):
    """What the body of a transaction raises to have it aborted."""


@pytest.fixture(scope="module")
def cleaning_kafka() -> Iterator[ApacheKafka]:
    """A server that compacts as soon as there is something to remove."""
    require(missing())
    with ApacheKafka(properties=_SOON) as server:
        yield server


@pytest.fixture(params=["in-process", pytest.param("apache-kafka", marks=pytest.mark.kafka)])
async def compacted(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """A client of a cluster with a topic that was compacted."""
    if request.param == "in-process":
        async with Broker() as broker, Client(broker.bootstrap) as kafka:
            await write(kafka)
            broker.compact(T0.topic, keep_tombstones=False)
            yield kafka
        return
    async with Client(request.getfixturevalue("cleaning_kafka").bootstrap) as kafka:
        if T0.topic not in await kafka.admin.list_topics():
            await write(kafka)
        await is_compacted(kafka)
        yield kafka


async def write(kafka: Client) -> None:
    """Batches of which some lose their first records, some their last, and some all; and transactions."""
    await kafka.admin.create_topics({T0.topic: NewTopic(1, configs=_CONFIGS)})
    async with kafka.producer(transactional_id="compacted") as producer:
        for keys in ("abc", "cde", "-xyz", "ab", "fc", "-q", "ghb"):
            with suppress(Undone):
                async with producer.transaction() as tx:
                    names = [key.encode() for key in keys.strip("-")]
                    await tx.send_many(T0.topic, [b"value"] * len(names), keys=names, partition=0)
                    if keys.startswith("-"):
                        raise Undone
    # In the newest segment, which is never cleaned.
    async with kafka.producer(acks="all") as producer:
        await producer.send(T0.topic, b"value", key=b"last", partition=0)


async def is_compacted(kafka: Client) -> None:
    with anyio.fail_after(PATIENCE):
        while True:
            keys = [record.key async for record in kafka.read_records(T0.topic, fetch_max_wait_ms=10)]
            if len(keys) == len(set(keys)):
                return
            await anyio.lowlevel.checkpoint()


async def test_a_read_ends_at_every_offset_whatever_is_left_there(compacted: Client) -> None:
    found = (await compacted.admin.list_offsets({T0: OffsetSpec.LATEST}))[T0]
    assert found is not None
    end = found.offset
    with anyio.fail_after(PATIENCE):
        every = [record.offset async for record in compacted.read_records(T0.topic)]
        assert len(every) == len(set("abcdefghb")) + 1
        assert len(every) < end - len(every)  # most of it are gaps and control records
        for last in range(end + 1):
            read = [one.offset async for one in compacted.read_records(T0.topic, end={T0: last}, fetch_max_wait_ms=10)]
            assert read == [offset for offset in every if offset < last]
            arrow = compacted.read_batches(T0.topic, start={T0: last}, columns=["offset"], fetch_max_wait_ms=10)
            rows = [offset async for batch in arrow for offset in batch["offset"].to_pylist()]
            assert rows == [offset for offset in every if offset >= last]


async def test_a_position_passes_the_gap_at_the_end_of_a_batch(compacted: Client) -> None:
    async with compacted.consumer(isolation_level="read_committed", fetch_max_wait_ms=10) as consumer:
        consumer.assign({T0: 0})
        found = (await consumer.offsets({T0: OffsetSpec.LATEST}))[T0]
        assert found is not None
        with anyio.fail_after(PATIENCE):
            while (consumer.position(T0) or 0) < found.offset:
                for record in await consumer.poll(1, timeout=1):
                    assert (consumer.position(T0) or 0) > record.offset
        assert consumer.health().lag == 0
