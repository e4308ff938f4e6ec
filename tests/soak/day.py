"""A client that lives through days: busy hours, nights without a record, an outage each hour, and visitors."""

from collections import Counter
from contextlib import suppress
from itertools import count
from typing import Any, Final

import anyio
import attrs

from aiokafkawire import Client, ConfigResource, ConfigResourceType, ConsumerRecord, KafkaError, ShareRecord
from aiokafkawire.testing.simulation import Simulation

from .churn import Sample, sample

__all__ = ("Day", "live")

ORDERS: Final = "orders"
AUDIT: Final = "audit"
HOUR: Final = 3_600.0
_NIGHT: Final = range(1, 5)
"""The hours without a record, long enough for idle connections to be closed."""
_OUTAGE: Final = 60.0
_SETTLES: Final = 120.0
_LATE: Final = 120.0
"""Seconds after the last record until all that was sent must have been read."""

Record = ConsumerRecord[bytes, bytes]


@attrs.define
class Day:
    """What a client did, and what there was in memory at the end of each hour."""

    sent: set[bytes] = attrs.field(factory=set)
    committed: set[bytes] = attrs.field(factory=set)
    aborted: int = 0
    seen: dict[str, Counter[bytes]] = attrs.field(factory=dict)
    """The values that each reader has finished, by its name."""
    samples: list[Sample] = attrs.field(factory=list)
    visits: int = 0

    def missing(self) -> dict[str, int]:
        """Return how many acknowledged records a reader has not seen, by its name; only those with such records."""
        due = {name: self.committed if name == "audit" else self.sent for name in self.seen}
        found = {name: len(values - self.seen[name].keys()) for name, values in due.items()}
        return {name: lost for name, lost in found.items() if lost}

    def repeated(self) -> dict[str, int]:
        """Return how many records a reader has finished more than once, by its name; only those with such records."""
        found = {name: sum(times > 1 for times in values.values()) for name, values in self.seen.items()}
        return {name: count for name, count in found.items() if count}


async def live(sim: Simulation, hours: int) -> Day:
    """Let one client do all it can for so many virtual hours, and its readers finish."""
    day = Day()
    sim.broker.create_topic(ORDERS, partitions=6)
    sim.broker.create_topic(AUDIT, partitions=3)
    async with sim.client() as client, anyio.create_task_group() as tasks:
        share = ConfigResource(ConfigResourceType.GROUP, "share")
        await client.admin.incremental_alter_configs({share: {"share.auto.offset.reset": "earliest"}})
        stop = anyio.Event()
        for work in (_read, _read_audit, _share, _process):
            tasks.start_soon(work, client, day)
        async with anyio.create_task_group() as writers:
            for write in (_send, _transact):
                writers.start_soon(write, sim, client, day, stop)
            for hour in range(hours):
                await _pass_an_hour(sim, client, day, hour)
            stop.set()
        await anyio.sleep(_LATE)
        tasks.cancel_scope.cancel()
    return day


async def _pass_an_hour(sim: Simulation, client: Client, day: Day, hour: int) -> None:
    """Spend an hour with two visitors and an outage; take a sample when all is quiet again."""
    ends = (hour + 1) * HOUR
    await anyio.sleep(HOUR / 4)
    await _visit(client, day)
    sim.chaos()
    await anyio.sleep(_OUTAGE)
    await sim.calm()
    await anyio.sleep(_SETTLES)
    await _visit(client, day)
    await anyio.sleep(max(ends - sim.now(), _SETTLES))
    sim.broker.requests.clear()
    day.samples.append(sample(sum(map(len, day.seen.values())), day.visits))


async def _visit(client: Client, day: Day) -> None:
    """Read for a minute in the group of orders, and leave."""
    with suppress(KafkaError), anyio.move_on_after(60):
        async with client.consumer(ORDERS, group_id="read", auto_offset_reset="earliest") as consumer:
            async for record in consumer:
                _seen(day, "read", record)
    day.visits += 1


def _seen(day: Day, name: str, record: Record | ShareRecord[bytes, bytes]) -> None:
    day.seen.setdefault(name, Counter())[record.value or b""] += 1


def _pause(sim: Simulation, longest: float) -> float:
    """Return the seconds until the next record or transaction; at night that is when the night ends."""
    hour, into = divmod(sim.now(), HOUR)
    if int(hour) % 24 in _NIGHT:
        return (_NIGHT.stop - int(hour) % 24) * HOUR - into
    return longest * (0.1 + 0.9 * sim.random.random())


async def _send(sim: Simulation, client: Client, day: Day, stop: anyio.Event) -> None:
    async with client.producer() as producer:
        for number in count():
            value = b"order-%d" % number
            with suppress(KafkaError):
                await producer.send(ORDERS, value, key=b"%d" % (number % 40))
                day.sent.add(value)
            if await _stopped(stop, _pause(sim, 10.0)):
                return


async def _transact(sim: Simulation, client: Client, day: Day, stop: anyio.Event) -> None:
    async with client.producer(transactional_id="audit") as producer:
        for number in count():
            values = {b"audit-%d-%d" % (number, index) for index in range(5)}
            with suppress(KafkaError, _Aborted):
                async with producer.transaction():
                    for value in sorted(values):
                        await producer.enqueue(AUDIT, value)
                    if number % 10 == 0:
                        raise _Aborted
                day.committed |= values
            day.aborted += number % 10 == 0
            if await _stopped(stop, _pause(sim, 60.0)):
                return


class _Aborted(Exception):
    """Ends a transaction on purpose."""


async def _stopped(stop: anyio.Event, seconds: float) -> bool:
    with anyio.move_on_after(seconds):
        await stop.wait()
    return stop.is_set()


async def _read(client: Client, day: Day) -> None:
    async with client.consumer(ORDERS, group_id="read", auto_offset_reset="earliest") as consumer:
        async for record in consumer:
            _seen(day, "read", record)


async def _read_audit(client: Client, day: Day) -> None:
    options: Any = {"group_protocol": "consumer", "isolation_level": "read_committed"}
    async with client.consumer(AUDIT, group_id="audit", auto_offset_reset="earliest", **options) as consumer:
        async for record in consumer:
            _seen(day, "audit", record)


async def _share(client: Client, day: Day) -> None:
    async with client.share_consumer(ORDERS, group_id="share") as consumer:
        async for record in consumer:
            async with record:
                _seen(day, "share", record)


async def _process(client: Client, day: Day) -> None:
    async def handle(record: Record) -> None:
        await anyio.sleep(0.01)
        _seen(day, "process", record)

    await client.process(ORDERS, handle, group_id="process", auto_offset_reset="earliest")
