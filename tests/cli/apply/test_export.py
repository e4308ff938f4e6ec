"""``export`` on the in-process broker."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.shell import Shell

from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.background import BackgroundBroker


def test_export_is_sorted_and_takes_kinds_and_patterns(guarded: Shell, state: Path) -> None:
    state.write_text(
        """
        [topics.b]
        configs = { "segment.ms" = 5, "retention.ms" = 7 }
        [topics.a]
        partitions = 2
        [brokers.1]
        "log.cleaner.threads" = 2
        [[acls]]
        principal = "User:z"
        operations = ["write", "read"]
        resource = "topic"
        name = "a"
        pattern = "prefixed"
        permission = "deny"
        host = "10.0.0.1"
        [[quotas]]
        ip = "10.0.0.1"
        limits = { connection_creation_rate = 5 }
        [[users.b]]
        mechanism = "SCRAM-SHA-512"
        password = { env = "SHOP_PASSWORD" }
        """
    )
    guarded("apply", str(state), "--yes")
    head, _, body = guarded("export").decode().partition("\n")
    assert head.startswith("# The settings of cluster ")
    assert (
        body
        == """
[topics.a]
partitions = 2
replication_factor = 1

[topics.b]
partitions = 1
replication_factor = 1
[topics.b.configs]
"retention.ms" = 7
"segment.ms" = 5

[brokers.default]
"min.insync.replicas" = 1

[brokers.1]
"log.cleaner.threads" = 2

[[acls]]
principal = "User:z"
operations = ["read", "write"]
resource = "topic"
name = "a"
pattern = "prefixed"
permission = "deny"
host = "10.0.0.1"

[[quotas]]
ip = "10.0.0.1"
limits = { connection_creation_rate = 5 }

[[users.b]]
mechanism = "SCRAM-SHA-512"
iterations = 4096
# Brokers do not return passwords.
password = { env = "B_PASSWORD" }
"""
    )
    some = guarded("export", "topics", "quotas", "--topic", "b*").decode()
    assert "# Only topics that match b*.\n" in some
    assert [line for line in some.splitlines() if line.startswith("[")] == [
        "[topics.b]",
        "[topics.b.configs]",
        "[[quotas]]",
    ]
    rows = [json.loads(line) for line in guarded.lines("export", "--json")]
    assert [row["kind"] for row in rows] == ["topic", "topic", "broker", "broker", "acl", "acl", "quota", "user"]
    assert rows[1] == {
        "kind": "topic",
        "topic": "b",
        "partitions": 1,
        "replication_factor": 1,
        "configs": {"retention.ms": "7", "segment.ms": "5"},
    }


def test_names_in_comments_cannot_command_a_terminal(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with BackgroundBroker(authorizer=True, super_users=["User:ANONYMOUS"]) as broker:
        shell = Shell(broker.bootstrap, capsysbinary)
        argv = ("--allow-principal", "User:eve\x1b[2J", "--operation", "read", "--topic", "t")
        shell("acls", "create", *argv)

        def newer(request: Any, true: Any) -> Any:
            true.resources[0].resource_type = 99
            return true

        broker.on(ApiKey.DESCRIBE_ACLS, answer=newer, times=None)
        assert shell("export", "acls", "--json") == b""
        assert r"User:eve\x1b[2J READ" in shell.err


def test_configs_of_brokers_are_not_those_of_topics(shell: Shell, state: Path) -> None:
    state.write_text(
        '[topics.a]\n[brokers.1]\n"log.retention.ms" = 5\n[brokers.default]\n"log.segment.bytes" = 2000000'
    )
    shell("apply", str(state), "--yes")
    exported = shell("export").decode()
    assert "configs" not in exported
    assert '[brokers.1]\n"log.retention.ms" = 5\n' in exported
    assert '"log.segment.bytes" = 2000000\n' in exported


def test_each_broker_has_configs_of_its_own(capsysbinary: pytest.CaptureFixture[bytes], state: Path) -> None:
    with BackgroundBroker(3) as brokers:
        shell = Shell(brokers.bootstrap, capsysbinary)
        state.write_text("".join(f"[brokers.{node}]\n'log.cleaner.threads' = {node}\n" for node in (3, 2)))
        assert shell.lines("apply", str(state), "--yes") == [
            "done      ~ broker 3: log.cleaner.threads default -> 3",
            "done      ~ broker 2: log.cleaner.threads default -> 2",
        ]
        assert shell("apply", str(state), "--check") == b""
        rows = {row["node_id"]: row["configs"] for row in map(json.loads, shell.lines("export", "brokers", "--json"))}
        assert {name: rows[name] for name in "23"} == {name: {"log.cleaner.threads": name} for name in "23"}
        assert "1" not in rows
        state.write_text("[brokers.7]\n'log.cleaner.threads' = 2\n")
        shell("apply", str(state), "--dry-run", status=1)
        assert shell.err.startswith("aiokafkawire: BrokerNotAvailable: ")


def test_settings_of_old_brokers_that_have_no_quotas_and_users(
    capsysbinary: pytest.CaptureFixture[bytes], state: Path
) -> None:
    with BackgroundBroker(max_versions="2.4") as broker:
        shell = Shell(broker.bootstrap, capsysbinary)
        state.write_text("[topics.a]\npartitions = 1\nconfigs = { 'retention.ms' = 5 }")
        shell("apply", str(state), "--yes")
        exported = shell("export").decode()
        assert "# The quotas are left out: " in exported
        assert "# The users are left out: SCRAM credentials need brokers since 2.7" in exported
        state.write_text(exported)
        assert shell("apply", str(state), "--check") == b""
        shell("export", "users", status=1)
