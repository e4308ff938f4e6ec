"""Settings asked for and changed over a raw client, for the tests of the broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import anyio

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterableConfig,
    AlterConfigsRequestAlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)

from .patience import PATIENCE
from .raw_client import RawClient

__all__ = (
    "APPEND",
    "BROKER",
    "DELETE",
    "GROUP",
    "LOGGER",
    "METRICS",
    "SET",
    "SUBTRACT",
    "TOPIC",
    "alter",
    "described",
    "refused",
    "replace",
    "told",
    "until",
)

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)

Told = tuple[str, str | None]
"""The name of an error, and the message with it."""


async def described(
    client: RawClient,
    kind: int,
    name: str,
    keys: Iterable[str] | None = None,
    *,
    version: int = 4,
    synonyms: bool = False,
    documentation: bool = False,
) -> DescribeConfigsResult:
    """One resource's settings."""
    asked = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None if keys is None else list(keys)
    )
    request = DescribeConfigsRequest(resources=[asked], include_synonyms=synonyms, include_documentation=documentation)
    return (await client.ask(request, version)).results[0]


async def told(
    client: RawClient, kind: int, name: str, *, synonyms: bool = False, documentation: bool = False
) -> Mapping[str, DescribeConfigsResourceResult]:
    """One resource's settings by name."""
    result = await described(client, kind, name, synonyms=synonyms, documentation=documentation)
    assert (result.error_code, result.error_message) == (0, "")
    return {entry.name: entry for entry in result.configs}


async def until(client: RawClient, kind: int, name: str, **expected: str | None) -> None:
    """Wait until settings (with underscores for dots) are these; Apache Kafka takes a moment to put them in force."""
    with anyio.fail_after(PATIENCE):
        while True:
            entries = await told(client, kind, name)
            wanted = {key.replace("_", "."): value for key, value in expected.items()}
            if {key: entries[key].value if key in entries else None for key in wanted} == wanted:
                return


async def alter(
    client: RawClient,
    kind: int,
    name: str,
    *changes: tuple[str, int, str | None],
    validate_only: bool = False,
    version: int = 1,
) -> Told:
    """Change single settings of one resource."""
    configs = [
        IncrementalAlterConfigsRequestAlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    asked = IncrementalAlterConfigsRequestAlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[asked], validate_only=validate_only)
    (answer,) = (await client.ask(request, version)).responses
    assert (answer.resource_type, answer.resource_name) == (kind, name)
    return ErrorCode(answer.error_code).name, answer.error_message


async def replace(
    client: RawClient, kind: int, name: str, *configs: Told, validate_only: bool = False, version: int = 2
) -> Told:
    """Give one resource these settings and no others."""
    asked = AlterConfigsRequestAlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[AlterConfigsRequestAlterableConfig(name=key, value=value) for key, value in configs],
    )
    request = AlterConfigsRequest(resources=[asked], validate_only=validate_only)
    (answer,) = (await client.ask(request, version)).responses
    return ErrorCode(answer.error_code).name, answer.error_message


async def refused(client: RawClient, kind: int, name: str, cases: Mapping[tuple[str, str], str], error: str) -> None:
    """Each of these settings is refused with its message, and changes nothing."""
    answers = {case: await alter(client, kind, name, (case[0], SET, case[1])) for case in cases}
    assert answers == {case: (error, message) for case, message in cases.items()}
