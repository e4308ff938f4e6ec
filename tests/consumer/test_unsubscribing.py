"""Consumers that unsubscribe: they stay outside of the group, and may join it again later. In virtual time."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from support.group_lives import COUNT, GROUP, TOPIC, Life, in_a_group, membership_of
from support.readers import Reader
from support.virtual_time import until

from aiokafkawire.errors import ErrorCode
from aiokafkawire.group.membership import GroupState
from aiokafkawire.protocol.api import ApiKey

PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])


async def join(life: Life, protocol: str, *topics: str, **options: Any) -> Reader:
    """Return a member that may take 20 s between two polls."""
    named = topics or (() if "pattern" in options else (TOPIC,))
    options = {"group_protocol": protocol, "max_poll_interval_ms": 20_000, **options}
    client = await life.client("one", metadata_max_age_ms=1_000)
    return await life.readers.join(client, GROUP, *named, **options)


def joins(life: Life) -> int:
    """Return how many requests to join the group were sent."""
    heartbeats = life.broker.requests.of(ApiKey.CONSUMER_GROUP_HEARTBEAT)
    first = [sent for sent in heartbeats if sent.request.member_epoch == 0]
    return len(life.broker.requests.of(ApiKey.JOIN_GROUP)) + len(first)


def leaves(life: Life) -> int:
    """Return how many requests to leave the group were sent."""
    heartbeats = life.broker.requests.of(ApiKey.CONSUMER_GROUP_HEARTBEAT)
    last = [sent for sent in heartbeats if sent.request.member_epoch < 0]
    return len(life.broker.requests.of(ApiKey.LEAVE_GROUP)) + len(last)


async def until_overdue(one: Reader) -> None:
    driver = membership_of(one)
    await until(lambda: driver.overdue and driver.machine.state is GroupState.OUTSIDE and driver.machine.task is None)


@PROTOCOLS
def test_a_member_that_has_subscribed_again_still_leaves_when_its_user_polls_no_more(protocol: str) -> None:
    @in_a_group(feeds=False)
    async def _(life: Life) -> None:
        one = await join(life, protocol, reads=False)
        await life.readers.share(one, count=COUNT)
        await one.consumer.unsubscribe()
        one.subscribe(TOPIC)
        await life.readers.share(one, count=COUNT)
        before = leaves(life)
        await until_overdue(one)
        assert leaves(life) == before + 1
        assert membership_of(one).trouble is None


@PROTOCOLS
def test_a_consumer_that_was_overdue_and_has_unsubscribed_joins_no_group_when_it_polls(protocol: str) -> None:
    @in_a_group(feeds=False)
    async def _(life: Life) -> None:
        one = await join(life, protocol, reads=False)
        await life.readers.share(one, count=COUNT)
        await until_overdue(one)
        await one.consumer.unsubscribe()
        member = one.consumer.health().membership
        assert member is not None
        assert not member.overdue
        before = joins(life)
        assert await one.consumer.poll(timeout=10) == []
        assert joins(life) == before
        one.subscribe(TOPIC)
        await life.readers.share(one, count=COUNT)


@PROTOCOLS
def test_time_without_a_subscription_does_not_count_as_time_without_a_poll(protocol: str) -> None:
    @in_a_group(feeds=False)
    async def _(life: Life) -> None:
        one = await join(life, protocol, reads=False)
        await life.readers.share(one, count=COUNT)
        await one.consumer.unsubscribe()
        await anyio.sleep(60)
        one.subscribe(TOPIC)
        await life.readers.share(one, count=COUNT)
        assert not membership_of(one).overdue
        await until_overdue(one)


@PROTOCOLS
def test_the_error_of_an_earlier_membership_is_over_with_the_next(protocol: str) -> None:
    @in_a_group(feeds=False)
    async def _(life: Life) -> None:
        api = ApiKey.JOIN_GROUP if protocol == "classic" else ApiKey.CONSUMER_GROUP_HEARTBEAT
        life.broker.on(api, answer=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        one = await join(life, protocol, reads=False)
        driver = membership_of(one)
        await until(lambda: driver.machine.state is GroupState.FAILED and driver.machine.task is None)
        await one.consumer.unsubscribe()
        one.subscribe(TOPIC)
        await life.readers.share(one, count=COUNT)
        member = one.consumer.health().membership
        assert member is not None
        assert member.trouble is None


@PROTOCOLS
@pytest.mark.parametrize("waits_for", ["commit", "leave"])
def test_a_cancelled_call_unsubscribes_nevertheless(protocol: str, waits_for: str) -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        leave = ApiKey.LEAVE_GROUP if protocol == "classic" else ApiKey.CONSUMER_GROUP_HEARTBEAT
        one = await join(life, protocol)
        await life.readers.share(one, count=COUNT)
        await life.under_way()
        async with life.broker.hold(ApiKey.OFFSET_COMMIT if waits_for == "commit" else leave):
            with anyio.move_on_after(0.5) as cancelled:
                await one.consumer.unsubscribe()
        assert cancelled.cancelled_caught
        assert (one.consumer.assignment, one.consumer.subscription) == ((), ())
        one.subscribe(TOPIC)
        await life.readers.share(one, count=COUNT)
        await life.all_read()


def test_a_topic_that_appears_while_a_consumer_leaves_does_not_bring_it_back() -> None:
    @in_a_group(feeds=False)
    async def _(life: Life) -> None:
        one = await join(life, "consumer", pattern="t.*")
        await life.readers.share(one, count=COUNT)
        async with life.broker.hold(ApiKey.CONSUMER_GROUP_HEARTBEAT), anyio.create_task_group() as tasks:
            tasks.start_soon(one.consumer.unsubscribe)
            await until(lambda: membership_of(one).machine.state is GroupState.LEAVING)
            life.broker.create_topic("t2")
            await anyio.sleep(3)
        await anyio.sleep(10)
        assert membership_of(one).machine.state is GroupState.OUTSIDE
        assert joins(life) == 1


@PROTOCOLS
def test_a_commit_that_is_not_answered_leaves_no_partitions_behind(protocol: str) -> None:
    @in_a_group()
    async def _(life: Life) -> None:
        one = await join(life, protocol)
        await life.readers.share(one, count=COUNT)
        await life.under_way()
        async with life.broker.hold(ApiKey.OFFSET_COMMIT):
            await one.consumer.unsubscribe(timeout=1)
        assert one.consumer.assignment == ()
        one.subscribe(TOPIC)
        await life.readers.share(one, count=COUNT)
        await life.all_read()
