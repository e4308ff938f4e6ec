"""``groups`` on the in-process broker, in one process."""

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.shell import Shell

from aiokafkawire import NewTopic, TopicPartition, blocking
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.group_admin import ListedGroup
from aiokafkawire.testing.background import BackgroundBroker

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


@pytest.fixture
def shell(kafka_broker: BackgroundBroker, capsysbinary: pytest.CaptureFixture[bytes]) -> Shell:
    return Shell(kafka_broker.bootstrap, capsysbinary)


@pytest.fixture
def kafka(kafka_broker: BackgroundBroker) -> Iterator[blocking.Client]:
    """A client, and two topics with ten records in each partition."""
    with blocking.Client(kafka_broker.bootstrap, client_id="me") as client:
        client.admin.create_topics({"a": 2, "b": 1})
        with client.producer() as producer:
            for at in (A0, A1, B0):
                producer.send_many(at.topic, [b"v"] * 10, partition=at.partition, timestamp_ms=1_000_000)
        yield client


def rows(shell: Shell, *argv: str, status: int = 0) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shell("groups", *argv, "--json", status=status).decode().splitlines()]


def committed(kafka: blocking.Client, group: str) -> dict[TopicPartition, int]:
    return {at: known.offset for at, known in kafka.admin.list_consumer_group_offsets(group).items()}


def read(consumer: "blocking.Consumer[bytes, bytes]") -> None:
    while not consumer.poll(timeout=1):
        pass


# --- lists ---------------------------------------------------------------------------------------------------------


def test_groups_are_listed_with_their_lag(shell: Shell, kafka: blocking.Client) -> None:
    kafka.admin.alter_consumer_group_offsets("g", {A0: 4, A1: 10, B0: 12})
    kafka.admin.alter_share_group_offsets("s", {A0: 3})
    found = shell.lines("groups", "list", "--lag")
    assert found[0].split() == ["GROUP", "TYPE", "PROTOCOL", "STATE", "COORDINATOR", "LAG"]
    assert [line.split()[:4] + line.split()[-1:] for line in found[1:]] == [
        ["g", "classic", "-", "Empty", "6"],
        ["s", "share", "share", "Empty", "7"],
    ]
    assert shell.lines("groups", "list")[0].split() == ["GROUP", "TYPE", "PROTOCOL", "STATE", "COORDINATOR"]
    assert [row["group_id"] for row in rows(shell, "list", "--type", "SHARE")] == ["s"]
    assert [row["group_id"] for row in rows(shell, "list", "--state", "empty", "--type", "classic")] == ["g"]
    assert rows(shell, "list", "--state", "Stable") == []
    shell("groups", "list", "--state", "nope", status=2)
    assert "--state is one of Stable, Empty, " in shell.err


