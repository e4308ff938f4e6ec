"""``tokens`` on the in-process broker, in one process."""

import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from support.login_settings import login
from support.shell import Shell

from aiokafkawire import blocking
from aiokafkawire.cli.exit_status import CommandFailed
from aiokafkawire.cli.shell.durations import duration_ms, parse_duration
from aiokafkawire.testing.background import BackgroundBroker

HOUR = 3_600_000


@pytest.fixture
def broker() -> Iterator[BackgroundBroker]:
    users = {"alice": "alice-secret", "bob": "bob-secret"}
    with BackgroundBroker(users=users, delegation_token_secret_key="the-key-of-all-tokens") as broker:
        yield broker


As = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def shell(broker: BackgroundBroker, capsysbinary: pytest.CaptureFixture[bytes]) -> Shell:
    return Shell(broker.bootstrap, capsysbinary)


@pytest.fixture
def config(tmp_path: Path) -> Callable[[str], tuple[str, str]]:
    """The options by which a user logs in."""

    def of(user: str) -> tuple[str, str]:
        path = tmp_path / f"{user}.properties"
        path.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
            f"sasl.username={user}\nsasl.password={user}-secret\n"
        )
        return "--config", str(path)

    return of


@pytest.fixture
def rows(shell: Shell, config: Callable[[str], tuple[str, str]]) -> As:
    """Run a command as a user; the rows of its JSON."""

    def run(*argv: str, user: str = "alice") -> list[dict[str, Any]]:
        return [json.loads(line) for line in shell.lines("tokens", *argv, "--json", *config(user))]

    return run


def test_a_token_is_created_listed_described_renewed_and_expired(
    broker: BackgroundBroker, rows: As, shell: Shell, config: Callable[[str], tuple[str, str]]
) -> None:
    (created,) = rows("create", "--renewer", "User:bob", "--max-life", "2h")
    assert list(created) == [
        "token_id",
        "hmac",
        "owner",
        "requester",
        "renewers",
        "issue_timestamp",
        "expiry_timestamp",
        "max_timestamp",
    ]
    token_id, hmac = created["token_id"], created["hmac"]
    assert (created["owner"], created["requester"], created["renewers"]) == ("User:alice", "User:alice", ["User:bob"])
    assert created["max_timestamp"] - created["issue_timestamp"] == 2 * HOUR
    guest = login("SCRAM-SHA-256", token_id, hmac, sasl_tokenauth=True)
    with blocking.Client(broker.bootstrap, **guest) as kafka:
        assert kafka.admin.list_topics() == ()

    without = {key: value for key, value in created.items() if key != "hmac"}
    assert rows("list") == rows("list", user="bob") == rows("describe", token_id) == [without]
    assert rows("list", "--show-hmac") == [created]
    assert rows("list", "--owner", "User:carol") == []

    (renewed,) = rows("renew", token_id, "--for", "30m", user="bob")
    assert renewed["outcome"] == "renewed"
    assert renewed["expiry_timestamp"] < created["expiry_timestamp"]
    (changed,) = rows("expire", token_id, "--after", "10m", "-y")
    assert changed["outcome"] == "changed"
    assert changed["expiry_timestamp"] < renewed["expiry_timestamp"]
    table = shell.lines("tokens", "expire", token_id, "--yes", *config("alice"))
    assert [line.split()[::2] for line in table] == [["TOKEN", "EXPIRES"], [token_id, "expired"]]
    assert rows("list") == []


