"""``topics`` on the in-process broker, in one process."""

import io
import json
import sys
from typing import Any

import pytest
from support.shell import Shell

from aiokafkawire import NewTopic, TopicPartition, blocking
from aiokafkawire.error_codes import ErrorCode
from aiokafkawire.protocol.api import ApiKey
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
    topics, row, gap, *described = shell.lines("topics", "describe", "orders")
    assert topics.split() == ["TOPIC", "TOPIC", "ID", "PARTITIONS", "REPLICATION", "FACTOR", "CONFIGS"]
    assert [row.split()[0], *row.split()[2:]] == ["orders", "2", "1", "-"]
    assert gap == ""
    assert described[0].split() == ["TOPIC", "PARTITION", "LEADER", "LEADER", "EPOCH", "REPLICAS", "ISR"]
    assert [line.split()[:2] for line in described[1:]] == [["orders", "0"], ["orders", "1"]]
    assert shell.lines("topics", "delete", "orders", "--yes") == ["TOPIC   OUTCOME", "orders  deleted"]
    assert shell.lines("topics", "list", "--json") == ['{"topic": "payments"}']


def test_json_has_an_object_for_each_row(shell: Shell) -> None:
    shell("topics", "create", "orders", "--partitions", "2", "--topic-config", "cleanup.policy=compact")
    rows = [json.loads(line) for line in shell.lines("topics", "describe", "orders", "--json")]
    assert [(row["topic"], row["partition"], row["replicas"]) for row in rows] == [
        ("orders", 0, [rows[0]["leader_id"]]),
        ("orders", 1, [rows[1]["leader_id"]]),
    ]


def test_topics_have_ids_and_the_configs_of_their_own(shell: Shell, kafka_broker: BackgroundBroker) -> None:
    shell("topics", "create", "a", "--topic-config", "retention.ms=5")
    shell("topics", "create", "b")
    first, second = (json.loads(line) for line in shell.lines("topics", "describe", "--json"))
    assert (first["topic"], first["configs"]) == ("a", {"retention.ms": "5"})
    assert (second["topic"], second["configs"]) == ("b", {})
    assert len({first["topic_id"], second["topic_id"]}) == 2
    assert "retention.ms=5" in shell.lines("topics", "describe", "a")[1]


def test_many_topics_are_described_by_one_request(shell: Shell, kafka_broker: BackgroundBroker) -> None:
    names = [f"t{number}" for number in range(50)]
    shell("topics", "create", *names)
    for argv in (names, []):
        before = len(kafka_broker.requests.of(ApiKey.DESCRIBE_TOPIC_PARTITIONS))
        assert len(shell.lines("topics", "describe", *argv, "--json")) == 50
        assert len(kafka_broker.requests.of(ApiKey.DESCRIBE_TOPIC_PARTITIONS)) == before + 1
    assert len(kafka_broker.requests.of(ApiKey.DESCRIBE_CONFIGS)) == 2


