"""Partitions that are added to a topic which a client knows with fewer."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest
from contract.conftest import Where
from support.partitions import add_partitions
from support.patience import PATIENCE

from aiokafkawire import Client, OffsetSpec, TopicPartition, UsageError

pytestmark = pytest.mark.anyio


@pytest.fixture
async def grown(cluster: Where, kafka: Client, new_name: Callable[[], str]) -> TopicPartition:
    """The second partition of a topic that ``kafka`` knows with one, with a record in it."""
    where = TopicPartition(new_name(), 1)
    await kafka.admin.create_topics({where.topic: 1})
    await kafka.admin.list_offsets({TopicPartition(where.topic, 0): OffsetSpec.LATEST})
    async with cluster.client() as other:
        await add_partitions(other, where.topic, 2)
        async with other.producer() as producer:
            await producer.send(where.topic, b"0", partition=1)
    return where


async def test_its_offsets_are_looked_up(kafka: Client, grown: TopicPartition) -> None:
    with anyio.fail_after(PATIENCE):
        found = (await kafka.admin.list_offsets({grown: OffsetSpec.LATEST}))[grown]
    assert found is not None
    assert found.offset == 1
    async with kafka.consumer() as consumer:
        found = (await consumer.offsets({grown: OffsetSpec.EARLIEST}))[grown]
    assert found is not None
    assert found.offset == 0


async def test_records_are_written_to_it(kafka: Client, grown: TopicPartition) -> None:
    async with kafka.producer() as producer:
        with anyio.fail_after(PATIENCE):
            assert (await producer.send(grown.topic, b"1", partition=grown.partition)).offset == 1


async def test_it_is_read(kafka: Client, grown: TopicPartition) -> None:
    async with kafka.consumer() as consumer:
        consumer.assign({grown: 0})
        with anyio.fail_after(PATIENCE):
            assert (await anext(consumer)).value == b"0"


async def test_a_partition_that_is_not_there_is_an_error_soon(kafka: Client, grown: TopicPartition) -> None:
    with anyio.fail_after(PATIENCE), pytest.raises(UsageError, match="has 2 partitions, no 2"):
        await kafka.admin.list_offsets({TopicPartition(grown.topic, 2): OffsetSpec.LATEST})
    async with kafka.producer() as producer:
        with anyio.fail_after(PATIENCE), pytest.raises(UsageError, match="has 2 partitions, no 2"):
            await producer.send(grown.topic, b"2", partition=2)
