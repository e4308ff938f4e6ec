"""Kafka's kafka-streams-groups.sh, compared with what our admin says of a group."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import anyio
from support.java_tools import java_command
from support.raw_client import RawClient
from support.streams_members import StreamsMember
from support.transactional import settled

from aiokafkawire import Client, StreamsGroupDescription
from aiokafkawire.network.connector import connect_tcp

__all__ = ("check_the_streams_groups_tool",)

_TOOL: Final = "org.apache.kafka.tools.streams.StreamsGroupCommand"
_BETWEEN_HEARTBEATS: Final = 1.0


async def check_the_streams_groups_tool(bootstrap: str, name: str) -> None:
    """Have a member join, and leave; the tool and our admin agree on the group, and on its end."""
    host, _, port = bootstrap.rpartition(":")
    async with AsyncExitStack() as stack:
        kafka = await stack.enter_async_context(Client(bootstrap))
        client = await stack.enter_async_context(RawClient(await connect_tcp(host, int(port))))
        await kafka.admin.create_topics({name: 3})
        await kafka.admin.list_consumer_group_offsets(name)
        member = StreamsMember(client, name, name)
        await member.join()

        async def described() -> StreamsGroupDescription:
            await member.own_tasks()
            return (await kafka.admin.describe_streams_groups(name))[name]

        stable = await settled(described, lambda one: one.state == "Stable" and bool(member.tasks))
        async with _heartbeats(member):
            await _check_state(bootstrap, stable)
            (row,) = await _table(bootstrap, name, "--members")
        (known,) = stable.members
        tasks = ",".join(str(index) for index in known.assignment.active_tasks["0"])
        assert row == {
            "GROUP": name,
            "TARGET-ASSIGNMENT-EPOCH": str(stable.assignment_epoch),
            "TOPOLOGY-EPOCH": str(known.topology_epoch),
            "MEMBER": known.member_id,
            "MEMBER-PROTOCOL": "streams",
            "MEMBER-EPOCH": str(known.member_epoch),
            "PROCESS": known.process_id,
            "CLIENT-ID": known.client_id,
            "ASSIGNMENTS": f"ACTIVE: 0:[{tasks}]; TARGET-ACTIVE: 0:[{tasks}];",
        }
        await member.leave()
        await _check_state(bootstrap, (await kafka.admin.describe_streams_groups(name))[name])
        await kafka.admin.delete_streams_groups(name)
        assert name not in (await _run(bootstrap, "--list")).split()


async def _check_state(bootstrap: str, described: StreamsGroupDescription) -> None:
    (row,) = await _table(bootstrap, described.group_id, "--state")
    assert row.pop("(ID)").strip("()").isdigit()
    assert row == {
        "GROUP": described.group_id,
        "COORDINATOR": str(described.coordinator),
        "STATE": described.state,
        "GROUP-EPOCH": str(described.group_epoch),
        "TARGET-ASSIGNMENT-EPOCH": str(described.assignment_epoch),
        "#MEMBERS": str(len(described.members)),
    }


@asynccontextmanager
async def _heartbeats(member: StreamsMember) -> AsyncIterator[None]:
    """Keep a member in its group while the tool starts."""

    async def beat() -> None:
        while True:
            await anyio.sleep(_BETWEEN_HEARTBEATS)
            with anyio.CancelScope(shield=True):  # the next request needs a whole answer to this one
                await member.heartbeat()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(beat)
        yield
        tasks.cancel_scope.cancel()


async def _table(bootstrap: str, group: str, what: str) -> list[dict[str, str]]:
    """What the tool prints as a table, each row by its columns; only the last column has spaces."""
    printed = await _run(bootstrap, "--describe", "--group", group, what, "--verbose")
    lines = [line for line in printed.splitlines() if line.strip() and not line.endswith(".")]
    header, *found = lines
    names = header.split()
    return [
        dict(zip(names, [word.strip() for word in line.split(None, len(names) - 1)], strict=True)) for line in found
    ]


async def _run(bootstrap: str, *arguments: str) -> str:
    command = [*java_command(), _TOOL, "--bootstrap-server", bootstrap, *arguments]
    done = await anyio.run_process(command, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    return done.stdout.decode()
