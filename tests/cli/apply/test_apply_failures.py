"""``apply`` where something fails or is wrong: half-done work, Ctrl-C, secrets, files, and rights."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from support.authorizing import ADMIN, password
from support.patience import PATIENCE
from support.shell import Shell, start_shell

from aiokafkawire import Client
from aiokafkawire.cli.apply.applying import changes_not_shown
from aiokafkawire.cli.apply.changes import CreateTopic
from aiokafkawire.cli.apply.cluster_settings import ClusterSettings, DeclaredTopic
from aiokafkawire.cli.apply.plan_output import note_not_shown
from aiokafkawire.error_codes import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.background import BackgroundBroker
from aiokafkawire.testing.background_faults import BackgroundHold

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "kafka.toml"


# --- half-done work ------------------------------------------------------------------------------------------------


def test_what_fails_is_told_the_others_are_done_and_a_second_run_finishes(shell: Shell, state: Path) -> None:
    shell("topics", "create", "c", "old")
    text = """
        [topics.a]
        configs = { "retention.ms" = "soon" }
        [topics.b]
        replication_factor = 3
        [topics.c]
        configs = { "segment.ms" = "never" }
        [topics.d]
        [brokers.1]
        "log.cleaner.threads" = 2
        [[quotas]]
        user = "a"
        limits = { producer_byte_rat = 1 }
        [[quotas]]
        user = "b"
        limits = { producer_byte_rate = 1 }
        """
    state.write_text(text)
    out = shell("apply", str(state), "--yes", "--delete", "topics", status=1).decode().splitlines()
    assert [line[:18].rstrip() for line in out] == [
        "failed    + topic",
        "failed    + topic",
        "done      + topic",
        "failed    ~ topic",
        "done      ~ broker",
        "failed    + quota",
        "done      + quota",
        "not done  - topic",
    ]
    errors = shell.err.splitlines()
    assert [line.split(": ")[1] for line in errors[-6:-1]] == [
        "InvalidConfig",
        "InvalidReplicationFactor",
        "InvalidConfig",
        "InvalidRequest",
        "not done",
    ]
    assert errors[-1] == "4 failed, 3 done, 1 not done"
    right = text.replace('"soon"', "1").replace("= 3", "= 1").replace('"never"', "1").replace("rat ", "rate ")
    state.write_text(right)
    done = shell.lines("apply", str(state), "--yes", "--delete", "topics")
    assert [line[10:].partition(":")[0] for line in done] == [
        "+ topic a",
        "+ topic b",
        "~ topic c",
        "+ quota of user a",
        "- topic old, with all its records",
    ]
    assert shell("apply", str(state), "--check", "--delete", "topics") == b""


def test_after_a_request_without_an_answer_nothing_more_is_done(
    kafka_broker: BackgroundBroker, shell: Shell, state: Path
) -> None:
    state.write_text('[topics.a]\n[brokers.1]\n"log.cleaner.threads" = 2')
    with kafka_broker.hold(ApiKey.CREATE_TOPICS):
        out = shell("apply", str(state), "--yes", "--timeout", "0.5", status=1).decode().splitlines()
    assert [line[:19] for line in out] == ["unknown   + topic a", "not done  ~ broker "]
    assert "aiokafkawire: RequestTimeout: " in shell.err
    assert shell.err.endswith("aiokafkawire: not done: the change before has no answer\n1 unknown, 1 not done\n")


def test_a_change_that_times_out_on_the_broker_may_come_later(
    kafka_broker: BackgroundBroker, shell: Shell, state: Path
) -> None:
    state.write_text('[topics.a]\n[brokers.1]\n"log.cleaner.threads" = 2')
    kafka_broker.on(ApiKey.CREATE_TOPICS, answer=ErrorCode.REQUEST_TIMED_OUT, after=0, times=1)
    out = shell("apply", str(state), "--yes", status=1).decode().splitlines()
    assert [line[:19] for line in out] == ["unknown   + topic a", "not done  ~ broker "]


def test_a_change_whose_first_answer_is_lost_is_done(kafka_broker: BackgroundBroker, shell: Shell, state: Path) -> None:
    shell("topics", "create", "b", "old", "--partitions", "1")
    state.write_text("[topics.a]\n[topics.b]\npartitions = 3\n")
    for api in (ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS, ApiKey.DELETE_TOPICS):
        kafka_broker.on(api, drop="after")
    out = shell("apply", str(state), "--yes", "--delete", "topics").decode().splitlines()
    assert [line[:19] for line in out] == ["done      + topic a", "done      ~ topic b", "done      - topic o"]


def test_all_is_done_although_nobody_reads_the_output_any_more(kafka_broker: BackgroundBroker, state: Path) -> None:
    state.write_text('[topics.a]\n[topics.b]\n[brokers.1]\n"log.cleaner.threads" = 2\n')
    reading, writing = os.pipe()
    os.close(reading)
    with start_shell("apply", str(state), "--yes", bootstrap=kafka_broker.bootstrap, stdout=writing) as process:
        os.close(writing)
        _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (1, b"3 done\n")


def test_all_is_done_although_nobody_reads_either_output_any_more(
    kafka_broker: BackgroundBroker, shell: Shell, state: Path
) -> None:
    state.write_text('[topics.a]\nconfigs = { "retention.ms" = "soon" }\n[brokers.1]\n"log.cleaner.threads" = 2\n')
    reading, writing = os.pipe()
    os.close(reading)
    streams = {"stdout": writing, "stderr": writing}  # as of 2>&1 | head
    with start_shell("apply", str(state), "--yes", bootstrap=kafka_broker.bootstrap, **streams) as process:
        os.close(writing)
        assert process.wait(PATIENCE) == 1
    assert "log.cleaner.threads" in shell.lines("configs", "describe", "broker", "1")[1]


@pytest.fixture
def interrupted(
    kafka_broker: BackgroundBroker, state: Path
) -> Iterator[tuple[BackgroundHold, "subprocess.Popen[bytes]"]]:
    """A run that is interrupted while its first request has no answer."""
    state.write_text('[topics.a]\n[topics.b]\n[brokers.1]\n"log.cleaner.threads" = 2\n')
    with (
        kafka_broker.hold(ApiKey.CREATE_TOPICS) as held,
        start_shell("apply", str(state), "--yes", bootstrap=kafka_broker.bootstrap) as process,
    ):
        try:
            held.arrived(timeout=PATIENCE)
            process.send_signal(signal.SIGINT)
            assert process.stderr is not None
            while not process.stderr.readline().startswith(b"interrupted: waiting for the answer"):
                assert process.poll() is None
            yield held, process
        finally:
            process.kill()


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_what_is_done_and_not_shown_is_told_after_a_while(kafka_broker: BackgroundBroker) -> None:
    declared = ClusterSettings(topics={"a": DeclaredTopic(), "b": DeclaredTopic()})
    done = [CreateTopic(name, DeclaredTopic()) for name in "ab"]
    kafka_broker.create_topic("a")
    async with Client(kafka_broker.bootstrap) as kafka:
        assert await changes_not_shown(kafka.admin, declared, (), done, patience=0.1) == done[1:]
        kafka_broker.create_topic("b")
        assert await changes_not_shown(kafka.admin, declared, (), done) == []


def test_only_some_of_what_is_not_shown_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    note_not_shown([CreateTopic(f"t-{number}", DeclaredTopic(1)) for number in range(7)])
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "aiokafkawire: done, but the brokers do not show it yet: + topic t-0: 1 partition"
    assert lines[5:] == ["aiokafkawire: nor 2 more"]


def test_ctrl_c_waits_for_the_answer_and_says_what_is_done_and_what_is_not(
    interrupted: tuple[BackgroundHold, "subprocess.Popen[bytes]"],
) -> None:
    held, process = interrupted
    held.release()
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert out.decode().splitlines() == [
        "done      + topic a: the default number of partitions",
        "done      + topic b: the default number of partitions",
        "not done  ~ broker 1: log.cleaner.threads default -> 2",
    ]
    assert err.decode().splitlines() == ["aiokafkawire: not done: interrupted", "2 done, 1 not done"]


def test_a_second_ctrl_c_does_not_wait_and_says_what_is_not_known(
    interrupted: tuple[BackgroundHold, "subprocess.Popen[bytes]"],
) -> None:
    _, process = interrupted
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert [line[:19] for line in out.decode().splitlines()] == [
        "unknown   + topic a",
        "unknown   + topic b",
        "not done  ~ broker ",
    ]
    assert err.decode().splitlines()[-1] == "2 unknown, 1 not done"


# --- secrets -------------------------------------------------------------------------------------------------------


def test_a_secret_that_is_missing_is_told_before_anything_is_done(
    shell: Shell, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHOP_PASSWORD")
    out = shell("apply", str(EXAMPLE), "--dry-run").decode()
    assert "+ user shop" in out
    missing = "the password of user shop: there is no environment variable 'SHOP_PASSWORD'"
    assert missing in shell.err.splitlines()
    shell("apply", str(EXAMPLE), "--yes", status=2)
    assert f"aiokafkawire: {missing}\n" in shell.err
    state.write_text("[users.a]\nmechanism = 'SCRAM-SHA-256'\npassword = { file = 'none' }")
    shell("apply", str(state), "--yes", status=2)
    assert "cannot read the password of user a in " in shell.err
    assert shell.lines("topics", "list") == ["TOPIC"]


def test_a_password_of_a_file_beside_the_state_file_logs_in(
    capsysbinary: pytest.CaptureFixture[bytes], state: Path
) -> None:
    def settings(user: str, secret: str) -> dict[str, str]:
        login = {"sasl_username": user, "sasl_password": secret}
        return {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-256", **login}

    async def logs_in(bootstrap: str, secret: str) -> bool:
        async with Client(bootstrap, **settings("bob", secret)) as kafka:  # type: ignore[arg-type]
            return bool(await kafka.admin.describe_cluster())

    (state.parent / "password-of-bob").write_bytes(b"first-secret\r\n")
    state.write_text("[users.bob]\nmechanism = 'SCRAM-SHA-256'\npassword = { file = 'password-of-bob' }")
    jaas = f'required username="{ADMIN}" password="{password(ADMIN)}";'
    scram = f"org.apache.kafka.common.security.scram.ScramLoginModule {jaas}"
    options = ("-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.mechanism=SCRAM-SHA-256")
    login = (*options, "-X", f"sasl.jaas.config={scram}")
    with BackgroundBroker(users={ADMIN: password(ADMIN)}) as broker:
        shell = Shell(broker.bootstrap, capsysbinary)
        shell("apply", str(state), "--yes", *login)
        assert anyio.run(logs_in, broker.bootstrap, "first-secret")
        (state.parent / "password-of-bob").write_bytes(b"second-secret")
        # Brokers do not return passwords, so that another one is no difference.
        assert shell("apply", str(state), "--check", *login) == b""
        line = "~ user bob: SCRAM-SHA-256 gets the password in the file password-of-bob, 4096 iterations"
        assert shell.lines("apply", str(state), "--yes", "--set-secrets", *login) == [f"done      {line}"]
        assert "secret" not in shell.err.replace("--set-secrets", "")
        assert anyio.run(logs_in, broker.bootstrap, "second-secret")


def test_a_config_of_a_broker_that_is_secret_is_set_and_not_shown(shell: Shell, state: Path) -> None:
    state.write_text('[brokers.1]\n"my.own.secret" = { env = "SHOP_PASSWORD" }')
    assert shell.lines("apply", str(state), "--yes") == [
        "done      ~ broker 1: my.own.secret default -> $SHOP_PASSWORD"
    ]
    assert shell("apply", str(state), "--check") == b""
    exported = shell("export", "brokers").decode()
    assert '"my.own.secret" = { env = "BROKER_1_MY_OWN_SECRET" }' in exported
    assert shell.lines("apply", str(state), "--dry-run", "--set-secrets") == [
        "~ broker 1: my.own.secret (hidden) -> $SHOP_PASSWORD"
    ]


# --- wrong use -----------------------------------------------------------------------------------------------------


def test_a_wrong_file_is_status_2(shell: Shell, state: Path) -> None:
    state.write_text("[topics.a]\npartition = 3")
    shell("apply", str(state), status=2)
    told = "topics.a.partition is unknown; did you mean partitions? known: partitions, replication_factor, configs"
    assert shell.err == f"aiokafkawire: {state}:2:1: {told}\n"
    state.write_text("[topics.a")
    shell("apply", str(state), status=2)
    assert f"{state} is not TOML: " in shell.err
    assert "line 1, column 10" in shell.err or "at end of document" in shell.err
    state.write_bytes(b"# \xff")
    shell("apply", str(state), status=2)
    assert "is not UTF-8 text" in shell.err
    state.unlink()
    shell("apply", str(state), status=2)
    assert shell.err == f"aiokafkawire: cannot read {state}: No such file or directory\n"
    shell("apply", str(state), "--delete", "everything", status=2)
    shell("export", "topic", status=2)


def test_a_file_comes_from_standard_input(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbf[topics.a]\r\n")))
    assert shell.lines("apply", "-", "--yes") == ["done      + topic a: the default number of partitions"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x = 1")))
    shell("apply", "-", status=2)
    assert shell.err.startswith("aiokafkawire: standard input:1:1: x is unknown; known: ")


def test_acls_without_an_authorizer(shell: Shell, state: Path) -> None:
    state.write_text("acls = []")
    shell("apply", str(state), "--check")
    state.write_text("[[acls]]\nprincipal = 'User:a'\noperations = ['read']\nresource = 'topic'\nname = 'a'")
    shell("apply", str(state), "--yes", status=1)
    assert shell.err.startswith("aiokafkawire: SecurityDisabled: ")
    shell("export", "acls", status=1)
    assert shell.err.startswith("aiokafkawire: SecurityDisabled: ")
    assert "# The acls are left out: the brokers have no authorizer.\n" in shell("export").decode()


def test_without_rights_nothing_is_planned_and_the_refusal_is_told(
    capsysbinary: pytest.CaptureFixture[bytes], state: Path
) -> None:
    state.write_text("[users]")
    with BackgroundBroker(authorizer=True, super_users=[f"User:{ADMIN}"]) as broker:
        shell = Shell(broker.bootstrap, capsysbinary)
        shell("apply", str(state), status=1)
        assert shell.err.startswith("aiokafkawire: ClusterAuthorizationFailed: ")
        state.write_text("[topics.a]")
        out = shell("apply", str(state), "--yes", status=1).decode()
        assert out == "failed    + topic a: the default number of partitions\n"
        assert "TopicAuthorizationFailed" in shell.err


def test_a_dry_run_says_what_the_brokers_would_refuse(shell: Shell, state: Path) -> None:
    shell("topics", "create", "old", "--partitions", "2")
    state.write_text(
        """
        [topics.new]
        configs = { "no.such" = "1" }
        [topics.good]
        [topics.old]
        configs = { "retention.ms" = "soon" }
        [[quotas]]
        user = "a"
        limits = { no_such_rate = 1 }
        """
    )
    out = shell("apply", str(state), "--dry-run", status=1).decode().splitlines()
    assert len(out) == 4
    refused = shell.err.splitlines()
    assert [line.split(": ")[1:3] for line in refused] == [
        ["would be refused", "+ topic new"],
        ["would be refused", "~ topic old"],
        ["would be refused", "+ quota of user a"],
    ]
    assert all("InvalidConfig: " in line or "InvalidRequest: " in line for line in refused)
    assert shell.lines("topics", "list")[1:] == ["old"]
    shell("apply", str(state), "--check", status=3)
    assert shell.err.splitlines() == refused
