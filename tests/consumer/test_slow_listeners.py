"""Listeners of rebalances that take long, while the assignment or the membership changes. In virtual time."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from support.group_lives import COUNT, GROUP, TOPIC, Life, in_a_group, membership_of
from support.readers import Partitions, Reader
from support.virtual_time import until

from aiokafkawire import TopicPartition
from aiokafkawire.errors import CommitFailed, ErrorCode, GroupAuthorizationFailed
from aiokafkawire.group.membership import GroupState, PrepareRejoin
from aiokafkawire.protocol.api import ApiKey


async def join(life: Life, name: str, protocol: str = "consumer", **options: Any) -> Reader:
    client = await life.client(name, client_id=name)
    return await life.readers.join(client, GROUP, TOPIC, group_protocol=protocol, **options)


def test_partitions_that_a_listener_still_takes_go_to_another_member_only_after_they_are_revoked() -> None:
    @in_a_group(feeds=False)
    async def _(life: Life) -> None:
        one = await join(life, "one")
        taken: set[TopicPartition] = set()
        shared: list[TopicPartition] = []

        async def take_long(partitions: Partitions) -> None:
            taken.update(partitions)
            await anyio.sleep(30)  # six heartbeats

        async def give_up(partitions: Partitions) -> None:
            taken.difference_update(partitions)

        async def compare(partitions: Partitions) -> None:
            shared.extend(taken.intersection(partitions))

        one.on = {"assigned": take_long, "revoked": give_up}
        await until(lambda: len(taken) == COUNT)
        two = await join(life, "two")
        two.on = {"assigned": compare}
        await life.settled(one, two)
        assert shared == []


@pytest.mark.parametrize(("word", "seed"), [("assigned", 1), ("revoked", 4)])
def test_a_member_whose_membership_has_ended_reads_nothing_until_it_has_lost_its_partitions(
    word: str, seed: int
) -> None:
    """Before it loses them, a member that chooses the protocol asks which one its group has by now."""

    @in_a_group(seed=seed)
    async def _(life: Life) -> None:
        await anyio.sleep(5)
        one = await join(life, "one", "auto", reads=False)
        gate = anyio.Event()

        async def wait(_: Partitions) -> None:
            await gate.wait()

        if word == "assigned":
            one.on = {"assigned": wait}
            await until(lambda: one.words() == ["assigned"])
        else:
            await life.readers.share(one, count=COUNT)
            await anyio.sleep(2)
            assert {record.partition for record in await one.consumer.poll(10_000)} == set(range(COUNT))
            await join(life, "two", "auto", reads=False)
            await until(lambda: any(part.being_given_up for part in one.consumer.health().partitions.values()))
            await anyio.sleep(5)
        life.broker.on(ApiKey.CONSUMER_GROUP_HEARTBEAT, answer=ErrorCode.UNKNOWN_MEMBER_ID, client_id="one")
        async with life.broker.hold(ApiKey.CONSUMER_GROUP_DESCRIBE) as held:
            machine = membership_of(one).machine
            await until(lambda: isinstance(machine.task, PrepareRejoin))
            gate.set()
            await held.arrived()
            assert await one.consumer.poll(timeout=3) == []


def test_a_commit_does_not_wait_for_a_rebalance_whose_listener_waits_for_the_commit() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await join(life, "one", "classic", reads=False, enable_auto_commit=False)
        await life.readers.share(one, count=COUNT)
        partition = TopicPartition(TOPIC, 0)
        refused = anyio.Event()

        async def commit(_: Partitions) -> None:
            await refused.wait()
            await one.consumer.commit({partition: 0})

        one.on = {"revoked": commit}
        two = await join(life, "two", "classic")
        await until(lambda: one.words()[-1:] == ["revoked"])
        rule = life.broker.on(ApiKey.OFFSET_COMMIT, answer=ErrorCode.UNKNOWN_MEMBER_ID)
        began = life.sim.now()
        async with anyio.create_task_group() as tasks:

            async def release() -> None:
                await rule.met()
                await anyio.sleep(1)
                refused.set()

            tasks.start_soon(release)
            with pytest.raises(CommitFailed):
                await one.consumer.commit({partition: 0})
        assert life.sim.now() - began < 5
        life.readers.read(one)
        await life.settled(one, two)


def test_a_commit_does_not_wait_for_a_rebalance_that_waits_to_commit_by_itself() -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await join(life, "one", "classic", reads=False, auto_commit_interval_ms=600_000)
        await life.readers.share(one, count=COUNT)
        await one.consumer.poll(10_000)
        await one.consumer.poll(timeout=0)
        life.broker.on(ApiKey.OFFSET_COMMIT, answer=ErrorCode.UNKNOWN_MEMBER_ID, delay_answer=5)
        began = life.sim.now()
        async with anyio.create_task_group() as tasks:

            async def commit() -> None:
                with pytest.raises(CommitFailed):
                    await one.consumer.commit({TopicPartition(TOPIC, 0): 0})

            tasks.start_soon(commit)
            two = await join(life, "two", "classic")
            await until(lambda: membership_of(one).machine.state is GroupState.PREPARING)
            assert life.sim.now() - began < 5
        assert life.sim.now() - began < 10
        life.readers.read(one)
        await life.settled(one, two)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_poll_while_a_listener_delays_the_loss_of_partitions_hides_no_error(protocol: str) -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await join(life, "one", protocol, reads=False)
        gate = anyio.Event()

        async def wait(_: Partitions) -> None:
            await gate.wait()

        one.on = {"assigned": wait}
        await until(lambda: one.words() == ["assigned"])
        api = ApiKey.HEARTBEAT if protocol == "classic" else ApiKey.CONSUMER_GROUP_HEARTBEAT
        life.broker.on(api, answer=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        await until(lambda: membership_of(one).machine.state is GroupState.FAILED)
        assert await one.consumer.poll(timeout=1) == []
        gate.set()
        with pytest.raises(GroupAuthorizationFailed):
            await one.consumer.poll(timeout=10)
        await until(lambda: one.words() == ["assigned", "lost"])
        life.readers.read(one)
        await life.settled(one)
        await life.all_read()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("has_ended", [False, True])
def test_a_consumer_that_unsubscribes_while_a_listener_hangs_has_no_partitions(protocol: str, has_ended: bool) -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await join(life, "one", protocol, reads=False)
        gate = anyio.Event()

        async def wait(_: Partitions) -> None:
            await gate.wait()

        one.on = {"assigned": wait}
        await until(lambda: one.words() == ["assigned"])
        if has_ended:
            api = ApiKey.HEARTBEAT if protocol == "classic" else ApiKey.CONSUMER_GROUP_HEARTBEAT
            life.broker.on(api, answer=ErrorCode.UNKNOWN_MEMBER_ID)
            await until(lambda: isinstance(membership_of(one).machine.task, PrepareRejoin))
        await one.consumer.unsubscribe(timeout=1)
        assert one.consumer.assignment == ()
        gate.set()
        assert await one.consumer.poll(timeout=5) == []
        one.on, one.owned = {}, set()
        one.subscribe(TOPIC)
        life.readers.read(one)
        await life.settled(one)
        await life.all_read()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_poll_after_the_error_rejoins_although_a_listener_delays_the_loss_of_partitions(protocol: str) -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await join(life, "one", protocol, reads=False)
        await until(lambda: one.words() == ["assigned"])
        gate = anyio.Event()

        async def wait(_: Partitions) -> None:
            await gate.wait()

        async def open_later() -> None:
            await until(lambda: one.words()[-1] == "lost")
            await anyio.sleep(1)
            gate.set()

        async def read() -> None:
            with pytest.raises(GroupAuthorizationFailed):
                while await one.consumer.poll(timeout=50):
                    pass
            one.on = {}
            assert await one.consumer.poll(timeout=50)

        one.on = {"lost": wait}
        api = ApiKey.HEARTBEAT if protocol == "classic" else ApiKey.CONSUMER_GROUP_HEARTBEAT
        life.broker.on(api, answer=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(open_later)
            tasks.start_soon(read)
