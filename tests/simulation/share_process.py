"""Records that ``Client.process(share=True)`` handles: every one is accepted in the end, handled or a dead letter."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

import anyio
import attrs

from aiokafkawire import Acknowledge, Client, KafkaError, ProcessSummary, Retry, ShareRecord, TopicPartition
from aiokafkawire.config import ShareConsumerOptions
from aiokafkawire.processing.failures import failure_of
from aiokafkawire.records.batch import AnyReader
from aiokafkawire.testing.simulation import Run, Simulation, simulate

from . import share
from .checks import no_task_fails_unheard
from .share_checks import Delivery, ShareWatch
from .share_members import GROUP, ShareGroup
from .taking_part import client_of, logs_of

__all__ = ("Outcome", "run", "told")

DEAD: Final = "dead"
_ATTEMPTS: Final = 3
_FOREVER: Final = 10_000.0
_ACCEPTED: Final = f"acknowledged ({Acknowledge.ACCEPT:d})"

Record = ShareRecord[Any, Any]
_Place = tuple[TopicPartition, int]


class Refused(Exception):
    """A handler does not like a record, perhaps for now."""


@attrs.frozen
class Plan:
    """What the members of one run have in common, all from the seed."""

    gentle: bool
    """Nothing goes wrong, locks are longer than any fetch waits, as those of Apache Kafka, and every member leaves in
    order: so no record is handled twice. A member that leaves releases what it has not begun, which counts as a
    delivery: so some records may be given up."""
    concurrency: int
    max_in_hand: int | None
    max_batch: int | None
    longest: float
    """Seconds that a handler takes at most, unless it hangs: some are longer than locks."""
    handler_timeout: float | None
    dead_letters: bool = True
    """Whether what no handler can handle goes to another topic; else it ends the member's call, which is made again."""

    @classmethod
    def of(cls, chance: Random, lock_ms: int) -> "Plan":
        """Choose one."""
        plan = cls(
            gentle=chance.random() < 0.6 and lock_ms >= 15_000,
            concurrency=chance.choice((1, 3, 16)),
            max_in_hand=chance.choice((None, 3, 200)),
            max_batch=chance.choice((None, None, 4)),
            longest=chance.choice((0.0, 0.05, 0.5, 5.0, 20.0)),
            handler_timeout=chance.choice((None, 10.0)),
        )
        return attrs.evolve(plan, dead_letters=plan.gentle or chance.random() < 0.7)


@attrs.frozen
class Outcome:
    """What one run came to."""

    plan: Plan
    group: ShareGroup
    records: int
    members: int
    handled: int
    dead: int
    given_up: int
    """The records that the brokers have given up after as many deliveries as the limit allows."""
    again: int
    """How often a record was handled that was handled before."""
    faults: int
    settled: float


def run(seed: int, *, keep: int = 2_000) -> Run[Outcome]:
    """One run. AssertionError, or what the client or the broker raised, if something is not as it must be."""
    with no_task_fails_unheard():
        return simulate(lambda sim: _Play(sim).process(), seed=seed, keep=keep, min_insync_replicas=2)


def is_broken(value: bytes) -> bool:
    """Whether a value cannot be deserialized."""
    return int(value) % 97 == 13


def is_poison(value: bytes) -> bool:
    """Whether no handler can handle a value."""
    return int(value) % 89 == 7


def deserialize(value: bytes) -> bytes:
    """Return the value.

    Raises:
        ValueError: it is broken.
    """
    if is_broken(value):
        raise ValueError(value)
    return value


