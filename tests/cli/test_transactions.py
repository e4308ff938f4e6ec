"""``transactions`` on the in-process broker, in one process."""

import json
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from support.hanging import HOUR, hang, unverified
from support.raw_client import RawClient
from support.shell import Shell

from aiokafkawire import Client, OffsetSpec, TopicPartition, blocking
from aiokafkawire.errors import ErrorCode, KafkaError
from aiokafkawire.network.connector import connect_tcp
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.background import BackgroundBroker

A0 = TopicPartition("a", 0)


@pytest.fixture
def shell(kafka_broker: BackgroundBroker, capsysbinary: pytest.CaptureFixture[bytes]) -> Shell:
    return Shell(kafka_broker.bootstrap, capsysbinary)


@pytest.fixture
def kafka(kafka_broker: BackgroundBroker) -> Iterator[blocking.Client]:
    with blocking.Client(kafka_broker.bootstrap) as client:
        client.admin.create_topics({"a": 2})
        yield client


def rows(shell: Shell, *argv: str, status: int = 0) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shell("transactions", *argv, "--json", status=status).decode().splitlines()]


def hang_in_a(bootstrap: str, *partitions: int) -> list[int]:
    """Leave hanging transactions in these partitions; their producer ids."""

    async def write() -> list[int]:
        host, _, port = bootstrap.rpartition(":")
        async with Client(bootstrap) as kafka, RawClient(await connect_tcp(host, int(port))) as client:
            await kafka.admin.list_offsets({A0: OffsetSpec.LATEST})
            async with unverified(kafka):
                return [await hang(client, "a", partition=partition) for partition in partitions]

    return anyio.run(write)


def test_transactions_are_listed_described_and_fenced(shell: Shell, kafka: blocking.Client) -> None:
    with kafka.producer(transactional_id="done") as done, done.transaction() as transaction:
        transaction.send("a", b"v", partition=0)
    producer = kafka.producer(transactional_id="open")
    with producer, pytest.raises(KafkaError), producer.transaction() as transaction:
        transaction.send("a", b"v", partition=0)
        transaction.send("a", b"v", partition=1)
        producer.flush()
        assert shell.lines("transactions", "list")[0].split() == [
            *("TRANSACTIONAL", "ID", "COORDINATOR", "ID", "PRODUCER", "ID", "STATE")
        ]
        found = {row["transactional_id"]: row for row in rows(shell, "list")}
        assert {name: row["state"] for name, row in found.items()} == {"done": "CompleteCommit", "open": "Ongoing"}
        producer_id = str(found["open"]["producer_id"])
        for argv in (["--state", "ongoing"], ["--producer-id", producer_id], ["--running-longer", "0s"]):
            assert [row["transactional_id"] for row in rows(shell, "list", *argv)] == ["open"]
        assert rows(shell, "list", "--running-longer", "1h") == []
        assert [row["transactional_id"] for row in rows(shell, "list", "--pattern", "d.*")] == ["done"]

        (described,) = rows(shell, "describe", "open", "none", status=1)
        assert shell.err.startswith("aiokafkawire: TransactionalIdNotFound: ")
        assert (described["topic_partitions"], described["state"]) == ({"a": [0, 1]}, "Ongoing")
        assert described["duration_ms"] >= 0
        assert shell.lines("transactions", "describe", "open")[1].split()[-1] == "a:0,1"

        found_producers = rows(shell, "producers", "a:0", "a:1")
        starts = [(row["partition"], row["start_offset"]) for row in found_producers]
        assert starts == [(0, None), (0, 2), (1, 0)]

        shell("transactions", "fence", "open", status=2)
        assert "add --yes" in shell.err
        assert shell.lines("transactions", "fence", "open", "--yes")[1].split() == ["open", "fenced"]
    shell("transactions", "force-terminate", "open", "--yes")
    assert rows(shell, "list", "--state", "Ongoing") == []


