"""Configs of clusters of several brokers and of old brokers, and values that users get wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support.clusters import QUICK

from aiokafkawire import (
    Client,
    ConfigOp,
    ConfigOpType,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    RequestTimeout,
    UnsupportedVersion,
    UsageError,
    WireError,
)
from aiokafkawire.admin.admin import Admin
from aiokafkawire.errors import (
    AdminError,
    BrokerNotAvailable,
    ErrorCode,
    InvalidConfig,
    TopicAuthorizationFailed,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.configs import DescribeConfigsResponse, IncrementalAlterConfigsResponse
from aiokafkawire.testing.broker import Broker

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]

TOPIC = ConfigResource.topic("a")
GROUP = ConfigResource.group("g")


@asynccontextmanager
async def running(release: str | None = None, nodes: int = 1, **options: Any) -> AsyncIterator[tuple[Broker, Admin]]:
    """A topic, and the admin of a client."""
    async with Broker(nodes, port=None, max_versions=release) as broker:
        broker.create_topic("a")
        async with Client(broker.bootstrap, connector=broker.connect, **{**QUICK, **options}) as kafka:
            yield broker, kafka.admin


# --- values --------------------------------------------------------------------------------------------------------


def test_resources_are_values() -> None:
    assert ConfigResource.topic("a") == ConfigResource(ConfigResourceType.TOPIC, "a") == TOPIC
    assert {TOPIC: 1}[ConfigResource.topic("a")] == 1
    named = {
        "topic 'a'": TOPIC,
        "broker 1": ConfigResource.broker(1),
        "all brokers": ConfigResource.all_brokers(),
        "broker logger '1'": ConfigResource.broker_logger(1),
        "group 'g'": GROUP,
        "client metrics 'm'": ConfigResource.client_metrics("m"),
    }
    assert [str(resource) for resource in named.values()] == list(named)
    assert [resource.node_id for resource in named.values()] == [None, 1, None, 1, None, None]


@pytest.mark.parametrize("wrong", [None, "1", -1, True, 1.0, 2**31])
def test_ids_of_brokers_are_numbers(wrong: Any) -> None:
    for make in (ConfigResource.broker, ConfigResource.broker_logger):
        with pytest.raises(UsageError, match="a broker's id must be an integer from 0"):
            make(wrong)


@pytest.mark.parametrize("wrong", [None, "", 5, b"a", "\ud800"])
def test_names_of_resources_are_text(wrong: Any) -> None:
    for make in (ConfigResource.topic, ConfigResource.group, ConfigResource.client_metrics):
        with pytest.raises(UsageError):
            make(wrong)


async def test_no_error_and_no_repr_shows_a_value_that_may_be_a_password() -> None:
    wrong: Any = [
        b"s3cret",
        ["s3cret"],
        ConfigOp(ConfigOpType.DELETE, "s3cret"),
        ConfigOp(9, "s3cret"),  # type: ignore[arg-type]
        "s3cret\ud800",
        "s3cret" * 8000,
    ]
    async with running() as (_, admin):
        for value in wrong:
            with pytest.raises(UsageError) as caught:
                await admin.incremental_alter_configs({ConfigResource.broker(1): {"ssl.key.password": value}})
            assert "s3cret" not in str(caught.value)
            assert len(str(caught.value)) < 200
            assert "ssl.key.password of broker 1" in str(caught.value)
        given: dict[str, Any] = {
            "the changes of broker 1 must be a mapping": {ConfigResource.broker(1): [("ssl.key.password", "s3cret")]},
            "the changes of all brokers must be a mapping": {ConfigResource.all_brokers(): "ssl.key.password=s3cret"},
            "changes must be a mapping": [(ConfigResource.broker(1), {"ssl.key.password": "s3cret"})],
        }
        for told, changes in given.items():
            with pytest.raises(UsageError, match=told) as caught:
                await admin.incremental_alter_configs(changes)
            assert "s3cret" not in str(caught.value)
    assert "s3cret" not in repr([ConfigOp.set("s3cret"), ConfigOp.append("s3cret")])


# --- several brokers -----------------------------------------------------------------------------------------------


async def test_each_broker_is_asked_for_its_own() -> None:
    async with running(nodes=3) as (broker, admin):
        resources = [ConfigResource.broker(3), TOPIC, ConfigResource.broker_logger(2), GROUP, ConfigResource.broker(2)]
        found = await admin.describe_configs([*resources, TOPIC, ConfigResource.all_brokers()])
        assert list(found) == [*resources, ConfigResource.all_brokers()]
        assert [found[ConfigResource.broker(node)]["node.id"].value for node in (2, 3)] == ["2", "3"]
        asked = {
            one.node: [each.resource_name for each in one.request.resources]
            for one in broker.requests.of(ApiKey.DESCRIBE_CONFIGS)
            if one.request.resources[0].resource_name in ("2", "3")
        }
        assert asked == {3: ["3"], 2: ["2", "2"]}
        assert len(broker.requests.of(ApiKey.DESCRIBE_CONFIGS)) == 4  # groups have one of their own
        changes = {ConfigResource.broker(node): {"log.cleaner.threads": str(node)} for node in (1, 2, 3)}
        await admin.incremental_alter_configs(changes)
        assert sorted(one.node for one in broker.requests.of(ApiKey.INCREMENTAL_ALTER_CONFIGS)) == [1, 2, 3]
        changed = await admin.describe_configs(changes)
        assert [changed[resource]["log.cleaner.threads"].value for resource in changes] == ["1", "2", "3"]


async def test_a_broker_that_is_down_is_not_there_until_it_is_back() -> None:
    async with running(nodes=3) as (broker, admin):
        await broker.stop_node(2)
        with pytest.raises(
            BrokerNotAvailable, match="broker 2 is not in the cluster, or is down; the brokers are 1, 3"
        ):
            await admin.describe_configs(ConfigResource.broker(2))
        await broker.start_node(2)
        (found,) = (await admin.describe_configs(ConfigResource.broker(2))).values()
        assert found["node.id"].value == "2"


async def test_brokers_that_fail_keep_the_results_of_the_others() -> None:
    async with running(nodes=3) as (broker, admin):
        await broker.stop_node(2)
        resources = [ConfigResource.broker(2), ConfigResource.broker(3), ConfigResource.topic("missing"), TOPIC]
        with pytest.raises(AdminError, match="describing configs failed for 2 of 4") as caught:
            await admin.describe_configs(resources)
        assert list(caught.value.results) == [resources[1], TOPIC]
        assert caught.value.results[resources[1]]["node.id"].value == "3"
        assert [type(error) for error in caught.value.errors.values()] == [BrokerNotAvailable, UnknownTopicOrPartition]
        changes = {resource: {"log.cleaner.threads": "2"} for resource in resources[:2]}
        with pytest.raises(AdminError, match="changing configs failed for 1 of 2") as caught:
            await admin.incremental_alter_configs(changes)
        assert (list(caught.value.errors), caught.value.results) == ([resources[0]], {resources[1]: None})
        changed = (await admin.describe_configs(resources[1]))[resources[1]]
        assert changed["log.cleaner.threads"].value == "2"


async def test_the_only_request_fails_as_a_whole() -> None:
    async with running() as (broker, admin):
        broker.on(ApiKey.DESCRIBE_CONFIGS, swallow="before", times=None)
        with pytest.raises(RequestTimeout):
            await admin.describe_configs([TOPIC, ConfigResource.topic("b")], timeout=0.2)


async def test_many_resources_take_several_requests() -> None:
    async with running() as (broker, admin):
        groups = [ConfigResource.group(f"g{number}") for number in range(450)]
        assert list(await admin.describe_configs(groups)) == groups
        await admin.incremental_alter_configs({group: {"share.delivery.count.limit": "3"} for group in groups})
        for api in (ApiKey.DESCRIBE_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS):
            assert [len(one.request.resources) for one in broker.requests.of(api)] == [200, 200, 50]
        assert (await admin.describe_configs(groups[-1]))[groups[-1]]["share.delivery.count.limit"].value == "3"


async def test_of_several_requests_to_one_broker_one_may_fail() -> None:
    async with running() as (broker, admin):
        changes = {ConfigResource.group(f"g{number}"): {"share.delivery.count.limit": "3"} for number in range(250)}
        broker.on(ApiKey.INCREMENTAL_ALTER_CONFIGS, corrupt=-1)
        with pytest.raises(AdminError, match="changing configs failed for 200 of 250") as caught:
            await admin.incremental_alter_configs(changes)
        assert list(caught.value.errors) == list(changes)[:200]
        assert {type(error) for error in caught.value.errors.values()} == {WireError}
        assert list(caught.value.results) == list(changes)[200:]


async def test_a_broker_that_does_not_know_a_new_topic_yet_is_asked_again() -> None:
    def unknown(request: Any, true: Any) -> Any:
        true.results[0].error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return true

    async with running() as (broker, admin):
        order = broker.on(ApiKey.DESCRIBE_CONFIGS, answer=unknown, times=2)
        assert (await admin.describe_configs(TOPIC))[TOPIC]["retention.ms"].value == "604800000"
        assert order.is_met
        broker.on(ApiKey.DESCRIBE_CONFIGS, answer=unknown, times=None)
        for timeout in (None, 2):
            with pytest.raises(UnknownTopicOrPartition, match="DescribeConfigs of topic 'a'"):
                await admin.describe_configs(TOPIC, timeout=timeout)


async def test_a_controller_that_moves_is_waited_for() -> None:
    async with running() as (broker, admin):
        order = broker.on(ApiKey.INCREMENTAL_ALTER_CONFIGS, answer=ErrorCode.NOT_CONTROLLER, times=2)
        await admin.incremental_alter_configs({TOPIC: {"retention.ms": "5"}})
        assert order.is_met
        assert (await admin.describe_configs(TOPIC))[TOPIC]["retention.ms"].value == "5"


# --- what brokers refuse, and wrong answers ------------------------------------------------------------------------


async def test_what_a_broker_refuses_is_told() -> None:
    async with running() as (broker, admin):
        for api, call in (
            (ApiKey.DESCRIBE_CONFIGS, lambda: admin.describe_configs(TOPIC)),
            (ApiKey.INCREMENTAL_ALTER_CONFIGS, lambda: admin.incremental_alter_configs({TOPIC: {"x": None}})),
        ):
            broker.on(api, answer=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            with pytest.raises(TopicAuthorizationFailed, match="Configs of topic 'a'"):
                await call()
        with pytest.raises(InvalidConfig, match="IncrementalAlterConfigs of topic 'a': Unknown topic config name: x"):
            await admin.incremental_alter_configs({TOPIC: {"x": "1"}})


async def test_a_name_that_is_too_long_for_the_brokers_message_is_an_error_of_the_broker() -> None:
    async with running() as (_, admin):
        with pytest.raises(UnknownServerError, match="IncrementalAlterConfigs of topic 'a': UNKNOWN_SERVER_ERROR"):
            await admin.incremental_alter_configs({TOPIC: {"x" * 32_767: "1"}})


async def test_answers_that_lack_what_was_asked() -> None:
    async with running() as (broker, admin):
        broker.on(ApiKey.DESCRIBE_CONFIGS, answer=DescribeConfigsResponse(results=[]))
        with pytest.raises(WireError, match="the DescribeConfigs response lacks the requested topic 'a'"):
            await admin.describe_configs(TOPIC)
        broker.on(ApiKey.INCREMENTAL_ALTER_CONFIGS, answer=IncrementalAlterConfigsResponse(responses=[]))
        with pytest.raises(WireError, match="the response lacks the requested topic 'a'"):
            await admin.incremental_alter_configs({TOPIC: {"retention.ms": "5"}})


async def test_codes_of_newer_brokers_are_unknown() -> None:
    def newer(request: Any, true: Any) -> Any:
        for config in true.results[0].configs:
            config.config_source, config.config_type = 99, 99
        return true

    async with running() as (broker, admin):
        broker.on(ApiKey.DESCRIBE_CONFIGS, answer=newer)
        entry = (await admin.describe_configs(TOPIC))[TOPIC]["retention.ms"]
        assert (entry.source, entry.type, entry.value) == (ConfigSource.UNKNOWN, None, "604800000")


# --- old brokers ---------------------------------------------------------------------------------------------------


async def test_brokers_before_1_1_name_no_sources() -> None:
    async with running("1.0") as (broker, admin):
        broker.create_topic("c", configs={"retention.ms": "5"})
        topic, node = ConfigResource.topic("c"), ConfigResource.broker(1)
        found = await admin.describe_configs([topic, node])
        assert found[topic]["retention.ms"].source is ConfigSource.DYNAMIC_TOPIC_CONFIG
        assert found[topic]["segment.ms"].source is ConfigSource.DEFAULT_CONFIG
        assert found[node]["broker.id"].source is ConfigSource.STATIC_BROKER_CONFIG
        assert (found[topic]["segment.ms"].type, found[topic]["segment.ms"].synonyms) == (None, ())
        with pytest.raises(UnsupportedVersion, match=r"synonyms 1.1 \(KIP-226\), documentation 2.6 \(KIP-569\): "):
            await admin.describe_configs(topic, include_synonyms=True)


@pytest.mark.parametrize(("release", "told"), [("0.10.2", "describing configs needs brokers since 0.11")])
async def test_brokers_before_0_11_describe_no_configs(release: str, told: str) -> None:
    async with running(release) as (_, admin):
        with pytest.raises(UnsupportedVersion, match=told):
            await admin.describe_configs(TOPIC)


async def test_brokers_before_2_6_have_no_documentation() -> None:
    async with running("2.5") as (_, admin):
        assert (await admin.describe_configs(TOPIC, include_synonyms=True))[TOPIC]["segment.bytes"].synonyms
        with pytest.raises(UnsupportedVersion, match=r"documentation 2.6 \(KIP-569\): "):
            await admin.describe_configs(TOPIC, include_documentation=True)


async def test_single_configs_are_changed_since_2_3() -> None:
    async with running("2.2") as (_, admin):
        with pytest.raises(UnsupportedVersion, match=r"changing configs needs brokers since 2.3 \(KIP-339\): "):
            await admin.incremental_alter_configs({TOPIC: {"retention.ms": "5"}})
    async with running("2.3") as (_, admin):
        await admin.incremental_alter_configs({TOPIC: {"retention.ms": "5"}})
        assert (await admin.describe_configs(TOPIC))[TOPIC]["retention.ms"].value == "5"


async def test_groups_have_configs_since_4_0() -> None:
    told = r"^configs of groups need brokers since 4.0 \(KIP-848\): "
    async with running("3.9") as (_, admin):
        for resources in (GROUP, [GROUP]):
            with pytest.raises(UnsupportedVersion, match=told):
                await admin.describe_configs(resources)
        with pytest.raises(AdminError, match="describing configs failed for 1 of 2") as caught:
            await admin.describe_configs([TOPIC, GROUP])
        assert list(caught.value.results) == [TOPIC]
        assert isinstance(caught.value.errors[GROUP], UnsupportedVersion)
        with pytest.raises(UnsupportedVersion, match=told):
            await admin.incremental_alter_configs({GROUP: {"consumer.session.timeout.ms": "50000"}})
    async with running("4.0") as (_, admin):
        await admin.incremental_alter_configs({GROUP: {"consumer.session.timeout.ms": "50000"}})
        assert (await admin.describe_configs(GROUP))[GROUP]["consumer.session.timeout.ms"].value == "50000"
