"""``users`` on the in-process broker, in one process."""

import getpass
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.login_settings import login
from support.shell import Shell, shell_command

from aiokafkawire import blocking
from aiokafkawire.errors import SaslAuthenticationFailed
from aiokafkawire.testing.background import BackgroundBroker

SECRET = "s3cret-Gruß"
BOTH = ("-m", "SCRAM-SHA-256", "-m", "SCRAM-SHA-512")


@pytest.fixture
def shell(kafka_broker: BackgroundBroker, capsysbinary: pytest.CaptureFixture[bytes]) -> Shell:
    return Shell(kafka_broker.bootstrap, capsysbinary)


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", SECRET)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def types(monkeypatch: pytest.MonkeyPatch, *passwords: str) -> list[str]:
    """Let a user at a terminal type passwords; the prompts."""
    prompts: list[str] = []
    typed: Iterator[str] = iter(passwords)

    def read(prompt: str, stream: object) -> str:
        prompts.append(prompt)
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr(getpass, "getpass", read)
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(sys, "stderr", Terminal())
    return prompts


def test_users_are_created_listed_altered_described_and_deleted(shell: Shell) -> None:
    assert shell.lines("users", "create", "alice", *BOTH, "--password-env", "SECRET") == [
        "USER   MECHANISM      OUTCOME",
        "alice  SCRAM-SHA-256  created",
        "alice  SCRAM-SHA-512  created",
    ]
    shell("users", "create", "bob", "--password-env", "SECRET", "--iterations", "5000")
    assert shell.lines("users", "list") == [
        "USER   MECHANISM      ITERATIONS",
        "alice  SCRAM-SHA-256        4096",
        "alice  SCRAM-SHA-512        4096",
        "bob    SCRAM-SHA-512        5000",
    ]
    argv = ("users", "alter", "bob", "--password-env", "SECRET", "--iterations", "8192", "--json")
    assert shell.lines(*argv) == ['{"user": "bob", "mechanism": "SCRAM-SHA-512", "outcome": "changed"}']
    assert [json.loads(line) for line in shell.lines("users", "describe", "bob", "--json")] == [
        {"user": "bob", "mechanism": "SCRAM-SHA-512", "iterations": 8192}
    ]
    shell("users", "delete", "alice", "-m", "SCRAM-SHA-256", "--yes")
    assert shell.lines("users", "describe", "alice")[1:] == ["alice  SCRAM-SHA-512        4096"]
    assert shell.lines("users", "delete", "alice", "bob", "-y") == [
        "USER   OUTCOME",
        "alice  deleted",
        "bob    deleted",
    ]
    assert shell.lines("users", "list") == ["USER  MECHANISM  ITERATIONS"]


