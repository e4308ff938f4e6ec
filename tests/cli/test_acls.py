"""``acls`` on the in-process broker, in one process."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from support.shell import Shell

from aiokafkawire.testing.background import BackgroundBroker


@pytest.fixture
def shell(capsysbinary: pytest.CaptureFixture[bytes]) -> Iterator[Shell]:
    with BackgroundBroker(authorizer=True, super_users=["User:ANONYMOUS"]) as broker:
        yield Shell(broker.bootstrap, capsysbinary)


ALICE, BOB = "User:alice", "User:bob"


def listed(shell: Shell, *argv: str) -> set[tuple[Any, ...]]:
    """Return the ACLs that ``acls list`` finds, as tuples of the values."""
    return {tuple(json.loads(line).values()) for line in shell.lines("acls", "list", "--json", *argv)}


def test_acls_are_created_listed_and_deleted(shell: Shell) -> None:
    made = shell.lines("acls", "create", "--allow-principal", ALICE, "--operation", "read", "--topic", "orders")
    assert made[0].split() == ["RESOURCE", "NAME", "PATTERN", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION", "OUTCOME"]
    assert [line.split() for line in made[1:]] == [
        ["topic", "orders", "literal", ALICE, "*", "read", "allow", "created"],
    ]
    (row,) = map(json.loads, shell.lines("acls", "list", "--json"))
    assert row == {
        "resource_type": "topic",
        "resource_name": "orders",
        "pattern_type": "literal",
        "principal": ALICE,
        "host": "*",
        "operation": "read",
        "permission_type": "allow",
    }
    deleted = shell.lines("acls", "delete", "--topic", "orders", "--yes")
    assert [line.split()[-1] for line in deleted] == ["OUTCOME", "deleted"]
    assert shell.lines("acls", "list", "--json") == []


def test_principals_operations_resources_and_hosts_are_combined(shell: Shell) -> None:
    who = (
        "--allow-principal",
        ALICE,
        "--allow-principal",
        BOB,
        "--allow-host",
        "192.0.2.1",
        "--deny-principal",
        "User:*",
    )
    what = ("--operation", "read", "--operation", "describe")
    shell("acls", "create", *who, *what, "--topic", "a", "--topic", "b", "--group", "g", "--pattern", "prefixed")
    assert listed(shell) == {
        (kind, name, "prefixed", principal, host, operation, permission)
        for kind, name in (("topic", "a"), ("topic", "b"), ("group", "g"))
        for operation in ("read", "describe")
        for principal, host, permission in (
            (ALICE, "192.0.2.1", "allow"),
            (BOB, "192.0.2.1", "allow"),
            ("User:*", "*", "deny"),
        )
    }


@pytest.mark.parametrize(
    ("roles", "made"),
    [
        (
            ["--producer", "--topic", "t"],
            {("topic", "t", "write"), ("topic", "t", "describe"), ("topic", "t", "create")},
        ),
        (
            ["--producer", "--idempotent", "--topic", "t", "--transactional-id", "x"],
            {
                ("topic", "t", "write"),
                ("topic", "t", "describe"),
                ("topic", "t", "create"),
                ("transactional-id", "x", "write"),
                ("transactional-id", "x", "describe"),
                ("cluster", "kafka-cluster", "idempotent-write"),
            },
        ),
        (
            ["--consumer", "--topic", "t", "--group", "g"],
            {("topic", "t", "read"), ("topic", "t", "describe"), ("group", "g", "read")},
        ),
        (
            ["--producer", "--consumer", "--topic", "t", "--group", "g"],
            {
                *(("topic", "t", operation) for operation in ("write", "describe", "create", "read")),
                ("group", "g", "read"),
            },
        ),
    ],
)
def test_roles_stand_for_operations(roles: list[str], made: set[tuple[str, str, str]], shell: Shell) -> None:
    shell("acls", "create", "--allow-principal", ALICE, *roles)
    assert {(kind, name, operation) for kind, name, _, _, _, operation, _ in listed(shell)} == made
    shell("acls", "create", "--allow-principal", BOB, "--operation", "all", "--topic", "t")
    shell("acls", "create", "--deny-principal", ALICE, "--operation", "describe", "--topic", "t")
    shell("acls", "delete", "--principal", ALICE, *roles, "--yes")
    assert {(row[3], row[6]) for row in listed(shell)} == {(BOB, "allow"), (ALICE, "deny")}


def test_filters_find_some_acls(shell: Shell) -> None:
    for name, pattern in (("orders", "literal"), ("ord", "prefixed"), ("*", "literal"), ("pay", "literal")):
        allow = ("--allow-principal", ALICE, "--operation", "read")
        shell("acls", "create", *allow, "--topic", name, "--pattern", pattern)
    shell(
        "acls",
        "create",
        "--deny-principal",
        BOB,
        "--operation",
        "write",
        "--topic",
        "orders",
        "--deny-host",
        "192.0.2.9",
    )

    def names(*argv: str) -> list[str]:
        return sorted(row[1] for row in listed(shell, *argv))

    assert names("--topic", "orders") == ["orders", "orders"]
    assert names("--topic", "orders", "--pattern", "match") == ["*", "ord", "orders", "orders"]
    assert names("--topic", "ord", "--pattern", "any") == ["ord"]
    assert names("--topic", "ord") == []
    assert names("--topic", "pay", "--topic", "orders", "--principal", ALICE) == ["orders", "pay"]
    assert names("--permission", "deny") == names("--host", "192.0.2.9") == names("--operation", "WRITE") == ["orders"]
    assert names("--principal", ALICE, "--principal", BOB, "--operation", "read") == ["*", "ord", "orders", "pay"]
    assert names("--group", "orders") == []


def test_a_dry_run_changes_nothing(shell: Shell) -> None:
    argv = ("--allow-principal", ALICE, "--operation", "read", "--cluster")
    assert "cluster has no operation read" in run_wrong(shell, "acls", "create", *argv)
    argv = ("--allow-principal", ALICE, "--operation", "create", "--cluster")
    assert shell.lines("acls", "create", *argv, "--dry-run")[1].endswith("would be created")
    assert listed(shell) == set()
    shell("acls", "create", *argv)
    assert shell.lines("acls", "delete", "--cluster", "--dry-run")[1].endswith("would be deleted")
    assert len(listed(shell)) == 1
    shell("acls", "delete", "--all", "-y")
    assert listed(shell) == set()


def run_wrong(shell: Shell, *argv: str) -> str:
    assert shell(*argv, status=2) == b""
    return shell.err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("create", "--operation", "read", "--topic", "t"), "whom? Give --allow-principal"),
        (("create", "--allow-principal", ALICE, "--topic", "t"), "what? Give --operation"),
        (("create", "--allow-principal", ALICE, "--operation", "read"), "on what? Give a resource"),
        (("create", "--allow-principal", "alice", "--operation", "read", "--topic", "t"), "principal must be a type"),
        (("create", "--allow-principal", ALICE, "--operation", "fly", "--topic", "t"), "--operation is one of "),
        (("create", "--deny-principal", ALICE, "--producer", "--topic", "t"), "leave --deny-principal out"),
        (("create", "--allow-principal", ALICE, "--producer"), "on what? Give a resource"),
        (("create", "--allow-principal", ALICE, "--producer", "--group", "g"), "--producer needs a --topic"),
        (("create", "--allow-principal", ALICE, "--consumer", "--topic", "t"), "--consumer needs a --group"),
        (("create", "--allow-principal", ALICE, "--operation", "read", "--topic", "t", "--idempotent"), "goes with"),
        (("create", "--allow-principal", ALICE, "--producer", "--operation", "read", "--topic", "t"), "of their own"),
        (("create", "--allow-principal", ALICE, "--producer", "--topic", "t", "--cluster"), "a producer has no ACLs"),
        (
            ("create", "--allow-principal", ALICE, "--operation", "read", "--topic", "t", "--deny-host", "192.0.2.1"),
            "--deny-host goes with --deny-principal",
        ),
        (("delete", "--yes"), "say which ACLs"),
        (("delete", "--yes", "--all", "--topic", "t"), "say which ACLs"),
    ],
)
def test_wrong_options_are_status_2(argv: tuple[str, ...], said: str, shell: Shell) -> None:
    assert said in run_wrong(shell, "acls", *argv)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "left"), [("y\n", 0), ("n\n", 2)])
def test_a_terminal_shows_what_is_to_be_deleted_and_is_asked(
    answer: str, left: int, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell("acls", "create", "--allow-principal", ALICE, "--operation", "read", "--operation", "write", "--topic", "t")
    said = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", said)
    shell("acls", "delete", "--principal", ALICE, status=1 if left else 0)
    shown = said.getvalue().splitlines()
    assert shown[:2] == [f"ALLOW {ALICE} {operation} on topic 't'" for operation in ("READ", "WRITE")]
    assert shown[2].startswith("delete 2 ACLs (shown above)? [y/N] ")
    assert len(listed(shell)) == left


def test_names_in_what_is_to_be_deleted_cannot_command_the_terminal(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    eve = "User:eve\x1b[2K\nALLOW User:nobody"
    shell("acls", "create", "--allow-principal", eve, "--operation", "read", "--topic", "t")
    said = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    monkeypatch.setattr(sys, "stderr", said)
    shell("acls", "delete", "--topic", "t", status=1)
    assert said.getvalue().splitlines()[0] == r"ALLOW User:eve\x1b[2K\nALLOW User:nobody READ on topic 't'"


def test_without_a_terminal_nothing_is_deleted_unless_yes_is_given(shell: Shell) -> None:
    shell("acls", "delete", "--topic", "t")
    assert shell.err == "no ACL matches\n"
    shell("acls", "create", "--allow-principal", ALICE, "--operation", "read", "--topic", "t")
    assert "nothing is done: there is no terminal to ask on; add --yes to delete 1 ACL" in run_wrong(
        shell, "acls", "delete", "--topic", "t"
    )
    assert len(listed(shell)) == 1


def test_a_cluster_without_acls_says_so(
    kafka_broker: BackgroundBroker, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    shell = Shell(kafka_broker.bootstrap, capsysbinary)
    for argv in (["list"], ["create", "--allow-principal", ALICE, "--operation", "all", "--topic", "t"]):
        shell("acls", *argv, status=1)
        assert shell.err.startswith("aiokafkawire: SecurityDisabled: ")
