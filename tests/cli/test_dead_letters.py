"""``dead-letters`` on the in-process broker, in one process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from time import monotonic
from typing import Any

import pytest
from support.shell import Shell

from aiokafkawire import TopicPartition, blocking
from aiokafkawire.processing.failures import Failure, with_failure
from aiokafkawire.testing.background import BackgroundBroker

DEAD = "orders.dead"


@pytest.fixture
def broker() -> Iterator[BackgroundBroker]:
    with BackgroundBroker() as broker:
        yield broker


@pytest.fixture
def kafka(broker: BackgroundBroker) -> Iterator[blocking.Client]:
    with blocking.Client(broker.bootstrap) as kafka:
        kafka.admin.create_topics({"orders": 2, "pay": 1, DEAD: 1, "empty": 1})
        yield kafka


@pytest.fixture
def shell(broker: BackgroundBroker, kafka: blocking.Client, capsysbinary: pytest.CaptureFixture[bytes]) -> Shell:
    """Six dead letters, of two topics in turn, with an error each, and a record without a failure after them."""
    with kafka.producer() as producer:
        for number in range(6):
            write(producer, number)
        producer.send(DEAD, b"other", timestamp_ms=9_000)
    return Shell(broker.bootstrap, capsysbinary)


def write(producer: Any, number: int, origin: str = "") -> None:
    topic, error = (("orders", "builtins.ValueError"), ("pay", "http.client.BadStatusLine"))[number % 2]
    failure = Failure(origin or topic, 0, 100 + number, 500, "billing", 3, error, "no \x1b[1m", "Traceback:\n  line")
    headers = with_failure([("n", b"%d" % number), ("none", None)], failure)
    producer.enqueue(DEAD, b"v%d" % number, key=b"k\xff", headers=headers, timestamp_ms=1_000 * (number + 1))


def rows(shell: Shell, *argv: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shell.lines("dead-letters", *argv, "--json")]


def replay(shell: Shell, *argv: str) -> dict[str, int]:
    """Replay, and return the counts by origin topic."""
    return {row["origin_topic"]: row["dead_letters"] for row in rows(shell, "replay", DEAD, *argv)}


def values(kafka: blocking.Client, topic: str) -> list[bytes]:
    return sorted(record.value or b"" for record in kafka.read_records(topic))


def test_the_list_counts_by_topic_group_and_error(shell: Shell) -> None:
    orders = {"origin_topic": "orders", "group_id": "billing", "error": "builtins.ValueError", "dead_letters": 3}
    pay = {"origin_topic": "pay", "group_id": "billing", "error": "http.client.BadStatusLine", "dead_letters": 3}
    other = {"origin_topic": None, "group_id": None, "error": None, "dead_letters": 1}
    assert rows(shell, "list", DEAD) == [
        {**other, "first_failed_timestamp": 9_000, "last_failed_timestamp": 9_000},
        {**orders, "first_failed_timestamp": 1_000, "last_failed_timestamp": 5_000},
        {**pay, "first_failed_timestamp": 2_000, "last_failed_timestamp": 6_000},
    ]
    table = shell.lines("dead-letters", "list", DEAD)
    assert table[0].split() == ["ORIGIN", "TOPIC", "GROUP", "ERROR", "DEAD", "LETTERS", "FIRST", "LAST"]
    assert "1970-01-01T00:00:05.000Z" in table[2]
    assert rows(shell, "list", "empty") == []


def test_one_is_shown_with_its_failure(shell: Shell) -> None:
    (row,) = rows(shell, "show", DEAD, "0:1")
    assert row == {
        "topic": DEAD,
        "partition": 0,
        "offset": 1,
        "timestamp": 2_000,
        "origin_topic": "pay",
        "origin_partition": 0,
        "origin_offset": 101,
        "origin_timestamp": 500,
        "group_id": "billing",
        "attempts": 3,
        "error": "http.client.BadStatusLine",
        "message": "no \x1b[1m",
        "stack": "Traceback:\n  line",
        "key": {"base64": "a/8="},
        "value": "v1",
        "headers": [["n", "1"], ["none", None]],
    }
    assert shell.lines("dead-letters", "show", DEAD, "0:1") == [
        "dead letter  orders.dead:0, offset 1, 1970-01-01T00:00:02.000Z",
        "read from    pay:0, offset 101, 1970-01-01T00:00:00.500Z",
        "group        billing",
        "attempts     3",
        r"error        http.client.BadStatusLine: no \x1b[1m",
        r"key          k\xff",
        "header       n=1",
        "header       none=null",
        "value        v1",
        "",
        "Traceback:",
        "  line",
    ]
    (other,) = rows(shell, "show", DEAD, "0:6")
    assert (other["value"], other["error"], other["headers"]) == ("other", None, [])
    assert "its headers describe none" in shell.lines("dead-letters", "show", DEAD, "0:6")[1]


def test_a_replay_takes_records_back_once(shell: Shell, kafka: blocking.Client) -> None:
    assert replay(shell, "--dry-run") == {"orders": 3, "pay": 3}
    assert values(kafka, "orders") == []
    assert replay(shell) == {"orders": 3, "pay": 3}
    assert replay(shell) == {}
    assert (values(kafka, "orders"), values(kafka, "pay")) == ([b"v0", b"v2", b"v4"], [b"v1", b"v3", b"v5"])
    (first,) = [record for record in kafka.read_records("orders") if record.value == b"v0"]
    assert first.key == b"k\xff"
    assert first.headers == (("n", b"0"), ("none", None), ("aiokafkawire.replayed-from", b"orders.dead:0:0"))
    (group,) = [json.loads(line) for line in shell.lines("groups", "describe", f"aiokafkawire-replay-{DEAD}", "--json")]
    assert (group["committed_offset"], group["lag"]) == (7, 0)
    with kafka.producer() as producer:
        write(producer, 6)
    assert replay(shell) == {"orders": 1}


def test_what_filters_leave_out_is_replayed_later_and_the_others_not_again(
    shell: Shell, kafka: blocking.Client
) -> None:
    assert replay(shell, "--error", "BadStatusLine", "--limit", "2") == {"pay": 2}
    assert replay(shell, "--since", "4000", "--until", "@6000", "--dry-run") == {"orders": 1}
    assert replay(shell, "--origin", "orders", "--since", "@3000", "--rate", "1000") == {"orders": 2}
    assert replay(shell, "--limit", "1") == {"orders": 1}
    assert replay(shell) == {"pay": 1}
    assert replay(shell) == {}
    assert (values(kafka, "orders"), values(kafka, "pay")) == ([b"v0", b"v2", b"v4"], [b"v1", b"v3", b"v5"])


def test_a_rate_delays_records(shell: Shell) -> None:
    # Six records at 20 per second: the last one is written 0.25 s after the first, or later.
    began = monotonic()
    assert replay(shell, "--rate", "20") == {"orders": 3, "pay": 3}
    assert monotonic() - began >= 0.2


def test_what_is_acknowledged_beside_an_error_is_not_repeated(shell: Shell, kafka: blocking.Client) -> None:
    shell("configs", "alter", "topic", "pay", "max.message.bytes=10")
    assert shell("dead-letters", "replay", DEAD, status=1) == b""
    assert shell.err.startswith("aiokafkawire: orders.dead:0, offset 1: not replayed: MessageTooLarge: ")
    assert shell.err.endswith("; 3 others are replayed and committed\n")
    assert replay(shell, "--dry-run") == {"pay": 3}
    shell("configs", "alter", "topic", "pay", "max.message.bytes=100000")
    assert replay(shell) == {"pay": 3}
    assert (values(kafka, "orders"), values(kafka, "pay")) == ([b"v0", b"v2", b"v4"], [b"v1", b"v3", b"v5"])


def test_a_group_ahead_of_the_topic_is_refused(shell: Shell, kafka: blocking.Client) -> None:
    group = f"aiokafkawire-replay-{DEAD}"
    kafka.admin.alter_consumer_group_offsets(group, {TopicPartition(DEAD, 0): 50})
    shell("dead-letters", "replay", DEAD, status=1)
    assert "has committed offset 50 of orders.dead:0, which ends at 7: is it a new topic of this name?" in shell.err
    shell("groups", "delete", group, "--yes")
    assert replay(shell) == {"orders": 3, "pay": 3}


@pytest.mark.parametrize(
    ("argv", "status", "said"),
    [
        (("list",), 2, "TOPIC is missing"),
        (("list", "nowhere"), 1, "UnknownTopicOrPartition: "),
        (("show", DEAD, "42"), 2, "a record is named PARTITION:OFFSET, such as 0:42, got '42'"),
        (("show", DEAD, "3:0"), 2, "topic 'orders.dead' has no partition 3: it has 1"),
        (("show", DEAD, "0:7"), 1, "orders.dead:0 has no record at offset 7: its offsets are from 0 to before 7"),
        (("replay", "nowhere"), 1, "UnknownTopicOrPartition: "),
        (("replay", DEAD, "--since", "noon"), 2, "--since: 'noon' is no time"),
        (("replay", DEAD, "--rate", "0"), 2, "--rate must be a whole number"),
        (("forget", DEAD), 2, "there is no command 'forget'"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(argv: tuple[str, ...], status: int, said: str, shell: Shell) -> None:
    assert shell("dead-letters", *argv, status=status) == b""
    assert shell.err.startswith(f"aiokafkawire: {said}")


def test_two_dead_letters_of_one_record_are_replayed_once(shell: Shell, kafka: blocking.Client) -> None:
    with kafka.producer() as producer:
        for number in (0, 1, 2, 6):
            write(producer, number)
    assert replay(shell, "--error", "ValueError") == {"orders": 4}
    assert replay(shell) == {"pay": 3}
    assert values(kafka, "orders") == [b"v0", b"v2", b"v4", b"v6"]
    assert values(kafka, "pay") == [b"v1", b"v3", b"v5"]
    assert replay(shell) == {}