def test_topics_are_described_without_configs_that_may_not_be_seen(
    shell: Shell, kafka_broker: BackgroundBroker
) -> None:
    shell("topics", "create", "a")
    kafka_broker.on(ApiKey.DESCRIBE_CONFIGS, answer=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    (row,) = map(json.loads, shell.lines("topics", "describe", "--json"))
    assert (row["topic"], row["configs"]) == ("a", None)
    assert shell.err.startswith("without configs: TopicAuthorizationFailed: ")


def test_what_exists_is_described_beside_what_does_not(shell: Shell) -> None:
    shell("topics", "create", "a", "b")
    out = shell("topics", "describe", "a", "none", "b", "--json", status=1)
    assert [json.loads(line)["topic"] for line in out.splitlines()] == ["a", "b"]
    assert shell.err.startswith("aiokafkawire: UnknownTopicOrPartition: ")
    assert shell.err.count("\n") == 1


def test_filters_find_partitions_that_lack_replicas_or_leaders(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with BackgroundBroker(3) as broker:
        shell = Shell(broker.bootstrap, capsysbinary)
        shell("topics", "create", "whole", "--partitions", "3", "--replication-factor", "1")
        shell("topics", "create", "t", "--partitions", "3", "--replication-factor", "2")

        def found(*argv: str) -> list[tuple[str, int]]:
            rows = [json.loads(line) for line in shell.lines("topics", "describe", "--json", *argv)]
            assert all(row["configs"] is None for row in rows)
            return [(row["topic"], row["partition"]) for row in rows]

        assert found("--under-replicated") == found("--unavailable") == []
        assert shell.lines("topics", "describe", "--under-replicated")[0].startswith("TOPIC  PARTITION")
        held = {(row["topic"], row["partition"]): row["replicas"] for row in described(shell)}
        broker.stop_node(3)
        without_leader = [where for where, replicas in held.items() if replicas == [3]]
        missing = [where for where, replicas in held.items() if 3 in replicas]
        assert found("--unavailable") == without_leader
        assert sorted(found("--under-replicated")) == sorted(missing)
        assert sorted(found("--under-replicated", "--unavailable")) == sorted(missing)
        assert found("--unavailable", "t") == []


def described(shell: Shell) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shell.lines("topics", "describe", "--json")]


def test_new_replicas_of_a_move_do_not_make_a_partition_under_replicated(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    with BackgroundBroker(3) as broker, blocking.Client(broker.bootstrap) as kafka:
        shell = Shell(broker.bootstrap, capsysbinary)
        kafka.admin.create_topics({"t": NewTopic(assignments=[[1, 2]])})
        broker.do(lambda one: one.partitions[0].held.update({3: 0}))
        kafka.admin.alter_partition_reassignments({TopicPartition("t", 0): [2, 3]})
        assert described(shell)[0]["replicas"] == [2, 3, 1]
        assert shell.lines("topics", "describe", "--under-replicated", "--json") == []
        broker.shrink_isr("t", 0, 2)
        assert len(shell.lines("topics", "describe", "--under-replicated", "--json")) == 1


def test_topics_get_more_partitions(shell: Shell) -> None:
    shell("topics", "create", "a", "b", "--partitions", "2")
    add = ("topics", "add-partitions", "a", "b", "--partitions", "3")
    assert shell.lines(*add, "--validate-only")[1:] == [f"{name}               3  would be extended" for name in "ab"]
    assert len(described(shell)) == 4
    assert [line.split() for line in shell.lines(*add)[1:]] == [[name, "3", "extended"] for name in "ab"]
    assert len(described(shell)) == 6
    out = shell("topics", "add-partitions", "a", "none", "--partitions", "4", "--json", status=1)
    assert json.loads(out) == {"topic": "a", "partitions": 4, "outcome": "extended"}
    assert shell.err.startswith("aiokafkawire: UnknownTopicOrPartition: ")
    shell("topics", "add-partitions", "b", "--partitions", "2", status=1)
    assert shell.err.startswith("aiokafkawire: InvalidPartitions: ")


@pytest.fixture
def filled(shell: Shell, kafka_broker: BackgroundBroker) -> Shell:
    """A topic of two partitions with ten records each, of which those of partition 1 are a second apart since 1970."""
    with blocking.Client(kafka_broker.bootstrap) as kafka:
        kafka.admin.create_topics({"t": 2})
        with kafka.producer() as producer:
            for number in range(10):
                producer.send("t", b"v", partition=0)
                producer.send("t", b"v", partition=1, timestamp_ms=1000 * number + 1000)
    return shell


@pytest.mark.parametrize(
    ("argv", "lows"),
    [
        (("t", "--before", "4"), [4, 4]),
        (("t:1", "--before", "4"), [0, 4]),
        (("t", "--before", "-3"), [7, 7]),
        (("t", "--before", "end"), [10, 10]),
        (("t", "--before", "beginning"), [0, 0]),
        (("t:1", "--before", "@5000"), [0, 4]),
        (("t:1", "--before", "@99000"), [0, 10]),
        (("t", "--before", "-30"), [0, 0]),
    ],
)
def test_records_before_a_point_are_deleted(argv: tuple[str, ...], lows: list[int], filled: Shell) -> None:
    def begins() -> list[int]:
        rows = filled.lines("topics", "delete-records", "t", "--before", "0", "--dry-run", "--json")
        return [json.loads(line)["log_start_offset"] for line in rows]

    planned = [json.loads(line) for line in filled.lines("topics", "delete-records", *argv, "--dry-run", "--json")]
    assert begins() == [0, 0]
    assert {row["outcome"] for row in planned} == {"would be deleted"}
    filled("topics", "delete-records", *argv, status=2)
    assert f"add --yes to delete {sum(lows)} records" in filled.err
    deleted = [json.loads(line) for line in filled.lines("topics", "delete-records", *argv, "--yes", "--json")]
    assert [{**row, "outcome": "would be deleted"} for row in deleted] == [
        {**row, "low_watermark": row["before_offset"]} for row in planned
    ]
    assert begins() == lows


def test_a_dry_run_says_what_brokers_would_refuse(filled: Shell) -> None:
    out = filled("topics", "delete-records", "t:1", "--before", "11", "--dry-run", "--json", status=1)
    assert json.loads(out)["outcome"] == "would be refused"
    assert (
        json.loads(filled("topics", "delete-records", "t:1", "--before", "10", "--dry-run", "--json"))["records"] == 10
    )


def test_records_that_cannot_be_deleted_are_told_partition_by_partition(filled: Shell) -> None:
    filled("topics", "delete-records", "t:0", "--before", "end", "--yes")
    filled("topics", "delete-records", "t", "--before", "11", "--yes", status=1)
    assert [line.split(":")[1].strip() for line in filled.err.splitlines()] == ["OffsetOutOfRange"] * 2
    filled("topics", "delete-records", "t:2", "--before", "1", "--yes", status=1)
    assert filled.err == "aiokafkawire: topic t has no partition 2; it has 2\n"
    filled("topics", "delete-records", "t", "--before", "never", "--yes", status=2)
    assert "--before: 'never' is no point in a topic" in filled.err


def test_leaders_are_elected(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with BackgroundBroker(3) as broker, blocking.Client(broker.bootstrap) as kafka:
        shell = Shell(broker.bootstrap, capsysbinary)
        kafka.admin.create_topics({"t": NewTopic(assignments=[[1, 2], [2, 1]])})
        broker.move_leader("t", 0, 2)
        both = shell.lines("topics", "elect-leaders", "t", "--json")
        assert [json.loads(line)["outcome"] for line in both] == ["elected", "not needed"]
        assert broker.leader("t", 0) == 1
        broker.move_leader("t", 1, 1)
        assert [line.split() for line in shell.lines("topics", "elect-leaders", "--all")[1:]] == [["t", "1", "elected"]]
        broker.stop_node(2)
        out = shell("topics", "elect-leaders", "t:0,1", "--json", status=1)
        assert [json.loads(line)["partition"] for line in out.splitlines()] == [0]
        assert shell.err.startswith("aiokafkawire: PreferredLeaderNotAvailable: ")


def test_an_unclean_election_asks_and_a_clean_one_does_not(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with BackgroundBroker(2) as broker, blocking.Client(broker.bootstrap) as kafka:
        shell = Shell(broker.bootstrap, capsysbinary)
        kafka.admin.create_topics({"t": NewTopic(assignments=[[2, 1]])})
        broker.shrink_isr("t", 0, 1)
        broker.stop_node(2)
        assert described(shell)[0]["leader_id"] is None
        shell("topics", "elect-leaders", "t", "--unclean", status=2)
        assert "add --yes to elect leaders that may lack records, which are then lost" in shell.err
        assert shell.lines("topics", "elect-leaders", "t", "--unclean", "-y")[1].split() == ["t", "0", "elected"]
        assert described(shell)[0]["leader_id"] == 1
        shell("topics", "elect-leaders", status=2)
        shell("topics", "elect-leaders", "t", "--all", status=2)
        assert shell.err == "aiokafkawire: name topics or partitions, or give --all\n"


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


# --- offsets, names and replicas in sync -------------------------------------------------------------------------


def test_offsets_are_those_of_the_ends_or_of_a_point(filled: Shell) -> None:
    assert filled.lines("topics", "offsets", "t:1") == [
        "TOPIC  PARTITION  START OFFSET  END OFFSET  RECORDS",
        "t              1             0          10       10",
    ]
    (row,) = map(json.loads, filled.lines("topics", "offsets", "t:1", "--time", "max-timestamp", "--json"))
    assert (row["topic"], row["partition"], row["offset"], row["timestamp"]) == ("t", 1, 9, 10_000)
    assert "1970-01-01T00:00:10.000Z" in filled.lines("topics", "offsets", "t:1", "--time", "max-timestamp")[1]
    for point, offset in (("earliest", 0), ("latest", 10), ("@0", 0), ("2999-01-01", None)):
        rows = [json.loads(line) for line in filled.lines("topics", "offsets", "--time", point, "--json")]
        assert {row["offset"] for row in rows} == {offset}, point
    heading = filled.lines("topics", "offsets", "t", "--time", "earliest")[0]
    assert heading.split() == ["TOPIC", "PARTITION", "OFFSET", "TIMESTAMP", "LEADER", "EPOCH"]
    filled("topics", "offsets", "t", "--time", "5", status=2)
    assert "--time takes earliest, latest, max-timestamp or a time, got the offset '5'" in filled.err
    filled("topics", "offsets", "t:9", status=1)
    assert filled.err == "aiokafkawire: topic t has no partition 9; it has 2\n"


def test_a_leader_that_does_not_answer_hides_only_the_offsets_of_its_partitions(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    with BackgroundBroker(2) as broker, blocking.Client(broker.bootstrap) as kafka:
        kafka.admin.create_topics({"t": NewTopic(assignments=[[1], [2]])})
        broker.on(ApiKey.LIST_OFFSETS, node=2, swallow="before", times=None)
        shell = Shell(broker.bootstrap, capsysbinary)
        for argv, key in ((), "log_end_offset"), (("--time", "latest"), "offset"):
            out = shell("topics", "offsets", "t", "--json", *argv, "--timeout", "0.5", status=1)
            assert [json.loads(line)[key] for line in out.splitlines()] == [0, None]
            assert shell.err.startswith("aiokafkawire: RequestTimeout: no offset of t-1 within 0.5 s")
            assert shell.err.count("\n") == 1


def test_a_topic_that_is_deleted_meanwhile_does_not_hide_the_offsets_of_the_others(
    shell: Shell, kafka_broker: BackgroundBroker
) -> None:
    def gone(request: Any, true: Any) -> Any:
        for topic in true.topics:
            if topic.name == "b":
                topic.error_code, topic.partitions = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, []
        return true

    shell("topics", "create", "a", "b")
    kafka_broker.on(ApiKey.DESCRIBE_TOPIC_PARTITIONS, answer=gone, times=None)
    assert [json.loads(line)["topic"] for line in shell.lines("topics", "offsets", "--json")] == ["a"]
    shell("topics", "offsets", "a", "b", status=1)
    assert "UnknownTopicOrPartition" in shell.err


def test_a_topic_without_records_has_no_newest_record(shell: Shell) -> None:
    shell("topics", "create", "empty")
    (row,) = map(json.loads, shell.lines("topics", "offsets", "--time", "max-timestamp", "--json"))
    assert (row["offset"], row["timestamp"], row["leader_epoch"]) == (None, None, None)


def test_names_are_listed_that_match_as_a_whole(shell: Shell) -> None:
    shell("topics", "create", "orders", "orders-2", "old-orders")
    assert shell.lines("topics", "list", "orders.*")[1:] == ["orders", "orders-2"]
    shell("topics", "list", "(", status=2)
    assert shell.err.startswith("aiokafkawire: REGEX is not a regular expression: '('")


def test_without_the_setting_one_replica_in_sync_is_enough(shell: Shell, kafka_broker: BackgroundBroker) -> None:
    def without(request: Any, true: Any) -> Any:
        for result in true.results:
            result.configs = [config for config in result.configs if config.name != "min.insync.replicas"]
        return true

    shell("topics", "create", "t")
    kafka_broker.on(ApiKey.DESCRIBE_CONFIGS, answer=without, times=None)  # as of brokers that are not Kafka
    assert len(shell.lines("topics", "describe", "--at-min-isr")) == 2
    assert len(shell.lines("topics", "describe", "--under-min-isr")) == 1


def test_partitions_with_few_replicas_in_sync_and_without_a_leader(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    with BackgroundBroker(3) as broker:
        shell = Shell(broker.bootstrap, capsysbinary)
        shell("topics", "create", "safe", "--replication-factor", "3", "--topic-config", "min.insync.replicas=2")
        shell("topics", "create", "one", "--partitions", "3", "--replication-factor", "1")

        def found(*argv: str) -> set[str]:
            return {json.loads(line)["topic"] for line in shell.lines("topics", "describe", "--json", *argv)}

        assert (found("--at-min-isr"), found("--under-min-isr")) == ({"one"}, set())
        broker.stop_node(3)
        assert (found("--at-min-isr", "safe"), found("--under-min-isr", "safe")) == ({"safe"}, set())
        out = shell("topics", "offsets", "one", "--json", status=1)
        assert [json.loads(line)["log_end_offset"] for line in out.splitlines()].count(None) == 1
        assert "has no leader, so its offsets are not known" in shell.err
        broker.stop_node(2)
        assert found("--under-min-isr", "safe") == {"safe"}
        assert found("--at-min-isr", "safe") == set()
