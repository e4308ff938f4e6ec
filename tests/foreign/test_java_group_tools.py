"""The verbs ``groups`` and ``transactions`` beside Kafka's tools for groups and transactions.

What one has done, the other shows, with the same figures.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from typing import Any

import anyio
import pytest
from support.apache_kafka import ApacheKafka, missing
from support.hanging import hang, unverified
from support.java_tools import java_command
from support.needing import require
from support.raw_client import RawClient
from support.shell import Shell
from support.streams_members import StreamsMember

from aiokafkawire import Client, OffsetSpec, TopicPartition, blocking
from aiokafkawire.network.connector import connect_tcp
from aiokafkawire.testing.background import BackgroundBroker

pytestmark = [pytest.mark.thorough, pytest.mark.kafka, pytest.mark.timeout(400)]

GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
SHARE = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
STREAMS = "org.apache.kafka.tools.streams.StreamsGroupCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
Row = dict[str, str]


@pytest.fixture(scope="module", params=["in-process", "apache-kafka"])
def bootstrap(request: pytest.FixtureRequest) -> Iterator[str]:
    require(missing())
    if request.param == "apache-kafka":
        with ApacheKafka(request.config.option.kafka) as kafka:
            yield kafka.bootstrap
        return
    with BackgroundBroker() as broker:
        yield broker.bootstrap


@pytest.fixture(scope="module")
def kafka(bootstrap: str) -> Iterator[blocking.Client]:
    with blocking.Client(bootstrap, client_id="me") as client:
        yield client


@pytest.fixture
def shell(bootstrap: str, capsysbinary: pytest.CaptureFixture[bytes]) -> Shell:
    return Shell(bootstrap, capsysbinary)


@pytest.fixture
def topic(kafka: blocking.Client) -> str:
    """A topic of three partitions with ten records each, ten seconds apart since 1970."""
    name = f"topic-with-a-long-name-{token_hex(4)}"
    kafka.admin.create_topics({name: 3})
    with kafka.producer() as producer:
        for partition in range(3):
            for number in range(10):
                producer.send(name, b"v", partition=partition, timestamp_ms=10_000 * number)
    return name


@pytest.fixture
def group() -> str:
    return f"group-{token_hex(4)}"


def run(bootstrap: str, main: str, *argv: str) -> str:
    command = [*java_command(), main, "--bootstrap-server", bootstrap, *argv]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def told(bootstrap: str, main: str, *argv: str) -> list[Row]:
    """What a tool prints as a table; sentences, with a full stop at their end, are no rows."""
    lines = [line for line in run(bootstrap, main, *argv).splitlines() if line.strip() and not line.endswith(".")]
    header, *found = [line.split() for line in lines] or [[]]
    return [dict(zip(header, words, strict=True)) for words in found]


def ours(shell: Shell, *argv: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shell.lines(*argv, "--json")]


def text(value: object) -> str:
    return "-" if value is None else str(value)


def by_partition(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["TOPIC"], int(row["PARTITION"])))


def committed(kafka: blocking.Client, group: str) -> dict[int, int]:
    return {at.partition: known.offset for at, known in kafka.admin.list_consumer_group_offsets(group).items()}


def commit(kafka: blocking.Client, group: str, topic: str, offsets: dict[int, int]) -> None:
    kafka.admin.alter_consumer_group_offsets(group, {TopicPartition(topic, key): at for key, at in offsets.items()})


# --- consumer groups -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_is_described_as_by_kafka_consumer_groups(
    protocol: str, bootstrap: str, kafka: blocking.Client, shell: Shell, topic: str, group: str
) -> None:
    options: dict[str, Any] = {"group_protocol": protocol, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    with kafka.consumer(topic, group_id=group, **options) as consumer:
        while not consumer.poll(timeout=1):
            pass
        consumer.commit({TopicPartition(topic, 0): 7, TopicPartition(topic, 2): 10})
        describe = ("--describe", "--group", group)
        found = ours(shell, "groups", "describe", group)
        assert by_partition(told(bootstrap, GROUPS, *describe)) == [
            {
                "GROUP": row["group_id"],
                "TOPIC": row["topic"],
                "PARTITION": str(row["partition"]),
                "CURRENT-OFFSET": text(row["committed_offset"]),
                "LOG-END-OFFSET": text(row["log_end_offset"]),
                "LAG": text(row["lag"]),
                "CONSUMER-ID": row["member_id"],
                "HOST": row["host"],
                "CLIENT-ID": row["client_id"],
            }
            for row in found
        ]
        (member,) = told(bootstrap, GROUPS, *describe, "--members", "--verbose")
        (mine,) = ours(shell, "groups", "describe", group, "--members")
        (cells,) = shell.lines("groups", "describe", group, "--members")[1:]
        assert (member["CONSUMER-ID"], member["HOST"], member["CLIENT-ID"], member["#PARTITIONS"]) == (
            mine["member_id"],
            mine["host"],
            mine["client_id"],
            str(mine["partitions"]),
        )
        assert member["CURRENT-ASSIGNMENT"] == cells.split()[-1]
        (state,) = told(bootstrap, GROUPS, *describe, "--state")
        (mine,) = ours(shell, "groups", "describe", group, "--state")
        assert (state["COORDINATOR"], state["ASSIGNMENT-STRATEGY"], state["STATE"], state["#MEMBERS"]) == (
            mine["coordinator"],
            mine["assignor"],
            mine["state"],
            str(mine["members"]),
        )
    listed = {row["GROUP"]: row for row in told(bootstrap, GROUPS, "--list", "--state", "--type")}
    (mine,) = [row for row in ours(shell, "groups", "list") if row["group_id"] == group]
    assert (listed[group]["STATE"], listed[group]["TYPE"].lower()) == (mine["state"], mine["group_type"])
    assert (mine["state"], mine["group_type"]) == ("Empty", protocol)


@pytest.mark.parametrize(
    ("theirs", "argv"),
    [
        (["--to-earliest"], ["--to", "beginning"]),
        (["--to-latest"], ["--to", "end"]),
        (["--to-offset", "4"], ["--to", "4"]),
        (["--to-offset", "400"], ["--to", "400"]),
        (["--shift-by", "-2"], ["--shift-by", "-2"]),
        (["--shift-by", "9"], ["--shift-by", "9"]),
        (["--to-current"], ["--to", "current"]),
        (["--to-datetime", "1970-01-01T00:00:25.000Z"], ["--to", "1970-01-01T00:00:25.000+00:00"]),
        (["--to-datetime", "2020-01-01T00:00:00.000Z"], ["--to", "2020-01-01T00:00:00.000+00:00"]),
        (["--by-duration", "P10000D"], ["--to", "10000d"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_a_reset_is_planned_as_by_kafka_consumer_groups(
    theirs: list[str], argv: list[str], bootstrap: str, kafka: blocking.Client, shell: Shell, topic: str, group: str
) -> None:
    commit(kafka, group, topic, {0: 3, 1: 8})
    scope = ["--topic", f"{topic}:0,1"]
    # A sentence about a partition without such a record stands between the rows.
    printed = run(bootstrap, GROUPS, "--reset-offsets", "--group", group, *scope, *theirs, "--dry-run").splitlines()
    plan = {int(line.split()[2]): int(line.split()[3]) for line in printed if line.split()[:2] == [group, topic]}
    found = ours(shell, "groups", "reset", group, *scope, *argv)
    assert {row["partition"]: row["new_offset"] for row in found} == plan
    assert len(plan) == 2
    assert committed(kafka, group) == {0: 3, 1: 8}


def test_files_of_either_are_read_by_the_other_and_what_one_sets_the_other_shows(
    bootstrap: str, kafka: blocking.Client, shell: Shell, topic: str, group: str, tmp_path: Path
) -> None:
    other = f"{group}-2"
    commit(kafka, group, topic, {0: 3, 1: 8})
    commit(kafka, other, topic, {2: 5})
    reset = ("--reset-offsets", "--group", group)
    both = (*reset, "--group", other)
    exported = {
        "one": run(bootstrap, GROUPS, *reset, "--all-topics", "--to-current", "--export", "--dry-run"),
        "both": run(bootstrap, GROUPS, *both, "--all-topics", "--to-current", "--export", "--dry-run"),
    }
    scope = ("--all-topics", "--to", "current", "--export")
    mine = {
        "one": shell("groups", "reset", group, *scope).decode(),
        "both": shell("groups", "reset", group, other, *scope).decode(),
    }
    for key, exported_text in exported.items():
        theirs = [line for line in exported_text.splitlines() if topic in line]
        # The tool quotes long names.
        assert sorted(line.replace('"', "") for line in theirs) == sorted(mine[key].splitlines())
    (tmp_path / "theirs.csv").write_text(
        "".join(line + "\n" for line in exported["both"].splitlines() if topic in line)
    )
    (tmp_path / "mine.csv").write_text(mine["one"])

    run(bootstrap, GROUPS, *both, "--all-topics", "--to-latest", "--execute")
    assert {row["lag"] for name in (group, other) for row in ours(shell, "groups", "describe", name)} == {0}
    shell("groups", "reset", group, other, "--from-file", str(tmp_path / "theirs.csv"), "--execute", "--yes")
    assert (committed(kafka, group), committed(kafka, other)) == ({0: 3, 1: 8}, {2: 5})
    shell("groups", "reset", group, "--all-topics", "--to", "-1", "--execute", "--yes")
    found = by_partition(told(bootstrap, GROUPS, "--describe", "--group", group))
    assert [(row["CURRENT-OFFSET"], row["LAG"]) for row in found] == [("9", "1"), ("9", "1")]
    run(bootstrap, GROUPS, *reset, "--from-file", str(tmp_path / "mine.csv"), "--execute")
    assert [row["committed_offset"] for row in ours(shell, "groups", "describe", group)] == [3, 8]


def test_offsets_and_groups_that_one_deletes_are_gone_for_the_other(
    bootstrap: str, kafka: blocking.Client, shell: Shell, topic: str, group: str
) -> None:
    commit(kafka, group, topic, {0: 3, 1: 8, 2: 1})
    shell("groups", "delete-offsets", group, "--topic", f"{topic}:1", "--yes")
    found = by_partition(told(bootstrap, GROUPS, "--describe", "--group", group))
    assert [row["PARTITION"] for row in found] == ["0", "2"]
    run(bootstrap, GROUPS, "--delete-offsets", "--group", group, "--topic", f"{topic}:0")
    assert [row["partition"] for row in ours(shell, "groups", "describe", group)] == [2]
    commit(kafka, f"{group}-2", topic, {0: 3})
    shell("groups", "delete", group, "--yes")
    assert group not in run(bootstrap, GROUPS, "--list").split()
    run(bootstrap, GROUPS, "--delete", "--group", f"{group}-2")
    assert not [row for row in ours(shell, "groups", "list") if row["group_id"].startswith(group)]


# --- share and streams groups --------------------------------------------------------------------------------------


def test_a_share_group_is_described_reset_and_deleted_as_by_kafka_share_groups(
    bootstrap: str, kafka: blocking.Client, shell: Shell, topic: str, group: str
) -> None:
    kafka.admin.alter_share_group_offsets(group, {TopicPartition(topic, 0): 3, TopicPartition(topic, 1): 10})

    def compare() -> list[int]:
        found = ours(shell, "groups", "describe", group)
        printed = told(bootstrap, SHARE, "--describe", "--group", group, "--offsets", "--verbose")
        assert by_partition(printed) == [
            {
                "GROUP": group,
                "TOPIC": row["topic"],
                "PARTITION": str(row["partition"]),
                "LEADER-EPOCH": text(row["leader_epoch"]),
                "START-OFFSET": text(row["start_offset"]),
                "LAG": text(row["lag"]),
            }
            for row in found
        ]
        (state,) = told(bootstrap, SHARE, "--describe", "--group", group, "--state")
        (mine,) = ours(shell, "groups", "describe", group, "--state")
        assert (state["COORDINATOR"], state["STATE"], state["#MEMBERS"]) == (
            mine["coordinator"],
            mine["state"],
            str(mine["members"]),
        )
        return [row["start_offset"] for row in found]

    assert compare() == [3, 10]
    run(bootstrap, SHARE, "--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
    assert compare() == [0, 0, 0]
    shell("groups", "reset", group, "--topic", f"{topic}:0", "--to", "5", "--execute", "--yes")
    assert compare() == [5, 0, 0]
    (lag,) = [
        row["lag"] for row in ours(shell, "groups", "list", "--lag", "--type", "share") if row["group_id"] == group
    ]
    assert lag == 25
    shell("groups", "delete-offsets", group, "--topic", topic, "--yes")
    shell("groups", "delete", group, "--yes")
    assert group not in run(bootstrap, SHARE, "--list").split()


def test_a_streams_group_is_described_as_by_kafka_streams_groups(
    bootstrap: str, kafka: blocking.Client, shell: Shell, topic: str, group: str, request: pytest.FixtureRequest
) -> None:
    if "in-process" in request.node.name:
        pytest.skip("the in-process broker has no streams groups")

    async def join() -> None:
        host, _, port = bootstrap.rpartition(":")
        async with RawClient(await connect_tcp(host, int(port))) as client:
            member = StreamsMember(client, group, topic)
            await member.join()
            with anyio.fail_after(60):
                while not member.tasks:
                    await member.own_tasks()
            await member.own_tasks()

    kafka.admin.list_consumer_group_offsets(group)
    anyio.run(join)
    described = ours(shell, "groups", "describe", group)
    assert [
        (row["partition"], row["committed_offset"], row["log_end_offset"], row["client_id"]) for row in described
    ] == [(index, None, 10, described[0]["client_id"]) for index in range(3)]
    (mine,) = ours(shell, "groups", "describe", group, "--state")
    (state,) = told(bootstrap, STREAMS, "--describe", "--group", group, "--state")
    assert (state["COORDINATOR"], state["STATE"], state["#MEMBERS"]) == (
        mine["coordinator"],
        mine["state"],
        str(mine["members"]),
    )
    (member,) = ours(shell, "groups", "describe", group, "--members")
    printed = run(bootstrap, STREAMS, "--describe", "--group", group, "--members")
    assert f"ACTIVE: 0:[{','.join(map(str, member['assignment']['0']))}]" in printed
    assert member["member_id"] in printed
    assert member["process_id"] in printed


# --- transactions --------------------------------------------------------------------------------------------------


def test_transactions_are_told_and_aborted_as_by_kafka_transactions(
    bootstrap: str, kafka: blocking.Client, shell: Shell, topic: str, group: str
) -> None:
    first, second = anyio.run(_hang, bootstrap, topic)
    with kafka.producer(transactional_id=group) as producer, producer.transaction() as transaction:
        transaction.send(topic, b"v", partition=2)
        producer.flush()
        (listed,) = [row for row in told(bootstrap, TRANSACTIONS, "list") if row["TransactionalId"] == group]
        (mine,) = [row for row in ours(shell, "transactions", "list") if row["transactional_id"] == group]
        assert listed == {
            "TransactionalId": group,
            "Coordinator": str(mine["coordinator_id"]),
            "ProducerId": str(mine["producer_id"]),
            "TransactionState": mine["state"],
        }
        (described,) = told(bootstrap, TRANSACTIONS, "describe", "--transactional-id", group)
        (mine,) = ours(shell, "transactions", "describe", group)
        assert int(described.pop("TransactionDurationMs")) <= mine["duration_ms"]
        assert described == {
            "CoordinatorId": str(mine["coordinator_id"]),
            "TransactionalId": group,
            "ProducerId": str(mine["producer_id"]),
            "ProducerEpoch": str(mine["producer_epoch"]),
            "TransactionState": mine["state"],
            "TransactionTimeoutMs": str(mine["timeout_ms"]),
            "CurrentTransactionStartTimeMs": str(mine["start_timestamp"]),
            "TopicPartitions": f"{topic}-2",
        }
        assert mine["topic_partitions"] == {topic: [2]}
        where = ("--topic", topic, "--partition", "2")
        producers = told(bootstrap, TRANSACTIONS, "describe-producers", *where)
        found = ours(shell, "transactions", "producers", f"{topic}:2")
        assert sorted(producers, key=lambda row: int(row["ProducerId"])) == [
            {
                "ProducerId": str(row["producer_id"]),
                "ProducerEpoch": str(row["producer_epoch"]),
                "LatestCoordinatorEpoch": str(-1 if row["coordinator_epoch"] is None else row["coordinator_epoch"]),
                "LastSequence": str(row["last_sequence"]),
                "LastTimestamp": str(row["last_timestamp"]),
                "CurrentTransactionStartOffset": str(row["start_offset"]),
            }
            for row in sorted(found, key=lambda row: int(row["producer_id"]))
        ]
    assert _hanging(bootstrap, shell, topic) == [first, second]
    abort = ("--topic", topic, "--partition", "0", "--start-offset", "10")
    run(bootstrap, TRANSACTIONS, "abort", *abort)
    assert _hanging(bootstrap, shell, topic) == [second]
    shell("transactions", "abort", f"{topic}:1", "--start-offset", "10", "--yes")
    assert _hanging(bootstrap, shell, topic) == []


async def _hang(bootstrap: str, topic: str) -> list[int]:
    host, _, port = bootstrap.rpartition(":")
    async with Client(bootstrap) as kafka, RawClient(await connect_tcp(host, int(port))) as client:
        await kafka.admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.LATEST})
        async with unverified(kafka):
            return [await hang(client, topic, partition=partition) for partition in (0, 1)]


def _hanging(bootstrap: str, shell: Shell, topic: str) -> list[int]:
    printed = told(bootstrap, TRANSACTIONS, "find-hanging", "--topic", topic)
    found = ours(shell, "transactions", "find-hanging", "--topic", topic)
    for row in printed:
        assert int(row.pop("Duration(min)")) >= 60
    assert sorted(printed, key=lambda row: int(row["Partition"])) == [
        {
            "Topic": row["topic"],
            "Partition": str(row["partition"]),
            "ProducerId": str(row["producer_id"]),
            "ProducerEpoch": str(row["producer_epoch"]),
            "CoordinatorEpoch": str(-1 if row["coordinator_epoch"] is None else row["coordinator_epoch"]),
            "StartOffset": str(row["start_offset"]),
            "LastTimestamp": str(row["last_timestamp"]),
        }
        for row in found
    ]
    return [row["producer_id"] for row in found]
