"""Measures the share consumer of aiokafkawire: one way of using it, once, on one event loop."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, TypeAlias

import anyio

from aiokafkawire import Client, ShareConsumer, ShareRecord
from benchmarks.clients.measurement import Job, Watch, print_share, read_job
from benchmarks.clients.ours import VERSION
from benchmarks.share.group import begin_at_earliest

_Consumer: TypeAlias = ShareConsumer[bytes, bytes]
_Records: TypeAlias = Sequence[ShareRecord[bytes, bytes]]
_Process: TypeAlias = Callable[[_Consumer, _Records], Awaitable[int]]
"""Reads the values of records, and acknowledges them; how many bytes it has read."""


async def share_explicit(job: Job) -> None:
    """Measure ``poll()``, then ``acknowledge(record)`` for every record."""

    async def process(consumer: _Consumer, records: _Records) -> int:
        size = 0
        for record in records:
            size += len(record.value or b"")
            consumer.acknowledge(record)
        return size

    await _consume(job, process, "explicit")


async def share_implicit(job: Job) -> None:
    """Measure ``poll()``, which accepts the records of the last one."""

    async def process(_: _Consumer, records: _Records) -> int:
        return sum(len(record.value or b"") for record in records)

    await _consume(job, process, "implicit")


async def share_async_with(job: Job) -> None:
    """Measure ``poll()``, then ``async with record`` for every record."""

    async def process(_: _Consumer, records: _Records) -> int:
        size = 0
        for record in records:
            async with record:
                size += len(record.value or b"")
        return size

    await _consume(job, process, "explicit")


async def _consume(job: Job, process: _Process, mode: Literal["explicit", "implicit"]) -> None:
    """Start the clock with the first records, and stop it once the brokers have taken note of the last."""
    watch = Watch(job)
    limit, wanted = job.max_poll_records, job.records * job.value_size
    async with (
        Client(job.bootstrap) as kafka,
        kafka.share_consumer(
            *job.names, group_id=job.group_id, share_acknowledgement_mode=mode, max_poll_records=limit
        ) as consumer,
    ):
        records = await consumer.poll(limit)
        first = len(records)
        with watch:
            size = await process(consumer, records)
            while size < wanted:
                size += await process(consumer, await consumer.poll(limit))
            await consumer.commit()
    print_share(job, watch, first=first, done=size // job.value_size, version=VERSION)


WAYS = {"share_explicit": share_explicit, "share_implicit": share_implicit, "share_async_with": share_async_with}


def main() -> None:
    job = read_job()
    begin_at_earliest(job)
    options: dict[str, Any] = {"use_uvloop": job.loop == "uvloop"} if job.loop != "trio" else {}
    anyio.run(WAYS[job.way], job, backend="trio" if job.loop == "trio" else "asyncio", backend_options=options)


if __name__ == "__main__":
    main()
