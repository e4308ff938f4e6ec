"""aiokafka as a member of a group under fault."""

import asyncio
import contextlib
import logging
import time
from typing import Any

import aiokafka
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import KafkaError

from benchmarks.group_faults.member import LOOK_EVERY, PATIENCE, REST, Membership, Voice, on_order, read_membership


async def member(job: Membership, voice: Voice) -> None:
    """Read until the request to close. A consumer that keeps failing is replaced by another."""
    order: asyncio.Future[float] = asyncio.get_running_loop().create_future()
    loop = asyncio.get_running_loop()
    on_order(lambda: loop.call_soon_threadsafe(order.set_result, time.monotonic()))
    while not order.done():
        consumer = _consumer(job)
        tasks = [asyncio.create_task(one(consumer, voice)) for one in (_read, _watch)]
        try:
            await asyncio.wait((tasks[0], order), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await tasks[0]
        try:
            await consumer.stop()
        except KafkaError as error:
            voice.error(error)
    voice.closed(order.result())


def _consumer(job: Membership) -> Any:
    return AIOKafkaConsumer(
        job.topic,
        bootstrap_servers=job.bootstrap,
        group_id=job.group,
        auto_offset_reset="earliest",
        session_timeout_ms=job.session_timeout_ms,
        heartbeat_interval_ms=job.heartbeat_interval_ms,
        enable_auto_commit=True,
        auto_commit_interval_ms=job.commit_interval_ms,
        partition_assignment_strategy=(RangePartitionAssignor,),
    )


async def _read(consumer: Any, voice: Voice) -> None:
    failures, started = 0, False
    while failures < PATIENCE:
        try:
            if not started:
                await consumer.start()
                started = True
            async for record in consumer:
                failures = 0
                voice.read(record.partition, record.value)
        except KafkaError as error:
            voice.error(error)
            await asyncio.sleep(REST)
            if not started:
                return
            failures += 1


async def _watch(consumer: Any, voice: Voice) -> None:
    while True:
        voice.assigned(one.partition for one in consumer.assignment())
        await asyncio.sleep(LOOK_EVERY)


def main() -> None:
    job = read_membership()
    logger = logging.getLogger(aiokafka.__name__.partition(".")[0])
    voice = Voice(logger, f"{aiokafka.__name__} {aiokafka.__version__}, {job.loop}")
    loop: Any = None
    if job.loop == "uvloop":
        import uvloop

        loop = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(member(job, voice))


if __name__ == "__main__":
    main()
