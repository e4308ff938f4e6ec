"""Records that ``Client.process`` handles, by members that come, go, crash and lose power, in a cluster in trouble."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any, Final

import anyio
import attrs
from anyio.abc import TaskGroup

from aiokafkawire import ConsumerRecord, Delivery, KafkaError, ProcessSummary, Retry, RetryTopic, TopicPartition
from aiokafkawire.config import ConsumerOptions
from aiokafkawire.observe import Observer, PartitionsLost, RebalanceEnded
from aiokafkawire.processing.failures import failure_of
from aiokafkawire.processing.lanes import Ordering
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.records.batch import AnyReader
from aiokafkawire.testing.broker import ApiError
from aiokafkawire.testing.simulation import Run, Simulation, simulate
from aiokafkawire.testing.virtual.study import current_study

from .checks import no_task_fails_unheard
from .leftovers import check_nothing_is_left, tasks
from .protocols import COORDINATORS, Protocol
from .scenario import LATE
from .seats import Seats, until_settled
from .taking_part import logs_of
from .transactions import committed_offsets
from .trouble import next_fault, refusing

__all__ = ("Outcome", "run", "told")

GROUP: Final = "the members"
DEAD: Final = "dead"
_PATIENCE = 120.0
"""Virtual seconds for the members to handle all that is left, beside those that they wait for the dead."""
_FOREVER = 10_000.0
_ATTEMPTS = 3
_REFUSED: Final = (
    *(ApiKey.FIND_COORDINATOR, ApiKey.OFFSET_FETCH, ApiKey.OFFSET_COMMIT, ApiKey.FETCH, ApiKey.PRODUCE),
    *(ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT),
)
_TWO_TOPICS: Final = (RetryTopic("soon", 100), RetryTopic("late", 3_000))

Record = ConsumerRecord[bytes, bytes]


class Refused(Exception):
    """A handler does not like a record, perhaps for now."""


@attrs.frozen
class Plan:
    """What the members of one run have in common, all from the seed."""

    gentle: bool
    """Nothing goes wrong, and every member leaves in order: so no record is handled twice."""
    protocol: Protocol
    strategy: str
    ordering: Ordering
    concurrency: int
    max_in_hand: int
    max_batch: int | None
    commit_interval_ms: int
    longest: float
    """Seconds that a handler takes at most, unless it hangs."""
    handler_timeout: float | None
    retry_topics: tuple[RetryTopic, ...]
    static: bool
    """Whether each member has the ``group_instance_id`` of the members before it on its seat."""

    @classmethod
    def of(cls, chance: Random) -> "Plan":
        """Choose one."""
        orderings: Sequence[Ordering] = ("key", "key", "key", "partition", "none")
        protocols: Sequence[Protocol] = ("classic", "classic", "consumer")
        return cls(
            gentle=chance.random() < 0.3,
            protocol=chance.choice(protocols),
            strategy=chance.choice(("range", "cooperative-sticky")),
            ordering=chance.choice(orderings),
            concurrency=chance.choice((1, 3, 16)),
            max_in_hand=chance.choice((3, 20, 200)),
            max_batch=chance.choice((None, None, 4)),
            commit_interval_ms=chance.choice((20, 100, 1_000)),
            longest=chance.choice((0.0, 0.05, 0.5)),
            handler_timeout=chance.choice((None, 2.0)),
            retry_topics=chance.choice(((), (RetryTopic("again", 500),), _TWO_TOPICS)),
            static=chance.random() < 0.3,
        )

    @property
    def pace(self) -> float:
        """The seconds between two records with which one member keeps up."""
        at_once = 1 if self.ordering == "partition" else min(self.concurrency, self.max_in_hand, 3)
        hanging = 0.0 if self.handler_timeout is None else 0.02 * self.handler_timeout
        return 4 * (self.longest + hanging + 0.01) / at_once + 0.6 / self.max_in_hand

    def options(self, seat: str) -> ConsumerOptions:
        """The options of the consumer of a member on this seat."""
        options = ConsumerOptions(group_id=GROUP, group_protocol=self.protocol, fetch_max_wait_ms=500)
        options["max_poll_interval_ms"] = 20_000
        if self.protocol == "classic":
            options["session_timeout_ms"] = 6_000
            options["partition_assignment_strategy"] = (self.strategy,)  # type: ignore[typeddict-item]
        if self.static:
            options["group_instance_id"] = seat
        return options


@attrs.frozen
class Outcome:
    """What one run came to."""

    plan: Plan
    records: int
    members: int
    repeated: int
    dead: int
    skipped: int
    """The records that new owners have skipped, thanks to the metadata of commits."""
    lost: int
    """How often members have lost partitions, or let go of them."""
    faults: int
    settled: float


def run(seed: int, *, keep: int = 2_000) -> Run[Outcome]:
    """One run. AssertionError, or what the client or the broker raised, if something is not as it must be."""
    with no_task_fails_unheard():
        return simulate(lambda sim: _Play(sim).main(), seed=seed, keep=keep, min_insync_replicas=2, **COORDINATORS)


@attrs.define
class _History:
    """What handlers have done, of all members."""

    plan: Plan
    events: list[tuple[str, TopicPartition, bytes | None, int]] = attrs.field(factory=list)
    handled: Counter[tuple[TopicPartition, int]] = attrs.field(factory=Counter)
    lost: int = 0
    skipped: int = 0
    wrong: list[str] = attrs.field(factory=list)
    """What was wrong when handlers were called."""

    def note(self, what: str, records: Sequence[Record]) -> None:
        for record in records:
            where = TopicPartition(record.topic, record.partition)
            self.events.append((what, where, record.raw_key, record.offset))
            if what == "finished":
                self.handled[_origin(record)] += 1

    def check_order(self, dead: set[tuple[TopicPartition, int]]) -> None:
        """No record begins before those of its lane that are before it are finished, by whomever."""
        lanes: dict[Any, list[int]] = defaultdict(list)
        offsets = {(where, key, offset) for _, where, key, offset in self.events}
        for where, key, offset in sorted(offsets, key=lambda one: one[2]):
            if (lane := self._lane(where, key)) is not None:
                lanes[lane].append(offset)
        finished: set[tuple[TopicPartition, int]] = set()
        for what, where, key, offset in self.events:
            lane = self._lane(where, key)
            if where.topic in {topic.name for topic in self.plan.retry_topics}:
                continue  # its records that went to the next topic are not known
            if what == "finished":
                finished.add((where, offset))
            elif lane is not None:
                batch = self.plan.max_batch or 1
                before = [other for other in lanes[lane] if other < offset]
                # Of one batch, the records begin together.
                for other in before[: max(0, len(before) - batch + 1)]:
                    told = f"{offset} of {where} began before {other}, of the same lane, was finished"
                    assert (where, other) in finished or (where, other) in dead, told

    def _lane(self, where: TopicPartition, key: bytes | None) -> Any:
        if self.plan.ordering == "partition":
            return where
        return (where, key) if self.plan.ordering == "key" and key is not None else None


class _Losses(Observer):
    def __init__(self, history: _History, lost: Callable[[Sequence[TopicPartition]], None]) -> None:
        self._history, self._lost = history, lost

    def partitions_lost(self, event: PartitionsLost) -> None:
        self._history.lost += 1
        self._lost(event.partitions)

    def rebalance_ended(self, event: RebalanceEnded) -> None:
        self._history.lost += bool(event.revoked)


@attrs.define
class _Member:
    """One member, from its beginning to its end."""

    sim: Simulation
    plan: Plan
    name: str
    topics: Sequence[str]
    history: _History
    calm: anyio.Event
    chance: Random = attrs.field(init=False)
    running: set[Any] = attrs.field(factory=set)
    _others_do: Random = attrs.field(init=False)
    _removal: float = attrs.field(init=False)
    """When it loses its partitions, once it handles a record."""
    _living: TaskGroup | None = None
    _lost_at: dict[TopicPartition, float] = attrs.field(factory=dict)
    """When it has lost each partition last."""

    def __attrs_post_init__(self) -> None:
        self.chance = self.sim.chance(self.name)
        self._others_do = self.sim.chance(f"what others do with {self.name}")
        is_removed = not self.plan.gentle and self._others_do.random() < 0.3
        self._removal = self.sim.now() + self._others_do.uniform(0, 20) if is_removed else math.inf

    async def live(self, scope: anyio.CancelScope) -> None:
        """Process records until the scope is cancelled, and leave in order then."""
        stop = anyio.Event()
        client = self.sim.client(
            self.name,
            client_id=self.name,
            request_timeout_ms=5_000,
            bootstrap_timeout_ms=60_000,
            observers=[_Losses(self.history, self._lose)],
        )
        try:
            async with client, anyio.create_task_group() as self._living:
                self._living.start_soon(self._process, client, stop, scope)
                with scope:
                    await anyio.sleep_forever()
                stop.set()
        except KafkaError as error:
            self.sim.note(f"{self.name} is over: {type(error).__name__}: {error}")

    async def _process(self, client: Any, stop: anyio.Event, scope: anyio.CancelScope) -> None:
        plan = self.plan
        try:
            summary: ProcessSummary = await client.process(
                self.topics,
                self.handle,
                concurrency=plan.concurrency,
                ordering=plan.ordering,
                max_batch=plan.max_batch,
                max_in_hand=plan.max_in_hand,
                commit_interval_ms=plan.commit_interval_ms,
                handler_timeout=plan.handler_timeout,
                retry=Retry(attempts=_ATTEMPTS, backoff_ms=100),
                retry_topics=plan.retry_topics,
                dead_letter_topic=DEAD,
                drain_timeout=15,
                stop=stop,
                **plan.options(self.name.partition(".")[0]),
            )
            self.history.skipped += summary.skipped
            self.sim.note(f"{self.name}: {summary}")
        except KafkaError as error:
            self.sim.note(f"{self.name} is over: {type(error).__name__}: {error}")
            if plan.gentle:
                raise AssertionError(f"{self.name} has ended, and nothing was wrong") from error
        scope.cancel()

    async def handle(self, given: Any) -> None:
        """Handle a record, or several."""
        records: list[Record] = given if self.plan.max_batch else [given]
        where, began = TopicPartition(records[0].topic, records[0].partition), self.sim.now()
        lane = self.history._lane(where, records[0].raw_key)
        # An error of a handler would be no more than a reason to call it again.
        if lane is not None and lane in self.running:
            self.history.wrong.append(f"records of {lane} are handled at once")
        if len(records) > (self.plan.max_batch or 1):
            self.history.wrong.append(f"{len(records)} records are handled together")
        self.running.add(lane)
        try:
            self.history.note("began", records)
            if self.sim.now() >= self._removal and not self.calm.is_set() and current_study().admits("removal"):
                await self._be_removed()
            await anyio.sleep(self.chance.uniform(0, self.plan.longest))
            if self.plan.handler_timeout is not None and self.chance.random() < 0.01:
                await anyio.sleep(_FOREVER)
            if self.chance.random() < 0.03 or any(record.value == b"poison" for record in records):
                raise Refused
            self.history.note("finished", records)
            if began < self._lost_at.get(where, 0.0) < self.sim.now():
                self.history.wrong.append(f"the handler of {where}:{records[0].offset} goes on after {where} is lost")
        finally:
            self.running.discard(lane)

    def _lose(self, partitions: Sequence[TopicPartition]) -> None:
        self._lost_at.update(dict.fromkeys(partitions, self.sim.now()))

    async def _be_removed(self) -> None:
        """Keep a record in hand while an operator removes all members, and until this one is a member again."""
        self._removal = math.inf
        assert self._living is not None
        self._living.start_soon(_remove_members, self.sim)
        await anyio.sleep(self._others_do.uniform(0.5, 5))


async def _remove_members(sim: Simulation) -> None:
    with anyio.move_on_after(5):
        try:
            async with sim.client("operator") as operator:
                await operator.admin.remove_members(GROUP)
                sim.note("all members are removed")
        except KafkaError as error:
            sim.note(f"nobody is removed: {error}")


@attrs.define
class _Play:
    """One run, and what came of it."""

    sim: Simulation
    plan: Plan = attrs.field(init=False)
    history: _History = attrs.field(init=False)
    calm: anyio.Event = attrs.field(factory=anyio.Event)
    partitions: list[TopicPartition] = attrs.field(factory=list)

    async def main(self) -> Outcome:
        """The run, and its checks."""
        sim, chance = self.sim, self.sim.random
        self.plan = Plan.of(chance)
        self.history = _History(self.plan)
        topics = ["orders", "refunds"][: chance.randint(1, 2)]
        self.partitions = [TopicPartition(topic, index) for topic in topics for index in range(chance.randint(1, 4))]
        for topic in topics:
            sim.broker.create_topic(topic, partitions=sum(where.topic == topic for where in self.partitions))
        sim.broker.create_topic(DEAD, partitions=2)
        for retry in self.plan.retry_topics:
            sim.broker.create_topic(retry.name, partitions=2)
        before = tasks()
        seats = Seats(sim, self.calm, lambda _, name: self._member(name, topics))
        if self.plan.gentle:
            seats.ends = ("leaves",)
        async with anyio.create_task_group() as members:
            for seat in range(chance.randint(1, 3)):
                members.start_soon(seats.sit, seat)
            if not self.plan.gentle:
                sim.chaos(every=(0.5, chance.choice((4.0, 10.0))), lasting=(0.05, chance.choice((1.0, 5.0, 20.0))))
            with anyio.move_on_after(chance.uniform(10, 60)):
                async with anyio.create_task_group() as trouble:
                    trouble.start_soon(self._write, topics)
                    if not self.plan.gentle:
                        async with refusing(sim, *_REFUSED):
                            await self._trouble()
            sim.broker.clear_orders()
            await sim.calm()
            self.calm.set()
            sim.network.heal()
            await anyio.sleep(LATE)
            settled = await until_settled(sim, self._state, limit=_PATIENCE, wrong=self.history.wrong)
            seats.end()
        await anyio.sleep(LATE)
        check_nothing_is_left(sim, before)
        assert not self.history.wrong, self.history.wrong
        dead = self._dead()
        self.history.check_order(dead | self._moved())
        await self._check_committed()
        repeated = sum(count - 1 for count in self.history.handled.values())
        ends = 0 if self.plan.gentle else seats.lives + self.history.lost
        assert repeated <= self.plan.max_in_hand * ends, f"{repeated} records were handled again, after {ends} ends"
        records, faults = sum(map(len, logs_of(sim, self.partitions).values())), sim.trace.faults.total()
        return Outcome(
            self.plan,
            records,
            seats.lives,
            repeated,
            len(dead),
            self.history.skipped,
            self.history.lost,
            faults,
            settled,
        )

    def _member(self, name: str, topics: Sequence[str]) -> _Member:
        return _Member(self.sim, self.plan, name, topics, self.history, self.calm)

    async def _write(self, topics: Sequence[str]) -> None:
        """Write records of a few keys, until it is cancelled."""
        chance = self.sim.chance("writer")
        slowest = max(chance.choice((0.02, 0.1, 0.3)), self.plan.pace)
        client = self.sim.client("writer", bootstrap_timeout_ms=60_000)
        async with client, client.producer() as producer, anyio.create_task_group() as waiting:
            while True:
                key = chance.choice((None, b"%d" % chance.randrange(6)))
                value = b"poison" if chance.random() < 0.01 else b"sound"
                try:
                    waiting.start_soon(_ignore_failure, await producer.enqueue(chance.choice(topics), value, key=key))
                except KafkaError as error:
                    self.sim.note(f"the writer could not hand over a record: {error}")
                await anyio.sleep(chance.uniform(0, slowest))

    async def _trouble(self) -> None:
        """Move coordinators, lose answers of commits, and remove all members."""
        broker, every = self.sim.broker, self.sim.chance("trouble")
        longest = every.choice((5.0, 20.0))
        while True:
            chance = await next_fault("trouble", every, (0.5, longest))
            match chance.choice(("move", "lose", "lose", "remove")):
                case "move":
                    node, loading = chance.choice(broker.node_ids), chance.choice((0.0, 2.0))
                    with suppress(ApiError):  # it is down, or not in sync
                        broker.move_coordinator(GROUP, node, loading=loading)
                case "lose":
                    lost = chance.choice((ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.HEARTBEAT))
                    broker.on(lost, drop=chance.choice(("before", "after")), times=chance.choice((1, 3)))
                case _:
                    await _remove_members(self.sim)

    def _dead(self) -> set[tuple[TopicPartition, int]]:
        """Return the origins of the dead letters."""
        return self._origins_in(DEAD, len(self.plan.retry_topics) + 1)

    def _moved(self) -> set[tuple[TopicPartition, int]]:
        """Return where the records in retry topics were first read."""
        topics = enumerate(self.plan.retry_topics, 1)
        return {origin for step, topic in topics for origin in self._origins_in(topic.name, step)}

    def _origins_in(self, topic: str, step: int) -> set[tuple[TopicPartition, int]]:
        found = set()
        for index in range(2):
            for batch in self.sim.broker.log(topic, index).batches():
                reader: AnyReader[bytes, bytes] = batch.records(topic, index)
                for record in reader:
                    failure = failure_of(record.headers)
                    assert failure is not None
                    assert failure.attempts == _ATTEMPTS * step
                    found.add(_origin(record))
        return found

    async def _state(self) -> str:
        due = {(where, offset) for where, log in logs_of(self.sim, self.partitions).items() for offset, _ in log}
        missing = due - self.history.handled.keys() - self._dead()
        return f"{len(missing)} records are not handled, such as {min(missing)}" if missing else "settled"

    async def _check_committed(self) -> None:
        partitions = list(self.partitions)
        if self.plan.gentle:  # otherwise a record that was moved twice may still wait
            partitions += [TopicPartition(topic.name, index) for topic in self.plan.retry_topics for index in range(2)]
        found = await committed_offsets(self.sim, GROUP, partitions)
        for where in partitions:
            end = self.sim.broker.log(*where).log_end_offset
            assert max(0, found[where]) == end, f"{found[where]} of {where} is committed, which ends at {end}"


def _origin(record: Record) -> tuple[TopicPartition, int]:
    """Return where a record was first read."""
    failure = failure_of(record.headers)
    if failure is None:
        return TopicPartition(record.topic, record.partition), record.offset
    return TopicPartition(failure.topic, failure.partition), failure.offset


async def _ignore_failure(delivery: Delivery) -> None:
    with suppress(KafkaError):
        await delivery


def told(done: Run[Outcome]) -> str:
    """One line on a run."""
    value, plan = done.value, done.value.plan
    return (
        f"seed {done.seed}: {value.records} records, {value.members} {'gentle ' if plan.gentle else ''}members, "
        f"{plan.protocol}, in order of {plan.ordering}, {plan.concurrency} at once, "
        f"{len(plan.retry_topics)} retry topics, {value.repeated} repeated, "
        f"{value.skipped} skipped, {value.dead} dead, {value.lost} lost, {value.faults} faults, "
        f"settled in {value.settled:.0f} s, {done.seconds:.0f} s of virtual time, trace {done.trace.digest}"
    )
