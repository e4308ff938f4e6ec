"""Kafka's kafka-acls.sh, compared with what our admin makes and says of ACLs."""

from __future__ import annotations

import re
from pathlib import Path
from secrets import token_hex
from typing import Final

import anyio
from support.authorizing import ADMIN, Authorizing, password
from support.java_tools import java_command

from aiokafkawire import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    Client,
    PatternType,
    ResourcePattern,
    ResourceType,
)

__all__ = ("check_that_the_tool_agrees",)

_TOOL: Final = "org.apache.kafka.tools.AclCommand"
_RESOURCE: Final = re.compile(r"ResourcePattern\(resourceType=(\w+), name=(\S+), patternType=(\w+)\)")
_ENTRY: Final = re.compile(r"\(principal=(\S+), host=(\S+), operation=(\w+), permissionType=(\w+)\)")
_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"


async def check_that_the_tool_agrees(guarded: Authorizing, folder: Path) -> None:
    """Make ACLs with our admin, and list them with the tool; then make some with the tool, and delete them with it."""
    user, name = guarded.new_user(), f"orders-{token_hex(4)}"
    alice = f"User:{user}"
    ours = [
        AclBinding(ResourcePattern.topic(name), alice, AclOperation.READ),
        AclBinding(ResourcePattern.topic(name, prefixed=True), alice, AclOperation.WRITE, host="198.51.100.1"),
        AclBinding(ResourcePattern.group("*"), alice, AclOperation.DESCRIBE, AclPermissionType.DENY),
        AclBinding(ResourcePattern.cluster(), alice, AclOperation.IDEMPOTENT_WRITE),
        AclBinding(ResourcePattern.transactional_id(name), alice, AclOperation.ALL),
        AclBinding(ResourcePattern.user("User:bob"), alice, AclOperation.DESCRIBE_TOKENS),
    ]
    async with guarded.client() as kafka:
        await guarded.grant(kafka, *ours)
        tool = _Tool(guarded.bootstrap, folder)
        assert await tool.listed("--principal", alice) == set(ours)
        await tool.run("--add", "--allow-principal", alice, "--producer", "--topic", f"{name}-2")
        made = {
            AclBinding(ResourcePattern.topic(f"{name}-2"), alice, operation)
            for operation in (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE)
        }
        await guarded.until(kafka, lambda known: made <= set(known))
        assert set(await _described(kafka, alice)) == made | set(ours)
        matching = AclBindingFilter(
            resource_type=ResourceType.TOPIC, resource_name=f"{name}-2", pattern_type=PatternType.MATCH, principal=alice
        )
        pattern = ("--topic", f"{name}-2", "--resource-pattern-type", "match")
        assert await tool.listed(*pattern, "--principal", alice) == set(await kafka.admin.describe_acls(matching))
        await tool.run("--remove", "--force", "--allow-principal", alice, "--producer", "--topic", f"{name}-2")
        await guarded.until(kafka, lambda known: not made & set(known))
        assert set(await _described(kafka, alice)) == set(ours)
        await guarded.revoke(kafka, *ours)
        assert await tool.listed("--principal", alice) == set()


async def _described(kafka: Client, principal: str) -> list[AclBinding]:
    return await kafka.admin.describe_acls(AclBindingFilter(principal=principal))


class _Tool:
    """The tool, logged in as who may do everything."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        settings = folder / "client.properties"
        login = f'{_MODULE} required username="{ADMIN}" password="{password(ADMIN)}";'
        settings.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={login}\n")
        where = ["--bootstrap-server", bootstrap, "--command-config", str(settings)]
        self._command = [*java_command(), _TOOL, *where]

    async def run(self, *arguments: str) -> str:
        done = await anyio.run_process([*self._command, *arguments], check=False)
        assert done.returncode == 0, (done.stdout + done.stderr).decode()
        return done.stdout.decode()

    async def listed(self, *arguments: str) -> set[AclBinding]:
        """The ACLs that it lists."""
        found, pattern = set[AclBinding](), None
        for line in (await self.run("--list", *arguments)).splitlines():
            resource, entry = _RESOURCE.search(line), _ENTRY.search(line)
            if resource is not None:
                kind, name, pattern_type = resource.groups()
                pattern = ResourcePattern(ResourceType[kind], name, PatternType[pattern_type])
            elif entry is not None:
                assert pattern is not None
                principal, host, operation, permission = entry.groups()
                found.add(AclBinding(pattern, principal, AclOperation[operation], AclPermissionType[permission], host))
        return found