@attrs.define
class _Member:
    """One member, from its beginning to its end."""

    sim: Simulation
    watch: ShareWatch
    group: ShareGroup
    plan: Plan
    name: str
    calm: anyio.Event
    handled: Counter[_Place]
    """How often each record was handled, by all members."""
    commits: int = 0
    chance: Random = attrs.field(init=False)
    _attempts: defaultdict[Record, int] = attrs.field(factory=lambda: defaultdict(int))
    _deliveries: dict[Record, Delivery | None] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.chance = self.sim.chance(self.name)

    async def live(self, scope: anyio.CancelScope) -> None:
        """Process records until the scope is cancelled, and leave in order then."""
        stop = anyio.Event()
        async with client_of(self.sim, self.name, client_id=self.name) as client, anyio.create_task_group() as living:
            living.start_soon(self._process, client, stop)
            with scope:
                await anyio.sleep_forever()
            stop.set()

    async def _process(self, client: Client, stop: anyio.Event) -> None:
        plan, chance = self.plan, self.chance
        options = ShareConsumerOptions(
            group_id=GROUP,
            share_acquire_mode=chance.choice(("batch_optimized", "record_limit")),
            max_poll_interval_ms=self.group.max_poll_interval_ms,
            fetch_max_wait_ms=chance.choice((500, 900)),
        )
        while not stop.is_set():
            try:
                summary: ProcessSummary = await client.process(
                    self.group.topics,
                    self.handle,
                    share=True,
                    concurrency=plan.concurrency,
                    max_batch=plan.max_batch,
                    max_in_hand=plan.max_in_hand,
                    handler_timeout=plan.handler_timeout,
                    retry=Retry(attempts=_ATTEMPTS, backoff_ms=100),
                    dead_letter_topic=DEAD if plan.dead_letters else None,
                    value_deserializer=deserialize,
                    drain_timeout=15,
                    stop=stop,
                    **options,  # type: ignore[misc]
                )
                self.sim.note(f"{self.name}: {summary}")
            except KafkaError as error:
                self.sim.note(f"{self.name} begins again: {type(error).__name__}: {error}")
                if plan.gentle:
                    raise AssertionError(f"{self.name} has ended, and nothing was wrong") from error
            except Refused:
                if plan.dead_letters:
                    raise
                self.sim.note(f"{self.name} begins again after a record that it cannot handle")

    async def handle(self, given: Any) -> None:
        """Handle a record, or several."""
        records: list[Record] = given if self.plan.max_batch else [given]
        assert len(records) <= (self.plan.max_batch or 1)
        for record in records:
            self._attempts[record] += 1
            if record not in self._deliveries:
                self._deliveries[record] = self._take(record)
        try:
            await self._work(records)
        except BaseException:
            if self.plan.dead_letters and self._attempts[records[0]] == _ATTEMPTS:
                self._may_accept(records)  # once their dead letters are written
            raise
        self._may_accept(records)
        for record in records:
            self.handled[TopicPartition(record.topic, record.partition), record.offset] += 1

    async def _work(self, records: Sequence[Record]) -> None:
        longest = 0.01 if self.calm.is_set() else self.plan.longest
        with anyio.move_on_after(self.chance.uniform(0, longest)):
            await (anyio.sleep_forever() if self.plan.gentle else self.calm.wait())
        if self.plan.handler_timeout is not None and not self.calm.is_set() and self.chance.random() < 0.005:
            await anyio.sleep(_FOREVER)
        if self.chance.random() < 0.03 or any(is_poison(record.value or b"") for record in records):
            raise Refused

    def _take(self, record: Record) -> Delivery | None:
        partition, node = TopicPartition(record.topic, record.partition), record.acquisition.node_id
        begin: Any = record.owner.begin
        member = begin.__self__._member.machine.member_id
        # A member that was cut off handles records whose locks ended while they waited.
        late = not self.plan.gentle
        count, value = record.delivery_count, record.raw_value
        return self.watch.hand_out(member, partition, record.offset, count, node, value, may_be_late=late)

    def _may_accept(self, records: Sequence[Record]) -> None:
        for record in records:
            delivery = self._deliveries[record]
            if delivery is not None:
                delivery.wanted.append(Acknowledge.ACCEPT)


