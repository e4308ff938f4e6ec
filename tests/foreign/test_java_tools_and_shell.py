"""The shell's configs, quotas, users and tokens beside kafka-configs.sh and kafka-delegation-tokens.sh.

Each side shows what the other has changed, field by field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
from support.shell import Shell
from support.user_tools import CONFIGS, TOKENS, Served, login_file, serve, shown, token_rows, tool, until

pytestmark = [pytest.mark.thorough, pytest.mark.kafka, pytest.mark.timeout(400)]

_ENTRY = re.compile(r"^  (\S+?)=(.*) sensitive=(true|false) synonyms=\{(.*)\}$", re.M)

Fields = dict[str, list[str]]
"""The value, the sensitivity and the synonyms of each setting, as kafka-configs prints them."""


@pytest.fixture(scope="module", params=["in-process", "apache-kafka"])
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    with serve(request.param) as served:
        yield served


@pytest.fixture
def shell(served: Served, capsysbinary: pytest.CaptureFixture[bytes]) -> Shell:
    return Shell(served.open, capsysbinary)


@pytest.fixture
def name() -> str:
    """A topic, group, subscription or user of a test's own."""
    return f"test-{token_hex(4)}"


def rows(shell: Shell, *argv: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shell.lines(*argv, "--json")]


# --- configs ---------------------------------------------------------------------------------------------------------


def theirs(served: Served, *argv: str) -> Fields:
    """Return what kafka-configs shows."""
    return {key: values for key, *values in _ENTRY.findall(tool(served.open, CONFIGS, "--describe", *argv))}


def ours(shell: Shell, *argv: str) -> Fields:
    """Return what our shell shows, in the words of kafka-configs."""
    return {
        row["config"]: [
            _text(row["value"]),
            str(row["is_sensitive"]).lower(),
            ", ".join(f"{each['source']}:{each['config']}={_text(each['value'])}" for each in row["synonyms"]),
        ]
        for row in rows(shell, "configs", "describe", *argv, "--synonyms")
    }


def becomes(read: Callable[[], object], expected: object) -> None:
    until(lambda: read() == expected)


def _text(value: str | None) -> str:
    return "null" if value is None else value


def entity(type_name: str, name: str) -> tuple[str, ...]:
    """Return the arguments of kafka-configs that name a resource."""
    named = ("--entity-default",) if name == "--default" else ("--entity-name", name)
    return "--entity-type", type_name if type_name.endswith("s") else f"{type_name}s", *named


@pytest.mark.parametrize(
    ("type_name", "keys"),
    [
        ("topic", ("retention.ms=3600000", "segment.bytes=2097152", "max.message.bytes=2000")),
        ("group", ("consumer.session.timeout.ms=46000", "share.record.lock.duration.ms=20000")),
        ("client-metrics", ("interval.ms=60000", "metrics=org.apache.kafka.producer.")),
    ],
)
def test_settings_of_topics_groups_and_metrics(
    type_name: str, keys: tuple[str, ...], served: Served, shell: Shell, name: str
) -> None:
    if type_name == "topic":
        shell("topics", "create", name)
    named = entity(type_name, name)
    expected = {key.partition("=")[0]: key.partition("=")[2] for key in keys}
    shell("configs", "alter", type_name, name, *keys)
    until(lambda: {key: values[0] for key, values in theirs(served, *named).items()} == expected)
    assert ours(shell, type_name, name) == theirs(served, *named)

    tool(served.open, CONFIGS, "--alter", *named, "--delete-config", next(iter(expected)))
    until(lambda: len(ours(shell, type_name, name)) == len(keys) - 1)
    assert ours(shell, type_name, name) == theirs(served, *named)
    everything = ours(shell, type_name, name, "--all")
    assert everything == theirs(served, *named, "--all")
    assert len(everything) > len(keys)

    tool(served.open, CONFIGS, "--alter", *named, "--add-config", keys[0])
    until(lambda: {key: values[0] for key, values in ours(shell, type_name, name).items()} == expected)
    listed = [row for row in rows(shell, "configs", "list", type_name) if row["resource_name"] == name]
    assert listed == [{"resource_type": type_name, "resource_name": name, "own_settings": len(keys)}]
    shell("configs", "alter", type_name, name, *(f"--delete={key}" for key in expected))
    until(lambda: theirs(served, *named) == {})


