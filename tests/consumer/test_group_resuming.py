"""A group without a coordinator in the middle of a rebalance: its members read on meanwhile what they gave up for it.

From what is finished, where that is committed by itself; else from what is committed, as far as they know that, for
listeners may have undone the rest. In virtual time.
"""

from __future__ import annotations

from typing import Any

import anyio
import attrs
import pytest
from support.group_lives import COUNT, GROUP, TOPIC, Life, in_a_group, membership_of, partitions
from support.readers import Partitions, Reader

from aiokafkawire import OffsetSpec, RequestTimeout, TopicPartition
from aiokafkawire.errors import ErrorCode
from aiokafkawire.group.classic_transitions import GroupState
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.faults.rules import FaultRule

GROUP_REQUESTS = (
    ApiKey.JOIN_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.DESCRIBE_GROUPS,
)


@attrs.define(eq=False)
class Absence:
    """Nobody coordinates the group, or can be found; or for so many seconds it is another, which is not ready."""

    life: Life
    loading: float | None = None
    orders: list[FaultRule] = attrs.field(factory=list)
    begun: bool = False

    def begin(self) -> None:
        self.begun = True
        if self.loading is not None:
            self.life.broker.move_coordinator(GROUP, self.life.elsewhere, loading=self.loading)
            return
        on = self.life.broker.on
        self.orders += [on(key, drop="before", times=None) for key in GROUP_REQUESTS]
        self.orders.append(on(ApiKey.FIND_COORDINATOR, answer=ErrorCode.COORDINATOR_NOT_AVAILABLE, times=None))

    def end(self) -> None:
        for order in self.orders:
            order.remove()


async def joins_in_vain(life: Life, reader: Reader, loading: float | None = None) -> Absence:
    """The member gives all up for a rebalance of its own wish, with the coordinator there; then nobody is."""
    absence = Absence(life, loading)
    before = reader.on.get("revoked")

    async def revoked(partitions: Partitions) -> None:
        if before is not None:
            await before(partitions)
        absence.begin()
        reader.on.pop("revoked")

    reader.on["revoked"] = revoked
    reader.subscribe(TOPIC, "later")
    await life.readers.until(lambda: absence.begun)
    return absence


def offsets_of(reader: Reader, since: int) -> dict[TopicPartition, int]:
    """Where it began in each partition, of the records after the first so many."""
    first: dict[TopicPartition, int] = {}
    for record in reader.records[since:]:
        first.setdefault(TopicPartition(record.topic, record.partition), record.offset)
    return first


@pytest.mark.parametrize("options", [{}, {"group_instance_id": "i"}])
def test_what_was_given_up_for_a_rebalance_is_read_on_while_no_coordinator_begins_it(options: dict[str, Any]) -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one, two = await life.join("one", **options), await life.join("two")
        await life.settled(one, two)
        await life.under_way()
        generation, had = membership_of(one).machine.generation, set(one.owned)
        life.broker.create_topic("later")
        await joins_in_vain(life, one, loading=20)
        began, read = life.sim.now(), len(one.records)
        await life.readers.until(lambda: one.owned == had)
        assert life.sim.now() - began < 2
        assert one.words()[-2:] == ["revoked", "assigned"]
        assert set(one.told[-1][1]) == had
        await anyio.sleep(18 - (life.sim.now() - began))  # three sessions
        assert len(one.records) >= read + 75  # half of what is written
        machine = membership_of(one).machine
        assert (machine.generation, machine.state) == (generation, GroupState.STABLE)
        await life.readers.until(lambda: TopicPartition("later", 0) in one.owned, patience=60)
        assert one.words()[-4:] == ["revoked", "assigned", "revoked", "assigned"]
        await life.settled(one, two, count=COUNT + 1)
        await life.all_read()
        assert life.once()
        assert one.errors == two.errors == []


def test_who_resumes_begins_at_what_is_committed_and_not_at_what_was_read() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one", enable_auto_commit=False)
        await life.settled(one)
        await life.under_way()
        await one.consumer.commit({TopicPartition(TOPIC, 0): 1})
        await life.readers.until(lambda: len(one.records) >= 30)
        known = {**dict.fromkeys(partitions(), 0), TopicPartition(TOPIC, 0): 1}
        await joins_in_vain(life, one)
        read = len(one.records)
        await life.readers.until(lambda: len(offsets_of(one, read)) == COUNT)
        assert offsets_of(one, read) == known


def test_what_is_committed_while_giving_up_is_not_read_again() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one", enable_auto_commit=False)
        await life.settled(one)
        await life.under_way()
        at: dict[TopicPartition, int] = {}

        async def commit(partitions: Partitions) -> None:
            at.update({where: position.offset for where, position in one.consumer.positions().items()})
            await one.consumer.commit()

        one.on["revoked"] = commit
        await joins_in_vain(life, one)
        read = len(one.records)
        await life.readers.until(lambda: len(offsets_of(one, read)) == COUNT)
        assert offsets_of(one, read) == at


