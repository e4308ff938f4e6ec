"""The keys of JSON agree between all verbs, and docs/shell.md lists them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from support.shell import Shell
from support.vocabulary import unknown_keys

from aiokafkawire import blocking
from aiokafkawire.cli.shell.app import root_command
from aiokafkawire.cli.shell.vocabulary import VOCABULARY
from aiokafkawire.testing.background import BackgroundBroker

DOCS = (Path(__file__).parents[2] / "docs" / "shell.md").read_text("utf-8")

COMMANDS = (
    "topics create new --validate-only",
    "topics list",
    "topics describe",
    "topics offsets orders",
    "topics offsets orders --time max-timestamp",
    "topics add-partitions orders --partitions 3 --validate-only",
    "topics delete-records orders:0 --before 0 --dry-run",
    "topics delete-records orders:0 --before 0 --yes",
    "topics elect-leaders orders",
    "topics delete gone --if-exists --yes",
    "dead-letters list orders",
    "dead-letters show orders 0:0",
    "dead-letters replay orders --dry-run",
    "groups list --lag",
    "groups describe billing",
    "groups describe billing --state",
    "groups describe reader --members",
    "groups reset billing --all-topics --to beginning",
    "groups delete none --if-exists --yes",
    "groups delete-offsets billing --topic orders:1 --yes",
    "configs list --all",
    "configs describe topic orders --all --synonyms --documentation",
    "configs alter topic orders retention.ms=5000 --validate-only",
    "acls create --allow-principal User:a --operation read --topic orders",
    "acls list",
    "acls delete --all --yes",
    "quotas alter --user a --client-id-default request_percentage=50",
    "quotas list",
    "quotas describe --user a --client-id-default",
    "quotas resolve --user a --client-id x",
    "quotas delete --user a --client-id-default --yes",
    "users list",
    "users describe alice",
    "users delete alice --yes",
    "transactions list",
    "transactions describe tx",
    "transactions producers orders:0",
    "transactions find-hanging",
    "transactions fence tx --yes",
    "transactions force-terminate tx --yes",
    "cluster describe --controllers",
    "cluster features",
    "cluster upgrade-features group.version=1 --dry-run",
    "cluster quorum",
    "cluster api-versions 1",
    "log-dirs describe",
    "log-dirs describe --by topic",
    "log-dirs describe --by replica",
    "log-dirs move orders:0 --broker NODE --to /memory/NODE --dry-run",
    "reassign list",
    "reassign start PLAN --dry-run",
    "reassign status PLAN",
    "apply STATE --dry-run",
    "apply STATE --yes",
    "export",
    "top --once --interval 0.1",
    "consume orders",
)
STATUS = {"reassign status PLAN": 1}
EMPTY = (
    "reassign list",
    "transactions find-hanging",
    "topics delete-records orders:0 --before 0 --dry-run",
    "dead-letters replay orders --dry-run",
)
OTHERS = {
    **dict.fromkeys(("tap", "demo", "broker", "wire"), "have options and output of their own"),
    "produce": "reads JSON of records",
    "completion": "prints a script",
    "migrate": "reads files, in test_migrate.py",
    "users create": "prints as users delete does",
    "users alter": "prints as users delete does",
    "groups remove-members": "tested with a member of its own, in test_groups.py",
    "transactions abort": "tested with a hanging transaction, in test_transactions.py",
    "cluster downgrade-features": "prints as cluster upgrade-features does",
    "cluster unregister": "tested with a dead broker, in test_cluster.py",
    "cluster add-controller": "prints as cluster unregister does",
    "cluster remove-controller": "prints as cluster unregister does",
    "reassign plan": "prints Kafka's JSON",
    "reassign cancel": "prints as reassign list does",
    "reassign watch": "prints as reassign status does",
    **dict.fromkeys(
        ("tokens create", "tokens list", "tokens describe", "tokens renew", "tokens expire"),
        "tested with a login, in test_tokens.py",
    ),
}


@pytest.fixture(scope="module")
def broker() -> Iterator[BackgroundBroker]:
    with BackgroundBroker(2, authorizer=True, super_users=("User:ANONYMOUS",)) as broker:
        with blocking.Client(broker.bootstrap) as kafka:
            kafka.admin.create_topics({"orders": 2})
            with kafka.producer(transactional_id="tx") as producer, producer.transaction() as transaction:
                transaction.send("orders", b"v", key=b"k", partition=0)
                transaction.send("orders", b"v", partition=1)
            with kafka.consumer("orders", group_id="billing", auto_offset_reset="earliest") as consumer:
                next(iter(consumer))
                consumer.commit()
        yield broker


@pytest.mark.slow
def test_all_commands_print_keys_of_the_vocabulary(
    broker: BackgroundBroker,
    capsysbinary: pytest.CaptureFixture[bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shell = Shell(broker.bootstrap, capsysbinary)
    monkeypatch.setenv("SECRET", "secret-secret")
    shell("users", "create", "alice", "--password-env", "SECRET")
    held_by = json.loads(shell.lines("topics", "describe", "orders", "--json")[0])["replicas"][0]
    plan, state = tmp_path / "plan.json", tmp_path / "state.toml"
    plan.write_text(json.dumps({"partitions": [{"topic": "orders", "partition": 0, "replicas": [3 - held_by]}]}))
    state.write_text("[topics.applied]\n[[quotas]]\nuser = '<default>'\nlimits = { request_percentage = 90 }\n")
    named = {"PLAN": str(plan), "STATE": str(state), "NODE": str(held_by), "/memory/NODE": f"/memory/{held_by}"}
    seen: set[str] = set()
    with blocking.Client(broker.bootstrap) as kafka, kafka.consumer("orders", group_id="reader") as reader:
        reader.poll(1, timeout=0.5)
        for command in COMMANDS:
            out = shell(*(named.get(word, word) for word in command.split()), "--json", status=STATUS.get(command, 0))
            assert out or command in EMPTY, command
            for line in out.splitlines():
                row = json.loads(line)
                assert not unknown_keys(row), command
                seen |= row.keys()
    assert len(seen) > 60


def test_every_command_is_among_them() -> None:
    root = root_command()
    context = click.Context(root)
    found = []
    for verb in root.list_commands(context):
        command = root.get_command(context, verb)
        assert command is not None
        names = command.list_commands(context) if isinstance(command, click.Group) else [""]
        found += [f"{verb} {name}".strip() for name in names]
    checked = {" ".join(command.split()[:2]) for command in COMMANDS} | {command.split()[0] for command in COMMANDS}
    assert [name for name in found if name not in checked and name not in OTHERS] == []


def test_the_docs_list_the_keys() -> None:
    table = "".join(f"| `{key}` | {term.meaning} |\n" for key, term in VOCABULARY.items())
    assert table in DOCS, table


def test_headings_of_columns_differ_only_for_things_that_are_alike() -> None:
    by_heading: dict[str, list[str]] = {}
    for key, term in VOCABULARY.items():
        if term.heading:
            by_heading.setdefault(term.heading, []).append(key)
    assert {heading: keys for heading, keys in by_heading.items() if len(keys) > 1} == {
        "REPLICAS": ["replicas", "replica_count"],
        "MOVING HERE": ["moving_here", "is_future"],
        "START OFFSET": ["log_start_offset", "start_offset"],
        "LAG": ["lag", "offset_lag"],
    }
