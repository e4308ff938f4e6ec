"""Several instances of one transform() share the partitions of a group, and count every record once (KIP-447)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from secrets import token_hex
from typing import Any

import anyio
import attrs
import pytest
from anyio.abc import TaskGroup
from contract.conftest import Where
from contract.test_exactly_once import PARTITIONS, Job, Record, Valve, doubles, number
from support.readers import QUICK
from support.transactional import settled

from aiokafkawire import Client, OffsetSpec, OutgoingRecord, TopicPartition
from aiokafkawire.protocol.api import ApiKey

pytestmark = pytest.mark.anyio

_PATIENCE = 60.0
_COUNT = 60
_SETTINGS: dict[str, dict[str, Any]] = {
    "range": {**QUICK, "partition_assignment_strategy": ["range"]},
    "cooperative": {**QUICK, "partition_assignment_strategy": ["cooperative-sticky"]},
    "consumer": {"group_protocol": "consumer", "fetch_max_wait_ms": 100},
}


@pytest.fixture
async def cluster(quick_cluster: Where) -> Where:
    return quick_cluster


@pytest.fixture(params=_SETTINGS)
def settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The settings of members, by their group protocol."""
    settings = dict(_SETTINGS[request.param])
    settings.pop("auto_offset_reset", None)
    return settings


@pytest.fixture
async def job(kafka: Client) -> Job:
    name = f"job-{token_hex(6)}"
    topics = f"{name}-in", f"{name}-out"
    await kafka.admin.create_topics(dict.fromkeys(topics, PARTITIONS))
    return Job(kafka, *topics, name)


@attrs.define(eq=False)
class Instance:
    """A call of transform(), and the records that its process has received."""

    instances: Instances
    received: list[Record] = attrs.field(factory=list)
    stop: anyio.Event = attrs.field(factory=anyio.Event)
    held: anyio.Event = attrs.field(factory=anyio.Event)
    """While it is not set, process does not return."""
    scope: anyio.CancelScope = attrs.field(factory=anyio.CancelScope)
    count: int | None = None
    """The result of the call."""

    @property
    def numbers(self) -> list[int]:
        return [number(record) for record in self.received]

    async def process(self, records: list[Record]) -> list[OutgoingRecord]:
        self.received += records
        self.instances.notify()
        await self.held.wait()
        return self.instances.job.doubled(records)

    async def run(self, **arguments: Any) -> None:
        with self.scope:
            arguments = {"until_end": False, "stop": self.stop} | arguments
            self.count = await self.instances.job.run(
                self.process, consumer_options=self.instances.settings, **arguments
            )
        self.instances.notify()