def test_lists_of_a_topic(served: Served, shell: Shell, name: str) -> None:
    shell("topics", "create", name)
    named = entity("topic", name)
    for argv, policy in (
        (("--append", "cleanup.policy=compact"), "delete,compact"),
        (("--subtract", "cleanup.policy=delete"), "compact"),
        (("cleanup.policy=compact,delete",), "compact,delete"),
    ):
        shell("configs", "alter", "topic", name, *argv)
        becomes(lambda: theirs(served, *named)["cleanup.policy"][0], policy)
    tool(served.open, CONFIGS, "--alter", *named, "--add-config", "cleanup.policy=[delete]")
    until(lambda: ours(shell, "topic", name)["cleanup.policy"][0] == "delete")


def test_settings_of_brokers(served: Served, shell: Shell) -> None:
    try:
        shell("configs", "alter", "broker", "1", "log.cleaner.backoff.ms=14000")
        shell("configs", "alter", "broker", "--default", "log.cleaner.backoff.ms=13000")
        own, default = entity("broker", "1"), entity("broker", "--default")
        until(lambda: theirs(served, *own).get("log.cleaner.backoff.ms", [""])[0] == "14000")
        until(lambda: theirs(served, *default).get("log.cleaner.backoff.ms", [""])[0] == "13000")
        assert ours(shell, "broker", "1") == theirs(served, *own)
        assert ours(shell, "broker", "--default") == theirs(served, *default)
        everything = ours(shell, "broker", "1", "--all")
        assert everything == theirs(served, *own, "--all")
        assert everything["log.cleaner.backoff.ms"][2].count(":") >= 3
        assert everything["ssl.key.password"][:2] == ["null", "true"]
        tool(served.open, CONFIGS, "--alter", *own, "--delete-config", "log.cleaner.backoff.ms")
        until(lambda: "log.cleaner.backoff.ms" not in ours(shell, "broker", "1"))
    finally:
        for broker in ("1", "--default"):
            shell("configs", "alter", "broker", broker, "--delete", "log.cleaner.backoff.ms")


def test_log_levels_of_brokers(served: Served, shell: Shell) -> None:
    named = entity("broker-logger", "1")
    logger = next(key for key in sorted(ours(shell, "broker-logger", "1")) if key.startswith("org.apache.kafka"))
    before = ours(shell, "broker-logger", "1")[logger][0]
    try:
        shell("configs", "alter", "broker-logger", "1", f"{logger}=WARN")
        found = theirs(served, *named)
        assert found[logger][0] == "WARN"
        # More loggers may have been made meanwhile.
        assert {key: ours(shell, "broker-logger", "1")[key] for key in found} == found
        tool(served.open, CONFIGS, "--alter", *named, "--add-config", f"{logger}=ERROR")
        assert ours(shell, "broker-logger", "1")[logger][0] == "ERROR"
    finally:
        shell("configs", "alter", "broker-logger", "1", f"{logger}={before}")


# --- quotas ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "arguments", "shown_as", "keys"),
    [
        (
            ("--user", "NAME"),
            ("--entity-type", "users", "--entity-name", "NAME"),
            "user-principal 'NAME'",
            ("producer_byte_rate=1000000", "request_percentage=12.5", "controller_mutation_rate=1.5"),
        ),
        (
            ("--user", "NAME", "--client-id-default"),
            ("--entity-type", "users", "--entity-name", "NAME", "--entity-type", "clients", "--entity-default"),
            "user-principal 'NAME', the default client-id",
            ("consumer_byte_rate=2000000", "producer_byte_rate=5"),
        ),
        (
            ("--client-id", "NAME"),
            ("--entity-type", "clients", "--entity-name", "NAME"),
            "client-id 'NAME'",
            ("consumer_byte_rate=2000000", "request_percentage=200"),
        ),
        (
            ("--ip", "203.0.113.9"),
            ("--entity-type", "ips", "--entity-name", "203.0.113.9"),
            "ip '203.0.113.9'",
            ("connection_creation_rate=7",),
        ),
    ],
)
def test_quotas(
    options: tuple[str, ...],
    arguments: tuple[str, ...],
    shown_as: str,
    keys: tuple[str, ...],
    served: Served,
    shell: Shell,
    name: str,
) -> None:
    options = tuple(part.replace("NAME", name) for part in options)
    arguments = tuple(part.replace("NAME", name) for part in arguments)
    expected = {key: float(value) for key, value in (each.split("=") for each in keys)}

    def of_java() -> dict[str, float]:
        found = shown(tool(served.open, CONFIGS, "--describe", *arguments)).get(shown_as.replace("NAME", name), {})
        return {key: float(value) for key, value in found.items()}

    def of_shell() -> dict[str, float]:
        found = rows(shell, "quotas", "list", *options)
        entities = {part.removeprefix("--").replace("-", "_").removesuffix("_default") for part in options[::2]}
        assert all({*row["entity"]} >= entities for row in found)
        return {row["quota"]: row["value"] for row in found}

    try:
        shell("quotas", "alter", *options, *keys)
        until(lambda: of_java() == expected)
        until(lambda: of_shell() == expected)
        (key, value), *_ = expected.items()
        tool(served.open, CONFIGS, "--alter", *arguments, "--delete-config", key)
        until(lambda: of_shell() == {other: expected[other] for other in expected if other != key})
        tool(served.open, CONFIGS, "--alter", *arguments, "--add-config", f"{key}={value + 1:.0f}")
        until(lambda: of_shell() == expected | {key: float(f"{value + 1:.0f}")})
    finally:
        shell("quotas", "delete", *options, "-y")
    until(lambda: of_java() == {})


