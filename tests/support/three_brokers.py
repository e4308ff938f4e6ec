"""Three brokers over memory that hold one partition of the topic "t", and what tests say to them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from aiokafkawire.protocol.messages.offsets import ListOffsetsPartitionResponse
from aiokafkawire.protocol.messages.produce import PartitionProduceResponse
from aiokafkawire.testing.broker import Broker

from .raw_client import RawClient, records_of

__all__ = ("cluster", "error", "fetched", "to", "values")


@asynccontextmanager
async def cluster(**settings: Any) -> AsyncIterator[tuple[Broker, RawClient, RawClient, RawClient]]:
    """The brokers, of which the first leads, and a client of each."""
    async with Broker(3, port=None, **settings) as broker:
        broker.create_topic("t")
        async with await to(broker, 1) as one, await to(broker, 2) as two, await to(broker, 3) as three:
            yield broker, one, two, three


async def to(broker: Broker, node: int) -> RawClient:
    """Another client of one of them."""
    return RawClient(await broker.connect(f"memory-{node}", 9092))


def error(answer: PartitionProduceResponse | PartitionData | ListOffsetsPartitionResponse) -> ErrorCode:
    """The error by its name."""
    return ErrorCode(answer.error_code)


def values(data: PartitionData) -> list[bytes | None]:
    """What was read."""
    return [record.value for record in records_of(data)]


async def fetched(client: RawClient, number: int, version: int = 12) -> PartitionData:
    """The one partition of the answer to a fetch that was sent before."""
    answer = await client.answer(FetchRequest, version, number)
    assert isinstance(answer, FetchResponse)
    return answer.responses[0].partitions[0]
