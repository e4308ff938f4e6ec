"""Reads records back, for tests that wrote some."""

import anyio

from aiokafkawire import Client, ConsumerRecord, TopicPartition


async def read(kafka: Client, where: TopicPartition, count: int) -> list[ConsumerRecord[bytes, bytes]]:
    """The first ``count`` records of a partition."""
    records: list[ConsumerRecord[bytes, bytes]] = []
    with anyio.fail_after(20):
        async with kafka.consumer(auto_offset_reset="earliest") as consumer:
            consumer.assign([where])
            async for record in consumer:
                records.append(record)
                if len(records) == count:
                    break
    return records
