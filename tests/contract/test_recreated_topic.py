"""Producers whose topic is deleted and created anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from secrets import token_hex
from typing import Any

import anyio
import pytest
from contract.conftest import BOTH_TRANSACTION_VERSIONS, Where
from support.committed import committed
from support.patience import PATIENCE
from support.reading import read

from aiokafkawire import Client, Delivery, OffsetSpec, TopicPartition
from aiokafkawire.errors import DeliveryFailed, KafkaError, UnknownTopicId, UnknownTopicOrPartition

pytestmark = pytest.mark.anyio


async def create_anew(kafka: Client, name: str, partitions: int = 1) -> None:
    """Delete the topic and create it, and wait until brokers know the new one."""
    before = (await kafka.admin.describe_topic(name)).topic_id
    await kafka.admin.delete_topics([name])
    await kafka.admin.create_topics({name: partitions})
    with anyio.fail_after(PATIENCE):
        while True:
            try:
                if (await kafka.admin.describe_topic(name)).topic_id != before:
                    return
            except UnknownTopicOrPartition:
                pass


async def values(kafka: Client, where: TopicPartition) -> list[bytes | None]:
    """All that is in the log."""
    end = (await kafka.admin.list_offsets({where: OffsetSpec.LATEST}))[where]
    assert end is not None
    return [record.value for record in await read(kafka, where, end.offset)] if end.offset else []


@pytest.fixture
async def single(kafka: Client, new_name: Callable[[], str]) -> str:
    """A topic of one partition."""
    name = new_name()
    await kafka.admin.create_topics({name: 1})
    return name


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"acks": 1}, {"compression_type": "gzip"}])
async def test_an_idle_producer_sends_to_the_new_topic(kafka: Client, single: str, options: dict[str, Any]) -> None:
    async with kafka.producer(**options) as producer:
        await producer.send(single, b"old")
        for number in range(3):
            await create_anew(kafka, single)
            with anyio.fail_after(PATIENCE):
                assert (await producer.send(single, b"%d" % number)).offset == 0
                assert (await producer.send(single, b"more")).offset == 1
            assert await values(kafka, TopicPartition(single, 0)) == [b"%d" % number, b"more"]


async def test_without_acknowledgements_one_record_is_lost_and_the_next_goes_to_the_new_topic(
    kafka: Client, single: str
) -> None:
    """The broker closes the connection for the first record, which is all that it can say about it."""
    where = TopicPartition(single, 0)
    async with kafka.producer(acks=0) as producer:
        await producer.send(single, b"old")
        await create_anew(kafka, single)
        with anyio.fail_after(PATIENCE):
            while not (found := await values(kafka, where)):
                with suppress(UnknownTopicId):  # it may be in the old topic: without acknowledgements nobody knows
                    await producer.send(single, b"new")
    assert set(found) == {b"new"}


async def test_a_client_that_was_idle_writes_by_another_producer(cluster: Where, kafka: Client, single: str) -> None:
    async with cluster.client() as idle:
        async with idle.producer() as producer:
            await producer.send(single, b"old")
        await create_anew(kafka, single, 2)
        async with idle.producer() as producer:
            await producer.enqueue_many(single, [b"%d" % number for number in range(1_000)])
            await producer.flush()
    found = [await values(kafka, TopicPartition(single, index)) for index in range(2)]
    assert Counter(found[0] + found[1]) == Counter(b"%d" % number for number in range(1_000))


async def test_a_busy_producer_loses_nothing_that_was_acknowledged_by_the_new_topic(kafka: Client, single: str) -> None:
    deliveries: list[Delivery] = []
    ends = anyio.Event()

    async def send_all(producer: Any) -> None:
        number = 0
        while not ends.is_set():
            deliveries.append(await producer.enqueue(single, b"%d" % number))
            number += 1
            await anyio.lowlevel.checkpoint()

    async def is_written(delivery: Delivery) -> bool:
        try:
            await delivery
        except UnknownTopicId:
            return False
        return True

    # Leaving the producer raises what failed since.
    with suppress(DeliveryFailed):
        async with (
            kafka.producer(batch_size=1_000, buffer_memory=100_000) as producer,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(send_all, producer)
            with anyio.fail_after(60):
                while not deliveries:
                    await anyio.lowlevel.checkpoint()
                await deliveries[0]
                await create_anew(kafka, single)
                before = len(deliveries)
                while len(deliveries) == before or not await is_written(deliveries[-1]):
                    await anyio.lowlevel.checkpoint()
            ends.set()
    acknowledged, failed = [], []
    for number, delivery in enumerate(deliveries):
        try:
            acknowledged.append((number, (await delivery).offset))
        except KafkaError as error:
            failed.append(error)
    assert all(isinstance(error, UnknownTopicId) for error in failed)
    found = [int(value or b"") for value in await values(kafka, TopicPartition(single, 0))]
    assert found == sorted(set(found))
    # Offsets begin anew once: what was acknowledged from there on is in the new topic.
    begun = max((at for at, (_, offset) in enumerate(acknowledged) if offset == 0), default=0)
    assert [number for number, _ in acknowledged[begun:]] == found


@BOTH_TRANSACTION_VERSIONS
async def test_transactions_go_on_in_the_new_topic(cluster: Where, kafka: Client, single: str) -> None:
    where = TopicPartition(single, 0)
    async with kafka.producer(transactional_id=f"id-{token_hex(6)}", batch_size=1) as producer:
        async with producer.transaction() as tx:
            await tx.send(single, b"old")
        for _ in range(2):
            await create_anew(kafka, single)
            with anyio.fail_after(PATIENCE):
                async with producer.transaction() as tx:
                    for number in range(5):
                        await tx.enqueue(single, b"%d" % number)
                async with producer.transaction() as tx:
                    await tx.send(single, b"more")
            assert await committed(kafka, where) == [b"0", b"1", b"2", b"3", b"4", b"more"]


async def test_a_transaction_that_lost_records_with_the_old_topic_aborts(kafka: Client, single: str) -> None:
    """With transaction.version 2. Version 1 names topics, so the leader of the new one takes the record."""
    where = TopicPartition(single, 0)
    async with kafka.producer(transactional_id=f"id-{token_hex(6)}") as producer:
        with pytest.raises(UnknownTopicId, match="during the transaction"):
            async with producer.transaction() as tx:
                await tx.send(single, b"0")
                await create_anew(kafka, single)
                with anyio.fail_after(PATIENCE):
                    await tx.send(single, b"1")
        with anyio.fail_after(PATIENCE):
            async with producer.transaction() as tx:
                await tx.send(single, b"0")
                await tx.send(single, b"1")
    assert await committed(kafka, where) == [b"0", b"1"]
