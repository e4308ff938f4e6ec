"""Measures ``Client.process``, in the order of keys, with commits of what is finished."""

from typing import Any

import anyio

from aiokafkawire import Client, ConsumerRecord
from benchmarks.machine import version_of
from benchmarks.processing.job import Counter, Job, read_job


async def process(job: Job) -> None:
    """Call the handler for the records of a group's only member."""
    counter = Counter(job.records)
    count, over, seconds = counter.count, counter.over, job.handler_ms / 1000

    async def do_nothing(_: ConsumerRecord[bytes, bytes]) -> None:
        if not over.is_set():
            count()

    async def wait(_: ConsumerRecord[bytes, bytes]) -> None:
        await anyio.sleep(seconds)
        if not over.is_set():
            count()

    async with Client(job.bootstrap) as kafka:
        await kafka.process(
            job.topic, wait if seconds else do_nothing, group_id=job.group, concurrency=job.concurrency, stop=over
        )
    counter.print(f"aiokafkawire {version_of('aiokafkawire')}")


def main() -> None:
    job = read_job()
    options: dict[str, Any] = {"use_uvloop": job.loop == "uvloop"} if job.loop != "trio" else {}
    anyio.run(process, job, backend="trio" if job.loop == "trio" else "asyncio", backend_options=options)


if __name__ == "__main__":
    main()
