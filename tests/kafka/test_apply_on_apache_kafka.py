"""``apply`` and ``export`` on a real Apache Kafka with an authorizer, and beside Kafka's own tools."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from support.apache_kafka import ApacheKafka, missing
from support.authorizing import apache_with_acls
from support.java_tools import java_command
from support.kafka_releases import KafkaRelease
from support.needing import require
from support.shell import Shell

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "kafka.toml"
CONFIGS: Final = "kafka.admin.ConfigCommand"
TOPICS: Final = "org.apache.kafka.tools.TopicCommand"
ACLS: Final = "org.apache.kafka.tools.AclCommand"

STATE: Final = """
[topics.orders]
partitions = 6
configs = { "retention.ms" = 3600000, "cleanup.policy" = ["compact", "delete"], "min.cleanable.dirty.ratio" = "0.50" }
[topics."with.dots"]

[brokers.default]
"log.cleaner.threads" = 2
[brokers.1]
"log.retention.bytes" = 1073741824
"listener.name.other.ssl.truststore.password" = { env = "SECRET" }

[[acls]]
principal = "User:alice"
operations = ["read", "describe"]
resource = "topic"
name = "orders"
[[acls]]
principal = "User:*"
operations = ["write"]
resource = "topic"
name = "orders-"
pattern = "prefixed"
permission = "deny"
host = "198.51.100.1"
[[acls]]
principal = "User:alice"
operations = ["idempotent_write"]
resource = "cluster"

[[quotas]]
user = "alice"
limits = { producer_byte_rate = 1048576, request_percentage = 12.5 }
[[quotas]]
user = "<default>"
client_id = "app"
limits = { consumer_byte_rate = 2097152 }
[[quotas]]
ip = "203.0.113.9"
limits = { connection_creation_rate = 7 }

