"""Reads records back, for tests that wrote some."""

import anyio

from aiokafkawire import Client, Consumer, ConsumerRecord, TopicPartition

from .patience import PATIENCE

__all__ = ("read", "take")


async def read(kafka: Client, where: TopicPartition, count: int) -> list[ConsumerRecord[bytes, bytes]]:
    """The first ``count`` records of a partition."""
    with anyio.fail_after(PATIENCE):
        async with kafka.consumer(auto_offset_reset="earliest") as consumer:
            consumer.assign([where])
            return await take(consumer, count)


async def take(consumer: Consumer[bytes, bytes], count: int) -> list[ConsumerRecord[bytes, bytes]]:
    """The next ``count`` records."""
    records: list[ConsumerRecord[bytes, bytes]] = []
    with anyio.fail_after(PATIENCE):
        async for record in consumer:
            records.append(record)
            if len(records) == count:
                break
    return records
