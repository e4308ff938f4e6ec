"""A group whose members stay, except for one that comes and goes; and samples of the process meanwhile."""

import gc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final

import anyio

from aiokafkawire import Client, Consumer
from aiokafkawire.config import ConsumerOptions
from benchmarks.clients.measurement import resident_mb
from benchmarks.soak.judge import Sample

TOPIC: Final = "soak"
SAMPLES: Final = 20
_FREE: Final = 2.0
"""Seconds between a leave and a sample at most: the others have its partitions then."""
_DRAIN: Final = 30.0
_CRASH_EVERY: Final = 4
"""Every so many turns the one goes without a word."""


@dataclass(frozen=True)
class Work:
    """The settings of a soak."""

    bootstrap: str
    protocol: str
    members: int
    """Those that stay."""
    seconds: float
    every: float
    """Seconds of a turn: the one comes, reads, and goes."""
    rate: int
    """Records per second."""


@dataclass
class Seen:
    """The records that members have read, in memory of a constant size."""

    most: int
    """The most records that there will be."""
    records: int = 0
    assignments: int = 0
    written: int = 0
    _unread: bytearray = field(init=False)

    def __post_init__(self) -> None:
        self._unread = bytearray(b"\1") * self.most

    def read(self, value: bytes | None) -> None:
        """Note that a record was read."""
        self.records += 1
        self._unread[int(value or b"")] = 0

    @property
    def missing(self) -> int:
        """The number of records written so far that no member has read."""
        return self._unread.count(1, 0, self.written)


async def soak(work: Work, tell: Callable[[str], None]) -> tuple[list[Sample], int]:
    """Rebalance for so many seconds; return samples at equal distances, and the number of lost records."""
    seen = Seen(int(work.seconds * work.rate * 2) + 10_000)
    samples: list[Sample] = []
    began = anyio.current_time()
    async with anyio.create_task_group() as others:
        for _ in range(work.members):
            others.start_soon(_stay, work, seen)
        async with anyio.create_task_group() as writing:
            writing.start_soon(_write, work, seen)
            async with Client(work.bootstrap) as client:
                for turn in count(1):
                    await _come_and_go(client, work, seen, crash=turn % _CRASH_EVERY == 0)
                    passed = anyio.current_time() - began
                    if passed >= work.seconds * (len(samples) + 1) / SAMPLES:
                        samples.append(_sample(passed, turn, seen))
                        one = samples[-1]
                        tell(f"{turn:,} turns, {one.records:,} records, {one.rss_mb:.1f} MB, {one.tasks} tasks")
                    if passed >= work.seconds:
                        break
            writing.cancel_scope.cancel()
        with anyio.move_on_after(_DRAIN):
            await _wait_read(seen)
        others.cancel_scope.cancel()
    return samples, seen.missing


async def _wait_read(seen: Seen) -> None:
    while True:
        if not seen.missing:
            return
        await anyio.sleep(0.1)


def _consumer(client: Client, work: Work) -> Consumer[bytes, bytes]:
    settings: ConsumerOptions = {
        "group_id": TOPIC,
        "auto_offset_reset": "earliest",
        "auto_commit_interval_ms": 1_000,
    }
    if work.protocol == "consumer":
        settings |= {"group_protocol": "consumer"}
    else:
        settings |= {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 500}
    return client.consumer(**settings)


async def _stay(work: Work, seen: Seen) -> None:
    def assigned(_: object) -> None:
        seen.assignments += 1

    async with Client(work.bootstrap) as client, _consumer(client, work) as consumer:
        consumer.subscribe(TOPIC, on_assigned=assigned)
        async for record in consumer:
            seen.read(record.value)


async def _come_and_go(client: Client, work: Work, seen: Seen, *, crash: bool) -> None:
    """Join the group for most of a turn, and leave the others the rest of it to take over."""
    ends = anyio.current_time() + work.every
    free = min(_FREE, work.every / 3)
    with anyio.CancelScope(deadline=ends - free) as scope:
        async with _consumer(client, work) as consumer:
            consumer.subscribe(TOPIC)
            with anyio.CancelScope(deadline=ends - free if crash else ends - 2 * free):
                async for record in consumer:
                    seen.read(record.value)
            if crash:  # so that closing is cancelled as well
                scope.cancel()
    await anyio.sleep_until(ends)


async def _write(work: Work, seen: Seen) -> None:
    async with Client(work.bootstrap) as client, client.producer(acks="all") as producer:
        while seen.written < seen.most:
            await producer.send(TOPIC, b"%d" % seen.written)
            seen.written += 1
            await anyio.sleep(1 / work.rate)


def _sample(seconds: float, turns: int, seen: Seen) -> Sample:
    gc.collect()
    files = 0
    with suppress(OSError):
        files = sum(1 for _ in Path("/proc/self/fd").iterdir())
    tasks = len(anyio.get_running_tasks())
    return Sample(seconds, turns, seen.assignments, seen.records, resident_mb(), tasks, files)