@attrs.define(eq=False)
class Instances:
    """The instances of a job."""

    job: Job
    settings: dict[str, Any]
    _tasks: TaskGroup
    _changed: anyio.Event = attrs.field(factory=anyio.Event)

    def start(self, *, held: bool = False, **arguments: Any) -> Instance:
        instance = Instance(self)
        if not held:
            instance.held.set()
        self._tasks.start_soon(lambda: instance.run(**arguments))
        return instance

    def notify(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def until(self, reached: Callable[[], bool]) -> None:
        with anyio.fail_after(_PATIENCE):
            while not reached():
                await self._changed.wait()

    async def members(self, count: int) -> None:
        """Wait until the group has so many members."""
        admin, group = self.job.kafka.admin, self.job.name

        async def there() -> bool:
            return len((await admin.describe_consumer_groups(group))[group].members) == count

        await settled(there, bool)


@asynccontextmanager
async def running(job: Job, settings: dict[str, Any]) -> AsyncIterator[Instances]:
    async with anyio.create_task_group() as tasks:
        yield Instances(job, settings, tasks)


async def test_instances_share_the_partitions(job: Job, settings: dict[str, Any]) -> None:
    async with running(job, settings) as instances:
        one = instances.start()
        await job.fill(0, 10)
        await instances.until(lambda: len(one.received) == 10)
        two, end = instances.start(), 10
        with anyio.fail_after(_PATIENCE):
            while not two.received:
                await job.fill(end, end + PARTITIONS)
                end += PARTITIONS
        before = len(one.received), len(two.received)
        await job.fill(end, end + _COUNT)
        await instances.until(lambda: len(set(one.numbers + two.numbers)) == end + _COUNT)
        of_one = {record.partition for record in one.received[before[0] :] if number(record) >= end}
        of_two = {record.partition for record in two.received[before[1] :] if number(record) >= end}
        assert len(of_one) == len(of_two) == 1
        assert of_one != of_two
        one.stop.set()
        two.stop.set()
    # An orderly rebalance repeats nothing.
    assert sorted(one.numbers + two.numbers) == list(range(end + _COUNT))
    assert await job.outcome() == doubles(end + _COUNT)


async def test_all_instances_end_once_the_group_has_reached_the_ends(job: Job, settings: dict[str, Any]) -> None:
    async with job.kafka.producer(transactional_id=f"{job.name}-source") as producer, producer.transaction() as tx:
        await tx.send_many(job.source, [b"%d" % one for one in range(0, _COUNT, PARTITIONS)], partition=0)
    first = TopicPartition(job.source, 0)
    async with job.kafka.consumer(isolation_level="read_committed") as reader:  # the marker comes a moment later
        await settled(
            lambda: reader.offsets({first: OffsetSpec.LATEST}),
            lambda found: (end := found[first]) is not None and end.offset > _COUNT // PARTITIONS,
        )
    async with running(job, settings) as instances:  # partition 0 ends with a marker, and partition 1 is empty
        started = [instances.start(until_end=True, max_records=5, stop=None) for _ in range(3)]
    assert sum(instance.count or 0 for instance in started) == _COUNT // PARTITIONS
    assert (await job.outcome())[0] == doubles(_COUNT)[0]
    assert await job.run() == 0


async def test_a_rebalance_waits_for_the_transaction_of_the_records_in_hand(job: Job, settings: dict[str, Any]) -> None:
    await job.fill(0, _COUNT)
    async with running(job, settings) as instances:
        one = instances.start(held=True, max_records=_COUNT)
        await instances.until(lambda: len(one.received) == _COUNT)
        two = instances.start()
        await instances.members(2)
        assert not two.received
        one.held.set()
        end = _COUNT
        with anyio.fail_after(_PATIENCE):
            while not two.received:
                await job.fill(end, end + PARTITIONS)
                end += PARTITIONS
        await instances.until(lambda: len(set(one.numbers + two.numbers)) == end)
        one.stop.set()
        two.stop.set()
    assert sorted(one.numbers + two.numbers) == list(range(end))
    assert await job.outcome() == doubles(end)


async def test_a_removed_instance_that_knows_nothing_of_it_commits_nothing_and_rejoins(
    cluster: Where, job: Job, settings: dict[str, Any]
) -> None:
    await job.fill(0, _COUNT)
    is_classic = settings.get("group_protocol") != "consumer"
    valve = Valve(cluster.connector, ApiKey.HEARTBEAT if is_classic else ApiKey.CONSUMER_GROUP_HEARTBEAT)
    async with Client(cluster.bootstrap, connector=valve.connect) as kafka, running(job, settings) as instances:
        async with running(attrs.evolve(job, kafka=kafka), settings) as cut_off:
            one = cut_off.start(held=True)
            await cut_off.until(lambda: len(one.received) > 0)
            valve.close()
            await job.kafka.admin.remove_members(job.name)
            two = instances.start()
            await instances.until(lambda: len(set(two.numbers)) == _COUNT)
            one.held.set()
            valve.open()
            end = _COUNT
            with anyio.fail_after(_PATIENCE):  # it takes part again
                while not any(value >= _COUNT for value in one.numbers):
                    await job.fill(end, end + PARTITIONS)
                    end += PARTITIONS
            one.stop.set()
        await instances.until(lambda: len(set(one.numbers + two.numbers)) == end)
        two.stop.set()
    assert await job.outcome() == doubles(end)


async def test_the_records_of_a_cancelled_instance_go_to_another(job: Job, settings: dict[str, Any]) -> None:
    await job.fill(0, _COUNT)
    async with running(job, settings) as instances:
        one = instances.start(held=True)
        await instances.until(lambda: len(one.received) > 0)
        two = instances.start()
        await instances.members(2)
        one.scope.cancel()
        await instances.until(lambda: len(set(two.numbers)) == _COUNT)
        two.stop.set()
    assert await job.outcome() == doubles(_COUNT)
