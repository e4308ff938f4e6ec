"""The settings that are new in Apache Kafka 4.4, as it describes and checks them."""

from __future__ import annotations

from typing import TypeAlias

import pytest
from support.raw_client import RawClient

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from aiokafkawire.testing.configs.tables import ConfigTables

pytestmark = pytest.mark.anyio

TOPIC, BROKER, GROUP = 2, 4, 32
BOOLEAN, STRING, INT, LONG, LIST, CLASS = 1, 2, 3, 5, 7, 8
TABLES = ConfigTables()

Row: TypeAlias = tuple[str | None, int, bool, list[str]]

NEW: dict[int, dict[str, Row]] = {
    TOPIC: {
        "errors.deadletterqueue.group.enable": ("false", BOOLEAN, False, []),
        "max.decompressed.message.bytes": ("2147483639", INT, False, ["max.decompressed.message.bytes"]),
        "remote.copy.lag.bytes": ("-1", LONG, False, ["log.remote.copy.lag.bytes"]),
        "remote.copy.lag.ms": ("0", LONG, False, ["log.remote.copy.lag.ms"]),
    },
    GROUP: {
        "errors.deadletterqueue.copy.record.enable": (
            *("false", BOOLEAN, False),
            ["errors.deadletterqueue.copy.record.enable"],
        ),
        "errors.deadletterqueue.topic.name": ("", STRING, False, ["errors.deadletterqueue.topic.name"]),
        "streams.assignor.name": ("sticky", STRING, False, ["group.streams.assignors"]),
        "streams.rack.aware.assignment.tags": ("", LIST, False, ["group.streams.rack.aware.assignment.tags"]),
    },
    BROKER: {
        "errors.deadletterqueue.topic.name.prefix": (
            *("dlq.", STRING, False),
            ["errors.deadletterqueue.topic.name.prefix"],
        ),
        "group.streams.assignors": ("sticky", LIST, True, ["group.streams.assignors"]),
        "group.streams.rack.aware.assignment.tags": ("", LIST, True, ["group.streams.rack.aware.assignment.tags"]),
        "group.streams.topology.description.plugin.class": (None, CLASS, True, []),
        "log.remote.copy.lag.bytes": ("-1", LONG, False, ["log.remote.copy.lag.bytes"]),
        "log.remote.copy.lag.ms": ("0", LONG, False, ["log.remote.copy.lag.ms"]),
        "max.decompressed.message.bytes": ("2147483639", INT, False, ["max.decompressed.message.bytes"]),
        "sasl.oauthbearer.allow.unverified.audience": (
            *("false", BOOLEAN, True),
            ["sasl.oauthbearer.allow.unverified.audience"],
        ),
        "sasl.oauthbearer.allow.unverified.issuer": (
            *("false", BOOLEAN, True),
            ["sasl.oauthbearer.allow.unverified.issuer"],
        ),
    },
}
"""For each type of resource the new settings: the value, the type, whether it is read-only, and the synonyms."""

KNOWN = {TOPIC: TABLES.topics, BROKER: TABLES.brokers, GROUP: TABLES.groups}


@pytest.mark.parametrize("kind", NEW)
async def test_new_settings(client: RawClient, name: str, kind: int) -> None:
    resource = {TOPIC: name, BROKER: "1", GROUP: "a-group-without-configs"}[kind]
    asked = DescribeConfigsResource(resource_type=kind, resource_name=resource, configuration_keys=None)
    request = DescribeConfigsRequest(resources=[asked], include_synonyms=True)
    (result,) = (await client.ask(request, 4)).results
    found = {
        config.name: (
            *(config.value, config.config_type, config.read_only),
            [synonym.name for synonym in config.synonyms],
        )
        for config in result.configs
        if config.name not in KNOWN[kind]
    }
    found.pop("errors.deadletterqueue.auto.create.topics.enable", None)  # which other tests change
    assert {name: found.get(name) for name in NEW[kind]} == NEW[kind]
    assert kind == BROKER or found.keys() == NEW[kind].keys()


@pytest.mark.parametrize(
    ("kind", "setting", "value", "error"),
    [
        (TOPIC, "remote.copy.lag.ms", "-2", "Value must be at least -1"),
        (TOPIC, "remote.copy.lag.bytes", "-2", "Value must be at least -1"),
        (TOPIC, "max.decompressed.message.bytes", "0", "Value must be at least 1"),
        (TOPIC, "errors.deadletterqueue.group.enable", "yes", "Expected value to be either true or false"),
        (GROUP, "errors.deadletterqueue.copy.record.enable", "1", "Expected value to be either true or false"),
    ],
)
async def test_values_that_new_settings_may_not_have(
    client: RawClient, name: str, kind: int, setting: str, value: str, error: str
) -> None:
    code, message = await altered(client, kind, name, setting, value)
    assert (code, message) == (
        ErrorCode.INVALID_CONFIG,
        f"Invalid value {value} for configuration {setting}: {error}",
    )


async def test_names_of_dead_letter_queues(client: RawClient, name: str) -> None:
    setting = "errors.deadletterqueue.topic.name"
    assert await altered(client, GROUP, name, setting, "any/name at all") == (0, None)
    code, message = await altered(client, GROUP, name, setting, "__x")
    assert (code, message) == (ErrorCode.INVALID_CONFIG, f"{setting}: DLQ topic name must not start with '__'")


async def altered(client: RawClient, kind: int, resource: str, name: str, value: str) -> tuple[int, str | None]:
    """The error of a change that is only checked."""
    change = IncrementalAlterConfigsRequestAlterableConfig(name=name, config_operation=0, value=value)
    named = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=kind, resource_name=resource, configs=[change]
    )
    answer = await client.ask(IncrementalAlterConfigsRequest(resources=[named], validate_only=True), 1)
    return answer.responses[0].error_code, answer.responses[0].error_message