[[users.alice]]
mechanism = "SCRAM-SHA-256"
iterations = 8192
password = { env = "SECRET" }
[[users.alice]]
mechanism = "SCRAM-SHA-512"
password = { env = "SECRET" }
"""
EVERYTHING_GOES: Final = "acls = []\nquotas = []\n[topics]\n[users]\n[brokers.default]\n[brokers.1]\n"


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[ApacheKafka]:
    """A server of its own, since ``--delete`` deletes all."""
    require(missing())
    with apache_with_acls(request.config.option.kafka) as kafka:
        yield kafka


@pytest.fixture
def shell(
    server: ApacheKafka,
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Iterator[Shell]:
    monkeypatch.setenv("SECRET", "secret-of-alice")
    monkeypatch.setenv("ALICE_PASSWORD", "secret-of-alice")
    shell = Shell(server.bootstrap, capsysbinary)
    yield shell
    empty = tmp_path / "empty.toml"
    empty.write_text(EVERYTHING_GOES)
    shell("apply", str(empty), "--yes", "--delete", "topics", *(part for kind in _KINDS for part in ("--delete", kind)))


_KINDS: Final = ("acls", "quotas", "users")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "kafka.toml"
    path.write_text(STATE)
    return path


def test_a_state_is_made_on_apache_kafka_and_a_second_run_changes_nothing(shell: Shell, state: Path) -> None:
    plan = shell.lines("apply", str(state), "--dry-run")
    done = shell.lines("apply", str(state), "--yes")
    assert done == [f"done      {line}" for line in plan]
    assert "do not show this yet" not in shell.err
    assert shell("apply", str(state), "--check") == b""
    exported = state.with_name("exported.toml")
    exported.write_bytes(shell("export"))
    assert shell("apply", str(exported), "--check", "--delete", "all") == b""
    assert shell("export") == exported.read_bytes()

    changed = STATE.replace("partitions = 6", "partitions = 7").replace("3600000", "7200000").replace("12.5", "13.5")
    changed = changed.replace('["read", "describe"]', '["read", "write"]').replace("8192", "4097")
    state.write_text(changed)
    expected = [
        "~ topic orders: 6 -> 7 partitions",
        "~ topic orders: retention.ms 3600000 -> 7200000",
        "~ user alice: SCRAM-SHA-256 gets the password in $SECRET, 4097 iterations",
        "~ quota of user alice: request_percentage 12.5 -> 13.5",
        "+ acl allow User:alice write on topic orders",
        "- acl allow User:alice describe on topic orders",
    ]
    assert shell.lines("apply", str(state), "--dry-run", "--delete", "all") == expected
    shell("apply", str(state), "--yes", "--delete", "all")
    assert shell("apply", str(state), "--check", "--delete", "all") == b""


def test_the_example_is_made_on_apache_kafka(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "secret-of-the-shop")
    plan = shell.lines("apply", str(EXAMPLE), "--dry-run")
    assert [f"done      {line}" for line in plan] == shell.lines("apply", str(EXAMPLE), "--yes")
    assert shell("apply", str(EXAMPLE), "--check") == b""


def test_what_apache_kafka_refuses_is_told_and_the_others_are_done(shell: Shell, state: Path) -> None:
    state.write_text(
        """
        [topics.a]
        configs = { "retention.ms" = "soon" }
        [topics.b]
        replication_factor = 3
        [topics.c]
        [[quotas]]
        user = "a"
        limits = { producer_byte_rat = 1 }
        [[quotas]]
        user = "b"
        limits = { producer_byte_rate = 1 }
        """
    )
    out = shell("apply", str(state), "--yes", "--delete", "quotas", status=1).decode().splitlines()
    assert [line[:9].rstrip() for line in out] == ["failed", "failed", "done", "failed", "done"]
    assert "4 failed" not in shell.err
    assert "InvalidConfig: " in shell.err
    assert "InvalidReplicationFactor: " in shell.err
    assert "InvalidRequest: " in shell.err


@pytest.mark.thorough
def test_kafkas_tools_see_exactly_the_declared_state(server: ApacheKafka, shell: Shell, state: Path) -> None:
    shell("apply", str(state), "--yes")

    described = tool(server, TOPICS, "--describe", "--exclude-internal")
    topics = re.findall(r"Topic: (\S+)\t.*PartitionCount: (\d+)\tReplicationFactor: (\d+)\tConfigs: (\S*)", described)
    assert {(name, count, replicas) for name, count, replicas, _ in topics} == {
        ("orders", "6", "1"),
        ("with.dots", "1", "1"),
    }
    named = ("--entity-type", "topics", "--entity-name", "orders")
    own = dict(re.findall(r"^  ([\w.]+)=(\S+) sensitive=", tool(server, CONFIGS, "--describe", *named), re.MULTILINE))
    assert own == {
        "retention.ms": "3600000",
        "cleanup.policy": "compact,delete",
        "min.cleanable.dirty.ratio": "0.5",
    }
    brokers = tool(server, CONFIGS, "--describe", "--entity-type", "brokers", "--entity-default")
    assert "log.cleaner.threads=2 sensitive=false" in brokers
    broker = tool(server, CONFIGS, "--describe", "--entity-type", "brokers", "--entity-name", "1")
    assert "log.retention.bytes=1073741824 sensitive=false" in broker
    assert "listener.name.other.ssl.truststore.password=null sensitive=true" in broker
    quotas = tool(server, CONFIGS, "--describe", "--entity-type", "users", "--entity-name", "alice")
    assert "producer_byte_rate=1048576.0" in quotas
    assert "request_percentage=12.5" in quotas
    assert "SCRAM-SHA-256=iterations=8192" in quotas
    assert "SCRAM-SHA-512=iterations=4096" in quotas
    both = ("--entity-type", "users", "--entity-default", "--entity-type", "clients", "--entity-name", "app")
    assert "consumer_byte_rate=2097152.0" in tool(server, CONFIGS, "--describe", *both)
    ips = tool(server, CONFIGS, "--describe", "--entity-type", "ips", "--entity-name", "203.0.113.9")
    assert "connection_creation_rate=7.0" in ips
    listed = tool(server, ACLS, "--list")
    rules = r"\(principal=(\S+), host=(\S+), operation=(\w+), permissionType=(\w+)\)"
    assert set(re.findall(rules, listed)) == {
        ("User:alice", "*", "READ", "ALLOW"),
        ("User:alice", "*", "DESCRIBE", "ALLOW"),
        ("User:*", "198.51.100.1", "WRITE", "DENY"),
        ("User:alice", "*", "IDEMPOTENT_WRITE", "ALLOW"),
    }
    assert "resourceType=TOPIC, name=orders-, patternType=PREFIXED" in listed

    # And what the tools change is a difference, until the next run.
    tool(server, TOPICS, "--delete", "--topic", "with.dots")
    tool(server, CONFIGS, "--alter", *named, "--add-config", "retention.ms=5", "--delete-config", "cleanup.policy")
    user = ("--entity-type", "users", "--entity-name", "alice")
    for config in ("SCRAM-SHA-512", "request_percentage"):
        tool(server, CONFIGS, "--alter", *user, "--delete-config", config)
    rule = ("--allow-principal", "User:alice", "--operation", "Describe", "--topic", "orders")
    tool(server, ACLS, "--remove", "--force", *rule)
    expected = [
        "+ topic with.dots: the default number of partitions",
        "~ topic orders: cleanup.policy default -> compact,delete, retention.ms 5 -> 3600000",
        "+ user alice: SCRAM-SHA-512 with the password in $SECRET",
        "~ quota of user alice: request_percentage none -> 12.5",
        "+ acl allow User:alice describe on topic orders",
    ]
    assert shell.lines("apply", str(state), "--dry-run") == expected
    shell("apply", str(state), "--yes")
    assert shell("apply", str(state), "--check") == b""


@pytest.mark.matrix
@pytest.mark.parametrize("version", ["0.11.0.3", "1.1.1", "2.8.2"])
def test_older_releases_take_and_give_what_they_know(
    version: str, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    require(missing())
    monkeypatch.setenv("SECRET", "secret-of-alice")
    state, exported = tmp_path / "kafka.toml", tmp_path / "exported.toml"
    rule = 'principal = "User:alice"\noperations = ["read"]\nresource = "topic"\nname = "orders"'
    text = f"""
        [topics.orders]
        partitions = 6
        replication_factor = 1
        configs = {{ "min.cleanable.dirty.ratio" = "0.50", "cleanup.policy" = "compact, delete", "preallocate" = true }}
        [[acls]]
        {rule}
        """
    if version == "2.8.2":
        text += """
        [brokers.default]
        "log.cleaner.threads" = 2
        [[quotas]]
        client_id = "app"
        limits = { request_percentage = 12.5 }
        [users.alice]
        mechanism = "SCRAM-SHA-256"
        password = { env = "SECRET" }
        """
    state.write_text(text)
    properties = {
        "authorizer.class.name": "kafka.security.auth.SimpleAclAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    if version == "2.8.2":
        properties["authorizer.class.name"] = "kafka.security.authorizer.AclAuthorizer"
    with KafkaRelease(version, properties=properties) as kafka:
        shell = Shell(kafka.bootstrap, capsysbinary)
        shell("apply", str(state), "--yes")
        assert shell("apply", str(state), "--check") == b""
        exported.write_bytes(shell("export"))
        assert ("# The users are left out: " in exported.read_text()) is (version != "2.8.2")
        assert shell("apply", str(exported), "--check", "--delete", "all") == b""


def tool(server: ApacheKafka, main: str, *argv: str) -> str:
    """Run one of Kafka's tools to its end, and return what it prints."""
    command = [*java_command(), main, "--bootstrap-server", server.bootstrap, *argv]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