def test_what_is_committed_while_the_member_waits_to_join_counts_as_well() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one", enable_auto_commit=False)
        await life.settled(one)
        await life.under_way()
        absence, at = Absence(life), dict.fromkeys(partitions(), 1)
        async with life.broker.hold(ApiKey.JOIN_GROUP) as held:
            one.subscribe(TOPIC, "later")
            await held.arrived()
            await one.consumer.commit(at)
            absence.begin()
            life.sim.network.cut(life.coordinator)
            read = len(one.records)
            await life.readers.until(lambda: len(offsets_of(one, read)) == COUNT)
        assert offsets_of(one, read) == at


def test_what_was_committed_for_an_assignment_that_is_over_does_not_count() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one, other = await life.join("one", enable_auto_commit=False), await life.client("other")
        await life.settled(one)
        await life.under_way()
        await one.consumer.commit(dict.fromkeys(partitions(), 1))
        await one.consumer.unsubscribe()
        await anyio.sleep(3)  # so that there are such offsets
        async with other.consumer(group_id=GROUP, enable_auto_commit=False) as successor:
            await successor.commit(dict.fromkeys(partitions(), 3))
        read = len(one.records)
        one.subscribe(TOPIC)
        await life.readers.until(lambda: len(offsets_of(one, read)) == COUNT)
        assert offsets_of(one, read) == dict.fromkeys(partitions(), 3)
        await joins_in_vain(life, one)
        read = len(one.records)
        await life.readers.until(lambda: len(offsets_of(one, read)) == COUNT)
        assert offsets_of(one, read) == dict.fromkeys(partitions(), 3)


def test_who_resumes_once_more_begins_where_it_did_the_first_time() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one", enable_auto_commit=False)
        await life.settled(one)
        await life.under_way()
        for _ in range(2):
            life.broker.move_coordinator(GROUP, life.elsewhere, loading=8)
            life.broker.on(ApiKey.HEARTBEAT, answer=ErrorCode.REBALANCE_IN_PROGRESS, times=1)
            gone = len(one.told) + 2
            await life.readers.until(lambda: len(one.told) == gone)  # noqa: B023
            assert one.words()[-2:] == ["revoked", "assigned"]
            read = len(one.records)
            await life.readers.until(lambda: len(offsets_of(one, read)) == COUNT)  # noqa: B023
            assert offsets_of(one, read) == dict.fromkeys(partitions(), 0)
            await anyio.sleep(10)
            assert membership_of(one).machine.resumed is False


@pytest.mark.parametrize("to", [2, OffsetSpec.LATEST])
def test_where_the_user_sought_before_anybody_looked_only_the_coordinator_knows_what_is_committed(
    to: int | OffsetSpec,
) -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        await anyio.sleep(3)  # so that there are such offsets
        one, where = await life.join("one", enable_auto_commit=False, reads=False), TopicPartition(TOPIC, 0)

        async def seek(partitions: Partitions) -> None:
            one.consumer.seek(where, to)
            del one.on["assigned"]

        one.on["assigned"] = seek
        life.readers.read(one)
        await life.settled(one)
        await life.readers.until(lambda: len(offsets_of(one, 0)) == COUNT)
        assert offsets_of(one, 0)[where] >= 2
        absence = await joins_in_vain(life, one)
        read = len(one.records)
        await life.readers.until(lambda: len(offsets_of(one, read)) == COUNT - 1)
        await anyio.sleep(3)
        assert where not in offsets_of(one, read)
        absence.end()
        await life.readers.until(lambda: where in offsets_of(one, read))
        assert offsets_of(one, read)[where] == 0


@pytest.mark.parametrize("how", ["unknown", "transaction"])
def test_what_only_the_coordinator_knows_waits_for_it(how: str) -> None:
    """A commit that was not answered, and a transaction that commits instead of the consumer."""

    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one", enable_auto_commit=False)
        await life.settled(one)
        await life.under_way()
        where, others = TopicPartition(TOPIC, 0), partitions() - {TopicPartition(TOPIC, 0)}
        if how == "transaction":
            others = set()
            kafka = await life.client("transactions")
            async with kafka.producer(transactional_id="x") as producer, producer.transaction() as transaction:
                await transaction.commit_offsets({where: 2}, group=one.consumer.group_metadata())

        absence: list[FaultRule] = []

        async def lose_a_commit(partitions: Partitions) -> None:
            if how == "unknown":
                life.broker.on(ApiKey.OFFSET_COMMIT, drop="after", times=1)
                away = life.broker.on(ApiKey.FIND_COORDINATOR, answer=ErrorCode.COORDINATOR_NOT_AVAILABLE, times=None)
                absence.append(away)
                with pytest.raises(Exception, match="OffsetCommit"):
                    await one.consumer.commit({where: 2}, timeout=0.5)

        one.on["revoked"] = lose_a_commit
        nowhere = await joins_in_vain(life, one)
        read = len(one.records)
        await life.readers.until(lambda: one.owned == partitions())
        await anyio.sleep(5)
        assert set(offsets_of(one, read)) == others
        nowhere.end()
        for order in absence:
            order.remove()
        await life.readers.until(lambda: where in offsets_of(one, read), patience=60)
        assert offsets_of(one, read)[where] == 2