def test_users_log_in_with_the_password_of_a_file_or_the_environment(
    capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    path = tmp_path / "password"
    path.write_bytes(f" {SECRET} \r\n".encode())
    admin = tmp_path / "admin.properties"
    admin.write_text(_properties("admin", "admin-secret"))
    with BackgroundBroker(users={"admin": "admin-secret"}) as broker:
        shell = Shell(broker.bootstrap, capsysbinary)
        shell("users", "create", "alice", *BOTH, "--password-file", str(path), "--config", str(admin))
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            with blocking.Client(broker.bootstrap, **login(mechanism, "alice", f" {SECRET} ")) as kafka:
                assert kafka.admin.list_topics() == ()
        shell("users", "alter", "alice", "--password-env", "SECRET", "--config", str(admin))
        with blocking.Client(broker.bootstrap, **login("SCRAM-SHA-512", "alice", SECRET)) as kafka:
            assert kafka.admin.list_topics() == ()
        with pytest.raises(SaslAuthenticationFailed):
            blocking.Client(broker.bootstrap, **login("SCRAM-SHA-256", "alice", SECRET)).__enter__()


def test_a_terminal_is_asked_twice_for_the_password(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = types(monkeypatch, SECRET, SECRET)
    shell("users", "create", "alice")
    assert prompts == ["the password of alice: ", "the password of alice, again: "]
    assert shell.lines("users", "list")[1:] == ["alice  SCRAM-SHA-512        4096"]


@pytest.mark.parametrize(
    ("typed", "status", "message"),
    [
        ((SECRET, "other"), 1, "nothing is done: the two passwords differ"),
        (("",), 2, "the password of alice is empty"),
        ((), 1, "nothing is done"),
        ((SECRET,), 1, "nothing is done"),
    ],
)
def test_passwords_that_differ_or_are_missing_create_no_user(
    typed: tuple[str, ...], status: int, message: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    types(monkeypatch, *typed)
    shell("users", "create", "alice", status=status)
    assert isinstance(sys.stderr, Terminal)
    assert message in sys.stderr.getvalue()
    assert SECRET not in sys.stderr.getvalue()
    assert shell.lines("users", "list") == ["USER  MECHANISM  ITERATIONS"]


def test_a_password_that_is_typed_is_not_shown(kafka_broker: BackgroundBroker, shell: Shell) -> None:
    pty = pytest.importorskip("pty")
    terminal, streams = pty.openpty()
    command = shell_command("users", "create", "alice", "-b", kafka_broker.bootstrap)
    shown = b""
    with subprocess.Popen(command, stdin=streams, stdout=streams, stderr=streams, start_new_session=True) as process:
        try:
            os.close(streams)
            for expected in (b"the password of alice: ", b"the password of alice, again: "):
                while not shown.endswith(expected):
                    shown += os.read(terminal, 1024)
                os.write(terminal, SECRET.encode() + b"\n")
            while b"created" not in shown:
                shown += os.read(terminal, 1024)
            assert process.wait(30) == 0
        finally:
            process.kill()
            os.close(terminal)
    assert SECRET.encode() not in shown
    assert shell.lines("users", "list")[1:] == ["alice  SCRAM-SHA-512        4096"]


def test_a_password_comes_from_somewhere_but_never_from_the_command_line(shell: Shell, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_bytes(b"\n")
    for argv, message in (
        ((), "without a terminal, the password of alice needs --password-env NAME or --password-file FILE"),
        (("--password-env", "NONE"), "the password of alice: there is no environment variable 'NONE'"),
        (("--password-file", str(tmp_path / "none")), "cannot read the password of alice in"),
        (("--password-file", str(empty)), f"the password of alice in {empty} is empty"),
        (("--password-env", "SECRET", "--password-file", str(empty)), "cannot be combined"),
        (
            ("--password-env", "SECRET", "--iterations", "1000"),
            "--iterations must be a whole number from 4096 to 16384, got '1000'",
        ),
        (
            ("--password-env", "SECRET", "-m", "PLAIN"),
            "--mechanism is one of SCRAM-SHA-256, SCRAM-SHA-512, got 'PLAIN'",
        ),
        (("--password", SECRET), "there is no option --password; did you mean"),
    ):
        shell("users", "create", "alice", *argv, status=2)
        assert message in shell.err


def test_create_is_for_new_credentials_and_alter_for_known_ones(shell: Shell) -> None:
    env = ("--password-env", "SECRET")
    shell("users", "alter", "alice", *env, status=1)
    refused = "user 'alice' has no SCRAM-SHA-512 credential: give one by 'users create'"
    assert shell.err == f"aiokafkawire: ResourceNotFound: {refused}\n"
    shell("users", "create", "alice", *env)
    out = shell("users", "create", "alice", *BOTH, *env, status=1)
    assert out.decode().splitlines()[1:] == ["alice  SCRAM-SHA-256  created"]
    refused = "user 'alice' has a SCRAM-SHA-512 credential already: change it by 'users alter'"
    assert shell.err == f"aiokafkawire: DuplicateResource: {refused}\n"
    shell("users", "delete", "alice", "-m", "SCRAM-SHA-256", "-y")
    assert shell.lines("users", "create", "alice", *BOTH, *env, "--if-not-exists")[1:] == [
        "alice  SCRAM-SHA-256  created",
        "alice  SCRAM-SHA-512  exists",
    ]


def test_a_name_that_is_wrong_does_not_hide_who_is_deleted_before_it(shell: Shell) -> None:
    shell("users", "create", "alice", "--password-env", "SECRET")
    out = shell("users", "delete", "alice", "", "--yes", status=1)
    assert [line.split() for line in out.decode().splitlines()] == [["USER", "OUTCOME"], ["alice", "deleted"]]
    assert shell.err.startswith("aiokafkawire: UsageError: a user must ")
    assert shell("users", "delete", "", "--yes", status=2) == b""


def test_what_fails_for_one_user_is_told_and_the_others_are_done(shell: Shell) -> None:
    shell("users", "create", "alice", "--password-env", "SECRET")
    out = shell("users", "describe", "none", "alice", status=1)
    assert out.decode().splitlines()[1:] == ["alice  SCRAM-SHA-512        4096"]
    assert shell.err.startswith("aiokafkawire: ResourceNotFound: describing the SCRAM credentials of user 'none'")
    shell("users", "describe", "none", status=1)
    assert shell.err.startswith("aiokafkawire: ResourceNotFound: describing the SCRAM credentials of user 'none'")
    out = shell("users", "delete", "none", "alice", "-y", status=1)
    assert out.decode().splitlines() == ["USER   OUTCOME", "alice  deleted"]
    assert shell.err == "aiokafkawire: ResourceNotFound: user 'none' has no SCRAM credential\n"
    assert shell.lines("users", "delete", "alice", "-y", "--if-exists")[1:] == ["alice  absent"]
    shell("users", "create", "bob", "--password-env", "SECRET")
    out = shell("users", "delete", "bob", *BOTH, "-y", status=1)
    assert out.decode().splitlines() == ["USER  MECHANISM      OUTCOME", "bob   SCRAM-SHA-512  deleted"]
    assert shell.err == "aiokafkawire: ResourceNotFound: user 'bob' has no SCRAM-SHA-256 credential\n"
    assert shell.lines("users", "list") == ["USER  MECHANISM  ITERATIONS"]
    shell("users", "create", "bob", "--password-env", "SECRET")
    assert shell.lines("users", "delete", "bob", *BOTH, "-y", "--if-exists")[1:] == [
        "bob   SCRAM-SHA-256  absent",
        "bob   SCRAM-SHA-512  deleted",
    ]


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("\n", 1)])
def test_a_terminal_is_asked_before_users_are_deleted(
    answer: str, status: int, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell("users", "create", "alice", "--password-env", "SECRET")
    shell("users", "delete", "alice", status=2)
    assert "add --yes" in shell.err
    said = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", said)
    shell("users", "delete", "alice", status=status)
    assert said.getvalue().startswith("delete all credentials of users (alice)? [y/N] ")
    assert len(shell.lines("users", "list")) == 1 + status


def test_a_user_without_rights_is_refused(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with BackgroundBroker(authorizer=True, super_users=["User:admin"]) as broker:
        shell = Shell(broker.bootstrap, capsysbinary)
        for argv in (("list",), ("create", "alice", "--password-env", "SECRET"), ("delete", "alice", "-y")):
            shell("users", *argv, status=1)
            assert shell.err.startswith("aiokafkawire: ClusterAuthorizationFailed: ")


def _properties(user: str, password: str, **more: str) -> str:
    settings: Mapping[str, Any] = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": user,
        "sasl.password": password,
        **more,
    }
    return "".join(f"{key}={value}\n" for key, value in settings.items())