@attrs.define
class _Watch(ShareWatch):
    """Knows that no user gets a record that cannot be deserialized, which is a dead letter at once."""

    value_of: Callable[[_Place], bytes] = attrs.field(kw_only=True)
    dead_letters: bool = attrs.field(kw_only=True)

    def _wanted(self, known: Any) -> list[Acknowledge]:
        last: Delivery = known.deliveries[-1]
        if is_broken(self.value_of((last.partition, last.offset))):
            return [Acknowledge.ACCEPT] if self.dead_letters else []
        return super()._wanted(known)


@attrs.define
class _Play(share.Play):
    """One run of members that process a share group."""

    plan: Plan = attrs.field(init=False)
    handled: Counter[_Place] = attrs.field(factory=Counter)
    values: dict[_Place, bytes | None] = attrs.field(factory=dict)
    """The values of records that were delivered, and hence stay in the log."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        lock, limit = self.group.lock_ms / 1000, self.group.delivery_limit
        self.plan = Plan.of(self.sim.chance("plan"), self.group.lock_ms)
        self.watch = _Watch(
            *(lock, limit, self.sim.now, lambda _: self.alarm.set()),
            value_of=self._value_of,
            dead_letters=self.plan.dead_letters,
        )
        self.gentle = self.plan.gentle
        if not self.plan.dead_letters:
            self.patience = 240.0  # each delivery of a record that no handler can handle lets a member begin again
        if self.gentle:
            self.seats.ends = ("leaves",)

    async def process(self) -> Outcome:
        """The run, and its checks."""
        self.sim.broker.create_topic(DEAD, partitions=2)
        done = await self.main()
        dead = self._dead()
        given_up = self._check_ends(dead)
        again = sum(count - 1 for count in self.handled.values())
        if self.gentle:
            assert not again, f"{again} records were handled again, and nothing was wrong"
        return Outcome(
            self.plan,
            self.group,
            done.records,
            done.members,
            len(self.handled),
            len(dead),
            len(given_up),
            again,
            done.faults,
            done.settled,
        )

    def _make_member(self, seat: int, name: str) -> _Member:
        return _Member(self.sim, self.watch, self.group, self.plan, name, self.calm, self.handled)

    def _name_of(self, member_id: str) -> str:
        return member_id

    def _value_of(self, place: _Place) -> bytes:
        if place not in self.values:
            partition, _ = place
            self.values |= {(partition, offset): value for offset, value in logs_of(self.sim, [partition])[partition]}
        value = self.values[place]
        assert value is not None
        return value

    def _dead(self) -> set[_Place]:
        found = set()
        for index in range(2):
            for batch in self.sim.broker.log(DEAD, index).batches():
                reader: AnyReader[bytes, bytes] = batch.records(DEAD, index)
                for record in reader:
                    failure = failure_of(record.headers)
                    assert failure is not None
                    assert failure.attempts == (1 if is_broken(record.raw_value or b"") else _ATTEMPTS)
                    found.add((TopicPartition(failure.topic, failure.partition), failure.offset))
        return found

    def _check_ends(self, dead: set[_Place]) -> list[_Place]:
        """Every record that was accepted was handled, or is a dead letter; return those that the brokers gave up."""
        due, given_up = self._due(), []
        assert due is not None
        for partition, log in due.items():
            for offset, value in log:
                place = partition, offset
                assert value is not None
                if is_broken(value) or is_poison(value):
                    assert not self.handled[place], f"{value!r} was handled"
                if self.handled[place] or place in dead:
                    continue
                outcome = self.watch._offsets[place].outcome
                assert outcome != _ACCEPTED, f"{partition}:{offset} was accepted, and nobody has handled it"
                given_up.append(place)
        return given_up


def told(done: Run[Outcome]) -> str:
    """One line on a run."""
    value, plan = done.value, done.value.plan
    return (
        f"seed {done.seed}: {value.records} records, {value.members} {'gentle ' if plan.gentle else ''}members, "
        f"{plan.concurrency} at once, {value.handled} handled, {value.again} of them again, {value.dead} dead, "
        f"{value.given_up} given up, {value.faults} faults, settled in {value.settled:.0f} s, "
        f"{done.seconds:.0f} s of virtual time, trace {done.trace.digest}"
    )