# --- users -----------------------------------------------------------------------------------------------------------


def test_users(served: Served, shell: Shell, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "s3cret")
    named = ("--entity-type", "users", "--entity-name", name)

    def of_java() -> dict[str, str]:
        return shown(tool(served.open, CONFIGS, "--describe", *named)).get(f"user-principal '{name}'", {})

    def of_shell() -> dict[str, str]:
        found = [row for row in rows(shell, "users", "list") if row["user"] == name]
        return {row["mechanism"]: f"iterations={row['iterations']}" for row in found}

    shell("users", "create", name, "-m", "SCRAM-SHA-256", "--password-env", "SECRET", "--iterations", "8192")
    until(lambda: of_shell() == {"SCRAM-SHA-256": "iterations=8192"})
    assert of_java() == {"SCRAM-SHA-256": "iterations=8192"}
    tool(served.open, CONFIGS, "--alter", *named, "--add-config", "SCRAM-SHA-512=[iterations=5000,password=s3cret]")
    until(lambda: of_shell() == {"SCRAM-SHA-256": "iterations=8192", "SCRAM-SHA-512": "iterations=5000"})
    shell("users", "alter", name, "-m", "SCRAM-SHA-512", "--password-env", "SECRET", "--iterations", "6000")
    until(lambda: of_shell()["SCRAM-SHA-512"] == "iterations=6000")
    assert of_java() == of_shell()
    tool(served.open, CONFIGS, "--alter", *named, "--delete-config", "SCRAM-SHA-256")
    until(lambda: of_shell() == {"SCRAM-SHA-512": "iterations=6000"})
    shell("users", "delete", name, "-y")
    until(lambda: of_shell() == {})
    assert "SCRAM" not in str(of_java())


# --- tokens ----------------------------------------------------------------------------------------------------------


def test_tokens(served: Served, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    alice = login_file(tmp_path / "alice.properties", "alice", "alice-secret")
    shell = Shell(served.guarded, capsysbinary)
    described = ("--describe", "--owner-principal", "User:alice")  # without an owner it shows none

    def run(*argv: str) -> list[dict[str, Any]]:
        return rows(shell, "tokens", *argv, "--config", alice[1])

    def of_java(*argv: str) -> dict[str, list[str]]:
        return token_rows(tool(served.guarded, TOKENS, *alice, *argv))

    def of_shell() -> dict[str, list[str]]:
        return {
            row["token_id"]: [row["hmac"], row["owner"], row["requester"], f"[{', '.join(row['renewers'])}]"]
            for row in run("list", "--show-hmac")
        }

    (created,) = run("create", "--renewer", "User:bob", "--max-life", "2h")
    until(lambda: created["token_id"] in of_shell())
    assert of_java(*described) == of_shell()
    made = of_java("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:carol")
    ((token_id, fields),) = made.items()
    until(lambda: token_id in of_shell())
    assert of_shell()[token_id] == fields
    assert of_java(*described) == of_shell()

    tool(served.guarded, TOKENS, *alice, "--renew", "--hmac", fields[0], "--renew-time-period", "3600000")
    (renewed,) = run("renew", created["token_id"], "--for", "1h")

    def expiries() -> dict[str, int]:
        return {row["token_id"]: row["expiry_timestamp"] for row in run("list")}

    until(lambda: expiries()[created["token_id"]] == renewed["expiry_timestamp"])
    until(lambda: abs(expiries()[token_id] - renewed["expiry_timestamp"]) < 60_000)

    run("expire", token_id, "--yes")
    until(lambda: token_id not in of_shell())
    assert list(of_java(*described)) == [created["token_id"]]
    tool(served.guarded, TOKENS, *alice, "--expire", "--hmac", created["hmac"], "--expiry-time-period", "-1")
    until(lambda: of_shell() == {})
