"""What users of a group do and meet: listeners, assignors, records in hand, commits; in virtual time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

import anyio
import pytest
from support.group_lives import COUNT, GROUP, TOPIC, Life, in_a_group, membership_of, partitions
from support.readers import Reader

from aiokafkawire import Consumer, ConsumerRecord, TopicPartition
from aiokafkawire.errors import CommitFailed, ErrorCode, KafkaError
from aiokafkawire.group.assignors import RebalanceProtocol
from aiokafkawire.group.consumer_protocol import Assignment, Partitions, Subscription
from aiokafkawire.group.membership import GroupState
from aiokafkawire.group.membership_driver import MembershipDriver
from aiokafkawire.protocol.api import ApiKey

EAGER, COOPERATIVE = ["range"], ["cooperative-sticky"]


# --- assignors -----------------------------------------------------------------------------------------------------


def test_the_assignor_is_changed_while_the_group_lives_in_two_rounds() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        members = list(await life.both(partition_assignment_strategy=EAGER))
        # First all are made to know both, then all to know the new one alone.
        for round_, strategy in enumerate(([*COOPERATIVE, *EAGER], COOPERATIVE)):
            for place in range(2):
                await members[place].close()
                members[place] = await life.join(f"again-{round_}-{place}", partition_assignment_strategy=strategy)
                await life.settled(*members)
        assert {membership_of(one).machine.protocol for one in members} == {"cooperative-sticky"}
        await life.all_read()
        assert [reader.errors for reader in life.readers.all] == [[]] * 6


class AllToOne:
    """An assignor of a user's own: whoever says so gets everything."""

    name = "all-to-one"
    protocols: Collection[RebalanceProtocol] = (RebalanceProtocol.EAGER,)

    def __init__(self, *, wants: bool) -> None:
        self.wants = wants
        self.told: list[tuple[Assignment, int]] = []
        self.fails = False

    def subscription(self, topics: Sequence[str], owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        return b"me" if self.wants else None

    def assign(self, partitions: Partitions, subscriptions: Mapping[str, Subscription]) -> Mapping[str, Assignment]:
        if self.fails:
            raise ZeroDivisionError("a mistake in here")
        every = tuple(TopicPartition(topic, info.partition) for topic, infos in partitions.items() for info in infos)
        wanting = [member for member, one in subscriptions.items() if one.user_data == b"me"]
        return {wanting[0]: Assignment(every, b"all yours")} if wanting else {}

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        self.told.append((assignment, generation))


async def owns(consumer: Consumer[bytes, bytes], count: int) -> None:
    """Wait until it has so many partitions."""
    part = consumer._in_group
    assert part is not None
    with anyio.fail_after(60):
        await part.driver.until(lambda: len(consumer.assignment) == count)


def test_an_assignor_of_the_users_own_decides() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        mine, other = AllToOne(wants=True), AllToOne(wants=False)
        one = (await life.client("one")).consumer(TOPIC, group_id=GROUP, assignors=[other], session_timeout_ms=6_000)
        two = (await life.client("two")).consumer(TOPIC, group_id=GROUP, assignors=[mine], session_timeout_ms=6_000)
        async with one, two:
            await owns(two, COUNT)
            assert one.assignment == ()
            assignment, generation = mine.told[-1]
            assert (set(assignment.partitions), assignment.user_data) == (partitions(), b"all yours")
            assert generation == two.group_metadata().generation_id
        assert other.told[-1][0].partitions == ()


def test_an_assignor_that_raises_is_the_leaders_to_hear_of_and_the_group_recovers() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        mine = AllToOne(wants=True)
        mine.fails = True
        one = (await life.client("one")).consumer(TOPIC, group_id=GROUP, assignors=[mine], session_timeout_ms=30_000)
        async with one:
            with pytest.raises(KafkaError, match="a mistake in here"):
                await anext(one)
            part = one._in_group
            assert part is not None
            assert part.driver.machine.state is GroupState.FAILED
            member_id = part.driver.machine.group.member_id
            with pytest.raises(KafkaError, match="a mistake in here"):
                await anext(one)
            mine.fails = False
            began = life.sim.now()
            with anyio.fail_after(60):
                await anext(one)
            # As the member that it was, so that nobody waits for the end of a session.
            assert one.group_metadata().member_id == member_id
            assert life.sim.now() - began < 5


def test_a_leader_whose_assignor_raises_leaves_the_group_when_it_is_closed() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        mine = AllToOne(wants=True)
        mine.fails = True
        one = (await life.client("one")).consumer(TOPIC, group_id=GROUP, assignors=[mine], session_timeout_ms=30_000)
        async with one:
            with pytest.raises(KafkaError, match="a mistake in here"):
                await anext(one)
        mine.fails, began = False, life.sim.now()
        two = (await life.client("two")).consumer(TOPIC, group_id=GROUP, assignors=[mine], session_timeout_ms=30_000)
        async with two:
            await owns(two, COUNT)
        assert life.sim.now() - began < 5


# --- listeners -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["assigned", "revoked", "lost"])
def test_a_listener_that_raises_is_told_and_costs_nothing(word: str) -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one")
        await life.settled(one)

        async def fail(_: tuple[TopicPartition, ...]) -> None:
            raise ZeroDivisionError(word)

        one.on = {word: fail}  # type: ignore[dict-item]
        if word == "lost":
            life.sim.network.partition({"one"})
            await anyio.sleep(10)
            life.sim.network.heal()
        else:
            two = await life.join("two")
            await life.readers.until(lambda: bool(two.owned), patience=60)
        await life.readers.until(lambda: bool(one.errors), patience=60)
        assert [str(error) for error in one.errors] == [word]
        one.on = {}
        await anyio.sleep(10)
        generation = one.generation
        await anyio.sleep(10)
        assert membership_of(one).machine.state is GroupState.STABLE
        assert one.generation == generation
        await life.all_read()


def test_heartbeats_go_on_while_a_listener_takes_its_time() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one, two = await life.both()

        async def take_long(_: tuple[TopicPartition, ...]) -> None:
            await anyio.sleep(30)  # five sessions

        one.on = {"revoked": take_long}
        began = life.sim.now()
        three = await life.join("three")
        await life.settled(one, two, three)
        assert 30 <= life.sim.now() - began <= 40
        assert "lost" not in one.words() + two.words()


def test_what_is_sought_in_on_assigned_is_where_it_begins() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        await anyio.sleep(10)
        one = await life.join("one", reads=False, auto_offset_reset="latest")

        async def go_to(given: tuple[TopicPartition, ...]) -> None:
            for where in given:
                one.consumer.seek(where, 5)
            await anyio.sleep(3)  # nothing is handed out meanwhile

        one.on = {"assigned": go_to}
        first: dict[int, ConsumerRecord[bytes, bytes]] = {}
        with anyio.fail_after(60):
            while len(first) < COUNT:
                record = await anext(one.consumer)
                first.setdefault(record.partition, record)
        assert {record.offset for record in first.values()} == {5}


def test_what_is_committed_in_on_revoked_is_where_the_next_begins() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one", enable_auto_commit=False)
        await life.settled(one)

        async def commit(_: tuple[TopicPartition, ...]) -> None:
            await one.consumer.commit()

        one.on = {"revoked": commit}
        await anyio.sleep(5)
        two = await life.join("two", enable_auto_commit=False)
        await life.settled(one, two)
        await life.all_read()
        assert one.errors == []
        assert life.once()


# --- records in hand -----------------------------------------------------------------------------------------------


async def hold_one(reader: Reader, partition: int) -> ConsumerRecord[bytes, bytes]:
    """Read up to a record of this partition; the last one is in hand."""
    with anyio.fail_after(60):
        while True:
            record = await anext(reader.consumer)
            reader.records.append(record)
            if record.partition == partition:
                return record


def test_a_record_in_hand_delays_an_eager_rebalance() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one", reads=False, partition_assignment_strategy=EAGER)
        record = await hold_one(one, 0)
        two = await life.join("two", partition_assignment_strategy=EAGER)
        await anyio.sleep(20)
        assert (one.words(), two.words()) == (["assigned"], [])
        assert membership_of(one).machine.state is GroupState.PREPARING
        life.readers.read(one)
        await life.settled(one, two)
        await life.all_read()
        # Finished before it went, and committed.
        everywhere = [(each.partition, each.offset) for each in one.records + two.records]
        assert everywhere.count((0, record.offset)) == 1


def test_a_record_in_hand_delays_a_cooperative_rebalance_only_if_its_partition_goes() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        options: dict[str, Any] = {"partition_assignment_strategy": COOPERATIVE}
        one = await life.join("one", reads=False, **options)
        await hold_one(one, 0)
        two = await life.join("two", **options)
        await life.settled(one, two)  # 0 to 2 stay, and 3 to 5 have gone without waiting
        assert TopicPartition(TOPIC, 0) in one.owned
        went = max(one.owned)  # of what is left, this goes next
        record = await hold_one(one, went.partition)
        three = await life.join("three", **options)
        await anyio.sleep(20)
        assert went not in two.owned | three.owned
        assert two.owned
        assert membership_of(one).machine.state is GroupState.STABLE
        read = len(two.records)
        await anyio.sleep(5)
        assert len(two.records) > read
        life.readers.read(one)
        await life.settled(one, two, three)
        assert went not in one.owned
        await life.all_read()
        everywhere = [(each.partition, each.offset) for reader in life.readers.all for each in reader.records]
        assert everywhere.count((went.partition, record.offset)) == 1


@pytest.mark.parametrize("way", ["record", "batch", "poll"])
def test_what_is_committed_by_itself_never_covers_what_is_in_hand(way: str) -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        await anyio.sleep(5)
        one = await life.join("one", reads=False)
        batches = one.consumer.batches()
        for _ in range(30):
            before = await committed(one.consumer)
            if way == "record":
                record = await anext(one.consumer)
                first = {TopicPartition(TOPIC, record.partition): record.offset}
            elif way == "batch":
                batch = await anext(batches)
                first = {TopicPartition(TOPIC, batch.partition): next(iter(batch)).offset}
            else:
                first = {}
                for each in await one.consumer.poll(7):
                    first.setdefault(TopicPartition(TOPIC, each.partition), each.offset)
            await anyio.sleep(2.5)  # two commits
            after = await committed(one.consumer)
            assert all(after[where] <= offset for where, offset in first.items())
            assert all(after[where] >= offset for where, offset in before.items())
        assert sum(after.values()) >= 29


async def committed(consumer: Consumer[bytes, bytes]) -> dict[TopicPartition, int]:
    """How far the group has come; 0 where nothing is committed."""
    found = await consumer.committed(partitions())
    return {where: 0 if at is None else at.offset for where, at in found.items()}


# --- commits -------------------------------------------------------------------------------------------------------


def test_a_commit_by_who_is_no_member_any_more_fails_at_once() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one", reads=False, enable_auto_commit=False)
        await hold_one(one, 0)
        life.broker.on(ApiKey.OFFSET_COMMIT, answer=ErrorCode.UNKNOWN_MEMBER_ID)
        async with life.broker.hold(ApiKey.JOIN_GROUP):
            began = life.sim.now()
            with pytest.raises(CommitFailed, match="has given the partitions to other members"):
                await one.consumer.commit()
            assert life.sim.now() - began < 1
            assert one.words() == ["assigned", "lost"]
        life.readers.read(one)
        await life.settled(one)


def test_a_commit_during_a_cooperative_rebalance_succeeds() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        options: dict[str, Any] = {"partition_assignment_strategy": COOPERATIVE, "enable_auto_commit": False}
        one = await life.join("one", reads=False, **options)
        records = [await hold_one(one, index) for index in range(COUNT)]
        two = await life.join("two", **options)
        # Refused while the group waits for its leader; half of the partitions, the last record's among them, must go.
        life.broker.on(ApiKey.OFFSET_COMMIT, answer=ErrorCode.REBALANCE_IN_PROGRESS)
        await life.broker.requests.wait_for(ApiKey.SYNC_GROUP, 2)
        began = life.sim.now()
        await one.consumer.commit()
        assert life.sim.now() - began < 10
        found = await committed(one.consumer)
        assert found[TopicPartition(TOPIC, 0)] > 0
        assert len(records) == COUNT
        life.readers.read(one)
        await life.settled(one, two)
        await life.all_read()
        assert one.errors == two.errors == []


def test_a_commit_between_joining_and_the_assignment_waits_for_it() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        options: dict[str, Any] = {"partition_assignment_strategy": COOPERATIVE, "enable_auto_commit": False}
        one = await life.join("one", reads=False, **options)
        await hold_one(one, 0)
        machine = membership_of(one).machine
        generation, committing = machine.group.generation_id, anyio.Event()

        async def commit() -> None:
            await one.consumer.commit()
            committing.set()

        async with life.broker.hold(ApiKey.SYNC_GROUP) as held, anyio.create_task_group() as tasks:
            machine.request_rejoin("again")
            membership_of(one).wake()
            await held.arrived()
            assert machine.group.generation_id > generation
            tasks.start_soon(commit)
            await anyio.sleep(1)
            assert not committing.is_set()
            held.release()
            await committing.wait()
        assert life.broker.requests.of(ApiKey.OFFSET_COMMIT)[-1].request.generation_id_or_member_epoch > generation
        life.readers.read(one)
        await life.settled(one)
        assert one.errors == []


def test_a_generation_that_is_not_complete_yet_only_delays_a_commit() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        options: dict[str, Any] = {"partition_assignment_strategy": COOPERATIVE, "enable_auto_commit": False}
        one = await life.join("one", reads=False, **options)
        await hold_one(one, 0)
        refused = life.broker.on(ApiKey.OFFSET_COMMIT, answer=ErrorCode.REBALANCE_IN_PROGRESS, times=3)
        await one.consumer.commit()
        assert refused.is_met
        assert (await committed(one.consumer))[TopicPartition(TOPIC, 0)] > 0
        life.readers.read(one)
        await life.settled(one)
        assert one.errors == []


def _has_had(membership: MembershipDriver, rebalances: int) -> bool:
    return membership.machine.rebalances >= rebalances


def test_patterns_may_be_changed_at_once_and_taken_up_again() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one", reads=False, client={"metadata_max_age_ms": 10_000})
        membership = membership_of(one)
        for pattern in (f"{TOPIC}.*", None, f".*{TOPIC}|later"):
            goal = membership.machine.rebalances + 1
            one.consumer.subscribe(*([] if pattern else [TOPIC]), pattern=pattern and "nothing-.*")
            one.consumer.subscribe(*([] if pattern else [TOPIC]), pattern=pattern)
            with anyio.fail_after(60):
                await membership.until(partial(_has_had, membership, goal))
                await membership.until(lambda: set(one.consumer.assignment) == set(partitions()))
        life.broker.create_topic("later")
        with anyio.fail_after(60):
            await membership.until(lambda: TopicPartition("later", 0) in one.consumer.assignment)
        assert one.errors == []
