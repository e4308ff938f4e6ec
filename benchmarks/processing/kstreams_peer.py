"""Measures kstreams, which awaits its handler for one record after the other, with its default settings."""

import asyncio
from typing import Any

from kstreams import ConsumerRecord, create_engine
from kstreams.backends import Kafka

from benchmarks.machine import version_of
from benchmarks.processing.job import Counter, Job, read_job


async def process(job: Job) -> None:
    """Call the handler for the records of a group's only member."""
    counter = Counter(job.records)
    count, over, seconds = counter.count, counter.over, job.handler_ms / 1000
    engine = create_engine(title=job.topic, backend=Kafka(bootstrap_servers=[job.bootstrap]))

    @engine.stream(job.topic, group_id=job.group, auto_offset_reset="earliest")
    async def handle(_: ConsumerRecord[Any, Any]) -> None:
        if seconds:
            await asyncio.sleep(seconds)
        if not over.is_set():
            count()

    await engine.start()
    await over.wait()
    counter.print(f"kstreams {version_of('kstreams')}")
    await engine.stop()


if __name__ == "__main__":
    asyncio.run(process(read_job()))
