"""Measures FastStream, with its broker of aiokafka or of confluent-kafka.

Its settings are its fastest: offsets are committed before records are handled (its default, ACK_FIRST), nothing is
logged, decoded, or validated. A handler that waits has ``max_workers``, which give up the order of records.
"""

import asyncio
from typing import Any

from faststream.confluent import KafkaBroker as ConfluentBroker
from faststream.kafka import KafkaBroker

from benchmarks.machine import version_of
from benchmarks.processing.job import Counter, Job, read_job


async def process(job: Job) -> None:
    """Call the handler for the records of a group's only member."""
    counter = Counter(job.records)
    count, over, seconds = counter.count, counter.over, job.handler_ms / 1000
    make: Any = ConfluentBroker if job.way == "confluent" else KafkaBroker
    broker = make(job.bootstrap, logger=None, decoder=_undecoded, apply_types=False)
    workers = {"max_workers": job.concurrency} if seconds else {}

    @broker.subscriber(job.topic, group_id=job.group, auto_offset_reset="earliest", **workers)  # type: ignore[untyped-decorator]
    async def handle(_: Any) -> None:
        if seconds:
            await asyncio.sleep(seconds)
        if not over.is_set():
            count()

    await broker.start()
    await over.wait()
    counter.print(f"FastStream {version_of('faststream')}")
    await broker.stop()


async def _undecoded(message: Any) -> Any:
    return message.body


def main() -> None:
    job = read_job()
    if job.loop == "uvloop":
        import uvloop

        uvloop.run(process(job))
    else:
        asyncio.run(process(job))


if __name__ == "__main__":
    main()