def test_the_groups_of_the_other_brokers_are_listed_beside_the_error_of_one(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    with BackgroundBroker(2) as broker, blocking.Client(broker.bootstrap) as kafka:
        broker.create_topic("a")
        for number in range(8):
            kafka.admin.alter_consumer_group_offsets(f"g{number}", {A0: 0})
        broker.on(ApiKey.LIST_GROUPS, answer=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, node=2, times=None)
        others = [f"g{number}" for number in range(8) if broker.coordinator(f"g{number}") == 1]
        shell = Shell(broker.bootstrap, capsysbinary)
        assert [row["group_id"] for row in rows(shell, "list", status=1)] == others != []
        assert "ListGroups of the broker at" in shell.err
        assert [row["lag"] for row in rows(shell, "list", "--lag", status=1)] == [0] * len(others)


def test_a_group_that_two_brokers_list_while_another_fails_is_listed_once(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    def moved(request: Any, true: Any) -> Any:
        true.groups = [ListedGroup(group_id="g", protocol_type="", group_state="Empty", group_type="Classic")]
        return true

    with BackgroundBroker(3) as broker:
        broker.on(ApiKey.LIST_GROUPS, answer=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, node=3, times=None)
        for node in (1, 2):
            broker.on(ApiKey.LIST_GROUPS, answer=moved, node=node, times=None)
        shell = Shell(broker.bootstrap, capsysbinary)
        assert [row["group_id"] for row in rows(shell, "list", status=1)] == ["g"]


def test_a_leader_that_does_not_answer_hides_only_the_lag_of_its_partitions(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    with BackgroundBroker(2) as broker, blocking.Client(broker.bootstrap) as kafka:
        kafka.admin.create_topics({"a": NewTopic(assignments=[[1], [2]])})
        kafka.admin.alter_consumer_group_offsets("g", {A0: 0})
        kafka.admin.alter_consumer_group_offsets("h", {A0: 0, A1: 0})
        broker.on(ApiKey.LIST_OFFSETS, node=2, swallow="before", times=None)
        shell = Shell(broker.bootstrap, capsysbinary)
        listed = rows(shell, "list", "--lag", "--timeout", "0.5", status=1)
        assert [(row["group_id"], row["lag"]) for row in listed] == [("g", 0), ("h", 0)]
        assert shell.err.startswith("aiokafkawire: RequestTimeout: no offset of a-1 within 0.5 s")
        described = rows(shell, "describe", "--all", "--timeout", "0.5", status=1)
        assert [(row["group_id"], row["log_end_offset"]) for row in described] == [("g", 0), ("h", 0), ("h", None)]
        assert shell.err.startswith("aiokafkawire: RequestTimeout: no offset of a-1 within 0.5 s")
        assert [row["lag"] for row in rows(shell, "describe", "g")] == [0]


def test_offsets_of_topics_that_are_gone_have_no_lag(
    shell: Shell, kafka: blocking.Client, kafka_broker: BackgroundBroker
) -> None:
    kafka.admin.alter_consumer_group_offsets("g", {A0: 4, B0: 1})
    kafka.admin.alter_consumer_group_offsets("h", {B0: 1})

    def gone(request: Any, true: Any) -> Any:
        for topic in true.topics:
            if topic.name == "b":
                topic.error_code, topic.partitions = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, []
        return true

    kafka_broker.on(ApiKey.DESCRIBE_TOPIC_PARTITIONS, answer=gone, times=None)
    assert [(row["group_id"], row["lag"]) for row in rows(shell, "list", "--lag")] == [("g", 6), ("h", None)]
    found = rows(shell, "describe", "g")
    assert [(row["topic"], row["committed_offset"], row["log_end_offset"], row["lag"]) for row in found] == [
        ("a", 4, 10, 6),
        ("b", 1, None, None),
    ]


def test_a_group_that_may_not_be_seen_is_told_and_the_others_are_listed(
    shell: Shell, kafka: blocking.Client, kafka_broker: BackgroundBroker
) -> None:
    kafka.admin.alter_consumer_group_offsets("g", {A0: 4})
    kafka.admin.alter_consumer_group_offsets("h", {A0: 4})

    def denied(request: Any, true: Any) -> Any:
        for group in true.groups:
            if group.group_id == "h":
                group.error_code, group.topics = ErrorCode.GROUP_AUTHORIZATION_FAILED, []
        return true

    kafka_broker.on(ApiKey.OFFSET_FETCH, answer=denied, times=None)
    assert [(row["group_id"], row["lag"]) for row in rows(shell, "list", "--lag", status=1)] == [("g", 6), ("h", None)]
    assert shell.err.startswith("aiokafkawire: GroupAuthorizationFailed: ")
    assert shell.err.count("\n") == 1


@pytest.mark.slow
def test_a_few_requests_are_enough_for_the_lag_of_many_groups(
    shell: Shell, kafka: blocking.Client, kafka_broker: BackgroundBroker
) -> None:
    kafka.admin.create_topics({f"t{number}": 1 for number in range(60)})
    for number in range(60):
        kafka.admin.alter_consumer_group_offsets(f"g{number}", {TopicPartition(f"t{number}", 0): 0, A0: number % 10})
    before = kafka_broker.do(lambda broker: len(broker.requests))
    assert sum(row["lag"] for row in rows(shell, "list", "--lag")) == sum(10 - number % 10 for number in range(60))
    assert kafka_broker.do(lambda broker: len(broker.requests)) - before < 20


# --- descriptions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_a_member_is_described(protocol: str, shell: Shell, kafka: blocking.Client) -> None:
    options: dict[str, Any] = {"group_protocol": protocol, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    with kafka.consumer("a", group_id="g", **options) as consumer:
        read(consumer)
        consumer.commit({A0: 7})
        kafka_member = consumer.group_metadata().member_id
        found = shell.lines("groups", "describe", "g")
        assert found[0].split() == [
            *("GROUP", "TOPIC", "PARTITION", "COMMITTED", "END", "OFFSET", "LAG"),
            *("MEMBER", "CLIENT", "ID", "HOST"),
        ]
        assert [line.split() for line in found[1:]] == [
            ["g", "a", "0", "7", "10", "3", kafka_member, "me", "/127.0.0.1"],
            ["g", "a", "1", "-", "10", "-", kafka_member, "me", "/127.0.0.1"],
        ]
        (member,) = rows(shell, "describe", "g", "--members")
        assert (member["member_id"], member["partitions"], member["assignment"]) == (kafka_member, 2, {"a": [0, 1]})
        assert member["subscription"] == ["a"]
        assert shell.lines("groups", "describe", "g", "--members")[1].split()[-2:] == ["2", "a:0,1"]
        (state,) = rows(shell, "describe", "--all", "--state")
        assert (state["group_type"], state["state"], state["members"]) == (protocol, "Stable", 1)
        shell("groups", "reset", "g", "--all-topics", "--to", "end", status=1)
        assert shell.err == (
            "aiokafkawire: group 'g' is not reset: it is Stable with 1 member, which would not go on at the new "
            "offsets; stop them first\n"
        )
        shell("groups", "delete", "g", "--yes", status=1)
        assert shell.err.startswith("aiokafkawire: NonEmptyGroup: ")
    assert committed(kafka, "g") == {A0: 7}


def test_share_groups_are_described_with_what_they_have(shell: Shell, kafka: blocking.Client) -> None:
    kafka.admin.alter_share_group_offsets("s", {A0: 3, A1: 10})
    kafka.admin.alter_consumer_group_offsets("g", {A0: 4})
    found = shell.lines("groups", "describe", "g", "s")
    assert [line.split()[:6] for line in found] == [
        ["GROUP", "TOPIC", "PARTITION", "COMMITTED", "END", "OFFSET"],
        ["g", "a", "0", "4", "10", "6"],
        [],
        ["GROUP", "TOPIC", "PARTITION", "LEADER", "EPOCH", "START"],
        ["s", "a", "0", "0", "3", "7"],
        ["s", "a", "1", "0", "10", "0"],
    ]
    assert rows(shell, "describe", "s")[0] == {
        "group_id": "s",
        "group_type": "share",
        "topic": "a",
        "partition": 0,
        "leader_epoch": 0,
        "start_offset": 3,
        "lag": 7,
    }
    assert [row["group_type"] for row in rows(shell, "describe", "--all", "--state")] == ["classic", "share"]
    assert rows(shell, "describe", "s", "--members") == []
    assert shell.err == "group 's' has no members\n"


def test_groups_that_do_not_exist_are_told_and_the_others_are_described(shell: Shell, kafka: blocking.Client) -> None:
    kafka.admin.alter_consumer_group_offsets("g", {A0: 4})
    assert [row["group_id"] for row in rows(shell, "describe", "missing", "g", status=1)] == ["g"]
    assert shell.err.startswith("aiokafkawire: GroupIdNotFound: ")
    shell("groups", "describe", status=2)
    assert shell.err == "aiokafkawire: name the groups to describe, or use --all\n"
    shell("groups", "describe", "g", "--all", status=2)


def groups_listed_by_one(broker: BackgroundBroker, kafka: blocking.Client, *, offset: int) -> list[str]:
    """Make groups with this offset, and return their names; only one of two brokers lists its groups."""
    broker.create_topic("a")
    names = [f"g{number}" for number in range(8)]
    for name in names:
        kafka.admin.alter_consumer_group_offsets(name, {A0: offset})
    broker.on(ApiKey.LIST_GROUPS, answer=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, node=2, times=None)
    return names


def test_a_group_is_described_although_another_broker_lists_no_groups(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    with BackgroundBroker(2) as broker, blocking.Client(broker.bootstrap) as kafka:
        names = groups_listed_by_one(broker, kafka, offset=0)
        shell = Shell(broker.bootstrap, capsysbinary)
        assert [row["group_id"] for row in rows(shell, "describe", *names)] == names
        others = [name for name in names if broker.coordinator(name) == 1]
        assert [row["group_id"] for row in rows(shell, "describe", "--all", status=1)] == others != []
        assert "ListGroups of the broker at" in shell.err
        shell("groups", "describe", "none", status=1)
        assert "GroupIdNotFound" in shell.err
        assert "ListGroups of the broker at" in shell.err  # of a share group there, the type is not known


def test_a_group_is_described_by_a_client_that_may_list_none(
    shell: Shell, kafka: blocking.Client, kafka_broker: BackgroundBroker
) -> None:
    kafka.admin.alter_consumer_group_offsets("g", {A0: 4})
    kafka_broker.on(ApiKey.LIST_GROUPS, answer=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, times=None)  # before Kafka 2.1
    assert [row["lag"] for row in rows(shell, "describe", "g")] == [6]
    shell("groups", "describe", "--all", status=1)
    assert "ClusterAuthorizationFailed" in shell.err


@pytest.mark.slow
@pytest.mark.parametrize("release", ["0.8.2", "0.9.0", "0.10.2", "2.3", "3.9"])
def test_groups_of_old_brokers(release: str, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with BackgroundBroker(max_versions=release) as broker, blocking.Client(broker.bootstrap) as kafka:
        shell = Shell(broker.bootstrap, capsysbinary)
        quick = ("-X", "api.version.request.timeout.ms=100")  # 0.9 leaves the question for versions unanswered
        broker.create_topic("a", partitions=2)
        kafka.admin.alter_consumer_group_offsets("g", {A0: 0})
        (row,) = rows(shell, "describe", "g", *quick)
        assert (row["topic"], row["partition"], row["committed_offset"], row["log_end_offset"], row["lag"]) == (
            "a",
            0,
            0,
            0,
            0,
        )
        outcome = rows(shell, "reset", "g", "--topic", "a", "--to", "end", "--execute", "--yes", *quick)
        assert [row["outcome"] for row in outcome] == ["set", "set"]
        assert committed(kafka, "g") == {A0: 0, A1: 0}
        if release == "0.8.2":
            for argv in (("list",), ("describe", "--all")):
                shell("groups", *argv, *quick, status=1)
                assert shell.err.startswith("aiokafkawire: UnsupportedVersion: ")
        else:
            assert [
                (row["group_id"], row["group_type"], row["lag"]) for row in rows(shell, "list", "--lag", *quick)
            ] == [("g", "classic", 0)]
            shell("groups", "describe", "missing", "--state", *quick, status=1)
            assert "GroupIdNotFound" in shell.err


# --- resets --------------------------------------------------------------------------------------------------------


def test_a_reset_is_shown_first_and_done_when_told_to(shell: Shell, kafka: blocking.Client) -> None:
    kafka.admin.alter_consumer_group_offsets("g", {A0: 4, B0: 5})
    shown = shell.lines("groups", "reset", "g", "--all-topics", "--to", "beginning")
    assert [line.split() for line in shown] == [
        ["GROUP", "TOPIC", "PARTITION", "COMMITTED", "NEW", "OFFSET", "NOTE", "OUTCOME"],
        ["g", "a", "0", "4", "0", "-", "would", "be", "set"],
        ["g", "b", "0", "5", "0", "-", "would", "be", "set"],
    ]
    assert committed(kafka, "g") == {A0: 4, B0: 5}
    assert [row["outcome"] for row in rows(shell, "reset", "g", "--all-topics", "--to", "2", "--execute", "-y")] == [
        "set",
        "set",
    ]
    assert committed(kafka, "g") == {A0: 2, B0: 2}


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (("--to", "end"), {A0: 10, A1: 10}),
        (("--to", "-3"), {A0: 7, A1: 7}),
        (("--to", "50"), {A0: 10, A1: 10}),
        (("--to", "1h"), {A0: 10, A1: 10}),
        (("--to", "@1000000"), {A0: 0, A1: 0}),
        (("--to", "1970-01-01T00:00+00:00"), {A0: 0, A1: 0}),
        (("--to", "current"), {A0: 4, A1: 6}),
        (("--shift-by", "-2"), {A0: 2, A1: 4}),
        (("--shift-by", "5"), {A0: 9, A1: 10}),
    ],
)
def test_a_reset_goes_to_each_kind_of_point(
    argv: tuple[str, ...], expected: dict[TopicPartition, int], shell: Shell, kafka: blocking.Client
) -> None:
    kafka.admin.alter_consumer_group_offsets("g", {A0: 4, A1: 6})
    kafka.admin.alter_consumer_group_offsets("other", {A0: 4, A1: 6})
    shell("groups", "reset", "g", "--topic", "a", *argv, "--execute", "--yes")
    assert committed(kafka, "g") == expected
    shell("groups", "reset", "g", "other", "--topic", "a:1", "--to", "3", "--execute", "--yes")
    assert committed(kafka, "other") == {A0: 4, A1: 3}


def test_an_exported_plan_is_a_file_to_reset_from(shell: Shell, kafka: blocking.Client, tmp_path: Path) -> None:
    kafka.admin.alter_consumer_group_offsets("g", {A0: 4, A1: 6})
    kafka.admin.alter_consumer_group_offsets("h", {B0: 1})
    file, one = tmp_path / "all.csv", tmp_path / "one.csv"
    file.write_bytes(shell("groups", "reset", "g", "h", "--all-topics", "--to", "current", "--export"))
    one.write_bytes(shell("groups", "reset", "g", "--all-topics", "--to", "current", "--export"))
    assert file.read_text() == "g,a,0,4\ng,a,1,6\nh,b,0,1\n"
    assert one.read_text() == "a,0,4\na,1,6\n"
    shell("groups", "reset", "g", "h", "--all-topics", "--to", "end", "--execute", "-y")
    shell("groups", "reset", "g", "h", "--from-file", str(file), "--execute", "-y")
    assert (committed(kafka, "g"), committed(kafka, "h")) == ({A0: 4, A1: 6}, {B0: 1})
    one.write_text("a,0,1\na,1,99\n")
    found = rows(shell, "reset", "g", "--from-file", str(one))
    assert [(row["new_offset"], row["note"]) for row in found] == [(1, None), (10, "99 is after the end")]


def test_share_groups_are_reset(shell: Shell, kafka: blocking.Client) -> None:
    kafka.admin.alter_share_group_offsets("s", {A0: 3})
    found = rows(shell, "reset", "s", "--topic", "a", "--to", "-2", "--execute", "--yes")
    assert [(row["committed_offset"], row["new_offset"], row["outcome"]) for row in found] == [
        (3, 8, "set"),
        (None, 8, "set"),
    ]
    offsets = kafka.admin.list_share_group_offsets("s")
    assert {at: info.start_offset for at, info in offsets.items()} == {A0: 8, A1: 8}
    shell("groups", "reset", "s", "--all-topics", "--shift-by", "-1", "--execute", "--yes")
    assert kafka.admin.list_share_group_offsets("s")[A0].start_offset == 7


def test_a_group_that_cannot_be_reset_is_told_and_the_others_are(shell: Shell, kafka: blocking.Client) -> None:
    kafka.admin.alter_consumer_group_offsets("g", {A0: 4})
    found = rows(shell, "reset", "g", "new", "--all-topics", "--to", "end", "--execute", "--yes", status=1)
    assert [(row["group_id"], row["outcome"]) for row in found] == [("g", "set")]
    assert shell.err == "aiokafkawire: group 'new' is not reset: it has no offsets; name topics with --topic\n"
    assert shell("groups", "reset", "new", "--all-topics", "--to", "end", status=1) == b""
    rows(shell, "reset", "g", "--topic", "a", "--shift-by", "1", status=1)
    assert "it has no offset to shift in a:1" in shell.err
    rows(shell, "reset", "new", "--topic", "a", "--to", "beginning", "--execute", "--yes")
    assert committed(kafka, "new") == {A0: 0, A1: 0}


def test_a_group_is_reset_although_another_broker_lists_no_groups(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with BackgroundBroker(2) as broker, blocking.Client(broker.bootstrap) as kafka:
        names = groups_listed_by_one(broker, kafka, offset=5)
        others = [name for name in names if broker.coordinator(name) == 1]
        shell = Shell(broker.bootstrap, capsysbinary)
        found = rows(shell, "reset", *names, "--all-topics", "--to", "0", "--execute", "--yes", status=1)
        assert [(row["group_id"], row["outcome"]) for row in found] == [(name, "set") for name in others] != []
        left = [name for name in names if name not in others]
        assert shell.err.count("its type is not known: ClusterAuthorizationFailed") == len(left)
        assert [committed(kafka, name) for name in names] == [{A0: 0 if name in others else 5} for name in names]
        shell("groups", "delete-offsets", others[0], "--topic", "a", "--yes")
        shell("groups", "delete-offsets", left[0], "--topic", "a", "--yes", status=1)
        assert "ClusterAuthorizationFailed" in shell.err
        assert committed(kafka, left[0]) == {A0: 5}


def test_a_partition_that_is_refused_is_told_and_the_others_are_set(
    shell: Shell, kafka: blocking.Client, kafka_broker: BackgroundBroker
) -> None:
    def refused(request: Any, true: Any) -> Any:
        for topic in true.topics:
            for partition in topic.partitions:
                if partition.partition_index == 1:
                    partition.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return true

    kafka_broker.on(ApiKey.OFFSET_COMMIT, answer=refused, times=None)
    found = rows(shell, "reset", "g", "--topic", "a", "--to", "3", "--execute", "--yes", status=1)
    assert [row["partition"] for row in found] == [0]
    assert shell.err.startswith("aiokafkawire: TopicAuthorizationFailed: ")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--all-topics",), "where to go on? Use one of --to, --shift-by and --from-file"),
        (("--all-topics", "--to", "end", "--shift-by", "1"), "where to go on?"),
        (("--to", "end"), "which partitions? Use --topic TOPIC[:0,1], or --all-topics"),
        (("--to", "end", "--topic", "a", "--all-topics"), "which partitions?"),
        (("--to", "someday", "--all-topics"), "'someday' is no point in a topic"),
        (("--to", "end", "--topic", "a:x"), "--topic takes TOPIC or TOPIC:0,1, got 'a:x'"),
        (("--from-file", "missing.csv"), "cannot read missing.csv: No such file or directory"),
        (("--from-file", "missing.csv", "--all-topics"), "--from-file names the partitions"),
        (("--to", "end", "--all-topics", "--export", "--json"), "--export prints the plan as CSV"),
        (("--to", "end", "--all-topics", "--execute", "--dry-run"), "exclude each other"),
        (
            ("--to", "end", "--all-topics", "--execute"),
            "nothing is done: there is no terminal to ask on; add --yes to set 1 offset of groups",
        ),
    ],
)
def test_wrong_usage_of_reset_is_status_2(
    argv: tuple[str, ...], message: str, shell: Shell, kafka: blocking.Client
) -> None:
    kafka.admin.alter_consumer_group_offsets("g", {A0: 4})
    shell("groups", "reset", "g", *argv, status=2)
    assert message in shell.err
    assert committed(kafka, "g") == {A0: 4}


def test_partitions_and_topics_that_do_not_exist_are_not_reset(shell: Shell, kafka: blocking.Client) -> None:
    shell("groups", "reset", "g", "--topic", "a:0,7", "--to", "end", status=1)
    assert shell.err == "aiokafkawire: topic 'a' has 2 partitions, no 7\n"
    shell("groups", "reset", "g", "--topic", "none", "--to", "end", status=1)
    assert shell.err.startswith("aiokafkawire: UnknownTopicOrPartition: ")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_the_plan_and_is_asked(
    shell: Shell, kafka: blocking.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka.admin.alter_consumer_group_offsets("g", {A0: 4})
    for answer, status, offset in (("n\n", 1, 4), ("y\n", 0, 10)):
        said = Terminal()
        monkeypatch.setattr(sys, "stdin", Terminal(answer))
        monkeypatch.setattr(sys, "stderr", said)
        shell("groups", "reset", "g", "--all-topics", "--to", "end", "--execute", status=status)
        lines = said.getvalue().splitlines()
        assert lines[1].split() == ["g", "a", "0", "4", "10", "-"]
        assert lines[2].startswith("set 1 offset of groups (g)? [y/N] ")
        assert committed(kafka, "g") == {A0: offset}


# --- deleting and removing -----------------------------------------------------------------------------------------


def test_groups_and_offsets_are_deleted(shell: Shell, kafka: blocking.Client) -> None:
    kafka.admin.alter_consumer_group_offsets("g", {A0: 4, A1: 5, B0: 6})
    kafka.admin.alter_share_group_offsets("s", {A0: 3, B0: 3})
    argv = ("delete-offsets", "g", "--topic", "a:1", "--topic", "b", "--topic", "none", "--yes")
    found = rows(shell, *argv, status=1)
    assert [(row["topic"], row["partition"], row["outcome"]) for row in found] == [
        ("b", 0, "deleted"),
        ("a", 1, "deleted"),
    ]
    assert shell.err == "aiokafkawire: group 'g' has no offsets of topic 'none'\n"
    assert committed(kafka, "g") == {A0: 4}
    shell("groups", "delete-offsets", "s", "--topic", "a:0", "--yes", status=2)
    assert shell.lines("groups", "delete-offsets", "s", "--topic", "a", "-y")[1].split() == ["s", "a", "deleted"]
    assert list(kafka.admin.list_share_group_offsets("s")) == [B0]
    shell("groups", "delete-offsets", "g", "--topic", "a", status=2)
    assert "add --yes" in shell.err
    shell("groups", "delete", "g", "s", "none", "--yes", status=1)
    assert shell.err.startswith("aiokafkawire: GroupIdNotFound: ")
    assert kafka.admin.list_groups() == []
    assert shell.lines("groups", "delete", "none", "--yes", "--if-exists")[1].split() == ["none", "absent"]


@pytest.mark.parametrize("release", ["3.9", "4.0"])
def test_members_of_a_group_that_does_not_exist_are_not_removed(
    release: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    with BackgroundBroker(max_versions=release) as broker:
        shell = Shell(broker.bootstrap, capsysbinary)
        assert shell("groups", "remove-members", "none", "--all", "--yes", status=1) == b""
        assert shell.err.startswith("aiokafkawire: GroupIdNotFound: ")


def test_members_are_removed(shell: Shell, kafka: blocking.Client) -> None:
    options: dict[str, Any] = {"auto_offset_reset": "earliest", "group_instance_id": "one"}
    with kafka.consumer("a", group_id="g", **options) as consumer:
        read(consumer)
        shell("groups", "remove-members", "g", status=2)
        assert "name static members by --instance-id, or use --all" in shell.err
        shell("groups", "remove-members", "g", "--instance-id", "two", "--yes", status=1)
        assert shell.err.startswith("aiokafkawire: UnknownMemberId: ")
        (row,) = rows(shell, "remove-members", "g", "--instance-id", "one", "--yes", "--reason", "because")
        assert (row["group_instance_id"], row["outcome"]) == ("one", "removed")
    with kafka.consumer("a", group_id="h", auto_offset_reset="earliest") as consumer:
        read(consumer)
        (row,) = rows(shell, "remove-members", "h", "--all", "--yes")
        assert (row["client_id"], row["outcome"]) == ("me", "removed")