def test_the_ids_of_the_other_brokers_are_listed_beside_the_error_of_one(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    with BackgroundBroker(2) as broker, blocking.Client(broker.bootstrap) as kafka:
        kafka.admin.create_topics({"a": 1})
        names = [f"t{number}" for number in range(8)]
        for name in names:
            with kafka.producer(transactional_id=name) as producer, producer.transaction() as transaction:
                transaction.send("a", b"v")
        shell = Shell(broker.bootstrap, capsysbinary)
        others = [row["transactional_id"] for row in rows(shell, "list") if row["coordinator_id"] == 1]
        broker.on(ApiKey.LIST_TRANSACTIONS, answer=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, node=2, times=None)
        found = rows(shell, "list", "--timeout", "0.5", status=1)
        assert [row["transactional_id"] for row in found] == others != names
        assert others
        assert shell.err.startswith("aiokafkawire: ")


def test_hanging_transactions_are_found_and_aborted(
    shell: Shell, kafka: blocking.Client, kafka_broker: BackgroundBroker
) -> None:
    first, second = hang_in_a(kafka_broker.bootstrap, 0, 1)
    found = rows(shell, "find-hanging", "--topic", "a")
    assert [(row["partition"], row["producer_id"], row["start_offset"]) for row in found] == [
        (0, first, 0),
        (1, second, 0),
    ]
    assert all(row["idle_ms"] >= HOUR for row in found)
    assert [row["partition"] for row in rows(shell, "find-hanging", "--broker", "1")] == [0, 1]
    assert rows(shell, "find-hanging", "--idle", "2h") == []

    shell("transactions", "abort", "a:0", "--start-offset", "5", "--yes", status=1)
    assert shell.err == "aiokafkawire: partition a:0 has no open transaction with start offset 5\n"
    (row,) = rows(shell, "abort", "a:0", "--start-offset", "0", "--yes")
    assert (row["producer_id"], row["outcome"]) == (first, "aborted")
    assert [row["partition"] for row in rows(shell, "find-hanging")] == [1]
    shell("transactions", "abort", "a:1", "--producer-id", str(second), status=2)
    assert "add --yes" in shell.err
    shell("transactions", "abort", "a:1", "--producer-id", str(second), "--producer-epoch", "0", "--yes")
    assert rows(shell, "find-hanging") == []


def test_only_ids_that_a_coordinator_knows_are_fenced_and_terminated(shell: Shell, kafka: blocking.Client) -> None:
    with kafka.producer(transactional_id="known") as producer, producer.transaction() as transaction:
        transaction.send("a", b"v", partition=0)
    for argv in (
        ("fence", "knwon", "--yes"),
        ("fence", "knwon", "none", "--yes"),
        ("force-terminate", "knwon", "--yes"),
        ("describe", "knwon"),
    ):
        assert shell("transactions", *argv, status=1) == b""
        assert shell.err.startswith("aiokafkawire: TransactionalIdNotFound: ")
    fenced = rows(shell, "fence", "known", "knwon", "--yes", status=1)
    assert [row["transactional_id"] for row in fenced] == ["known"]
    assert [row["transactional_id"] for row in rows(shell, "list")] == ["known"]


@pytest.mark.parametrize("ids", [("perhaps",), ("perhaps", "none")])
def test_an_id_of_which_nothing_is_known_is_not_fenced(
    ids: tuple[str, ...], shell: Shell, kafka_broker: BackgroundBroker
) -> None:
    kafka_broker.on(ApiKey.DESCRIBE_TRANSACTIONS, answer=ErrorCode.UNKNOWN_SERVER_ERROR, times=None)
    assert shell("transactions", "fence", *ids, "--yes", status=1) == b""
    assert shell.err.startswith("aiokafkawire: UnknownServerError: ")
    assert rows(shell, "list") == []


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("producers", "a"), "a partition is written as TOPIC:0, got 'a'"),
        (("producers", "a:0,1"), "a partition is written as TOPIC:0, got 'a:0,1'"),
        (("producers", "a:99999999999"), "a partition is written as TOPIC:0"),
        (("producers", "a:9999999999"), "no topic has a partition 9999999999"),
        (("abort", "a:0"), "which transaction? Use --start-offset or --producer-id"),
        (("abort", "a:0", "--start-offset", "1", "--producer-id", "1"), "which transaction?"),
        (("abort", "a:0", "--start-offset", "1", "--producer-epoch", "1"), "--producer-epoch needs --producer-id"),
        (("list", "--running-longer", "soon"), "--running-longer: 'soon' is no duration"),
        (("find-hanging", "--idle", "99d"), "--idle is at most 24d, got 99d"),
        (("list", "--state", "open"), "--state is one of Empty, Ongoing, "),
    ],
)
def test_wrong_usage_is_status_2(argv: tuple[str, ...], message: str, shell: Shell) -> None:
    shell("transactions", *argv, status=2)
    assert message in shell.err


@pytest.mark.slow
def test_partitions_that_are_refused_are_told_and_the_others_described(shell: Shell, kafka: blocking.Client) -> None:
    with kafka.producer() as producer:
        producer.send("a", b"v", partition=0)
    assert [row["partition"] for row in rows(shell, "producers", "a:0", "none:0", status=1)] == [0]
    assert shell.err.count("\n") == 1
