"""``reassign`` on three in-process brokers, in one process; the planner has tests of its own."""

from __future__ import annotations

import io
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.patience import PATIENCE
from support.reassigning import hold_new_replica, limits, placed, plan_file, release_once_it_is_seen, replicas
from support.shell import Shell, start_shell

from aiokafkawire import TopicPartition, TopicPartitionReplica, blocking
from aiokafkawire.cli.reassign.progress import Copied, CopyTracker
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.metadata import DescribeTopicPartitionsRequest, TopicRequest
from aiokafkawire.testing.background import BackgroundBroker


@pytest.fixture
def broker() -> Iterator[BackgroundBroker]:
    with BackgroundBroker(3, log_dirs=2, default_replication_factor=1) as broker:
        yield broker


@pytest.fixture
def shell(broker: BackgroundBroker, capsysbinary: pytest.CaptureFixture[bytes]) -> Shell:
    return Shell(broker.bootstrap, capsysbinary)


@pytest.fixture
def kafka(broker: BackgroundBroker) -> Iterator[blocking.Client]:
    with blocking.Client(broker.bootstrap) as client:
        client.admin.create_topics({"t": placed([1, 2], [2, 1])})
        yield client


def rows(shell: Shell, *argv: str, status: int = 0) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shell("reassign", *argv, "--json", status=status).decode().splitlines()]


# --- plans ---------------------------------------------------------------------------------------------------------


def test_a_plan_moves_replicas_off_brokers_and_changes_nothing(shell: Shell, kafka: blocking.Client) -> None:
    plan = json.loads(shell("reassign", "plan", "t", "--brokers", "2,3"))
    assert [sorted(entry["replicas"]) for entry in plan["partitions"]] == [[2, 3], [2, 3]]
    assert shell.err == "2 partitions: 2 of 4 replicas move (0 bytes), 1 preferred leaders change\n"
    assert replicas(kafka) == [[1, 2], [2, 1]]
    now = json.loads(shell("reassign", "plan", "t", "--current"))
    assert [entry["replicas"] for entry in now["partitions"]] == [[1, 2], [2, 1]]


def test_a_plan_may_be_of_all_topics_and_change_the_number_of_replicas(shell: Shell, kafka: blocking.Client) -> None:
    kafka.admin.create_topics({"u": placed([3])})
    plan = json.loads(shell("reassign", "plan", "--all", "--replication-factor", "3"))
    assert [(entry["topic"], len(entry["replicas"])) for entry in plan["partitions"]] == [("t", 3), ("t", 3), ("u", 3)]


