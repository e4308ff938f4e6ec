"""What the admin does with configs of topics, brokers and groups, whichever broker it talks to."""

from __future__ import annotations

from collections.abc import Mapping
from secrets import token_hex

import pytest
from support.transactional import settled

from aiokafkawire import Client, ConfigEntry, ConfigOp, ConfigResource, ConfigSource
from aiokafkawire.errors import (
    AdminError,
    BrokerError,
    BrokerNotAvailable,
    InvalidConfig,
    InvalidRequest,
    UnknownTopicOrPartition,
)

pytestmark = pytest.mark.anyio

GROUP_CONFIGS = {
    "share.auto.offset.reset": "earliest",
    "share.session.timeout.ms": "50000",
    "share.heartbeat.interval.ms": "6000",
    "share.record.lock.duration.ms": "20000",
    "consumer.session.timeout.ms": "46000",
    "consumer.heartbeat.interval.ms": "7000",
}
DEFAULTS = {
    "share.auto.offset.reset": "latest",
    "share.session.timeout.ms": "45000",
    "share.heartbeat.interval.ms": "5000",
    "share.record.lock.duration.ms": "30000",
    "consumer.session.timeout.ms": "45000",
    "consumer.heartbeat.interval.ms": "5000",
}


@pytest.fixture
def group() -> ConfigResource:
    """A group that no other test uses."""
    return ConfigResource.group(f"group-{token_hex(6)}")


@pytest.fixture
def broker() -> ConfigResource:
    """The one broker."""
    return ConfigResource.broker(1)


async def described(kafka: Client, resource: ConfigResource) -> dict[str, ConfigEntry]:
    return (await kafka.admin.describe_configs(resource))[resource]


async def values(kafka: Client, resource: ConfigResource, expected: Mapping[str, str | None]) -> None:
    """Wait until the configs have these values: Apache Kafka takes a moment after the answer to a change."""

    async def found() -> Mapping[str, str | None]:
        configs = await described(kafka, resource)
        return {name: configs[name].value if name in configs else "(missing)" for name in expected}

    await settled(found, lambda known: known == expected)


# --- topics --------------------------------------------------------------------------------------------------------


async def test_configs_of_a_topic_are_described_and_changed(kafka: Client, topic: str) -> None:
    resource = ConfigResource.topic(topic)
    segment = (await described(kafka, resource))["segment.ms"]
    assert (segment.name, segment.source, segment.is_default) == (
        "segment.ms",
        ConfigSource.DEFAULT_CONFIG,
        True,
    )
    assert (segment.type, segment.synonyms, segment.documentation) == ("long", (), None)
    assert (segment.is_sensitive, segment.is_read_only) == (False, False)
    await kafka.admin.incremental_alter_configs({resource: {"segment.ms": "3600000", "max.message.bytes": "2000"}})
    await values(kafka, resource, {"segment.ms": "3600000", "max.message.bytes": "2000"})
    changed = (await described(kafka, resource))["segment.ms"]
    assert (changed.source, changed.is_default) == (ConfigSource.DYNAMIC_TOPIC_CONFIG, False)
    await kafka.admin.incremental_alter_configs({resource: {"segment.ms": None}})
    await values(kafka, resource, {"segment.ms": segment.value, "max.message.bytes": "2000"})


async def test_items_are_added_to_a_list_and_removed_from_it(kafka: Client, topic: str) -> None:
    resource = ConfigResource.topic(topic)
    for change, expected in (
        (ConfigOp.append("compact"), "delete,compact"),
        (ConfigOp.append("compact"), "delete,compact"),
        (ConfigOp.subtract("delete"), "compact"),
        (ConfigOp.set("delete"), "delete"),
        (ConfigOp.append("compact,delete"), "delete,compact"),
        (ConfigOp.delete(), "delete"),
    ):
        await kafka.admin.incremental_alter_configs({resource: {"cleanup.policy": change}})
        await values(kafka, resource, {"cleanup.policy": expected})
    with pytest.raises(InvalidConfig, match=r"Can't APPEND to key retention\.ms because its type is not LIST"):
        await kafka.admin.incremental_alter_configs({resource: {"retention.ms": ConfigOp.append("1")}})


