"""A producer that drops what it has not sent, and the cluster that a client says it is connected to."""

from __future__ import annotations

import pytest
from support.reading import read

from aiokafkawire import Client, OffsetSpec, RecordsPurged, TopicPartition

pytestmark = [pytest.mark.anyio, pytest.mark.every_loop]

LONG_MS = 600_000
"""A linger that no test waits for."""


async def test_purged_records_are_not_written_and_later_ones_are(kafka: Client, topic: str) -> None:
    partition = TopicPartition(topic, 0)
    async with kafka.producer(linger_ms=LONG_MS, delivery_timeout_ms=2 * LONG_MS) as producer:
        await producer.enqueue(topic, b"first", partition=0)
        await producer.flush()
        dropped = [await producer.enqueue(topic, value, partition=0) for value in (b"a", b"b")]
        unawaited = await producer.enqueue(topic, b"c", partition=1)
        assert producer.purge() == 3
        for delivery in dropped:
            with pytest.raises(RecordsPurged, match=rf"the record for {topic}-0 was dropped by purge\(\)$"):
                await delivery
        assert producer.purge() == 0
        assert producer.health().records == 0
        await producer.flush()  # which does not report the record that nobody awaited
        after = await producer.enqueue(topic, b"last", partition=0)
        await producer.flush()
        assert (await after).offset == 1
    with pytest.raises(RecordsPurged):
        await unawaited
    assert [record.value for record in await read(kafka, partition, 2)] == [b"first", b"last"]
    async with kafka.consumer() as consumer:
        ends = await consumer.offsets({TopicPartition(topic, 1): OffsetSpec.LATEST})
    found = ends[TopicPartition(topic, 1)]
    assert found is not None
    assert found.offset == 0


async def test_a_transaction_that_lost_records_is_aborted(kafka: Client, topic: str) -> None:
    producing = kafka.producer(transactional_id=f"of-{topic}", linger_ms=LONG_MS, delivery_timeout_ms=2 * LONG_MS)
    async with producing as producer:
        with pytest.raises(RecordsPurged):
            async with producer.transaction() as transaction:
                await transaction.enqueue(topic, b"lost", partition=0)
                producer.purge()
        async with producer.transaction() as transaction:
            await transaction.enqueue(topic, b"kept", partition=0)
    async with kafka.consumer(isolation_level="read_committed") as consumer:
        consumer.assign({TopicPartition(topic, 0): 0})
        record = await anext(aiter(consumer))
        assert record.value == b"kept"


async def test_a_producer_closes_within_a_time_that_suffices(kafka: Client, topic: str) -> None:
    async with kafka.producer(linger_ms=LONG_MS, delivery_timeout_ms=2 * LONG_MS) as producer:
        delivery = await producer.enqueue(topic, b"value", partition=0)
        await producer.close(timeout=LONG_MS / 1000)
        assert (await delivery).offset == 0


async def test_a_client_knows_its_cluster(kafka: Client) -> None:
    description = await kafka.admin.describe_cluster()
    assert kafka.cluster_id == description.cluster_id
    assert kafka.cluster_id


async def test_a_client_that_was_not_opened_knows_none() -> None:
    assert Client("localhost:1").cluster_id is None
