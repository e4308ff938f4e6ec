"""Consumers that end: in time, whatever their brokers and listeners do. In virtual time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from support.group_lives import TOPIC, Life, in_a_group, membership_of, partitions
from support.readers import Reader

from aiokafkawire import OffsetAndMetadata, TopicPartition
from aiokafkawire.errors import ErrorCode, OffsetMetadataTooLarge
from aiokafkawire.group.membership import GroupState
from aiokafkawire.protocol.api import ApiKey


async def closed_within(life: Life, reader: Reader, seconds: float) -> float:
    """Close it; how long that took."""
    began = life.sim.now()
    with anyio.fail_after(seconds + 1):
        await reader.consumer.close(timeout=seconds)
    assert life.sim.now() - began <= seconds + 0.1
    assert membership_of(reader).has_ended
    return life.sim.now() - began


def left(life: Life) -> int:
    return len(life.broker.requests.of(ApiKey.LEAVE_GROUP))


def test_who_closes_in_order_has_left_and_others_need_not_wait() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one, two = await life.both()
        assert await closed_within(life, two, 5) < 1
        assert left(life) == 1
        await life.settled(one)
        await life.all_read()
        assert life.once()


@pytest.mark.parametrize("gone", ["crashed", "silent", "refusing"])
def test_closing_ends_in_time_with_all_brokers_gone(gone: str) -> None:
    @in_a_group(feeds=False)
    async def _(life: Life) -> None:
        one, two = await life.both()
        if gone == "crashed":
            for node in (1, 2, 3):
                await life.sim.crash(node)
        elif gone == "silent":
            life.sim.network.block(1, 2, 3)
        else:
            life.sim.network.refuse(1, 2, 3)
            life.sim.network.cut()
        await anyio.sleep(3)
        for reader in (one, two):
            await closed_within(life, reader, 5)


@pytest.mark.parametrize("api", [ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.FIND_COORDINATOR, ApiKey.LEAVE_GROUP])
def test_closing_does_not_wait_for_what_is_under_way(api: ApiKey) -> None:
    @in_a_group(feeds=False)
    async def _(life: Life) -> None:
        async with life.broker.hold(api) as held:
            one = await life.join("one")
            if api is ApiKey.LEAVE_GROUP:
                await life.settled(one)
                # Who is asked and silent has read it.
                assert await closed_within(life, one, 5) < 2
                assert held.requests
                return
            await held.arrived()
            assert await closed_within(life, one, 5) < (1 if api is not ApiKey.FIND_COORDINATOR else 5.1)
            # A member with an id leaves, whatever it waits for.
            assert left(life) == (1 if api is ApiKey.SYNC_GROUP else 0)


def test_leaving_does_not_wait_behind_a_heartbeat() -> None:
    @in_a_group(feeds=False)
    async def _(life: Life) -> None:
        one, two = await life.both()
        async with life.broker.hold(ApiKey.HEARTBEAT) as held:
            await held.arrived(2)
            assert await closed_within(life, one, 5) < 1
            assert left(life) == 1
            assert membership_of(one).trouble is None
        await life.settled(two)


def test_a_coordinator_that_keeps_commits_for_its_replicas_hears_of_who_leaves() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one, two = await life.both()
        await life.under_way()
        # As Kafka does while a replica is dead: what is asked has its effect, and is answered later.
        async with life.broker.hold(ApiKey.OFFSET_COMMIT), life.broker.hold(ApiKey.HEARTBEAT) as held:
            await held.arrived(2)
            assert await closed_within(life, one, 5) < 4
            assert left(life) == 1
        began = life.sim.now()
        await life.settled(two)
        assert life.sim.now() - began < 4  # before the session would be over
        await life.all_read()


def test_who_unsubscribes_while_nobody_coordinates_the_group_is_no_member_any_more() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one")
        await life.settled(one)
        await life.under_way()
        on, apis = life.broker.on, (ApiKey.HEARTBEAT, ApiKey.OFFSET_COMMIT, ApiKey.LEAVE_GROUP)
        away = [on(api, answer=ErrorCode.NOT_COORDINATOR, times=None) for api in apis]
        began, machine = life.sim.now(), membership_of(one).machine
        await one.consumer.unsubscribe(timeout=5)
        assert life.sim.now() - began < 1
        with anyio.fail_after(6):
            await membership_of(one).until(lambda: machine.state is GroupState.OUTSIDE)
        for order in away:
            order.remove()
        one.subscribe(TOPIC)
        await life.settled(one)
        await life.all_read()


def test_a_member_that_has_not_yet_joined_again_leaves_as_the_one_it_was() -> None:
    @in_a_group(feeds=False)
    async def _(life: Life) -> None:
        one, two = await life.both()
        async with life.broker.hold(ApiKey.JOIN_GROUP, after=2) as held:
            three = await life.join("three")
            await held.arrived(2)
            assert membership_of(two).machine.state is GroupState.JOINING
            await closed_within(life, two, 5)
        began = life.sim.now()
        await life.settled(one, three)
        assert life.sim.now() - began < 5


@pytest.mark.parametrize("word", ["assigned", "revoked"])
def test_closing_ends_in_time_while_a_listener_hangs(word: str) -> None:
    @in_a_group(feeds=False)
    async def _(life: Life) -> None:
        one = await life.join("one")
        await life.settled(one)
        two = await life.join("two", reads=False)

        async def hang(_: tuple[TopicPartition, ...]) -> None:
            await anyio.sleep_forever()

        hanging = two if word == "assigned" else one
        hanging.on = {word: hang}  # type: ignore[dict-item]
        await until(lambda: hanging.words()[-1:] == [word])
        await closed_within(life, hanging, 5)
        assert hanging.words().count("revoked") <= 1  # it is not told twice
        other = one if hanging is two else two
        life.readers.read(other)
        await life.settled(other)


def test_closing_does_not_wait_for_what_is_in_hand_as_a_rebalance_does() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one", reads=False)
        with anyio.fail_after(60):
            await anext(one.consumer)
        two = await life.join("two")
        await until(lambda: membership_of(one).machine.state is GroupState.PREPARING)
        await anyio.sleep(5)
        assert await closed_within(life, one, 5) < 1
        assert (one.words(), left(life)) == (["assigned", "revoked"], 1)
        await life.settled(two)


def test_closing_ends_in_time_while_a_commit_is_under_way() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one", enable_auto_commit=False)
        await life.settled(one)
        await life.all_read()
        async with life.broker.hold(ApiKey.OFFSET_COMMIT) as held, anyio.create_task_group() as tasks:
            tasks.start_soon(one.consumer.commit, one.consumer.positions())
            await held.arrived()
            await closed_within(life, one, 5)
            tasks.cancel_scope.cancel()


def test_closing_commits_what_is_finished_before_it_leaves() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one", auto_commit_interval_ms=60_000)
        await life.settled(one)
        await life.all_read()
        assert life.broker.requests.of(ApiKey.OFFSET_COMMIT) == []
        await closed_within(life, one, 5)
        asked = [one.api for one in life.broker.requests.of() if one.api in (ApiKey.OFFSET_COMMIT, ApiKey.LEAVE_GROUP)]
        assert asked == [ApiKey.OFFSET_COMMIT, ApiKey.LEAVE_GROUP]
        two = await life.join("two")
        await life.settled(two)
        await life.all_read()
        # At most the record that was in hand comes twice.
        found = life.read()
        assert len(found) - len(set(found)) <= 1


def test_closing_waits_for_its_commit_also_after_a_commit_that_was_refused() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one", auto_commit_interval_ms=60_000)
        await life.settled(one)
        await life.all_read()
        async with life.broker.hold(ApiKey.HEARTBEAT):
            too_large = OffsetAndMetadata(0, "x" * 10_000)
            with pytest.raises(OffsetMetadataTooLarge):
                await one.consumer.commit({TopicPartition(TOPIC, 0): too_large})
            member = one.consumer.health().membership
            assert member is not None
            assert member.trouble is None
            life.broker.on(ApiKey.OFFSET_COMMIT, delay_answer=1)
            assert 1 <= await closed_within(life, one, 5) < 2
        assert one.words() == ["assigned", "revoked"]


def test_a_static_member_closes_without_a_word() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one", group_instance_id="i")
        await life.settled(one)
        assert await closed_within(life, one, 5) < 1
        assert left(life) == 0


def test_who_unsubscribes_has_left_and_may_subscribe_again() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one, two = await life.both()
        await two.consumer.unsubscribe()
        assert (two.consumer.assignment, two.words()[-1], left(life)) == ((), "revoked", 1)
        await life.settled(one)
        two.subscribe(TOPIC)
        await life.settled(one, two)
        await life.all_read()
        assert one.errors == two.errors == []


def test_who_subscribes_again_while_it_still_leaves_joins_after_that() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await life.join("one")
        await life.settled(one)
        async with life.broker.hold(ApiKey.LEAVE_GROUP) as held:
            await one.consumer.unsubscribe(timeout=1)
            assert (len(held.waiting), membership_of(one).machine.state) == (1, GroupState.LEAVING)
            one.subscribe(TOPIC)
        await life.settled(one)
        await life.all_read()


# --- what comes in between -----------------------------------------------------------------------------------------


def test_a_rebalance_that_comes_before_the_last_one_was_taken_leaves_what_it_has() -> None:
    """Cooperative: what has to go is in hand yet when the next rebalance begins, and is read on until that is over."""

    @in_a_group()
    async def _(life: Life) -> None:
        options: dict[str, Any] = {"partition_assignment_strategy": ["cooperative-sticky"]}
        await anyio.sleep(5)
        one = await life.join("one", reads=False, **options)
        await life.readers.share(one, count=6)
        await anyio.sleep(2)
        one.records += await one.consumer.poll(10_000)
        assert {record.partition for record in one.records} == set(range(6))
        two = await life.join("two", **options)
        await until(lambda: membership_of(two).machine.state is GroupState.STABLE)
        generation = membership_of(one).machine.group.generation_id
        three = await life.join("three", **options)
        await until(lambda: membership_of(one).machine.group.generation_id > generation)
        # It has not given up anything, and says so as a member of the generation before.
        assert set(one.consumer.assignment) == partitions()
        life.readers.read(one)
        await life.settled(one, two, three)
        await life.all_read()
        everywhere = [(each.partition, each.offset) for reader in life.readers.all for each in reader.records]
        assert len(everywhere) == len(set(everywhere))


async def until(reached: Callable[[], bool]) -> None:
    for _ in range(600):
        if reached():
            return
        await anyio.sleep(0.1)
    raise AssertionError("waited in vain")


def test_what_had_to_go_and_stays_after_all_is_read_on() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        options: dict[str, Any] = {"partition_assignment_strategy": ["cooperative-sticky"]}
        await anyio.sleep(5)
        one = await life.join("one", reads=False, **options)
        await life.readers.share(one, count=6)
        await anyio.sleep(2)
        one.records += await one.consumer.poll(10_000)
        two = await life.join("two", **options)
        await until(lambda: membership_of(two).machine.state is GroupState.STABLE)
        await until(lambda: membership_of(one).machine.task is not None)
        generation = membership_of(one).machine.group.generation_id
        await two.close()  # before it got what is in hand yet
        await until(lambda: membership_of(one).machine.group.generation_id > generation)
        life.readers.read(one)
        await life.settled(one)
        assert one.words() == ["assigned"]
        await life.all_read()
        assert life.once()
