"""Listeners of rebalances that take long, while the assignment or the membership changes. In virtual time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
from support.group_lives import COUNT, GROUP, TOPIC, Life, in_a_group
from support.readers import Partitions, Reader

from aiokafkawire import TopicPartition


async def join(life: Life, name: str, protocol: str = "consumer", **options: Any) -> Reader:
    client = await life.client(name, client_id=name)
    return await life.readers.join(client, GROUP, TOPIC, group_protocol=protocol, **options)


async def until(reached: Callable[[], bool]) -> None:
    for _ in range(1_000):
        if reached():
            return
        await anyio.sleep(0.1)
    raise AssertionError("waited in vain")


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
