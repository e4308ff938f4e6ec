"""DescribeConfigs, IncrementalAlterConfigs, AlterConfigs and ListConfigResources, as Apache Kafka answers them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.raw_client import RawClient
from support.settings import (
    APPEND,
    BROKER,
    DELETE,
    GROUP,
    LOGGER,
    METRICS,
    SET,
    SUBTRACT,
    TOPIC,
    alter,
    described,
    refused,
    replace,
    told,
    until,
)

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    ListConfigResourcesRequest,
)

if TYPE_CHECKING:
    from .conftest import Kafka

pytestmark = pytest.mark.anyio

NOT_A_LONG = "Not a number of type LONG"
CODECS = "uncompressed, zstd, lz4, snappy, gzip, producer"
ELR = "min.insync.replicas cannot be {} while ELR is enabled."
NUMBERS = "Node id must be an integer, but it is: {}"


# --- describing --------------------------------------------------------------------------------------------------


async def test_the_settings_of_a_topic(client: RawClient, name: str) -> None:
    entries = await told(client, TOPIC, name, synonyms=True)
    assert len(entries) == 33
    values = {key: (entry.value, entry.config_type) for key, entry in entries.items() if key != "retention.ms"}
    assert values == {
        "cleanup.policy": ("delete", 7),
        "compression.gzip.level": ("-1", 3),
        "compression.lz4.level": ("9", 3),
        "compression.type": ("producer", 2),
        "compression.zstd.level": ("3", 3),
        "delete.retention.ms": ("86400000", 5),
        "file.delete.delay.ms": ("60000", 5),
        "flush.messages": ("9223372036854775807", 5),
        "flush.ms": ("9223372036854775807", 5),
        "follower.replication.throttled.replicas": ("", 7),
        "index.interval.bytes": ("4096", 3),
        "leader.replication.throttled.replicas": ("", 7),
        "local.retention.bytes": ("-2", 5),
        "local.retention.ms": ("-2", 5),
        "max.compaction.lag.ms": ("9223372036854775807", 5),
        "max.message.bytes": ("1048588", 3),
        "message.timestamp.after.max.ms": ("3600000", 5),
        "message.timestamp.before.max.ms": ("9223372036854775807", 5),
        "message.timestamp.type": ("CreateTime", 2),
        "min.cleanable.dirty.ratio": ("0.5", 6),
        "min.compaction.lag.ms": ("0", 5),
        "min.insync.replicas": ("1", 3),
        "preallocate": ("false", 1),
        "remote.log.copy.disable": ("false", 1),
        "remote.log.delete.on.disable": ("false", 1),
        "remote.storage.enable": ("false", 1),
        "retention.bytes": ("-1", 5),
        "segment.bytes": ("1073741824", 3),
        "segment.index.bytes": ("10485760", 3),
        "segment.jitter.ms": ("0", 5),
        "segment.ms": ("604800000", 5),
        "unclean.leader.election.enable": ("false", 1),
    }
    assert not any(entry.read_only or entry.is_sensitive for entry in entries.values())
    assert {entry.documentation for entry in entries.values()} == {None}


async def test_where_values_come_from(client: RawClient, name: str) -> None:
    await alter(client, TOPIC, name, ("max.message.bytes", SET, "5000"))
    await until(client, TOPIC, name, max_message_bytes="5000")
    entries = await told(client, TOPIC, name, synonyms=True)
    found = {
        key: [(each.name, each.value, each.source) for each in entries[key].synonyms]
        for key in ("max.message.bytes", "cleanup.policy", "segment.ms", "flush.ms", "min.insync.replicas")
    }
    assert found == {
        "max.message.bytes": [("max.message.bytes", "5000", 1), ("message.max.bytes", "1048588", 5)],
        "cleanup.policy": [("log.cleanup.policy", "delete", 5)],
        "segment.ms": [],  # what gives it, log.roll.hours, is another unit
        "flush.ms": [],
        "min.insync.replicas": [("min.insync.replicas", "1", 3), ("min.insync.replicas", "1", 5)],
    }
    assert entries["max.message.bytes"].config_source == 1
    assert entries["segment.ms"].config_source == 5
    silent = await told(client, TOPIC, name)
    assert silent["max.message.bytes"].synonyms == []


async def test_documentation_is_told_on_request(client: RawClient, name: str) -> None:
    entries = await told(client, TOPIC, name, documentation=True)
    assert all(entry.documentation for entry in entries.values())


@pytest.mark.parametrize("version", range(1, 5))
async def test_some_of_the_settings(client: RawClient, name: str, version: int) -> None:
    some = await described(client, TOPIC, name, ["flush.ms", "no.such.setting", "flush.ms"], version=version)
    assert [(entry.name, entry.value) for entry in some.configs] == [("flush.ms", "9223372036854775807")]
    every = await described(client, TOPIC, name, [], version=version)
    assert len(every.configs) == 33


async def test_the_settings_of_a_broker(client: RawClient) -> None:
    entries = await told(client, BROKER, "1", synonyms=True)
    assert len(entries) == 340
    some = {
        key: (entries[key].value, entries[key].config_type, entries[key].read_only, entries[key].is_sensitive)
        for key in ("node.id", "message.max.bytes", "log.roll.ms", "ssl.key.password", "quota.window.num")
    }
    assert some == {
        "node.id": ("1", 3, True, False),
        "message.max.bytes": ("1048588", 3, False, False),
        "log.roll.ms": (None, 5, False, False),
        "ssl.key.password": (None, 9, False, True),
        "quota.window.num": ("11", 3, True, False),
    }
    (default,) = entries["message.max.bytes"].synonyms
    assert (default.name, default.value, default.source) == ("message.max.bytes", "1048588", 5)


async def test_the_settings_of_a_group_and_of_client_metrics(client: RawClient) -> None:
    group = await told(client, GROUP, "not-changed", synonyms=True)
    assert len(group) == 17
    session, reset = group["consumer.session.timeout.ms"], group["share.auto.offset.reset"]
    assert (session.value, session.config_source, session.config_type) == ("45000", 5, 3)
    assert [each.name for each in session.synonyms] == ["group.consumer.session.timeout.ms"]
    assert [(each.name, each.value) for each in reset.synonyms] == [("share.auto.offset.reset", "latest")]
    metrics = await told(client, METRICS, "not-changed", synonyms=True)
    assert {key: (entry.value, entry.config_source, entry.synonyms) for key, entry in metrics.items()} == {
        "interval.ms": ("300000", 5, []),
        "match": ("", 5, []),
        "metrics": ("", 5, []),
    }


async def test_what_cannot_be_described(client: RawClient) -> None:
    cases = {
        (TOPIC, "no-such-topic"): ("UNKNOWN_TOPIC_OR_PARTITION", ""),
        (TOPIC, ""): ("INVALID_TOPIC_EXCEPTION", "Topic name is invalid: the empty string is not allowed"),
        (BROKER, "2"): ("INVALID_REQUEST", "Unexpected broker id, expected 1 or empty string, but received 2"),
        (BROKER, "x"): ("INVALID_REQUEST", "Broker id must be an integer, but it is: x"),
        (LOGGER, ""): ("INVALID_REQUEST", "Broker id must not be empty"),
        (LOGGER, "2"): ("INVALID_REQUEST", "Unexpected broker id, expected 1 but received 2"),
        (LOGGER, "x"): ("INVALID_REQUEST", "Broker id must be an integer, but it is: x"),
        (GROUP, ""): ("INVALID_REQUEST", "Group name must not be empty"),
        (METRICS, ""): ("INVALID_REQUEST", "Client metrics subscription name must not be empty"),
    }
    results = {case: await described(client, *case) for case in cases}
    assert {
        case: (ErrorCode(result.error_code).name, result.error_message) for case, result in results.items()
    } == cases
    assert not any(result.configs for result in results.values())


async def test_an_unknown_kind_spoils_the_request(client: RawClient, name: str) -> None:
    asked = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None) for kind in (TOPIC, 99)
    ]
    results = (await client.ask(DescribeConfigsRequest(resources=asked), 4)).results
    assert [(each.resource_type, ErrorCode(each.error_code).name, each.configs) for each in results] == [
        (TOPIC, "INVALID_REQUEST", []),
        (99, "INVALID_REQUEST", []),
    ]
    assert (results[0].error_message or "").startswith("This most likely occurs because of a request being malformed")


# --- topics ------------------------------------------------------------------------------------------------------


async def test_values_of_topics_that_will_not_do(client: RawClient, name: str) -> None:
    replicas = (
        "Invalid value [x] for configuration leader.replication.throttled.replicas: "
        "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    )
    bad = {
        ("retention.ms", "abc"): NOT_A_LONG,
        ("retention.ms", ""): NOT_A_LONG,
        ("retention.ms", "99999999999999999999"): NOT_A_LONG,
        ("retention.ms", "-2"): "Value must be at least -1",
        ("max.message.bytes", "99999999999"): "Not a number of type INT",
        ("max.message.bytes", "1.5"): "Not a number of type INT",
        ("max.message.bytes", "-1"): "Value must be at least 0",
        ("segment.bytes", "10"): "Value must be at least 1048576",
        ("cleanup.policy", "foo"): "String must be one of: compact, delete",
        ("compression.type", "none"): f"String must be one of: {CODECS}",
        ("compression.type", "GZIP"): f"String must be one of: {CODECS}",
        ("compression.gzip.level", "0"): "Value must be between 1 and 9 or equal to -1",
        ("compression.gzip.level", "10"): "Value must be between 1 and 9 or equal to -1",
        ("compression.lz4.level", "0"): "Value must be at least 1",
        ("compression.zstd.level", "23"): "Value must be no more than 22",
        ("min.cleanable.dirty.ratio", "x"): "Not a number of type DOUBLE",
        ("preallocate", "yes"): "Expected value to be either true or false",
        ("message.timestamp.type", "x"): "String must be one of: CreateTime, LogAppendTime",
        ("min.insync.replicas", "0"): "Value must be at least 1",
    }
    cases = {(key, value): f"Invalid value {value} for configuration {key}: {bad[key, value]}" for key, value in bad}
    cases |= {
        ("min.cleanable.dirty.ratio", "2"): (
            "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than 1"
        ),
        ("cleanup.policy", ","): "Configuration 'cleanup.policy' values must not be empty.",
        ("leader.replication.throttled.replicas", "x"): replicas,
        ("remote.storage.enable", "true"): (
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        ),
        ("no.such.setting", "1"): "Unknown topic config name: no.such.setting",
    }
    await refused(client, TOPIC, name, cases, "INVALID_CONFIG")
    entries = await told(client, TOPIC, name)
    assert [key for key, entry in entries.items() if entry.config_source == 1] == []


async def test_values_are_told_as_kafka_spells_them(client: RawClient, name: str) -> None:
    sent = {
        "retention.ms": (" 7 ", "7"),
        "retention.bytes": ("+5", "5"),
        "cleanup.policy": ("compact , delete", "compact,delete"),
        "compression.type": (" gzip ", "gzip"),
        "min.cleanable.dirty.ratio": ("1e-1", "0.1"),
        "preallocate": ("TRUE", "true"),
        "leader.replication.throttled.replicas": ("0:1, 1:1", "0:1,1:1"),
        "follower.replication.throttled.replicas": ("*", "*"),
    }
    answer = await alter(client, TOPIC, name, *((key, SET, value) for key, (value, _) in sent.items()))
    assert answer == ("NONE", None)
    await until(client, TOPIC, name, preallocate="true")
    entries = await told(client, TOPIC, name)
    assert {key: entries[key].value for key in sent} == {key: value for key, (_, value) in sent.items()}


async def test_lists_grow_and_shrink(client: RawClient, name: str) -> None:
    for operation, value, then in (
        (APPEND, "compact", "delete,compact"),
        (APPEND, "compact,delete", "delete,compact"),
        (SUBTRACT, "delete,foo", "compact"),
        (SUBTRACT, "compact", ""),
        (DELETE, None, "delete"),
    ):
        assert await alter(client, TOPIC, name, ("cleanup.policy", operation, value)) == ("NONE", None)
        await until(client, TOPIC, name, cleanup_policy=then)
    assert await alter(client, TOPIC, name, ("cleanup.policy", APPEND, "foo")) == (
        "INVALID_CONFIG",
        "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete",
    )
    for key in ("retention.ms", "no.such.setting"):
        for operation, word in ((APPEND, "APPEND"), (SUBTRACT, "SUBTRACT")):
            assert await alter(client, TOPIC, name, (key, operation, "5")) == (
                "INVALID_CONFIG",
                f"Can't {word} to key {key} because its type is not LIST.",
            )


async def test_changes_that_make_no_sense(client: RawClient, name: str) -> None:
    both = (("min.compaction.lag.ms", SET, "100"), ("max.compaction.lag.ms", SET, "50"))
    answers = [
        await alter(client, TOPIC, name, ("flush.ms", SET, None), ("flush.messages", APPEND, None)),
        await alter(client, TOPIC, name, ("flush.ms", SET, "1"), ("flush.ms", SET, "1")),
        await alter(client, TOPIC, name, ("flush.ms", 9, "1")),
        await alter(client, TOPIC, name, *both),
        await alter(client, TOPIC, "no-such-topic", ("flush.ms", SET, "1")),
        await alter(client, TOPIC, "no-such-topic", ("flush.ms", SET, "x")),
        await alter(client, TOPIC, "", ("flush.ms", SET, "1")),
        await alter(client, TOPIC, ".", ("flush.ms", SET, "1")),
        await alter(client, 99, name, ("flush.ms", SET, "1")),
        await alter(client, TOPIC, name, ("flush.ms", SET, "x"), validate_only=True),
    ]
    assert answers == [
        ("INVALID_REQUEST", "Null value not supported for : flush.ms, flush.messages"),
        ("INVALID_REQUEST", "Error due to duplicate config keys"),
        ("UNKNOWN_SERVER_ERROR", None),
        (
            "INVALID_CONFIG",
            "conflict topic config setting min.compaction.lag.ms (100) > max.compaction.lag.ms (50)",
        ),
        ("UNKNOWN_TOPIC_OR_PARTITION", "The topic 'no-such-topic' does not exist."),
        ("INVALID_CONFIG", f"Invalid value x for configuration flush.ms: {NOT_A_LONG}"),
        ("INVALID_REQUEST", "Default topic resources are not allowed."),
        ("INVALID_TOPIC_EXCEPTION", "Topic name is invalid: '.' is not allowed"),
        ("INVALID_REQUEST", "Unknown resource type 99"),
        ("INVALID_CONFIG", f"Invalid value x for configuration flush.ms: {NOT_A_LONG}"),
    ]


async def test_changes_that_change_nothing(client: RawClient, name: str) -> None:
    assert await alter(client, TOPIC, name, ("flush.ms", DELETE, None), ("foo", DELETE, None)) == ("NONE", None)
    assert await alter(client, TOPIC, name) == ("NONE", None)
    assert await alter(client, TOPIC, name, ("flush.ms", SET, "1"), validate_only=True) == ("NONE", None)
    # A resource takes all or nothing.
    answer = await alter(client, TOPIC, name, ("flush.ms", SET, "1"), ("retention.ms", SET, "x"))
    assert answer[0] == "INVALID_CONFIG"
    await alter(client, TOPIC, name, ("flush.messages", SET, "77"))
    await until(client, TOPIC, name, flush_messages="77", flush_ms="9223372036854775807")


async def test_a_resource_named_twice_is_refused(client: RawClient, name: str) -> None:
    asked = IncrementalAlterConfigsRequestAlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=[])
    request = IncrementalAlterConfigsRequest(resources=[asked, asked], validate_only=False)
    answers = (await client.ask(request, 1)).responses
    assert [(ErrorCode(each.error_code).name, each.error_message) for each in answers] == [
        ("INVALID_REQUEST", "Each resource must appear at most once.")
    ] * 2


@pytest.mark.parametrize("version", range(3))
async def test_replacing_all_settings(client: RawClient, name: str, version: int) -> None:
    assert await replace(client, TOPIC, name, ("flush.ms", "5"), ("flush.messages", "8"), version=version)
    await until(client, TOPIC, name, flush_ms="5", flush_messages="8")
    assert await replace(client, TOPIC, name, validate_only=True, version=version) == ("NONE", None)
    assert await replace(client, TOPIC, name, ("flush.messages", "9"), version=version) == ("NONE", None)
    await until(client, TOPIC, name, flush_ms="9223372036854775807", flush_messages="9")


async def test_what_cannot_replace(client: RawClient, name: str) -> None:
    answers = [
        await replace(client, TOPIC, name, ("flush.ms", None)),
        await replace(client, TOPIC, name, ("flush.ms", "1"), ("flush.ms", "1")),
        await replace(client, TOPIC, name, ("no.such.setting", "x")),
        await replace(client, TOPIC, "no-such-topic", ("flush.ms", "1")),
        await replace(client, LOGGER, "1", ("root", "INFO")),
        await replace(client, BROKER, "1", ("num.partitions", "2")),
        await replace(client, BROKER, "", ("message.max.bytes", "x")),
        await replace(client, BROKER, ""),
    ]
    assert answers == [
        ("INVALID_REQUEST", "Null value not supported for : flush.ms"),
        ("INVALID_REQUEST", "Error due to duplicate config keys"),
        ("INVALID_CONFIG", "Unknown topic config name: no.such.setting"),
        ("UNKNOWN_TOPIC_OR_PARTITION", "The topic 'no-such-topic' does not exist."),
        ("INVALID_REQUEST", "Unknown resource type 8"),
        ("INVALID_REQUEST", "Cannot update these configs dynamically: [num.partitions]"),
        ("INVALID_REQUEST", "Invalid value x for configuration message.max.bytes: Not a number of type INT"),
        ("INVALID_CONFIG", f"Cluster-level {ELR.format('removed')}"),
    ]


# --- brokers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("broker", ["1", ""])
async def test_values_of_brokers_that_will_not_do(client: RawClient, broker: str) -> None:
    threads = (
        "Invalid value org.apache.kafka.common.config.ConfigException: Dynamic thread count update validation failed "
        "for num.io.threads={}, value should {} the current value 8 for configuration Invalid dynamic configuration"
    )
    cases = {
        ("message.max.bytes", "-1"): "Invalid value -1 for configuration message.max.bytes: Value must be at least 0",
        ("log.retention.ms", "x"): f"Invalid value x for configuration log.retention.ms: {NOT_A_LONG}",
        ("num.partitions", "3"): "Cannot update these configs dynamically: [num.partitions]",
        ("ssl.keystore.password", "x"): (
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            "[ssl.keystore.password]"
        ),
        ("num.io.threads", "100"): threads.format(100, "not be greater than double"),
        ("num.io.threads", "3"): threads.format(3, "be at least half"),
    }
    if not broker:
        cases[("listeners", "PLAINTEXT://:1")] = (
            "Cannot update these configs at default cluster level, broker id must be specified: [listeners]"
        )
    await refused(client, BROKER, broker, cases, "INVALID_REQUEST")
    answers = [
        await alter(client, BROKER, broker, ("message.max.bytes", APPEND, "1")),
        await alter(client, BROKER, broker, ("no.such.setting", APPEND, "1")),
        await alter(client, BROKER, broker, ("message.max.bytes", 9, "1")),
    ]
    assert answers == [
        ("INVALID_CONFIG", "Config value append is not allowed for config key: message.max.bytes"),
        ("INVALID_CONFIG", "Unknown config name: no.such.setting"),
        ("INVALID_REQUEST", "Unknown operations type 9"),
    ]


async def test_brokers_that_are_not_this_one(client: RawClient) -> None:
    change = ("message.max.bytes", SET, "1000000")
    assert [await alter(client, BROKER, broker, change) for broker in ("2", "x", "-1")] == [
        ("INVALID_REQUEST", "Unexpected broker id, expected 1, but received 2"),
        ("INVALID_REQUEST", NUMBERS.format("x")),
        ("INVALID_REQUEST", "Unexpected broker id, expected 1, but received -1"),
    ]


async def test_in_sync_replicas_have_one_value_everywhere(client: RawClient) -> None:
    changed = ("INVALID_CONFIG", f"Broker-level {ELR.format('altered')}")
    assert await alter(client, BROKER, "1", ("min.insync.replicas", SET, "1")) == changed
    assert await alter(client, BROKER, "1", ("min.insync.replicas", DELETE, None)) == changed
    removed = ("INVALID_CONFIG", f"Cluster-level {ELR.format('removed')}")
    assert await alter(client, BROKER, "", ("min.insync.replicas", DELETE, None), validate_only=True) == removed


async def test_brokers_give_topics_their_defaults(client: RawClient, name: str) -> None:
    try:
        assert await alter(client, BROKER, "", ("message.max.bytes", SET, "3000000")) == ("NONE", None)
        assert await alter(client, BROKER, "1", ("message.max.bytes", SET, "2000000")) == ("NONE", None)
        await until(client, TOPIC, name, max_message_bytes="2000000")
        synonyms = (await told(client, TOPIC, name, synonyms=True))["max.message.bytes"].synonyms
        assert [(each.name, each.value, each.source) for each in synonyms] == [
            ("message.max.bytes", "2000000", 2),
            ("message.max.bytes", "3000000", 3),
            ("message.max.bytes", "1048588", 5),
        ]
        entry = (await told(client, BROKER, "", synonyms=True))["message.max.bytes"]
        assert (entry.value, entry.config_source, len(entry.synonyms)) == ("3000000", 3, 1)
    finally:
        for broker in ("1", ""):
            await alter(client, BROKER, broker, ("message.max.bytes", DELETE, None))
    await until(client, TOPIC, name, max_message_bytes="1048588")


async def test_brokers_keep_settings_that_nobody_knows(client: RawClient) -> None:
    changes = [("no.such.setting", SET, "1"), ("leader.replication.throttled.rate", SET, "100")]
    assert await alter(client, BROKER, "", *changes) == ("NONE", None)
    await until(client, BROKER, "", leader_replication_throttled_rate="100")
    entries = await told(client, BROKER, "")
    unknown, rate = entries["no.such.setting"], entries["leader.replication.throttled.rate"]
    assert (unknown.value, unknown.read_only, unknown.is_sensitive, unknown.config_type) == (None, True, True, 0)
    assert (rate.value, rate.read_only, rate.is_sensitive, rate.config_type) == ("100", False, False, 5)
    assert await alter(client, BROKER, "", *((key, DELETE, None) for key, _, _ in changes)) == ("NONE", None)
    await until(client, BROKER, "", leader_replication_throttled_rate=None, no_such_setting=None)


async def test_loggers(client: RawClient) -> None:
    before = (await told(client, LOGGER, "1"))["root"]
    assert (before.config_source, before.config_type, before.read_only, before.documentation) == (6, 0, False, "")
    levels = "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"
    answers = [
        await alter(client, LOGGER, "1", change)
        for change in (
            ("root", SET, "info"),
            ("no.such.logger", SET, "INFO"),
            ("root", DELETE, None),
            ("root", APPEND, "INFO"),
            ("root", 9, "INFO"),
        )
    ]
    answers += [await alter(client, LOGGER, broker, ("root", SET, "INFO")) for broker in ("2", "", "x")]
    assert answers == [
        ("INVALID_CONFIG", f"Cannot set the log level of root to info as it is not a supported log level. {levels}"),
        ("INVALID_CONFIG", "Logger no.such.logger does not exist!"),
        ("INVALID_REQUEST", "Removing the log level of the root logger is not allowed"),
        ("INVALID_REQUEST", "APPEND operation is not allowed for the BROKER_LOGGER resource"),
        ("UNKNOWN_SERVER_ERROR", None),
        ("INVALID_REQUEST", "Unexpected node id. Expected 1, but received 2"),
        ("INVALID_REQUEST", NUMBERS.format("")),
        ("INVALID_REQUEST", NUMBERS.format("x")),
    ]
    assert await alter(client, LOGGER, "1", ("root", SET, "WARN"), ("nobody", SET, "INFO")) != ("NONE", None)
    assert await alter(client, LOGGER, "1", ("root", SET, "WARN"), validate_only=True) == ("NONE", None)
    assert (await told(client, LOGGER, "1"))["root"].value == before.value
    assert await alter(client, LOGGER, "1", ("root", SET, "WARN")) == ("NONE", None)
    entries = await told(client, LOGGER, "1")
    assert {entry.value for entry in entries.values()} == {"WARN"}  # others follow the root
    await alter(client, LOGGER, "1", ("root", SET, before.value))


# --- groups and client metrics -----------------------------------------------------------------------------------


async def test_settings_of_groups(client: RawClient, name: str) -> None:
    reset = "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
    bounds = "{} must be {} than or equal to {}"
    cases = {
        ("consumer.session.timeout.ms", "1"): bounds.format(
            "consumer.session.timeout.ms", "greater", "group.consumer.min.session.timeout.ms"
        ),
        ("consumer.session.timeout.ms", "99999999"): bounds.format(
            "consumer.session.timeout.ms", "less", "group.consumer.max.session.timeout.ms"
        ),
        ("share.delivery.count.limit", "100"): bounds.format(
            "share.delivery.count.limit", "less", "group.share.max.delivery.count.limit"
        ),
        ("streams.num.standby.replicas", "5"): bounds.format(
            "streams.num.standby.replicas", "less", "group.streams.max.standby.replicas"
        ),
        ("consumer.session.timeout.ms", "x"): (
            "Invalid value x for configuration consumer.session.timeout.ms: Not a number of type INT"
        ),
        ("share.auto.offset.reset", "x"): (
            "Invalid value x for configuration share.auto.offset.reset: "
            f"Invalid value `x` for configuration share.auto.offset.reset. {reset}"
        ),
        ("no.such.setting", "1"): "Unknown group config name: no.such.setting",
    }
    await refused(client, GROUP, name, cases, "INVALID_CONFIG")
    change = ("consumer.session.timeout.ms", SET, "50000")
    assert await alter(client, GROUP, "", change) == ("INVALID_REQUEST", "Default group resources are not allowed.")
    assert await alter(client, GROUP, name, change) == ("NONE", None)
    await until(client, GROUP, name, consumer_session_timeout_ms="50000")
    entry = (await told(client, GROUP, name, synonyms=True))["consumer.session.timeout.ms"]
    assert [(each.name, each.value, each.source) for each in entry.synonyms] == [
        ("consumer.session.timeout.ms", "50000", 8),
        ("group.consumer.session.timeout.ms", "45000", 5),
    ]
    await alter(client, GROUP, name, ("consumer.session.timeout.ms", DELETE, None))


async def test_settings_of_client_metrics(client: RawClient, name: str) -> None:
    interval = "Invalid value {} for interval.ms, interval must be between 100 and 3600000 (1 hour)"
    malformed = {("interval.ms", value): interval.format(value) for value in ("10", "3600001")}
    malformed["no.such.setting", "1"] = "Unknown client metrics configuration: no.such.setting"
    await refused(client, METRICS, name, malformed, "INVALID_REQUEST")
    matches = ("x", "no_such_key=1", "client_id=[")
    invalid = {("match", value): f"Illegal client matching pattern: {value}" for value in matches}
    invalid["interval.ms", "x"] = "Invalid value x for configuration interval.ms: Not a number of type INT"
    await refused(client, METRICS, name, invalid, "INVALID_CONFIG")
    change = ("match", SET, "client_id=.*")
    assert await alter(client, METRICS, "", change) == ("INVALID_REQUEST", "Subscription name can't be empty")
    assert await alter(client, METRICS, name, change) == ("NONE", None)
    await until(client, METRICS, name, match="client_id=.*")
    await alter(client, METRICS, name, ("match", DELETE, None))


async def test_what_has_settings(kafka: Kafka, client: RawClient, name: str) -> None:
    await alter(client, METRICS, name, ("interval.ms", SET, "1000"))
    await alter(client, GROUP, name, ("consumer.session.timeout.ms", SET, "50000"))
    await until(client, METRICS, name, interval_ms="1000")
    await until(client, GROUP, name, consumer_session_timeout_ms="50000")

    async def named(version: int, *kinds: int) -> list[tuple[int, str]]:
        answer = await client.ask(ListConfigResourcesRequest(resource_types=list(kinds)), version)
        assert answer.error_code == 0
        return sorted((each.resource_type, each.resource_name) for each in answer.config_resources)

    assert await named(0) == [(METRICS, name)]
    found = await named(1, BROKER, GROUP)
    # Other tests give groups of their own settings, too.
    assert {(BROKER, "1"), (GROUP, name)} <= set(found)
    assert {kind for kind, _ in found} == {BROKER, GROUP}
    assert (TOPIC, name) in await named(1, TOPIC)
    every = await named(1)
    assert {(BROKER, "1"), (LOGGER, "1"), (METRICS, name), (GROUP, name), (TOPIC, name)} <= set(every)
    unknown = await client.ask(ListConfigResourcesRequest(resource_types=[TOPIC, 99]), 1)
    assert (ErrorCode(unknown.error_code), unknown.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])
    await alter(client, METRICS, name, ("interval.ms", DELETE, None))
    await alter(client, GROUP, name, ("consumer.session.timeout.ms", DELETE, None))
