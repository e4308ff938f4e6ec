"""What readers of committed records see, what groups have committed, and how far transactions are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import anyio
from support.raw_client import RawClient
from support.transactional import coordinated, settled, state_of

from aiokafkawire import Client, OffsetSpec, TopicPartition
from aiokafkawire.protocol.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from aiokafkawire.types import CoordinatorType

from .patience import PATIENCE

if TYPE_CHECKING:
    from contract.conftest import Where

__all__ = ("committed", "committed_offset", "ended", "open_from", "raw", "timed_out")

_END = b"end of what a test has written"


async def committed(kafka: Client, where: TopicPartition) -> list[bytes | None]:
    """The values that a reader of committed records has got once no transaction is open there."""
    async with kafka.producer(acks=1) as producer:
        end = (await producer.send(where.topic, _END, partition=where.partition)).offset
    values: list[bytes | None] = []
    with anyio.fail_after(PATIENCE):
        async with kafka.consumer(
            auto_offset_reset="earliest", isolation_level="read_committed", fetch_max_wait_ms=20
        ) as consumer:
            consumer.assign([where])
            async for record in consumer:
                if record.offset == end:
                    return values
                if record.value != _END:
                    values.append(record.value)
    raise AssertionError("the reader has ended")


async def open_from(kafka: Client, where: TopicPartition) -> tuple[int, int]:
    """The last stable offset, where the first open transaction begins, and the end of the log."""
    ends = []
    async with kafka.consumer(isolation_level="read_committed") as stable, kafka.consumer() as all_:
        for consumer in (stable, all_):
            found = (await consumer.offsets({where: OffsetSpec.LATEST}))[where]
            assert found is not None
            ends.append(found.offset)
    return ends[0], ends[1]


@asynccontextmanager
async def raw(cluster: Where) -> AsyncIterator[RawClient]:
    """A plain connection to the cluster, which is one broker."""
    host, _, port = cluster.bootstrap.rpartition(":")
    async with RawClient(await cluster.connector(host, int(port))) as client:
        yield client


async def ended(cluster: Where, transactional_id: str) -> str:
    """The state of the transaction, once it is not being completed."""
    async with raw(cluster) as client:
        return (await state_of(client, transactional_id)).transaction_state


async def timed_out(cluster: Where, transactional_id: str) -> None:
    """Wait until the coordinator has aborted the transaction."""

    async def is_aborted(client: RawClient) -> bool:
        return (await state_of(client, transactional_id)).transaction_state == "CompleteAbort"

    async with raw(cluster) as client:
        await settled(partial(is_aborted, client), bool)


async def committed_offset(cluster: Where, group: str, where: TopicPartition) -> int:
    """What the group has committed for the partition, -1 for nothing, once no transaction is about to change it."""
    topics = [OffsetFetchRequestTopics(name=where.topic, partition_indexes=[where.partition])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)], require_stable=True)

    def is_stable(answer: OffsetFetchResponseGroup) -> bool:
        return not answer.error_code and not any(one.error_code for one in answer.topics[0].partitions)

    async with raw(cluster) as client:
        await coordinated(client, group, CoordinatorType.GROUP)
        ask: Callable[[], Awaitable[OffsetFetchResponseGroup]] = partial(_first_group, client, request)
        answer = await settled(ask, is_stable)
    return answer.topics[0].partitions[0].committed_offset


async def _first_group(client: RawClient, request: OffsetFetchRequest) -> OffsetFetchResponseGroup:
    return (await client.ask(request, 8)).groups[0]
