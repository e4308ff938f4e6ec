"""What may happen to a group, scenario by scenario, as of the consumer's first design (Kafka 0.9); in virtual time."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from support.group_lives import COUNT, GROUP, TOPIC, Life, in_a_group, membership_of, partitions
from support.readers import Reader

from aiokafkawire import TopicPartition
from aiokafkawire.errors import CommitFailed, ErrorCode
from aiokafkawire.group.membership import GroupState
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.faults.request_log import RequestOutcome

EAGER, COOPERATIVE = ["range"], ["cooperative-sticky"]


# --- a consumer fails ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", [EAGER, COOPERATIVE])
def test_a_consumer_fails_and_others_read_on_after_its_session(strategy: list[str]) -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one, two = await life.both(partition_assignment_strategy=strategy)
        life.sim.network.partition({"two"})
        began = life.sim.now()
        await life.settled(one)
        assert 5 <= life.sim.now() - began <= 9
        # It keeps what it has, for nobody has said otherwise (rule 3), but gets nothing.
        assert two.owned
        await life.all_read()
        life.sim.network.heal()
        await life.settled(one, two)
        assert "lost" in two.words()
        await life.all_read()
        assert one.errors == []


def test_a_consumer_fails_while_others_join_and_they_go_on_without_it() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one, two = await life.both()
        life.sim.network.partition({"two"})
        three = await life.join("three")
        began = life.sim.now()
        await life.settled(one, three)
        assert life.sim.now() - began <= 9  # not the 300 s that a rebalance may take
        await life.all_read()
        life.sim.network.heal()
        await life.settled(one, two, three)


def test_a_commit_that_waits_for_replicas_holds_up_no_heartbeats() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one", heartbeat_interval_ms=1_000, auto_commit_interval_ms=1_000)
        await life.settled(one)
        async with life.broker.hold(ApiKey.OFFSET_COMMIT) as held:
            await held.arrived()
            life.broker.requests.clear()
            await anyio.sleep(4.5)
            beats = [beat.outcome for beat in life.broker.requests.of(ApiKey.HEARTBEAT)]
            assert len(beats) >= 4
            assert set(beats) == {RequestOutcome.ANSWERED}
        await life.all_read()
        assert one.words() == ["assigned"]
        assert one.errors == []


# --- the coordinator fails -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", [EAGER, COOPERATIVE])
def test_the_coordinator_fails_while_members_join(strategy: list[str]) -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one", partition_assignment_strategy=strategy)
        await life.settled(one)
        async with life.broker.hold(ApiKey.JOIN_GROUP, "after", times=1, after=1) as held:
            two = await life.join("two", partition_assignment_strategy=strategy)
            await held.arrived()
            failed = life.coordinator
            await life.sim.crash(failed)
        await life.settled(one, two)
        await life.sim.restart(failed)
        await life.all_read()
        assert one.errors == two.errors == []


@pytest.mark.parametrize("strategy", [EAGER, COOPERATIVE])
def test_the_coordinator_fails_while_members_wait_for_their_part(strategy: list[str]) -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one", partition_assignment_strategy=strategy)
        await life.settled(one)
        async with life.broker.hold(ApiKey.SYNC_GROUP) as held:
            two = await life.join("two", partition_assignment_strategy=strategy)
            await held.arrived(2)
            await life.sim.crash(life.coordinator)
        await life.settled(one, two)
        await life.all_read()
        assert one.errors == two.errors == []


def test_the_coordinator_fails_while_all_is_quiet_and_nobody_rebalances() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one, two = await life.both()
        generation, told = one.generation, (list(one.told), list(two.told))
        await life.sim.crash(life.coordinator)
        await anyio.sleep(20)
        assert (one.generation, two.generation) == (generation, generation)
        assert (one.told, two.told) == told
        assert {membership_of(one).machine.state, membership_of(two).machine.state} == {GroupState.STABLE}
        await life.all_read()
        assert life.once()


def test_the_coordinator_fails_while_a_commit_is_under_way() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one", enable_auto_commit=False)
        await life.settled(one)
        await life.all_read()
        wanted = one.consumer.positions()
        async with life.broker.hold(ApiKey.OFFSET_COMMIT) as held, anyio.create_task_group() as tasks:
            tasks.start_soon(one.consumer.commit, wanted)
            await held.arrived()
            await life.sim.crash(life.coordinator)
            held.release()
        found = await one.consumer.committed(partitions())
        assert {where: at.offset for where, at in found.items() if at is not None} == {
            where: at.offset for where, at in wanted.items()
        }


@pytest.mark.parametrize("loading", [0.0, 4.0])
def test_the_coordinator_moves_and_members_go_with_it(loading: float) -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one, two = await life.both()
        generation = one.generation
        for _ in range(3):
            life.broker.move_coordinator(GROUP, life.elsewhere, loading=loading)
            await anyio.sleep(10)
        assert (one.generation, two.generation, one.words()[-1], two.words()[-1]) == (
            generation,
            generation,
            "assigned",
            "assigned",
        )
        await life.all_read()
        assert life.once()
        asked = life.broker.requests.of(ApiKey.HEARTBEAT)[-1]
        assert asked.node == life.coordinator


def test_fetching_goes_on_while_the_coordinator_is_away() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one, two = await life.both()
        await life.under_way()
        await life.all_read()
        generation, read = one.generation, len(life.read())
        life.broker.move_coordinator(GROUP, life.elsewhere, loading=30)
        await anyio.sleep(25)  # four sessions
        assert len(life.read()) >= read + 240
        assert (one.generation, two.generation) == (generation, generation)
        await life.all_read()
        assert life.once()


def test_fetching_goes_on_while_no_coordinator_is_to_be_found() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one, two = await life.both()
        await life.under_way()
        await life.all_read()
        read = len(life.read())
        away = [
            life.broker.on(ApiKey.HEARTBEAT, drop="before", times=None),
            life.broker.on(ApiKey.FIND_COORDINATOR, answer=ErrorCode.COORDINATOR_NOT_AVAILABLE, times=None),
        ]
        await anyio.sleep(25)  # four sessions
        # Nobody has said that they are no members any more.
        assert one.words() + two.words() == ["assigned", "revoked", "assigned", "assigned"]
        assert len(life.read()) >= read + 240
        assert membership_of(one).trouble is not None
        for order in away:
            order.remove()
        await anyio.sleep(10)
        await life.settled(one, two)
        assert membership_of(one).trouble is None
        assert "lost" in one.words()
        await life.all_read()


def test_a_coordinator_that_hangs_with_the_join_is_not_waited_for() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one")
        await life.settled(one)
        hung = life.coordinator
        async with life.broker.hold(ApiKey.JOIN_GROUP, times=1, after=1) as held:
            two = await life.join("two")
            await held.arrived()
            life.broker.freeze_node(hung)
            life.broker.fence_node(hung)
            began = life.sim.now()
            await life.settled(one, two)
            # A JoinGroup may take 305 s.
            assert life.sim.now() - began < 40
            life.broker.thaw_node(hung)
        await life.all_read()


# --- heartbeats ----------------------------------------------------------------------------------------------------


def test_heartbeats_that_are_answered_late_keep_the_membership() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one, two = await life.both()
        generation = one.generation
        life.broker.on(ApiKey.HEARTBEAT, delay_answer=1.9, times=None)
        await anyio.sleep(60)
        assert (one.generation, two.generation) == (generation, generation)
        await life.all_read()
        assert life.once()


def test_heartbeats_that_are_lost_cost_a_connection_and_not_the_membership() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one, two = await life.both()
        generation = one.generation
        for after in range(0, 60, 3):
            life.broker.on(ApiKey.HEARTBEAT, drop="before", times=1, after=after)
        life.broker.on(ApiKey.HEARTBEAT, swallow="before", times=1, after=70)
        await anyio.sleep(60)
        assert (one.generation, two.generation) == (generation, generation)
        await life.all_read()
        assert life.once()


# --- topics --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", [EAGER, COOPERATIVE])
def test_partitions_are_added_and_shared(strategy: list[str]) -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        options: dict[str, Any] = {"partition_assignment_strategy": strategy, "client": {"metadata_max_age_ms": 3_000}}
        one, two = await life.join("one", **options), await life.join("two", **options)
        await life.settled(one, two)
        life.broker._cluster.topics.add_partitions(TOPIC, COUNT + 3)
        await life.settled(one, two, count=COUNT + 3)
        await life.all_read()
        assert one.errors == two.errors == []


@pytest.mark.parametrize("strategy", [EAGER, COOPERATIVE])
def test_topics_that_match_a_pattern_are_created_and_deleted(strategy: list[str]) -> None:
    @in_a_group(feeds=False)
    async def _(life: Life) -> None:
        options: dict[str, Any] = {
            "partition_assignment_strategy": strategy,
            "client": {"metadata_max_age_ms": 3_000},
            "pattern": "log-.*",
        }
        one, two = await life.join("one", **options), await life.join("two", **options)
        life.broker.create_topic("log-a", partitions=4)
        await life.settled(one, two, count=4)
        life.broker.create_topic("log-b", partitions=4)
        life.broker.create_topic("other-log-b", partitions=4)
        await life.settled(one, two, count=8)
        began = life.sim.now()
        life.broker.delete_topic("log-a")
        await life.settled(one, two, count=4)
        assert one.owned | two.owned == partitions(4, "log-b")
        assert life.sim.now() - began < 15
        assert one.errors == two.errors == []


def test_a_topic_that_is_not_there_yet_is_read_once_it_is() -> None:
    @in_a_group(feeds=False, auto_create_topics_enable=False)
    async def _(life: Life) -> None:
        options: dict[str, Any] = {"client": {"metadata_max_age_ms": 3_000}}
        one, two = await life.join("one", "late", **options), await life.join("two", "late", **options)
        await anyio.sleep(30)
        assert one.owned == two.owned == set()
        life.broker.create_topic("late", partitions=4)
        await life.settled(one, two, count=4)


# --- slow consumers ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_slow_consumer_stays_for_its_heartbeats_do_not_wait_for_it() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one", max_poll_interval_ms=60_000)
        await life.settled(one)
        two = await life.join("two", max_poll_interval_ms=60_000, reads=False)
        await life.readers.share(one, two, count=COUNT)
        generation = two.generation
        for _ in range(3):
            await anext(two.consumer)
            await anyio.sleep(50)  # eight sessions
        assert (one.generation, two.generation) == (generation, generation)


def test_a_consumer_that_is_too_slow_leaves_and_comes_back_when_it_asks() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one", max_poll_interval_ms=20_000)
        two = await life.join("two", max_poll_interval_ms=20_000)
        await life.settled(one, two)
        three = await life.join("three", max_poll_interval_ms=20_000, reads=False)
        await life.settled(one, two, three)
        began = life.sim.now()
        await life.settled(one, two)
        assert 18 <= life.sim.now() - began <= 25
        assert (three.words()[-1], membership_of(three).overdue, three.consumer.assignment) == ("lost", True, ())
        life.readers.read(three)
        await life.settled(one, two, three)
        assert not membership_of(three).overdue
        await life.all_read()


def test_who_asks_again_while_it_still_leaves_comes_back_all_the_same() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one", max_poll_interval_ms=20_000, reads=False)
        await life.readers.share(one, count=COUNT)
        async with life.broker.hold(ApiKey.LEAVE_GROUP) as held:
            await held.arrived()
            assert membership_of(one).machine.state is GroupState.LEAVING
            life.readers.read(one)
            await anyio.sleep(1)
            assert membership_of(one).machine.state is GroupState.LEAVING
        await life.settled(one)
        await life.all_read()


@pytest.mark.parametrize("client_rack", ["", "r1"])
def test_a_broker_with_a_rack_restarts_and_only_members_with_racks_rebalance(client_rack: str) -> None:
    @in_a_group(feeds=False, racks=("r1", "r2", "r3"))
    async def _(life: Life) -> None:
        one, two = await life.both(client={"metadata_max_age_ms": 1_000}, client_rack=client_rack)
        generation = one.generation
        await life.sim.crash(life.elsewhere)
        await anyio.sleep(10)
        await life.sim.restart(life.elsewhere)
        await anyio.sleep(10)
        await life.settled(one, two)
        assert (one.generation > generation) is bool(client_rack)


# --- static members ------------------------------------------------------------------------------------------------


def test_a_leader_that_was_restarted_under_its_name_still_sees_partitions_that_are_added() -> None:
    @in_a_group(feeds=False)
    async def _(life: Life) -> None:
        client: dict[str, Any] = {"metadata_max_age_ms": 3_000}
        one = await life.join("one", client=client, group_instance_id="i", session_timeout_ms=30_000)
        await life.settled(one)
        generation = one.generation
        await one.close()
        two = await life.join("two", client=client, group_instance_id="i", session_timeout_ms=30_000)
        await life.readers.share(two, count=COUNT)
        assert two.generation == generation
        life.broker._cluster.topics.add_partitions(TOPIC, COUNT + 3)
        await life.settled(two, count=COUNT + 3)


def test_a_leader_that_was_restarted_under_its_name_shares_out_what_came_while_it_was_away() -> None:
    @in_a_group(feeds=False)
    async def _(life: Life) -> None:
        one = await life.join("one", TOPIC, "later", group_instance_id="i", session_timeout_ms=30_000)
        await life.settled(one)
        await one.close()
        life.broker.create_topic("later")
        two = await life.join("two", TOPIC, "later", group_instance_id="i", session_timeout_ms=30_000)
        await life.settled(two, count=COUNT + 1)
        assert TopicPartition("later", 0) in two.owned


def test_an_old_member_is_fenced_by_the_new_one_under_its_name() -> None:
    @in_a_group(feeds=False)
    async def _(life: Life) -> None:
        one = await life.join("one", group_instance_id="i")
        await life.settled(one)
        two = await life.join("two", group_instance_id="i")
        await life.readers.until(lambda: two.owned == partitions() and bool(one.errors), patience=60)
        assert ErrorCode.FENCED_INSTANCE_ID.name in str(one.errors[0])
        assert one.words() == ["assigned", "lost"]
        assert one.consumer.assignment == ()
        assert two.owned == {TopicPartition(TOPIC, index) for index in range(COUNT)}


def test_a_static_member_that_has_rejoined_is_not_told_that_another_consumer_has_its_name() -> None:
    @in_a_group(feeds=False)
    async def _(life: Life) -> None:
        one = await life.join("one", group_instance_id="i", enable_auto_commit=False)
        await life.settled(one)
        operator = await life.client("operator")
        busy = life.broker.on(ApiKey.OFFSET_COMMIT, answer=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=None)
        driver = membership_of(one)
        before = driver.machine.group.member_id
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_commit_in_vain, one)
            await life.sim.broker.requests.wait_for(ApiKey.OFFSET_COMMIT)
            await operator.admin.remove_members(GROUP, ["i"])
            await driver.until(lambda: driver.machine.group.member_id not in ("", before))
            busy.remove()
        await life.settled(one)
        assert one.errors == []


def test_a_member_that_leaves_between_join_and_sync_commits_what_it_has_read() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        steady: dict[str, Any] = {"partition_assignment_strategy": COOPERATIVE, "auto_offset_reset": "earliest"}
        steady["auto_commit_interval_ms"] = 3_600_000
        one = await life.join("one", **steady)
        await life.under_way()
        async with anyio.create_task_group() as tasks, life.broker.hold(ApiKey.SYNC_GROUP) as held:
            two = await life.join("two", **steady)
            await held.arrived(2)
            await life.all_read()
            life.broker.requests.clear()
            tasks.start_soon(one.close)
            await life.broker.requests.wait_for(ApiKey.OFFSET_COMMIT)
        await life.settled(two)
        await life.readers.until(lambda: {record.partition for record in two.records} == set(range(COUNT)))
        assert life.once()


async def _commit_in_vain(reader: Reader) -> None:
    """Commit what the group is about to take away."""
    with pytest.raises(CommitFailed, match="UnknownMemberId"):
        await reader.consumer.commit({TopicPartition(TOPIC, 0): 0})
