"""The shell's verbs for clients without rights: a clear error, status 1, and nothing is changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.shell import Shell

from aiokafkawire.testing.background import BackgroundBroker


@pytest.fixture(scope="module")
def guarded() -> Iterator[BackgroundBroker]:
    """A broker with an authorizer, at which clients may do nothing."""
    with BackgroundBroker(authorizer=True) as broker:
        broker.create_topic("orders", partitions=2)
        yield broker


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        (["acls", "list"], "ClusterAuthorizationFailed"),
        (
            ["acls", "create", "--allow-principal", "User:a", "--operation", "all", "--cluster"],
            "ClusterAuthorizationFailed",
        ),
        (["acls", "delete", "--all", "--yes"], "ClusterAuthorizationFailed"),
        (["cluster", "quorum"], "ClusterAuthorizationFailed"),
        (["cluster", "describe", "--controllers"], "ClusterAuthorizationFailed"),
        (["cluster", "upgrade-features", "group.version=1"], "ClusterAuthorizationFailed"),
        (["cluster", "unregister", "1", "--yes"], "ClusterAuthorizationFailed"),
        (["dead-letters", "list", "orders"], "TopicAuthorizationFailed"),
        (["log-dirs", "describe"], "ClusterAuthorizationFailed"),
        (["log-dirs", "move", "orders", "--broker", "1", "--to", "/memory/1"], "TopicAuthorizationFailed"),
        (["reassign", "list"], "ClusterAuthorizationFailed"),
        (["reassign", "plan", "orders"], "TopicAuthorizationFailed"),
        (["reassign", "start", "PLAN", "--yes"], "ClusterAuthorizationFailed"),
        (["reassign", "cancel", "PLAN", "--yes"], "ClusterAuthorizationFailed"),
        (["topics", "describe", "orders"], "TopicAuthorizationFailed"),
        (["topics", "add-partitions", "orders", "--partitions", "3"], "TopicAuthorizationFailed"),
        (["topics", "delete-records", "orders", "--before", "end", "--yes"], "TopicAuthorizationFailed"),
        (["topics", "elect-leaders", "--all"], "ClusterAuthorizationFailed"),
    ],
    ids=lambda argv: " ".join(argv[:2]) if isinstance(argv, list) else "",
)
def test_who_has_no_rights_gets_a_clear_error(
    argv: list[str], error: str, guarded: BackgroundBroker, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"partitions": [{"topic": "orders", "partition": 0, "replicas": [1]}]}))
    shell = Shell(guarded.bootstrap, capsysbinary)
    assert shell(*[str(plan) if word == "PLAN" else word for word in argv], status=1) == b""
    assert shell.err.startswith(f"aiokafkawire: {error}: ")
    assert shell.err.count("\n") == 1


def test_brokers_are_described_without_rights(
    guarded: BackgroundBroker, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    shell = Shell(guarded.bootstrap, capsysbinary)
    (row,) = (json.loads(line) for line in shell.lines("cluster", "describe", "--json"))
    assert (row["node_id"], row["release"]) == (1, "4.3")
    assert shell.lines("topics", "describe") == ["TOPIC  PARTITION  LEADER  LEADER EPOCH  REPLICAS  ISR"]


@pytest.mark.parametrize(
    ("argv", "what"),
    [
        ("topics list", "topics"),
        ("topics describe", "topics"),
        ("topics offsets", "topics"),
        ("groups list", "groups"),
        ("groups describe --all", "groups"),
        ("transactions list", "transactional ids"),
        ("configs describe topic", "topics"),
    ],
)
def test_an_empty_table_says_that_rights_may_lack(
    argv: str, what: str, guarded: BackgroundBroker, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    shell = Shell(guarded.bootstrap, capsysbinary)
    assert len(shell.lines(*argv.split())) == 1
    assert shell.err == (
        f"aiokafkawire: no {what} are visible; brokers leave out those that you have no right to describe\n"
    )
    assert shell(*argv.split(), "--json") == b""


def test_nothing_is_said_of_rights_where_all_is_visible(
    kafka_broker: BackgroundBroker, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    shell = Shell(kafka_broker.bootstrap, capsysbinary)
    for argv in ("topics list", "groups list", "transactions list"):
        shell(*argv.split())
        assert shell.err == ""
