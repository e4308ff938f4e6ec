"""Kafka's kafka-consumer-groups.sh, asked about a group of ours."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Final

import anyio
from support.java_tools import java_command
from support.readers import Reader, reading

from aiokafkawire import Client, OffsetAndMetadata, TopicPartition

__all__ = ("check_what_the_tool_tells", "rows")

_TOOL: Final = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_CLIENTS: Final = ("first-of-ours", "second-of-ours")


async def check_what_the_tool_tells(bootstrap: str, name: str) -> None:
    """Have two members share a topic of three partitions and commit; the tool knows who, where, and how far."""
    tool = [*java_command(), _TOOL, "--bootstrap-server", bootstrap, "--describe", "--group", name]
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(Client(bootstrap, client_id=who)) for who in _CLIENTS]
        readers = await stack.enter_async_context(reading())
        await clients[0].admin.create_topics({name: 3})
        async with clients[0].producer() as producer:
            for index in range(3):
                await producer.send_many(name, [b"v"] * 10, partition=index)
        joined = [await readers.join(client, name, name, enable_auto_commit=False) for client in clients]
        members = dict(zip(_CLIENTS, joined, strict=True))
        await readers.share(*joined, count=3)
        committed = {TopicPartition(name, index): OffsetAndMetadata(7 + index) for index in range(3)}
        for reader in joined:
            await reader.consumer.commit({where: committed[where] for where in reader.owned})
        _check_partitions(await rows(*tool), members, committed)
        _check_members(await rows(*tool, "--members", "--verbose"), members, name)
        (state,) = await rows(*tool, "--state")
        assert (state["ASSIGNMENT-STRATEGY"], state["STATE"], state["#MEMBERS"]) == ("range", "Stable", "2")


def _check_partitions(
    rows: list[dict[str, str]], members: dict[str, Reader], committed: dict[TopicPartition, OffsetAndMetadata]
) -> None:
    assert len(rows) == len(committed)
    for row in rows:
        where = TopicPartition(row["TOPIC"], int(row["PARTITION"]))
        member, offset = members[row["CLIENT-ID"]], committed[where].offset
        assert where in member.owned
        assert (row["CONSUMER-ID"], row["HOST"]) == (_id(member), "/127.0.0.1")
        assert (row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"]) == (str(offset), "10", str(10 - offset))


def _check_members(rows: list[dict[str, str]], members: dict[str, Reader], topic: str) -> None:
    assert {row["CLIENT-ID"] for row in rows} == set(members)
    for row in rows:
        member = members[row["CLIENT-ID"]]
        indexes = [str(where.partition) for where in sorted(member.owned)]
        assert (row["CONSUMER-ID"], row["HOST"]) == (_id(member), "/127.0.0.1")
        assert (row["#PARTITIONS"], row["CURRENT-ASSIGNMENT"]) == (str(len(indexes)), f"{topic}:{','.join(indexes)}")


def _id(member: Reader) -> str:
    return member.consumer.group_metadata().member_id


async def rows(*command: str) -> list[dict[str, str]]:
    """What a tool prints as a table, each row by its columns; sentences, with a full stop at their end, are no rows."""
    done = await anyio.run_process(command, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    lines = [line for line in done.stdout.decode().splitlines() if line.strip() and not line.endswith(".")]
    header, *found = [line.split() for line in lines] or [[]]
    return [dict(zip(header, words, strict=True)) for words in found]