async def test_synonyms_and_documentation(kafka: Client, topic: str) -> None:
    resource = ConfigResource.topic(topic)
    await kafka.admin.incremental_alter_configs({resource: {"segment.bytes": "2097152"}})
    await values(kafka, resource, {"segment.bytes": "2097152"})
    found = (await kafka.admin.describe_configs([resource], include_synonyms=True, include_documentation=True))[
        resource
    ]
    first, *others = found["segment.bytes"].synonyms
    assert (first.name, first.value, first.source) == ("segment.bytes", "2097152", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert [(one.name, one.source) for one in others] == [("log.segment.bytes", ConfigSource.DEFAULT_CONFIG)]
    assert "segment" in (found["segment.bytes"].documentation or "")


async def test_a_topic_takes_all_of_its_changes_or_none(kafka: Client, topic: str, group: ConfigResource) -> None:
    resource, missing = ConfigResource.topic(topic), ConfigResource.topic(f"{topic}-missing")
    before = (await described(kafka, resource))["retention.ms"].value
    with pytest.raises(InvalidConfig, match=f"IncrementalAlterConfigs of topic '{topic}': Invalid value x for config"):
        await kafka.admin.incremental_alter_configs({resource: {"retention.ms": "5", "segment.bytes": "x"}})
    await values(kafka, resource, {"retention.ms": before})
    told = f"IncrementalAlterConfigs of topic '{missing.name}': The topic '{missing.name}' does not exist"
    with pytest.raises(UnknownTopicOrPartition, match=told):
        await kafka.admin.incremental_alter_configs({missing: {"retention.ms": "5"}})
    with pytest.raises(AdminError, match="changing configs failed for 1 of 2") as caught:
        await kafka.admin.incremental_alter_configs({missing: {"retention.ms": "5"}, resource: {"retention.ms": "6"}})
    assert isinstance(caught.value.errors[missing], UnknownTopicOrPartition)
    assert caught.value.results == {resource: None}
    await values(kafka, resource, {"retention.ms": "6"})  # other resources are changed nevertheless
    with pytest.raises(AdminError, match="describing configs failed for 1 of 2") as caught:
        await kafka.admin.describe_configs([resource, missing])
    assert isinstance(caught.value.errors[missing], UnknownTopicOrPartition)
    assert caught.value.results[resource]["retention.ms"].value == "6"


async def test_changes_are_checked_alone(kafka: Client, topic: str) -> None:
    resource = ConfigResource.topic(topic)
    before = (await described(kafka, resource))["retention.ms"].value
    await kafka.admin.incremental_alter_configs({resource: {"retention.ms": "5"}}, validate_only=True)
    with pytest.raises(InvalidConfig, match=r"Invalid value -5 for configuration retention\.ms"):
        await kafka.admin.incremental_alter_configs({resource: {"retention.ms": "-5"}}, validate_only=True)
    await values(kafka, resource, {"retention.ms": before})


# --- groups --------------------------------------------------------------------------------------------------------


async def test_configs_of_a_group_that_does_not_exist_yet(kafka: Client, group: ConfigResource) -> None:
    found = await described(kafka, group)
    # The brokers of the tests have other limits than Kafka's own.
    assert {name: found[name].is_default for name in DEFAULTS} == dict.fromkeys(DEFAULTS, True)
    assert {name: found[name].value for name in DEFAULTS} == DEFAULTS
    await kafka.admin.incremental_alter_configs({group: GROUP_CONFIGS})
    await values(kafka, group, GROUP_CONFIGS)
    changed = await described(kafka, group)
    assert {changed[name].source for name in GROUP_CONFIGS} == {ConfigSource.DYNAMIC_GROUP_CONFIG}
    assert group.name not in [one.group_id for one in await kafka.admin.list_groups()]
    await kafka.admin.incremental_alter_configs({group: dict.fromkeys(GROUP_CONFIGS)})
    await values(kafka, group, DEFAULTS)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("share.auto.offset.reset", "soonest", "Invalid value soonest for configuration share.auto.offset.reset"),
        ("share.auto.offset.reset", "", "Invalid value  for configuration share.auto.offset.reset"),
        (
            "share.session.timeout.ms",
            "1",
            "share.session.timeout.ms must be (greater than or equal to group|in the range)",
        ),
        ("share.heartbeat.interval.ms", "1h", "Invalid value 1h for configuration share.heartbeat.interval.ms"),
        ("share.no.such.config", "1", "Unknown group config name: share.no.such.config"),
    ],
)
async def test_configs_of_a_group_that_are_wrong(
    kafka: Client, group: ConfigResource, name: str, value: str, told: str
) -> None:
    with pytest.raises(InvalidConfig, match=f"IncrementalAlterConfigs of group '{group.name}': .*{told}"):
        await kafka.admin.incremental_alter_configs({group: {name: value, "share.delivery.count.limit": "3"}})
    assert (await described(kafka, group))["share.delivery.count.limit"].is_default


