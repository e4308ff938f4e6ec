"""Kafka's kafka-consumer-groups.sh and kafka-groups.sh do to groups what our admin does, with the same outcome."""

from __future__ import annotations

from typing import Final

import anyio
import pytest
from support.java_tools import java_command

from aiokafkawire import Client, OffsetAndMetadata, OffsetSpec, TopicPartition
from aiokafkawire.errors import AdminError, GroupIdNotFound

__all__ = ("check_outcomes_of_groups",)

_CONSUMER_GROUPS: Final = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_GROUPS: Final = "org.apache.kafka.tools.GroupsCommand"


async def check_outcomes_of_groups(bootstrap: str, name: str) -> None:
    """Let our admin and the tool each delete offsets, reset offsets and delete groups; the groups end alike."""
    zero, one = TopicPartition(name, 0), TopicPartition(name, 1)
    ours, javas = f"{name}-ours", f"{name}-java"
    async with Client(bootstrap) as kafka:
        admin = kafka.admin
        await admin.create_topics({name: 2})
        async with kafka.producer() as producer:
            await producer.send_many(name, [b"v"] * 5, partition=1)
        for group in (ours, f"{ours}-2", javas, f"{javas}-2"):
            await admin.alter_consumer_group_offsets(group, {zero: 0, one: 4})

        await admin.delete_consumer_group_offsets(ours, [zero])
        await _run(bootstrap, _CONSUMER_GROUPS, "--delete-offsets", "--group", javas, "--topic", f"{name}:0")
        for group in (ours, javas):
            assert await admin.list_consumer_group_offsets(group) == {one: OffsetAndMetadata(4)}, group

        await admin.reset_consumer_group_offsets(ours, {one: OffsetSpec.LATEST})
        where = ["--topic", f"{name}:1", "--to-latest", "--execute"]
        await _run(bootstrap, _CONSUMER_GROUPS, "--reset-offsets", "--group", javas, *where)
        for group in (ours, javas):
            found = (await admin.list_consumer_group_offsets(group))[one]
            assert (found.offset, await admin.consumer_group_lag(group)) == (5, {one: 0}), group

        await _check_listed(kafka, bootstrap, name)
        with pytest.raises(AdminError) as failed:
            await admin.delete_groups(f"{ours}-missing", ours)
        assert failed.value.results == {ours: None}
        assert isinstance(failed.value.errors[f"{ours}-missing"], GroupIdNotFound)
        printed = await _run(
            bootstrap, _CONSUMER_GROUPS, "--delete", "--group", f"{javas}-missing", "--group", javas, may_fail=True
        )
        assert f"'{javas}-missing' could not be deleted" in printed
        assert "GroupIdNotFoundException" in printed
        await _check_listed(kafka, bootstrap, name)
        left = [listed.group_id for listed in await admin.list_groups() if listed.group_id.startswith(name)]
        assert left == sorted([f"{ours}-2", f"{javas}-2"])


async def _check_listed(kafka: Client, bootstrap: str, name: str) -> None:
    listed = await kafka.admin.list_groups()
    printed = await _run(bootstrap, _GROUPS, "--list")
    words = [line.split() for line in printed.splitlines() if line.startswith(name)]
    assert sorted((found[0], found[1].lower()) for found in words) == [
        (group.group_id, group.type) for group in listed if group.group_id.startswith(name)
    ]


async def _run(bootstrap: str, tool: str, *arguments: str, may_fail: bool = False) -> str:
    command = [*java_command(), tool, "--bootstrap-server", bootstrap, *arguments]
    done = await anyio.run_process(command, check=False)
    printed = (done.stdout + done.stderr).decode()
    assert may_fail or done.returncode == 0, printed
    return printed
