"""aiokafkawire as a member of a group under fault."""

import logging
import math
import time
from contextlib import AsyncExitStack
from typing import Any

import anyio

from aiokafkawire import Client, Consumer, KafkaError
from aiokafkawire.config import ConsumerOptions
from benchmarks.group_faults.member import (
    LOOK_EVERY,
    PATIENCE,
    REST,
    Membership,
    Voice,
    read_membership,
    wait_for_order,
)
from benchmarks.machine import version_of


class _Order:
    """The order to close: it ends what is done in the scope of the moment, but not the closing itself."""

    def __init__(self) -> None:
        self.at = math.inf
        self.scope = anyio.CancelScope()

    def give(self) -> None:
        self.at = time.monotonic()
        self.scope.cancel()

    def new_scope(self) -> anyio.CancelScope:
        self.scope = anyio.CancelScope()
        if self.at < math.inf:
            self.scope.cancel()
        return self.scope


async def member(job: Membership, voice: Voice) -> None:
    """Read until the request to close. A consumer that keeps failing is replaced by another."""
    order = _Order()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_take_order, order)
        while order.at == math.inf:
            try:
                async with AsyncExitStack() as opened:
                    with order.new_scope():
                        await _be_member(job, voice, opened)
            except KafkaError as error:
                voice.error(error)
                await anyio.sleep(REST)
    voice.closed(order.at)


async def _take_order(order: _Order) -> None:
    await anyio.to_thread.run_sync(wait_for_order)
    order.give()


def _settings(job: Membership) -> ConsumerOptions:
    settings: ConsumerOptions = {
        "group_id": job.group,
        "auto_offset_reset": "earliest",
        "auto_commit_interval_ms": job.commit_interval_ms,
    }
    if job.protocol == "consumer":
        return settings | {"group_protocol": "consumer", "group_remote_assignor": job.assignor}
    return settings | {
        "session_timeout_ms": job.session_timeout_ms,
        "heartbeat_interval_ms": job.heartbeat_interval_ms,
        "partition_assignment_strategy": ["cooperative-sticky" if job.assignor == "cooperative-sticky" else "range"],
    }


async def _be_member(job: Membership, voice: Voice, opened: AsyncExitStack) -> None:
    kafka = await opened.enter_async_context(Client(job.bootstrap))
    consumer = await opened.enter_async_context(kafka.consumer(job.topic, **_settings(job)))
    async with anyio.create_task_group() as watching:
        watching.start_soon(_watch, consumer, voice)
        await _read(consumer, voice)
        watching.cancel_scope.cancel()


async def _read(consumer: Consumer[Any, Any], voice: Voice) -> None:
    failures = 0
    while failures < PATIENCE:
        try:
            async for record in consumer:
                failures = 0
                voice.read(record.partition, record.value)
        except KafkaError as error:
            failures += 1
            voice.error(error)
            await anyio.sleep(REST)


async def _watch(consumer: Consumer[Any, Any], voice: Voice) -> None:
    while True:
        voice.assigned(one.partition for one in consumer.assignment)
        await anyio.sleep(LOOK_EVERY)


def main() -> None:
    job = read_membership()
    voice = Voice(logging.getLogger("aiokafkawire"), f"aiokafkawire {version_of('aiokafkawire')}, {job.loop}")
    backend = "trio" if job.loop == "trio" else "asyncio"
    options = {"use_uvloop": job.loop == "uvloop"} if backend == "asyncio" else {}
    anyio.run(member, job, voice, backend=backend, backend_options=options)


if __name__ == "__main__":
    main()