@pytest.mark.parametrize("undone", [False, True])
def test_what_is_finished_is_not_read_again_if_nobody_was_there_to_take_its_commit(undone: bool) -> None:
    """Unless the user commits less in the listener."""

    @in_a_group()
    async def _(life: Life) -> None:
        one, where = await life.join("one"), TopicPartition(TOPIC, 0)
        await life.settled(one)
        await life.under_way()
        life.broker.on(ApiKey.OFFSET_COMMIT, drop="after", times=None)  # by now and then, and at the end: all unknown
        await life.readers.until(lambda: len(one.records) >= 60)
        at: dict[TopicPartition, int] = {}

        async def look(partitions: Partitions) -> None:
            at.update({where: position.offset for where, position in one.consumer.positions().items()})
            if undone:
                with pytest.raises(RequestTimeout):
                    await one.consumer.commit({where: 2}, timeout=0.5)

        one.on["revoked"] = look
        await joins_in_vain(life, one)
        read = len(one.records)
        known = at.keys() - {where} if undone else at.keys()
        await life.readers.until(lambda: offsets_of(one, read).keys() >= known)
        await anyio.sleep(5)
        assert offsets_of(one, read) == {where: at[where] for where in known}


@pytest.mark.parametrize("code", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID])
def test_who_resumed_gives_up_as_soon_as_a_coordinator_refuses_it(code: ErrorCode) -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one")
        await life.settled(one)
        absence = await joins_in_vain(life, one)
        await life.readers.until(lambda: one.owned == partitions())
        life.broker.on(ApiKey.HEARTBEAT, answer=code, times=1)
        # Who hears first that it is there joins for its own wish; here the refusal comes first.
        loads = life.broker.on(ApiKey.DESCRIBE_GROUPS, answer=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=None)
        absence.end()
        began = life.sim.now()
        await life.readers.until(lambda: "lost" in one.words())
        loads.remove()
        assert life.sim.now() - began < 2
        assert one.words() == ["assigned", "revoked", "assigned", "lost"]
        await life.settled(one)
        await life.all_read()


@pytest.mark.parametrize("how", ["answers", "is silent", "waits for others"])
def test_nobody_resumes_while_the_coordinator_may_have_begun_the_rebalance(how: str) -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one")
        await life.settled(one)
        if how == "answers":  # the connection breaks, again and again, but somebody is there
            order = life.broker.on(ApiKey.JOIN_GROUP, drop="before", times=None)
        elif how == "is silent":
            order = life.broker.on(ApiKey.JOIN_GROUP, swallow="before", times=None)
            life.broker.on(ApiKey.HEARTBEAT, swallow="before", times=None)
        else:
            order = life.broker.on(ApiKey.JOIN_GROUP, delay_answer=15, times=1)
        one.subscribe(TOPIC, "later")
        await life.readers.until(lambda: not one.owned)
        await anyio.sleep(10)
        assert order.is_met or how == "waits for others"
        assert (one.words(), membership_of(one).machine.state) == (["assigned", "revoked"], GroupState.JOINING)


def test_a_member_that_resumed_may_leave_and_closes_in_time() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one")
        await life.settled(one)
        await joins_in_vain(life, one)
        await life.readers.until(lambda: one.owned == partitions())
        began = life.sim.now()
        await one.close()
        assert life.sim.now() - began <= 5.5
        assert one.words() == ["assigned", "revoked", "assigned", "revoked"]


def test_topics_that_are_wanted_no_more_are_not_resumed() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        life.broker.create_topic("other")
        one = await life.join("one", TOPIC, "other")
        await life.settled(one, count=COUNT + 1)
        absence = Absence(life)

        async def begin(partitions: Partitions) -> None:
            absence.begin()

        one.on["revoked"] = begin
        one.subscribe(TOPIC)
        await life.readers.until(lambda: one.words() == ["assigned", "revoked", "assigned"])
        assert one.owned == partitions()


@pytest.mark.parametrize("topics", [(TOPIC, "later"), ("later",)])
def test_cooperative_members_keep_what_they_have_and_resume_nothing(topics: tuple[str, ...]) -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one", partition_assignment_strategy=["cooperative-sticky"])
        await life.settled(one)
        life.broker.move_coordinator(GROUP, life.elsewhere, loading=20)
        one.subscribe(*topics)
        await anyio.sleep(15)
        assert one.words() == (["assigned"] if TOPIC in topics else ["assigned", "revoked"])
        assert membership_of(one).machine.state is GroupState.JOINING