# --- brokers -------------------------------------------------------------------------------------------------------


async def test_configs_of_brokers(kafka: Client, broker: ConfigResource) -> None:
    node = (await described(kafka, broker))["node.id"]
    assert (node.value, node.source, node.is_read_only) == (broker.name, ConfigSource.STATIC_BROKER_CONFIG, True)
    password = (await described(kafka, broker))["ssl.key.password"]
    assert (password.value, password.is_sensitive, password.type) == (None, True, "password")
    name, everyone = "log.cleaner.backoff.ms", ConfigResource.all_brokers()
    try:
        await kafka.admin.incremental_alter_configs({broker: {name: "14000"}, everyone: {name: "13000"}})
        await values(kafka, broker, {name: "14000"})
        await values(kafka, everyone, {name: "13000"})
        found = await kafka.admin.describe_configs([broker, everyone], include_synonyms=True)
        assert list(found) == [broker, everyone]
        assert [one.source for one in found[broker][name].synonyms] == [
            ConfigSource.DYNAMIC_BROKER_CONFIG,
            ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
            ConfigSource.DEFAULT_CONFIG,
        ]
    finally:
        await kafka.admin.incremental_alter_configs({broker: {name: None}, everyone: {name: None}})
    await values(kafka, broker, {name: "15000"})
    with pytest.raises(InvalidRequest, match=r"IncrementalAlterConfigs of broker .*dynamically: \[node.id\]"):
        await kafka.admin.incremental_alter_configs({broker: {"node.id": "7"}})


async def test_log_levels_of_a_broker(kafka: Client, broker: ConfigResource) -> None:
    resource = ConfigResource.broker_logger(int(broker.name))
    logger, entry = next(iter((await described(kafka, resource)).items()))
    assert (entry.source, entry.value) == (ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG, entry.value)
    with pytest.raises(BrokerError, match=f"IncrementalAlterConfigs of broker logger '{broker.name}': .*NOISY"):
        await kafka.admin.incremental_alter_configs({resource: {logger: "NOISY"}})


async def test_a_broker_that_is_not_there(kafka: Client, broker: ConfigResource) -> None:
    told = f"broker 77 is not in the cluster, or is down; the brokers are {broker.name}"
    for missing in (ConfigResource.broker(77), ConfigResource.broker_logger(77)):
        with pytest.raises(BrokerNotAvailable, match=told):
            await kafka.admin.describe_configs(missing)
        with pytest.raises(BrokerNotAvailable, match=told):
            await kafka.admin.incremental_alter_configs({missing: {"log.cleaner.threads": "2"}})


async def test_subscriptions_to_metrics(kafka: Client) -> None:
    resource = ConfigResource.client_metrics(f"metrics-{token_hex(6)}")
    await kafka.admin.incremental_alter_configs({resource: {"interval.ms": "60000"}})
    await values(kafka, resource, {"interval.ms": "60000"})
    await kafka.admin.incremental_alter_configs({resource: {"interval.ms": None}})
    await values(kafka, resource, {"interval.ms": "300000"})


async def test_nothing_to_describe_or_to_change(kafka: Client, topic: str) -> None:
    assert await kafka.admin.describe_configs([]) == {}
    await kafka.admin.incremental_alter_configs({})
    await kafka.admin.incremental_alter_configs({ConfigResource.topic(topic): {}})
