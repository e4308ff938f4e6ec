"""``configs`` on the in-process broker, in one process."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.shell import Shell

from aiokafkawire import ConfigEntry, ConfigOp, ConfigResource, ConfigSource, ConfigSynonym
from aiokafkawire.cli.configs.changes import config_changes, names_and_settings
from aiokafkawire.cli.configs.resources import is_own, named_resources
from aiokafkawire.cli.configs.settings_table import SettingsView
from aiokafkawire.cli.exit_status import CommandFailed
from aiokafkawire.error_codes import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.background import BackgroundBroker

ORDERS = ConfigResource.topic("orders")


@pytest.fixture
def shell(kafka_broker: BackgroundBroker, capsysbinary: pytest.CaptureFixture[bytes]) -> Shell:
    kafka_broker.create_topic("orders")
    kafka_broker.create_topic("payments")
    return Shell(kafka_broker.bootstrap, capsysbinary)


def rows(shell: Shell, *argv: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shell.lines("configs", *argv, "--json")]


# --- arguments -------------------------------------------------------------------------------------------------------


def test_resources_are_named_by_type_and_name() -> None:
    assert named_resources("topic", ["orders", "orders"]) == [ORDERS]
    assert named_resources("broker", ["1"], default=True) == [ConfigResource.broker(1), ConfigResource.all_brokers()]
    assert named_resources("broker-logger", ["1"]) == [ConfigResource.broker_logger(1)]
    assert named_resources("group", ["a=b"]) == [ConfigResource.group("a=b")]
    assert named_resources("client-metrics", ["m"]) == [ConfigResource.client_metrics("m")]


@pytest.mark.parametrize(
    ("type_name", "names", "default", "message"),
    [
        ("topic", ["orders"], True, "--default means the defaults of all brokers; a topic has none"),
        ("broker", ["one"], False, "a broker is named by its id, such as 1, or --default .*; got 'one'"),
        ("broker-logger", ["-1"], False, "a broker is named by its id, such as 1; got '-1'"),
        ("broker", [str(2**31)], False, "a broker is named by its id"),
        ("topic", ["no spaces"], False, "cannot be a topic's name"),
        ("client-metrics", [""], False, "the name of a subscription to metrics"),
    ],
)
def test_wrong_names_are_wrong_usage(type_name: str, names: list[str], default: bool, message: str) -> None:
    with pytest.raises(CommandFailed, match=message) as refused:
        named_resources(type_name, names, default=default)
    assert refused.value.status == 2


def test_the_first_argument_is_a_name_and_later_ones_with_an_equals_sign_are_settings() -> None:
    assert names_and_settings(["a=b", "c", "d=1", "e"], default=False) == (["a=b", "c", "e"], ["d=1"])
    assert names_and_settings(["d=1", "1"], default=True) == (["1"], ["d=1"])
    assert names_and_settings([], default=False) == ([], [])


def test_changes_set_delete_append_and_subtract() -> None:
    assert config_changes(
        ["a=1=2", "b="], of_file={"c": "3"}, deleted=["d"], appended=["e=x,y"], subtracted=["f=z"]
    ) == {
        "c": ConfigOp.set("3"),
        "a": ConfigOp.set("1=2"),
        "b": ConfigOp.set(""),
        "d": ConfigOp.delete(),
        "e": ConfigOp.append("x,y"),
        "f": ConfigOp.subtract("z"),
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "nothing to change: give KEY=VALUE"),
        ({"settings": ["a=s3cret", "a=s3cret"]}, "a has two changes: give one"),
        ({"settings": ["a=s3cret"], "deleted": ["a"]}, "a has two changes"),
        ({"appended": ["a=s3cret"], "subtracted": ["a=s3cret"]}, "a has two changes"),
        ({"settings": ["=s3cret"]}, "a setting must be KEY=VALUE; '' has no key"),
        ({"appended": ["a"]}, "--append must be KEY=VALUE; 'a' has no value"),
        ({"deleted": ["a=s3cret"]}, "--delete takes the KEY of a setting, without a value"),
        ({"deleted": [""]}, "--delete takes the KEY of a setting"),
    ],
)
def test_wrong_changes_are_wrong_usage_and_show_no_value(given: dict[str, Any], message: str) -> None:
    with pytest.raises(CommandFailed, match=message) as refused:
        config_changes(given.pop("settings", []), **given)
    assert refused.value.status == 2
    assert "s3cret" not in str(refused.value)


# --- rows ------------------------------------------------------------------------------------------------------------


def test_sensitive_values_stay_hidden_even_if_a_broker_returns_them() -> None:
    synonyms = (ConfigSynonym("p", "s3cret", ConfigSource.DYNAMIC_TOPIC_CONFIG),)
    entry = ConfigEntry("p", "s3cret", ConfigSource.DYNAMIC_TOPIC_CONFIG, is_sensitive=True, synonyms=synonyms)
    for as_json in (False, True):
        view = SettingsView(synonyms=True, json=as_json)
        (row,) = view.rows(ORDERS, {"p": entry})
        assert "s3cret" not in str(row)
        assert row["value"] == (None if as_json else "(hidden)")


def test_documentation_is_one_line_without_tags() -> None:
    source = ConfigSource.DYNAMIC_TOPIC_CONFIG
    entry = ConfigEntry("a", "", source, documentation='One <a href="#x">two</a>\n<code>3 < 4</code>')
    (row,) = SettingsView(documentation=True).rows(ORDERS, {"a": entry})
    assert (row["value"], row["documentation"]) == ('""', "One two 3 < 4")


@pytest.mark.parametrize(
    ("resource", "own"),
    [
        (ORDERS, "DYNAMIC_TOPIC_CONFIG"),
        (ConfigResource.broker(1), "DYNAMIC_BROKER_CONFIG"),
        (ConfigResource.all_brokers(), "DYNAMIC_DEFAULT_BROKER_CONFIG"),
        (ConfigResource.broker_logger(1), "DYNAMIC_BROKER_LOGGER_CONFIG"),
        (ConfigResource.group("g"), "DYNAMIC_GROUP_CONFIG"),
        (ConfigResource.client_metrics("m"), "DYNAMIC_CLIENT_METRICS_CONFIG"),
    ],
)
def test_own_settings_are_those_of_the_resource_itself(resource: ConfigResource, own: str) -> None:
    found = [source.name for source in ConfigSource if is_own(resource, ConfigEntry("a", "1", source))]
    assert found == [own]


# --- commands --------------------------------------------------------------------------------------------------------


def test_settings_are_changed_and_described(shell: Shell) -> None:
    argv = ("alter", "topic", "orders", "payments", "retention.ms=3600000", "--append", "cleanup.policy=compact")
    assert shell.lines("configs", *argv) == [
        "RESOURCE  NAME      OUTCOME",
        "topic     orders    changed",
        "topic     payments  changed",
    ]
    assert shell.lines("configs", "describe", "topic", "orders") == [
        "RESOURCE  NAME    CONFIG          VALUE           SOURCE",
        "topic     orders  cleanup.policy  delete,compact  DYNAMIC_TOPIC_CONFIG",
        "topic     orders  retention.ms    3600000         DYNAMIC_TOPIC_CONFIG",
    ]
    argv = ("alter", "topic", "orders", "--subtract", "cleanup.policy=delete", "--delete", "retention.ms")
    assert rows(shell, *argv) == [{"resource_type": "topic", "resource_name": "orders", "outcome": "changed"}]
    (policy,) = rows(shell, "describe", "topic", "orders")
    assert policy == {
        "resource_type": "topic",
        "resource_name": "orders",
        "config": "cleanup.policy",
        "value": "compact",
        "source": "DYNAMIC_TOPIC_CONFIG",
        "value_type": "list",
        "is_sensitive": False,
        "is_read_only": False,
    }


def test_all_settings_single_ones_their_synonyms_and_documentation(shell: Shell) -> None:
    everything = rows(shell, "describe", "topic", "orders", "--all")
    assert len(everything) > 20
    assert {row["source"] for row in everything} == {"DEFAULT_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG"}
    argv = ("describe", "topic", "orders", "-k", "segment.bytes", "--synonyms", "--documentation")
    (segment,) = rows(shell, *argv)
    assert segment["synonyms"] == [
        {"config": "log.segment.bytes", "value": segment["value"], "source": "DEFAULT_CONFIG"}
    ]
    assert "segment" in segment["documentation"]
    heading, line = shell.lines("configs", *argv)
    assert heading.split() == ["RESOURCE", "NAME", "CONFIG", "VALUE", "SOURCE", "SYNONYMS", "DOCUMENTATION"]
    assert f"DEFAULT_CONFIG:log.segment.bytes={segment['value']}" in line
    out = shell("configs", "describe", "topic", "orders", "-k", "no.such", status=1)
    assert out == b""
    assert shell.err == "aiokafkawire: topic 'orders' has no setting no.such\n"


def test_settings_of_brokers_loggers_groups_and_client_metrics(shell: Shell) -> None:
    for argv in (
        ("broker", "1", "log.cleaner.threads=2"),
        ("broker", "--default", "log.cleaner.backoff.ms=13000"),
        ("broker-logger", "1", "kafka=DEBUG"),
        ("group", "billing", "consumer.session.timeout.ms=46000"),
        ("client-metrics", "basic", "interval.ms=60000"),
    ):
        shell("configs", "alter", *argv)
    found = [
        (row["resource_type"], row["resource_name"], row["config"], row["value"])
        for type_name in ("broker", "group", "client-metrics")
        for row in rows(shell, "describe", type_name)
    ]
    assert found == [
        ("broker", "1", "log.cleaner.threads", "2"),
        ("broker", None, "log.cleaner.backoff.ms", "13000"),
        ("broker", None, "min.insync.replicas", "1"),  # of the broker's own
        ("group", "billing", "consumer.session.timeout.ms", "46000"),
        ("client-metrics", "basic", "interval.ms", "60000"),
    ]
    assert shell.lines("configs", "describe", "broker", "--default")[1].split()[:3] == [
        "broker",
        "(default)",
        "log.cleaner.backoff.ms",
    ]
    levels = {row["config"]: row["value"] for row in rows(shell, "describe", "broker-logger", "1")}
    assert levels["kafka"] == "DEBUG"
    sources = {row["source"] for row in rows(shell, "describe", "broker", "1", "--all")}
    assert sources >= {"STATIC_BROKER_CONFIG", "DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG"}


def test_resources_with_own_settings_are_listed(shell: Shell) -> None:
    # Clusters begin with a setting of all brokers, min.insync.replicas.
    assert rows(shell, "list") == [{"resource_type": "broker", "resource_name": None, "own_settings": 1}]
    shell("configs", "alter", "topic", "orders", "retention.ms=5", "segment.ms=6")
    shell("configs", "alter", "group", "billing", "consumer.session.timeout.ms=46000")
    shell("configs", "alter", "broker", "--default", "log.cleaner.threads=2")
    assert rows(shell, "list") == [
        {"resource_type": "topic", "resource_name": "orders", "own_settings": 2},
        {"resource_type": "broker", "resource_name": None, "own_settings": 2},
        {"resource_type": "group", "resource_name": "billing", "own_settings": 1},
    ]
    assert [(row["resource_name"], row["own_settings"]) for row in rows(shell, "list", "topic", "--all")] == [
        ("orders", 2),
        ("payments", 0),
    ]
    assert rows(shell, "list", "broker-logger")[0]["own_settings"] > 0
    # without a name, all topics with settings of their own are described
    assert {row["resource_name"] for row in rows(shell, "describe", "topic")} == {"orders"}


def test_what_fails_for_one_resource_is_told_and_the_others_are_done(shell: Shell) -> None:
    out = shell("configs", "alter", "topic", "none", "orders", "retention.ms=5", status=1)
    assert out.decode().splitlines() == ["RESOURCE  NAME    OUTCOME", "topic     orders  changed"]
    assert shell.err.startswith("aiokafkawire: UnknownTopicOrPartition: IncrementalAlterConfigs of topic 'none'")
    assert shell.err.count("\n") == 1
    out = shell("configs", "describe", "topic", "none", "orders", status=1)
    assert out.decode().splitlines()[1].split()[:4] == ["topic", "orders", "retention.ms", "5"]
    assert shell.err.startswith("aiokafkawire: UnknownTopicOrPartition: DescribeConfigs of topic 'none'")
    shell("configs", "describe", "topic", "none", status=1)
    assert shell.err.startswith("aiokafkawire: UnknownTopicOrPartition: DescribeConfigs of topic 'none'")
    out = shell("configs", "alter", "broker", "7", "1", "log.cleaner.threads=2", status=1)
    assert out.decode().splitlines()[1].split() == ["broker", "1", "changed"]
    assert shell.err.startswith("aiokafkawire: BrokerNotAvailable: broker 7 is not in the cluster, or is down")


def test_the_last_resource_of_many_does_not_hide_the_others(shell: Shell, kafka_broker: BackgroundBroker) -> None:
    for number in range(199):  # and two more: 200 are described at once
        kafka_broker.create_topic(f"a{number}")

    def gone(request: Any, true: Any) -> Any:
        for result in true.results:
            if result.resource_name == "payments":
                result.error_code, result.configs = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, []
        return true

    kafka_broker.on(ApiKey.DESCRIBE_CONFIGS, answer=gone, times=None)
    assert len(shell("configs", "list", "topic", "--all", "--json", status=1).splitlines()) == 200
    assert shell.err.startswith("aiokafkawire: UnknownTopicOrPartition: DescribeConfigs of topic 'payments'")


def test_changes_are_checked_alone(shell: Shell) -> None:
    argv = ("configs", "alter", "topic", "orders", "--validate-only")
    assert shell.lines(*argv, "retention.ms=5")[1].split() == ["topic", "orders", "would", "be", "changed"]
    shell(*argv, "retention.ms=soon", status=1)
    assert shell.err.startswith("aiokafkawire: InvalidConfig: IncrementalAlterConfigs of topic 'orders'")
    shell(*argv, "--append", "retention.ms=5", status=1)
    assert "its type is not LIST" in shell.err
    assert rows(shell, "describe", "topic", "orders") == []


def test_settings_of_a_file(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "topic.properties"
    path.write_text("# of orders\nretention.ms = 7\ncleanup.policy=compact,delete\n")
    shell("configs", "alter", "topic", "orders", "segment.ms=8", "--from-file", str(path))
    assert {row["config"]: row["value"] for row in rows(shell, "describe", "topic", "orders")} == {
        "retention.ms": "7",
        "cleanup.policy": "compact,delete",
        "segment.ms": "8",
    }
    shell("configs", "alter", "topic", "orders", "--from-file", str(tmp_path / "none"), status=2)
    assert "cannot read the settings in" in shell.err


def test_wrong_usage_is_status_2(shell: Shell) -> None:
    for argv, message in (
        (("alter", "topic", "orders"), "nothing to change"),
        (("alter", "topic"), "which topic? Give a name before the settings"),
        (("alter", "topic", "retention.ms=5"), "cannot be a topic's name"),
        (("alter", "topic", "--default", "retention.ms=5"), "--default means the defaults of all brokers"),
        (("describe", "broker", "one"), "a broker is named by its id"),
        (("describe", "planet"), "TYPE is one of topic, broker, "),
        (("list", "planet"), "TYPE is one of topic, broker, "),
    ):
        shell("configs", *argv, status=2)
        assert message in shell.err


# --- other clusters --------------------------------------------------------------------------------------------------


@pytest.fixture
def old_shell(capsysbinary: pytest.CaptureFixture[bytes]) -> Iterator[Shell]:
    with BackgroundBroker(max_versions="4.0") as broker:
        broker.create_topic("orders", configs={"retention.ms": "5"})
        yield Shell(broker.bootstrap, capsysbinary)


def test_older_brokers_list_topics_and_brokers(old_shell: Shell) -> None:
    out = old_shell("configs", "list")
    assert out.decode().splitlines()[1].split() == ["topic", "orders", "1"]
    (left_out,) = old_shell.err.splitlines()  # brokers of 4.0 list subscriptions to metrics
    assert left_out.startswith(
        "left out: group settings, since listing resources with configs needs brokers since 4.1 ("
    )
    assert left_out.endswith("; 'configs describe group NAME' describes one that you name")
    assert rows(old_shell, "list", "topic")[0]["resource_name"] == "orders"
    old_shell("configs", "list", "group", status=1)
    assert "UnsupportedVersion: listing resources" in old_shell.err


def test_a_user_without_rights_is_refused(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with BackgroundBroker(authorizer=True, super_users=["User:admin"]) as broker:
        broker.create_topic("orders")
        shell = Shell(broker.bootstrap, capsysbinary)
        shell("configs", "describe", "topic", "orders", status=1)
        assert shell.err.startswith("aiokafkawire: TopicAuthorizationFailed: DescribeConfigs of topic 'orders'")
        shell("configs", "alter", "broker", "1", "log.cleaner.threads=2", status=1)
        assert shell.err.startswith("aiokafkawire: ClusterAuthorizationFailed: IncrementalAlterConfigs of broker 1")
