"""``log-dirs`` on the in-process broker, in one process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from support.shell import Shell

from aiokafkawire import LogDirDescription, ReplicaInfo, TopicPartition
from aiokafkawire.cli.log_dirs.rows import directory_rows, topic_rows
from aiokafkawire.errors import KafkaStorageError
from aiokafkawire.testing.background import BackgroundBroker


@pytest.fixture
def shell(capsysbinary: pytest.CaptureFixture[bytes]) -> Iterator[Shell]:
    with BackgroundBroker(2, log_dirs=2, default_replication_factor=1) as broker:
        shell = Shell(broker.bootstrap, capsysbinary)
        shell("topics", "create", "orders", "--partitions", "4")
        shell("topics", "create", "pay")
        yield shell


def rows(shell: Shell, *argv: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shell.lines("log-dirs", "describe", "--json", *argv)]


def test_directories_have_the_sums_of_their_replicas(shell: Shell) -> None:
    found = rows(shell)
    assert [(row["node_id"], row["log_dir"]) for row in found] == [
        (1, "/memory/1"),
        (1, "/memory/1-2"),
        (2, "/memory/2"),
        (2, "/memory/2-2"),
    ]
    assert sum(row["replica_count"] for row in found) == 5
    each = rows(shell, "--by", "replica")
    for row in found:
        here = [one for one in each if one["log_dir"] == row["log_dir"]]
        assert (row["replica_count"], row["size_bytes"]) == (len(here), sum(one["size_bytes"] for one in here))
        assert (row["error"], row["is_cordoned"]) == (None, False)
        assert row["total_bytes"] >= row["usable_bytes"] > 0
    assert shell.lines("log-dirs", "describe")[0].startswith("NODE  LOG DIRECTORY  REPLICAS")


def test_rows_may_be_of_some_topics_and_brokers(shell: Shell) -> None:
    assert {row["topic"] for row in rows(shell, "--by", "replica", "--topic", "orders")} == {"orders"}
    assert sorted(row["partition"] for row in rows(shell, "--by", "replica", "--topic", "orders:0,3")) == [0, 3]
    assert {row["node_id"] for row in rows(shell, "--broker", "2")} == {2}
    by_topic = rows(shell, "--by", "topic")
    assert {row["topic"]: 0 for row in by_topic} == {"orders": 0, "pay": 0}
    assert sum(row["replica_count"] for row in by_topic) == 5


def test_sums_count_future_replicas_apart() -> None:
    infos = {
        TopicPartition("t", 0): ReplicaInfo(10, 0),
        TopicPartition("t", 1): ReplicaInfo(5, 3, is_future=True),
    }
    log_dirs = {
        1: {
            "/a": LogDirDescription(None, infos, 100, 50),
            "/b": LogDirDescription(KafkaStorageError("gone"), {}),
        }
    }
    good, bad = directory_rows(log_dirs)
    assert (good["replica_count"], good["moving_here"], good["size_bytes"], good["usable_bytes"]) == (1, 1, 15, 50)
    assert (bad["error"], bad["replica_count"], bad["usable_bytes"]) == ("KafkaStorageError", 0, None)
    assert topic_rows(log_dirs) == [{"node_id": 1, "topic": "t", "replica_count": 1, "size_bytes": 15}]


def test_replicas_move_to_another_directory_of_their_broker(shell: Shell) -> None:
    (before,) = (row for row in rows(shell, "--by", "replica", "--topic", "orders:0"))
    broker = str(before["node_id"])
    (target,) = {f"/memory/{broker}", f"/memory/{broker}-2"} - {before["log_dir"]}
    move = ("log-dirs", "move", "orders:0", "--broker", broker, "--to", target)
    assert shell.lines(*move, "--dry-run")[1].split() == [
        "orders",
        "0",
        broker,
        before["log_dir"],
        target,
        "would",
        "move",
    ]
    assert rows(shell, "--by", "replica", "--topic", "orders:0") == [before]
    assert shell.lines(*move)[1].split() == ["orders", "0", broker, before["log_dir"], target, "started"]
    assert [row["log_dir"] for row in rows(shell, "--by", "replica", "--topic", "orders:0")] == [target]
    assert shell.lines(*move, "--dry-run")[1].endswith("is there")


def test_a_topic_without_partitions_means_all_replicas_of_the_broker(shell: Shell) -> None:
    held = [row["partition"] for row in rows(shell, "--by", "replica", "--topic", "orders", "--broker", "1")]
    moved = shell.lines("log-dirs", "move", "orders", "--broker", "1", "--to", "/memory/1-2", "--json")
    assert sorted(json.loads(line)["partition"] for line in moved) == sorted(held)
    assert {row["log_dir"] for row in rows(shell, "--by", "replica", "--topic", "orders", "--broker", "1")} == {
        "/memory/1-2"
    }


def test_what_fails_for_some_is_told_and_the_others_are_shown(shell: Shell) -> None:
    out = shell("log-dirs", "describe", "--broker", "1", "--broker", "7", "--json", status=1)
    assert {json.loads(line)["node_id"] for line in out.splitlines()} == {1}
    assert shell.err.startswith("aiokafkawire: BrokerNotAvailable: ")
    held = {row["node_id"]: row["partition"] for row in rows(shell, "--by", "replica", "--topic", "orders")}
    both = ("--broker", "1", "--to", "/memory/1")
    out = shell("log-dirs", "move", f"orders:{held[1]},{held[2]}", *both, "--json", status=1)
    assert [json.loads(line)["partition"] for line in out.splitlines()] == [held[1]]
    assert shell.err.startswith("aiokafkawire: ReplicaNotAvailable: ")


@pytest.mark.parametrize(
    ("argv", "status", "said"),
    [
        (("move", "orders", "--broker", "1"), 2, "--to is missing"),
        (("move", "orders:x", "--broker", "1", "--to", "/memory/1"), 2, "takes TOPIC or TOPIC:0,1, got 'orders:x'"),
        (("move", "orders:9", "--broker", "1", "--to", "/memory/1"), 1, "topic orders has no partition 9; it has 4"),
        (("move", "none", "--broker", "1", "--to", "/memory/1"), 1, "UnknownTopicOrPartition"),
        (("move", "orders", "--broker", "9", "--to", "/memory/1"), 1, "broker 9 has no replica of these topics"),
        (("move", "orders", "--broker", "1", "--to", "/none"), 1, "LogDirNotFound"),
        (("move", "orders", "--broker", "1", "--to", "/none", "--dry-run"), 1, "broker 1 has no log directory /none"),
        (("describe", "--by", "size"), 2, "--by is one of directory, topic, replica, got 'size'"),
        (("describe", "--topic", "none"), 1, "UnknownTopicOrPartition"),
    ],
)
def test_wrong_arguments_are_refused(argv: tuple[str, ...], status: int, said: str, shell: Shell) -> None:
    assert shell("log-dirs", *argv, status=status) == b""
    assert said in shell.err
