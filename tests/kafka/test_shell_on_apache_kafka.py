"""The shell on a real Apache Kafka: produce, consume, topics, configs, quotas and users."""

import json
from pathlib import Path
from uuid import uuid4

import pytest
from support.apache_kafka import ApacheKafka
from support.shell import Shell
from support.user_tools import until

from aiokafkawire import NewTopic, blocking
from aiokafkawire.errors import ThrottlingQuotaExceeded

pytestmark = pytest.mark.thorough  # as of the in-process broker, in every run


@pytest.fixture
def shell(apache_kafka: ApacheKafka, capsysbinary: pytest.CaptureFixture[bytes]) -> Shell:
    return Shell(apache_kafka.bootstrap, capsysbinary)


@pytest.fixture
def topic(shell: Shell) -> str:
    name = f"shell-{uuid4()}"
    shell("topics", "create", name, "--partitions", "3", "--replication-factor", "1")
    return name


def test_topics_on_apache_kafka(shell: Shell, topic: str) -> None:
    assert topic in shell.lines("topics", "list")
    rows = [json.loads(line) for line in shell.lines("topics", "describe", topic, "--json")]
    assert [(row["partition"], row["isr"]) for row in rows] == [(0, [1]), (1, [1]), (2, [1])]
    shell("topics", "create", topic, status=1)
    assert shell.err.startswith("aiokafkawire: TopicAlreadyExists: ")
    assert shell.lines("topics", "delete", topic, "-y")[1].split() == [topic, "deleted"]


def test_settings_quotas_and_users_on_apache_kafka(shell: Shell, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "s3cret")

    def rows(*argv: str) -> list[dict[str, object]]:
        return [json.loads(line) for line in shell.lines(*argv, "--json")]

    shell("configs", "alter", "topic", topic, "retention.ms=3600000", "--append", "cleanup.policy=compact")
    until(lambda: len(rows("configs", "describe", "topic", topic)) == 2)
    assert {row["config"]: row["value"] for row in rows("configs", "describe", "topic", topic)} == {
        "retention.ms": "3600000",
        "cleanup.policy": "delete,compact",
    }
    shell("configs", "alter", "topic", f"{topic}-none", "retention.ms=5", status=1)
    assert shell.err.startswith("aiokafkawire: UnknownTopicOrPartition: ")

    shell("quotas", "alter", "--user", topic, "producer_byte_rate=1000000")
    until(lambda: rows("quotas", "list", "--user", topic) != [])
    assert rows("quotas", "resolve", "--user", topic, "--client-id", "etl")[0] == {
        "quota": "producer_byte_rate",
        "value": 1e6,
        "entity": {"user": topic},
    }
    shell("quotas", "delete", "--user", topic, "-y")

    shell("users", "create", topic, "--password-env", "SECRET")
    until(lambda: topic in [row["user"] for row in rows("users", "list")])
    shell("users", "create", topic, "--password-env", "SECRET", status=1)
    assert shell.err.startswith("aiokafkawire: DuplicateResource: ")
    shell("users", "delete", topic, "-y")


def test_apache_kafka_throttles_by_the_quotas_that_are_resolved(apache_kafka: ApacheKafka, shell: Shell) -> None:
    client_id, user = f"client-{uuid4()}", ("--user", "ANONYMOUS")
    by_precedence = (
        (*user, "--client-id", client_id),
        (*user, "--client-id-default"),
        user,
        ("--user-default", "--client-id", client_id),
        ("--user-default", "--client-id-default"),
        ("--user-default",),
        ("--client-id", client_id),
        ("--client-id-default",),
    )

    def is_refused() -> bool:
        with blocking.Client(apache_kafka.bootstrap, client_id=client_id) as kafka:
            try:
                kafka.admin.create_topics({"never": NewTopic(60, 1)}, validate_only=True, timeout=10)
            except ThrottlingQuotaExceeded:
                return True
        return False

    def resolved() -> object:
        return json.loads(shell.lines("quotas", "resolve", "--client-id", client_id, "--json")[3])["value"]

    try:
        for options in reversed(by_precedence):
            # A quota that nobody exceeds is set for the entities after this one.
            for value, refuses in ((0.001, True), (1e6, False)):
                shell("quotas", "alter", *options, f"controller_mutation_rate={value}")
                until(lambda refuses=refuses: is_refused() is refuses)  # type: ignore[misc]
                assert resolved() == value
    finally:
        for options in by_precedence:
            shell("quotas", "delete", *options, "-y", "--if-exists")


def test_lines_on_apache_kafka_go_and_come_back(shell: Shell, topic: str, tmp_path: Path) -> None:
    path = tmp_path / "input"
    lines = [f"k{n % 7}:{n}" for n in range(10_000)]
    path.write_text("\n".join(lines))
    shell("produce", topic, str(path), "-K", ":", "-z", "lz4", "-H", "a=1")
    found = shell.lines("consume", topic, "-K", ":")
    assert sorted(found) == sorted(lines)
    for key in range(7):  # the order of each key is kept
        assert [line for line in found if line.startswith(f"k{key}:")] == lines[key::7]
    assert len(shell.lines("consume", topic, "--last", "10")) == 10
    assert len(shell.lines("consume", topic, "--from", "-2", "--header", "a=1")) <= 6
    assert len(shell.lines("consume", topic, "--from", "1h")) == 10_000
    assert shell.lines("consume", topic, "--to", "1h") == []


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_on_apache_kafka_go_on_where_they_were(protocol: str, shell: Shell, topic: str, tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(b"1\n2\n3\n")
    shell("produce", topic, str(path), "-p", "1")
    group = ("-g", f"g-{uuid4()}", "-X", f"group.protocol={protocol}")
    assert shell.lines("consume", topic, *group, "--count", "2") == ["1", "2"]
    assert shell.lines("consume", topic, *group) == ["3"]
    assert shell.lines("consume", topic, *group) == []


def test_transactions_on_apache_kafka_are_whole_or_not_there(shell: Shell, topic: str, tmp_path: Path) -> None:
    path = tmp_path / "input"
    arguments = ("-K", ":", "-p", "0", "--transactional-id", f"t-{uuid4()}")
    committed = ("-X", "isolation.level=read_committed")
    path.write_bytes(b"a:1\noops\n")
    shell("produce", topic, str(path), *arguments, status=1)
    assert shell("consume", topic, *committed) == b""
    path.write_bytes(b"b:2\n")
    shell("produce", topic, str(path), *arguments)
    # The coordinator answers before its markers are in the partitions.
    until(lambda: shell("consume", topic, *committed) == b"2\n")


def test_json_on_apache_kafka_goes_and_comes_back(shell: Shell, topic: str, tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(b'{"key":"k","value":{"base64":"//4="},"headers":[["h",null]],"partition":2,"timestamp":5}\n')
    shell("produce", topic, str(path), "--json")
    (found,) = map(json.loads, shell.lines("consume", topic, "--json"))
    assert found == {
        "topic": topic,
        "partition": 2,
        "offset": 0,
        "timestamp": 5,
        "timestamp_type": "create_time",
        "key": "k",
        "value": {"base64": "//4="},
        "headers": [["h", None]],
    }
