"""Kafka's kafka-share-groups.sh and kafka-console-share-consumer.sh, compared with what our admin says of a group."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import anyio
from support.groups_tool import rows
from support.java_tools import java_command

from aiokafkawire import Client, ConfigResource, ShareGroupDescription, SharePartitionOffsetInfo, TopicPartition
from aiokafkawire.errors import GroupIdNotFound

from .patience import PATIENCE

__all__ = ("check_a_share_group_of_javas",)

_TOOL: Final = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
_CONSOLE: Final = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"


async def check_a_share_group_of_javas(bootstrap: str, name: str) -> None:
    """Have Java's consumer read a topic of three partitions; the tool and our admin agree, before and after it ends."""
    group = ConfigResource.group(name)
    async with Client(bootstrap) as kafka:
        await kafka.admin.create_topics({name: 3})
        await kafka.admin.incremental_alter_configs({group: {"share.auto.offset.reset": "earliest"}})
        async with kafka.producer() as producer:
            await producer.send_many(name, [b"v"] * 10, partition=1)
        try:
            async with _reading(bootstrap, name):
                await _until(lambda: _lag(kafka, name), 0)
                stable = await _check(kafka, bootstrap, name)
                assert (stable.state, len(stable.members)) == ("Stable", 1)
                assert stable.members[0].client_id == "console-share-consumer"
            await _until(lambda: _state(kafka, name), "Empty")
            await kafka.admin.alter_share_group_offsets(name, {TopicPartition(name, 1): 4, TopicPartition(name, 2): 0})
            empty = await _check(kafka, bootstrap, name)
            assert (empty.state, empty.members) == ("Empty", ())
            assert await _lag(kafka, name) == 6
        finally:
            await kafka.admin.incremental_alter_configs({group: {"share.auto.offset.reset": None}})


@asynccontextmanager
async def _reading(bootstrap: str, name: str) -> AsyncIterator[None]:
    command = [*java_command(), _CONSOLE, "--bootstrap-server", bootstrap, "--topic", name, "--group", name]
    async with await anyio.open_process(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
            process.terminate()
            with anyio.fail_after(PATIENCE):
                await process.wait()
        finally:
            if process.returncode is None:
                process.kill()


async def _until(ask: Callable[[], Awaitable[object]], expected: object) -> None:
    """Wait for what another process does."""
    with anyio.fail_after(PATIENCE):
        while True:
            if await ask() == expected:
                return
            await anyio.sleep(0.05)


async def _lag(kafka: Client, group: str) -> int | None:
    """The lag of all partitions; None until the group has read."""
    try:
        offsets = await kafka.admin.list_share_group_offsets(group)
    except GroupIdNotFound:
        return None
    lags = [offset.lag for offset in offsets.values() if offset.lag is not None]
    return sum(lags) if lags else None


async def _state(kafka: Client, group: str) -> str:
    return (await kafka.admin.describe_share_groups(group))[group].state


async def _check(kafka: Client, bootstrap: str, group: str) -> ShareGroupDescription:
    """Compare all that the tool prints with what our admin returns."""
    tool = [*java_command(), _TOOL, "--bootstrap-server", bootstrap, "--describe", "--group", group, "--verbose"]
    offsets = await kafka.admin.list_share_group_offsets(group)
    described = (await kafka.admin.describe_share_groups(group))[group]
    assert await rows(*tool, "--offsets") == [_offset_row(group, where, offset) for where, offset in offsets.items()]
    assert await rows(*tool, "--members") == _member_rows(described)
    (state,) = await rows(*tool, "--state")
    assert state.pop("(ID)").strip("()").isdigit()
    assert state == {
        "GROUP": group,
        "COORDINATOR": str(described.coordinator),
        "STATE": described.state,
        "GROUP-EPOCH": str(described.group_epoch),
        "ASSIGNMENT-EPOCH": str(described.assignment_epoch),
        "#MEMBERS": str(len(described.members)),
    }
    return described


def _offset_row(group: str, where: TopicPartition, offset: SharePartitionOffsetInfo) -> dict[str, str]:
    return {
        "GROUP": group,
        "TOPIC": where.topic,
        "PARTITION": str(where.partition),
        "LEADER-EPOCH": _shown(offset.leader_epoch),
        "START-OFFSET": _shown(offset.start_offset),
        "LAG": _shown(offset.lag),
    }


def _shown(number: int | None) -> str:
    return "-" if number is None else str(number)


def _member_rows(described: ShareGroupDescription) -> list[dict[str, str]]:
    found = []
    for member in described.members:
        (topic,) = member.subscription
        indexes = ",".join(str(partition.partition) for partition in member.assignment)
        found.append(
            {
                "GROUP": described.group_id,
                "CONSUMER-ID": member.member_id,
                "HOST": member.client_host,
                "CLIENT-ID": member.client_id,
                "#PARTITIONS": str(len(member.assignment)),
                "MEMBER-EPOCH": str(member.member_epoch),
                "ASSIGNMENT": f"{topic}:{indexes}",
            }
        )
    return found
