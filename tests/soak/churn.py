"""A group that rebalances every few seconds, and what there is in memory meanwhile."""

import gc
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from typing import Final, Literal, TypeAlias

import anyio
import attrs

from aiokafkawire import Client, Consumer
from aiokafkawire.config import ConsumerOptions

__all__ = ("SAMPLES", "Protocol", "Sample", "churn", "grown", "sample")

TOPIC: Final = "a"
GROUP: Final = "who comes and goes"
Protocol: TypeAlias = Literal["classic", "consumer"]
SESSION_MS: Final = 6_000
HEARTBEAT_MS: Final = 500
"""In the consumer protocol the brokers have these."""
STAY: Final = 3
"""Members that are there all the time."""
SAMPLES: Final = 12
_SLACK: Final = 20
_OF_THE_BROKERS: Final = ("aiokafkawire.testing.", "aiokafkawire.records.header.")
"""Whose objects are not the client's: logs have the header of each batch."""
_SETTLES: Final = 3.0
"""Seconds in which the others have what one left, and nothing else is under way."""


@attrs.frozen
class Sample:
    """What there is at one moment, when the one that comes and goes is not there."""

    objects: Counter[str]
    """Of the client's own classes, as the garbage collector knows them."""
    tasks: int
    records: int
    """What was read so far."""
    turns: int
    """How often the one has come and gone so far."""


async def churn(
    new_client: Callable[[], Client], seconds: float, forget: Callable[[], None], protocol: Protocol = "classic"
) -> list[Sample]:
    """Rebalance for so many seconds; samples at equal distances. ``forget`` drops what the brokers remember for tests.

    One member comes and goes, on a client that stays, by turns in order and without a word.
    """
    samples, read, until = list[Sample](), Counter[str](), anyio.current_time() + seconds
    every = seconds / SAMPLES
    async with new_client() as client, anyio.create_task_group() as others:
        others.start_soon(_write, client)
        for _ in range(STAY):
            others.start_soon(_stay, new_client, read, protocol)
        for turn in count(1):
            await _come_and_go(client, read, 1.0 + turn % 3, protocol, crash=turn % 4 == 0)
            await anyio.sleep(_SETTLES)
            if anyio.current_time() >= until - every * (SAMPLES - len(samples) - 1):
                forget()
                samples.append(sample(read.total(), turn))
            if len(samples) == SAMPLES:
                break
        others.cancel_scope.cancel()
    return samples


def _consumer(client: Client, protocol: Protocol) -> Consumer[bytes, bytes]:
    options = ConsumerOptions(
        group_id=GROUP,
        group_protocol=protocol,
        auto_commit_interval_ms=1_000,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=5_000,
    )
    if protocol == "classic":
        options |= {"session_timeout_ms": SESSION_MS, "heartbeat_interval_ms": HEARTBEAT_MS}
    return client.consumer(TOPIC, **options)


async def _stay(new_client: Callable[[], Client], read: Counter[str], protocol: Protocol) -> None:
    async with new_client() as client, _consumer(client, protocol) as consumer:
        async for _ in consumer:
            read["stay"] += 1


async def _come_and_go(client: Client, read: Counter[str], seconds: float, protocol: Protocol, *, crash: bool) -> None:
    with anyio.move_on_after(seconds) as scope:
        async with _consumer(client, protocol) as consumer:
            with anyio.move_on_after(seconds if crash else seconds / 2):
                async for _ in consumer:
                    read["go"] += 1
            if crash:  # so that closing is cancelled as well
                scope.cancel()


async def _write(client: Client) -> None:
    async with client.producer() as producer:
        for number in count():
            await producer.send(TOPIC, b"%d" % number)
            await anyio.sleep(1)


def sample(records: int, turns: int) -> Sample:
    """Return what there is now, after a garbage collection."""
    gc.collect()
    found: Counter[str] = Counter()
    for one in gc.get_objects():
        name = f"{type(one).__module__}.{type(one).__qualname__}"
        if name.startswith("aiokafkawire.") and not name.startswith(_OF_THE_BROKERS):
            found[name] += 1
    return Sample(found, len(anyio.get_running_tasks()), records, turns)


def grown(samples: Sequence[Sample]) -> dict[str, tuple[int, int]]:
    """What there was more of in the second half than ever in the first, once that had begun: how many, and how many
    then at least."""
    first, second = samples[1 : len(samples) // 2], samples[len(samples) // 2 :]
    names = sorted({name for sample in samples for name in sample.objects})
    most = {name: max(sample.objects[name] for sample in first) for name in names}
    least = {name: min(sample.objects[name] for sample in second) for name in names}
    most["tasks"], least["tasks"] = max(one.tasks for one in first), min(one.tasks for one in second)
    return {name: (most[name], least[name]) for name in most if least[name] > most[name] + _SLACK}
