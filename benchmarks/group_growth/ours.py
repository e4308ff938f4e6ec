"""aiokafkawire's consumers of a large group, all on one event loop, each with a client of its own."""

from collections.abc import Sequence
from contextlib import AsyncExitStack

import anyio

from aiokafkawire import Client, KafkaError, TopicPartition
from aiokafkawire.config import ConsumerOptions
from benchmarks.group_growth.crowd import Job, Voice, read_job, wait_close, wait_join
from benchmarks.machine import version_of


async def crowd(job: Job, voice: Voice) -> None:
    """Join on order, read until the order to close, and close in order."""
    await anyio.to_thread.run_sync(wait_join)
    scopes = [anyio.CancelScope() for _ in range(job.consumers)]
    async with anyio.create_task_group() as tasks:
        for number, scope in enumerate(scopes):
            tasks.start_soon(_consume, job, voice, number, scope)
        await anyio.to_thread.run_sync(wait_close)
        for scope in scopes:
            scope.cancel()
    voice.flush()


async def _consume(job: Job, voice: Voice, number: int, scope: anyio.CancelScope) -> None:
    def assigned(partitions: Sequence[TopicPartition]) -> None:
        voice.assigned(number, [one.partition for one in partitions])

    def revoked(partitions: Sequence[TopicPartition]) -> None:
        voice.revoked(number, [one.partition for one in partitions])

    async with AsyncExitStack() as opened:
        # Closing is outside of the scope, for it is to be in order.
        with scope:
            try:
                kafka = await opened.enter_async_context(Client(job.bootstrap))
                consumer = await opened.enter_async_context(kafka.consumer(**_settings(job)))
                consumer.subscribe(job.topic, on_assigned=assigned, on_revoked=revoked)
                async for record in consumer:
                    voice.read(record.partition, record.value)
            except KafkaError as error:
                voice.error(error)


def _settings(job: Job) -> ConsumerOptions:
    settings: ConsumerOptions = {"group_id": job.topic, "auto_offset_reset": "earliest"}
    if job.protocol == "consumer":
        return settings | {"group_protocol": "consumer"}
    return settings | {"partition_assignment_strategy": ["cooperative-sticky"]}


def main() -> None:
    job = read_job()
    backend = "trio" if job.loop == "trio" else "asyncio"
    options = {"use_uvloop": job.loop == "uvloop"} if backend == "asyncio" else {}
    version = f"aiokafkawire {version_of('aiokafkawire')}, {job.loop}"
    anyio.run(crowd, job, Voice(version), backend=backend, backend_options=options)


if __name__ == "__main__":
    main()