def test_a_table_has_dates_and_the_secret_only_where_it_is_asked_for(
    shell: Shell, config: Callable[[str], tuple[str, str]]
) -> None:
    heading, line = shell.lines("tokens", "create", "--renewer", "User:bob", *config("alice"))
    head = re.split(r" {2,}", heading)
    assert head == ["TOKEN ID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUED", "EXPIRES", "AT LATEST"]
    cells = dict(zip(head, re.split(r" {2,}", line), strict=True))
    assert cells["RENEWERS"] == "User:bob"
    assert datetime.fromisoformat(cells["ISSUED"]) < datetime.fromisoformat(cells["AT LATEST"])
    listed = shell.lines("tokens", "list", *config("alice"))
    assert cells["TOKEN ID"] in listed[1]
    assert cells["HMAC"] not in listed[1]
    assert cells["HMAC"] in shell.lines("tokens", "describe", cells["TOKEN ID"], "--show-hmac", *config("alice"))[1]


def test_what_fails_for_one_token_is_told_and_the_others_are_done(
    rows: As, shell: Shell, config: Callable[[str], tuple[str, str]]
) -> None:
    (created,) = rows("create")
    token_id = created["token_id"]
    absent = "aiokafkawire: DelegationTokenNotFound: there is no token 'none' that you own, may renew or may see\n"
    for command, more in (("describe", ()), ("renew", ()), ("expire", ("-y",))):
        out = shell("tokens", command, "none", token_id, *more, *config("alice"), status=1)
        assert out.decode().splitlines()[1].startswith(token_id)
        assert shell.err == absent
    shell("tokens", "describe", "none", *config("alice"), status=1)
    assert shell.err == absent
    (created,) = rows("create")
    shell("tokens", "expire", created["token_id"], "-y", *config("bob"), status=1)
    assert shell.err.startswith("aiokafkawire: DelegationTokenOwnerMismatch: ")
    assert len(rows("list")) == 1


def test_wrong_arguments_are_status_2(shell: Shell, config: Callable[[str], tuple[str, str]]) -> None:
    for argv, message in (
        (("create", "--owner", "alice"), "--owner: a principal must be like 'User:alice', got 'alice'"),
        (("create", "--renewer", "bob"), "--renewer: a principal must be like 'User:alice'"),
        (("create", "--max-life", "long"), "--max-life: 'long' is no duration; write it as 500ms, 90s"),
        (("create", "--max-life", "0ms"), "max_lifetime_ms must be an integer from 1"),
        (("expire", "t", "--after", "soon", "-y"), "--after: 'soon' is no duration"),
        (("renew",), "TOKEN_ID is missing"),
    ):
        shell("tokens", *argv, *config("alice"), status=2)
        assert message in shell.err


def test_a_client_without_a_login_is_refused(
    kafka_broker: BackgroundBroker, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    shell = Shell(kafka_broker.bootstrap, capsysbinary)
    shell("tokens", "create", status=1)
    assert shell.err.startswith("aiokafkawire: DelegationTokenRequestNotAllowed: ")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("\n", 1)])
def test_a_terminal_is_asked_before_a_token_ends(
    answer: str,
    status: int,
    rows: As,
    shell: Shell,
    config: Callable[[str], tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (created,) = rows("create")
    shell("tokens", "expire", created["token_id"], *config("alice"), status=2)
    assert "add --yes" in shell.err
    said = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", said)
    shell("tokens", "expire", created["token_id"], *config("alice"), status=status)
    assert said.getvalue().startswith(f"expire 1 token ({created['token_id']})? [y/N] ")
    assert len(rows("list")) == status


@pytest.mark.parametrize(
    ("text", "milliseconds"), [("500ms", 500), ("90s", 90_000), ("1.5h", 5_400_000), ("2w", 14 * 24 * HOUR)]
)
def test_durations_have_units(text: str, milliseconds: int) -> None:
    assert duration_ms(text) == parse_duration("--for", text) == milliseconds


@pytest.mark.parametrize("text", ["", "5", "5y", "-5s", "1e3s", "s"])
def test_what_is_no_duration_is_wrong_usage(text: str) -> None:
    with pytest.raises(CommandFailed, match=f"--for: {text!r} is no duration") as refused:
        parse_duration("--for", text)
    assert refused.value.status == 2