def test_racks_are_respected_unless_they_shall_not(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with BackgroundBroker(4, racks=["a", "a", "b", "b"]) as broker, blocking.Client(broker.bootstrap) as kafka:
        shell = Shell(broker.bootstrap, capsysbinary)
        kafka.admin.create_topics({"t": placed([1, 2])})
        (entry,) = json.loads(shell("reassign", "plan", "t"))["partitions"]
        assert len({(node - 1) // 2 for node in entry["replicas"]}) == 2
        (entry,) = json.loads(shell("reassign", "plan", "t", "--ignore-racks"))["partitions"]
        assert entry["replicas"] == [1, 2]
    with BackgroundBroker(2, racks=["a", None]) as broker, blocking.Client(broker.bootstrap) as kafka:
        shell = Shell(broker.bootstrap, capsysbinary)
        kafka.admin.create_topics({"t": placed([1, 2])})
        shell("reassign", "plan", "t", status=1)
        assert shell.err == "aiokafkawire: some brokers have no rack (2): add --ignore-racks\n"


@pytest.mark.parametrize(
    ("argv", "status", "said"),
    [
        ((), 2, "name topics, or give --all"),
        (("t", "--all"), 2, "name topics, or give --all"),
        (("t", "--brokers", "1,x"), 2, "--brokers takes the ids of brokers with commas"),
        (("t", "--brokers", "1,9"), 1, "broker 9 is not in service; these are: 1, 2, 3"),
        (("t", "--brokers", "1"), 2, "t-0 shall have 2 replicas: name more than 1 broker"),
        (("none",), 1, "UnknownTopicOrPartition"),
    ],
)
def test_plans_that_cannot_be_made(
    argv: tuple[str, ...], status: int, said: str, shell: Shell, kafka: blocking.Client
) -> None:
    shell("reassign", "plan", *argv, status=status)
    assert said in shell.err


# --- moving --------------------------------------------------------------------------------------------------------


def test_partitions_move_as_planned(shell: Shell, kafka: blocking.Client, tmp_path: Path) -> None:
    file, back = plan_file(tmp_path, [3, 2], [2, 1]), str(tmp_path / "back.json")
    (row,) = rows(shell, "start", file, "--yes", "--rollback", back)
    assert row == {
        "topic": "t",
        "partition": 0,
        "replicas": [1, 2],
        "target_replicas": [3, 2],
        "adding_replicas": [3],
        "removing_replicas": [1],
        "bytes_to_copy": 0,
        "outcome": "started",
    }
    assert replicas(kafka) == [[3, 2], [2, 1]]
    assert [row["state"] for row in rows(shell, "status", file)] == ["complete", "complete"]
    shell("reassign", "start", file, "--yes")
    assert shell.err == f"nothing to do: all partitions are as {file} says\n"
    shell("reassign", "start", back, "--yes")
    assert replicas(kafka) == [[1, 2], [2, 1]]


def test_an_older_rollback_is_never_overwritten(shell: Shell, kafka: blocking.Client, tmp_path: Path) -> None:
    back = tmp_path / "back.json"
    back.write_text("older")
    shell("reassign", "start", plan_file(tmp_path, [3, 2]), "--yes", "--rollback", str(back), status=1)
    assert shell.err == f"aiokafkawire: nothing is done: cannot write {back}: File exists\n"
    assert back.read_text() == "older"
    assert replicas(kafka) == [[1, 2], [2, 1]]


def test_a_dry_run_moves_nothing_and_sets_no_throttle(shell: Shell, kafka: blocking.Client, tmp_path: Path) -> None:
    file = plan_file(tmp_path, [3, 2])
    assert [row["outcome"] for row in rows(shell, "start", file, "--throttle", "5", "--dry-run")] == ["would start"]
    assert "would set on broker 3: leader.replication.throttled.rate=5, follower" in shell.err
    assert (replicas(kafka), limits(kafka)) == ([[1, 2], [2, 1]], {})


def test_a_throttle_is_set_on_brokers_and_topics_until_the_watch_ends(
    shell: Shell, kafka: blocking.Client, broker: BackgroundBroker, tmp_path: Path
) -> None:
    hold_new_replica(broker, 0)
    file = plan_file(tmp_path, [3, 2], [2, 1])
    with kafka.producer() as producer:
        producer.send("t", bytes(1000), partition=0)
    (row,) = rows(shell, "start", file, "--yes", "--throttle", "1000")
    assert row["bytes_to_copy"] > 1000
    assert "the throttle stays until" in shell.err
    rate = {"leader.replication.throttled.rate": "1000", "follower.replication.throttled.rate": "1000"}
    assert limits(kafka) == {
        "topic 't'": {
            "leader.replication.throttled.replicas": "0:1,0:2,1:1,1:2",
            "follower.replication.throttled.replicas": "0:3",
        },
        **{f"broker {node}": rate for node in (1, 2, 3)},
    }
    listed = {"topic": "t", "partition": 0, "replicas": [3, 2, 1], "adding_replicas": [3], "removing_replicas": [1]}
    assert rows(shell, "list") == [listed]
    state, other = rows(shell, "status", file, status=1)
    assert state == {**listed, "target_replicas": [3, 2], "state": "moving"}
    assert other["state"] == "complete"

    release_once_it_is_seen(broker, 0)
    assert [row["state"] for row in rows(shell, "watch", file, "--interval", "0.05")] == ["complete", "complete"]
    assert "1 partition moves, " in shell.err
    assert (replicas(kafka), limits(kafka)) == ([[3, 2], [2, 1]], {})


def test_a_watch_may_keep_the_throttle(shell: Shell, kafka: blocking.Client, tmp_path: Path) -> None:
    file = plan_file(tmp_path, [3, 2])
    shell("reassign", "start", file, "--yes", "--throttle", "1000")
    shell("reassign", "watch", file, "--keep-throttle")
    assert len(limits(kafka)) == 4
    shell("reassign", "watch", file)
    assert limits(kafka) == {}


def test_a_watch_waits_until_brokers_know_that_the_move_has_ended(
    shell: Shell, kafka: blocking.Client, broker: BackgroundBroker, tmp_path: Path
) -> None:
    stale = kafka.request(DescribeTopicPartitionsRequest(topics=[TopicRequest(name="t")]))
    file = plan_file(tmp_path, [3, 2])
    shell("reassign", "start", file, "--yes")
    broker.on(ApiKey.DESCRIBE_TOPIC_PARTITIONS, answer=stale, times=2)
    assert [row["state"] for row in rows(shell, "watch", file)] == ["complete"]
    shell("reassign", "start", plan_file(tmp_path, [1, 2]), "--yes")
    other = plan_file(tmp_path, [3, 2])
    assert [row["state"] for row in rows(shell, "watch", other, status=1)] == ["not moving"]


def test_a_cancelled_plan_goes_back_and_the_throttle_is_removed(
    shell: Shell, kafka: blocking.Client, broker: BackgroundBroker, tmp_path: Path
) -> None:
    hold_new_replica(broker, 0)
    file = plan_file(tmp_path, [3, 2])
    shell("reassign", "start", file, "--yes", "--throttle", "1000")
    shell("reassign", "cancel", file, status=2)
    assert "add --yes to stop moving these partitions" in shell.err
    assert [row["outcome"] for row in rows(shell, "cancel", file, "--yes")] == ["cancelled"]
    assert (list(map(sorted, replicas(kafka))), limits(kafka)) == ([[1, 2], [1, 2]], {})
    assert rows(shell, "list") == []
    assert [row["state"] for row in rows(shell, "status", file, status=1)] == ["not moving"]
    shell("reassign", "cancel", file)
    assert shell.err == f"no partition of {file} moves\n"


def test_others_that_move_are_not_disturbed_unless_asked(
    shell: Shell, kafka: blocking.Client, broker: BackgroundBroker, tmp_path: Path
) -> None:
    hold_new_replica(broker, 1)
    kafka.admin.alter_partition_reassignments({TopicPartition("t", 1): [2, 3]})
    file = plan_file(tmp_path, [3, 2])
    shell("reassign", "start", file, "--yes", status=1)
    assert shell.err == "aiokafkawire: partitions move already (t:1): wait for them, or add --additional\n"
    shell("reassign", "start", file, "--yes", "--additional", "--throttle", "7")
    found = limits(kafka)
    assert found["topic 't'"] == {
        "leader.replication.throttled.replicas": "0:1,0:2,1:1,1:2",
        "follower.replication.throttled.replicas": "0:3,1:3",
    }
    shell("reassign", "watch", file)
    assert "throttles stay, since partitions still move: 1" in shell.err
    assert limits(kafka) == found


def test_a_partition_that_moves_keeps_its_number_of_replicas_in_plans(
    shell: Shell, kafka: blocking.Client, broker: BackgroundBroker, tmp_path: Path
) -> None:
    hold_new_replica(broker, 0)
    kafka.admin.alter_partition_reassignments({TopicPartition("t", 0): [3, 2]})
    assert sorted(replicas(kafka)[0]) == [1, 2, 3]
    for option in ((), ("--current",)):
        plan = json.loads(shell("reassign", "plan", "t", *option))
        assert [sorted(entry["replicas"]) for entry in plan["partitions"]] == [[2, 3], [1, 2]]
    back = tmp_path / "back.json"
    file = plan_file(tmp_path, [1, 3])
    shell("reassign", "start", file, "--yes", "--additional", "--rollback", str(back))
    (entry,) = json.loads(back.read_text())["partitions"]
    assert entry["replicas"] == [3, 2]


def test_replicas_go_to_the_log_directories_of_the_plan(shell: Shell, kafka: blocking.Client, tmp_path: Path) -> None:
    file = plan_file(tmp_path, [3, 2], log_dirs=["/memory/3-2", "any"])
    partition, replica = rows(shell, "start", file, "--yes", "--log-dir-throttle", "9")
    assert (partition["outcome"], replica["outcome"], replica["target_log_dir"]) == (
        "started",
        "started",
        "/memory/3-2",
    )
    assert limits(kafka) == {"broker 3": {"replica.alter.log.dirs.io.max.bytes.per.second": "9"}}
    found = kafka.admin.describe_replica_log_dirs([TopicPartitionReplica("t", 0, 3)])
    assert [info.current_log_dir for info in found.values()] == ["/memory/3-2"]
    assert [row["state"] for row in rows(shell, "watch", file)] == ["complete", "complete"]
    assert limits(kafka) == {}


def test_a_dry_run_shows_the_replicas_that_go_to_other_log_directories_and_those_that_are_there_stay(
    shell: Shell, kafka: blocking.Client, tmp_path: Path
) -> None:
    replica = TopicPartitionReplica("t", 0, 1)
    here = kafka.admin.describe_replica_log_dirs([replica])[replica].current_log_dir
    there = "/memory/1-1" if here == "/memory/1-2" else "/memory/1-2"
    shell("reassign", "start", plan_file(tmp_path, [1, 2], log_dirs=[here, "any"]), "--yes")
    assert "nothing to do: all partitions are as " in shell.err
    file = plan_file(tmp_path, [1, 2], log_dirs=[there, "any"])
    (row,) = rows(shell, "start", file, "--dry-run")
    moved = {"topic": "t", "partition": 0, "node_id": 1, "target_log_dir": there}
    assert row == {**moved, "outcome": "would start"}
    assert shell.lines("reassign", "start", file, "--dry-run")[0].startswith("TOPIC  PARTITION  NODE  TO LOG DIRECTORY")
    assert rows(shell, "start", file, "--yes") == [{**moved, "outcome": "started"}]
    file = plan_file(tmp_path, [3, 2], log_dirs=["/memory/3-2", "any"])
    assert len(rows(shell, "start", file, "--dry-run")) == 2


@pytest.mark.parametrize(
    ("target", "topic", "said"),
    [
        ([1, 9], "t", "the plan moves t:0 to broker 9, which is not in service"),
        ([1], "none", "the plan moves none:0, which does not exist"),
    ],
)
def test_plans_that_do_not_fit_the_cluster_are_refused(
    target: list[int], topic: str, said: str, shell: Shell, kafka: blocking.Client, tmp_path: Path
) -> None:
    shell("reassign", "start", plan_file(tmp_path, target, topic=topic), "--yes", status=1)
    assert shell.err == f"aiokafkawire: {said}\n"


def test_files_that_are_no_plan_are_status_2(shell: Shell, kafka: blocking.Client, tmp_path: Path) -> None:
    (tmp_path / "wrong.json").write_text("{")
    shell("reassign", "start", str(tmp_path / "wrong.json"), status=2)
    assert shell.err.startswith(f"aiokafkawire: {tmp_path}/wrong.json: no JSON: ")
    shell("reassign", "status", str(tmp_path / "none.json"), status=2)
    assert shell.err == f"aiokafkawire: cannot read the plan in {tmp_path}/none.json: No such file or directory\n"
    file = plan_file(tmp_path, [3, 2])
    shell("reassign", "start", file, "--yes", "--rollback", "/none/back.json", status=1)
    assert "nothing is done: cannot write /none/back.json" in shell.err
    assert replicas(kafka) == [[1, 2], [2, 1]]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("n\n", 1)])
def test_a_terminal_is_asked_before_partitions_move(
    answer: str,
    status: int,
    shell: Shell,
    kafka: blocking.Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", said)
    file = plan_file(tmp_path, [3, 2], [2, 3])
    shell("reassign", "start", file, status=status)
    assert said.getvalue().startswith("move 2 partitions, and copy 2 replicas of 0 bytes (t:0, t:1)? [y/N] ")
    assert replicas(kafka) == ([[1, 2], [2, 1]] if status else [[3, 2], [2, 3]])


def test_a_terminal_sees_a_bar(
    shell: Shell, kafka: blocking.Client, broker: BackgroundBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold_new_replica(broker, 0)
    file = plan_file(tmp_path, [3, 2])
    shell("reassign", "start", file, "--yes")
    said = Terminal()
    monkeypatch.setattr(sys, "stderr", said)
    release_once_it_is_seen(broker, 0)
    shell("reassign", "watch", file, "--interval", "0.05")
    assert "1 partition moves" in said.getvalue()
    assert "100%" in said.getvalue()


def test_ctrl_c_ends_a_watch_and_leaves_the_move_and_its_throttle(
    shell: Shell, kafka: blocking.Client, broker: BackgroundBroker, tmp_path: Path
) -> None:
    hold_new_replica(broker, 0)
    file = plan_file(tmp_path, [3, 2])
    shell("reassign", "start", file, "--yes", "--throttle", "1000")
    with start_shell("reassign", "watch", file, bootstrap=broker.bootstrap) as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline() == b"1 partition moves, 0 of 0 bytes are copied\n"
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=PATIENCE) == (b"", b"")
        finally:
            process.kill()
    assert process.returncode == 130
    assert len(rows(shell, "list")) == 1
    assert len(limits(kafka)) == 4


def test_ctrl_c_before_the_question_changes_nothing(
    shell: Shell, kafka: blocking.Client, broker: BackgroundBroker, tmp_path: Path
) -> None:
    file = plan_file(tmp_path, [3, 2])
    with (
        broker.hold(ApiKey.LIST_PARTITION_REASSIGNMENTS) as held,
        start_shell("reassign", "start", file, "--yes", bootstrap=broker.bootstrap) as process,
    ):
        try:
            held.arrived()
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=PATIENCE) == (b"", b"")
        finally:
            process.kill()
    assert process.returncode == 130
    assert replicas(kafka) == [[1, 2], [2, 1]]


def test_what_is_copied_adds_up_also_when_some_moves_have_ended() -> None:
    tracker, a, b = CopyTracker(), TopicPartition("t", 0), TopicPartition("t", 1)

    def sizes(*found: tuple[TopicPartition, int, int]) -> dict[TopicPartitionReplica, int]:
        return {TopicPartitionReplica(*where, broker): size for where, broker, size in found}

    first = sizes((a, 1, 100), (a, 3, 10), (b, 2, 50))
    assert tracker.look({a: [3], b: [3]}, first) == Copied(2, 10, 150)
    assert tracker.look({b: [3]}, sizes((b, 2, 60), (b, 3, 70))) == Copied(1, 160, 160)
    assert tracker.look({}, {}) == Copied(0, 160, 160)
