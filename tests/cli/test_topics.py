"""``topics`` on the in-process broker, in one process."""

import io
import json
import sys

import pytest
from support.shell import Shell

from aiokafkawire.testing.background import BackgroundBroker


@pytest.fixture
def shell(kafka_broker: BackgroundBroker, capsysbinary: pytest.CaptureFixture[bytes]) -> Shell:
    return Shell(kafka_broker.bootstrap, capsysbinary)


def test_topics_are_created_listed_described_and_deleted(shell: Shell) -> None:
    assert shell.lines("topics", "create", "orders", "payments", "--partitions", "2") == [
        "TOPIC     OUTCOME",
        "orders    created",
        "payments  created",
    ]
    assert shell.lines("topics", "list") == ["TOPIC", "orders", "payments"]
    described = shell.lines("topics", "describe", "orders")
    assert described[0].split() == ["TOPIC", "PARTITION", "LEADER", "EPOCH", "REPLICAS", "IN", "SYNC"]
    assert [line.split()[:2] for line in described[1:]] == [["orders", "0"], ["orders", "1"]]
    assert shell.lines("topics", "delete", "orders", "--yes") == ["TOPIC   OUTCOME", "orders  deleted"]
    assert shell.lines("topics", "list", "--json") == ['{"topic": "payments"}']


def test_json_has_an_object_for_each_row(shell: Shell) -> None:
    shell("topics", "create", "orders", "--partitions", "2", "--topic-config", "cleanup.policy=compact")
    rows = [json.loads(line) for line in shell.lines("topics", "describe", "orders", "--json")]
    assert [(row["topic"], row["partition"], row["replicas"]) for row in rows] == [
        ("orders", 0, [rows[0]["leader"]]),
        ("orders", 1, [rows[1]["leader"]]),
    ]


def test_what_fails_for_one_topic_is_told_and_the_others_are_done(shell: Shell) -> None:
    shell("topics", "create", "a")
    out = shell("topics", "create", "a", "b", status=1)
    assert out.decode().splitlines() == ["TOPIC  OUTCOME", "b      created"]
    assert shell.err.startswith("aiokafkawire: TopicAlreadyExists: creating topic 'a'")
    assert shell.err.count("\n") == 1
    out = shell("topics", "delete", "none", "b", "-y", status=1)
    assert out.decode().splitlines() == ["TOPIC  OUTCOME", "b      deleted"]
    assert shell.err.startswith("aiokafkawire: UnknownTopicOrPartition: ")


def test_what_is_as_wished_already_is_no_failure(shell: Shell) -> None:
    shell("topics", "create", "a")
    assert shell.lines("topics", "create", "a", "b", "--if-not-exists")[1:] == ["a      exists", "b      created"]
    assert shell.lines("topics", "delete", "a", "c", "--if-exists", "-y")[1:] == ["a      deleted", "c      absent"]


def test_a_check_alone_creates_nothing(shell: Shell) -> None:
    assert shell.lines("topics", "create", "a", "--validate-only")[1:] == ["a      would be created"]
    shell("topics", "create", "a", "--topic-config", "no.such=1", "--validate-only", status=1)
    assert shell.lines("topics", "list") == ["TOPIC"]


def test_wrong_arguments_are_status_2(shell: Shell) -> None:
    shell("topics", "create", "no spaces", status=2)
    assert "cannot be a topic's name" in shell.err
    shell("topics", "create", "a", "--topic-config", "oops", status=2)
    assert shell.err == "aiokafkawire: --topic-config takes KEY=VALUE, got 'oops'\n"
    shell("topics", "describe", "none", status=1)
    assert shell.err.startswith("aiokafkawire: UnknownTopicOrPartition: ")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("yes\n", 0), ("n\n", 1), ("\n", 1), ("", 1)])
def test_a_terminal_is_asked_before_topics_are_deleted(
    answer: str, status: int, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell("topics", "create", "a")
    said = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", said)
    shell("topics", "delete", "a", status=status)
    assert said.getvalue().startswith("delete 1 topic with all records (a)? [y/N] ")
    assert ("aiokafkawire: nothing is done" in said.getvalue()) is (status == 1)
    assert shell.lines("topics", "list")[1:] == ([] if status == 0 else ["a"])
