"""The shell as a process: pipes that close, Ctrl-C, input that comes slowly, and closed streams."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import pytest
from support.patience import PATIENCE
from support.shell import start_shell

from aiokafkawire import Client
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.background import BackgroundBroker


@pytest.fixture
def bootstrap(kafka_broker: BackgroundBroker) -> str:
    kafka_broker.create_topic("orders", partitions=1)
    return kafka_broker.bootstrap


@contextmanager
def running(*argv: str, bootstrap: str, **options: object) -> "Iterator[subprocess.Popen[bytes]]":
    """The command as a process, which does not outlive the test."""
    with start_shell(*argv, bootstrap=bootstrap, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def write(bootstrap: str, *values: bytes) -> None:
    async def send() -> None:
        async with Client(bootstrap) as kafka, kafka.producer() as producer:
            await producer.send_many("orders", values)

    anyio.run(send)


def read(bootstrap: str, count: int) -> list[bytes | None]:
    async def poll() -> list[bytes | None]:
        found: list[bytes | None] = []
        with anyio.fail_after(PATIENCE):
            async with Client(bootstrap) as kafka, kafka.consumer("orders", auto_offset_reset="earliest") as consumer:
                while len(found) < count:
                    found += [record.value for record in await consumer.poll()]
        return found

    return anyio.run(poll)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_following_ends_at_a_signal_with_the_count(number: signal.Signals, status: int, bootstrap: str) -> None:
    write(bootstrap, b"before")
    with running("consume", "orders", "--follow", "--from", "beginning", bootstrap=bootstrap) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"before\n"
        write(bootstrap, b"after")
        assert process.stdout.readline() == b"after\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (status, b"")
    assert err.startswith(b"2 records, 0.0 MB in ")
    assert err.count(b"\n") == 1


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_watching_without_a_terminal_ends_at_a_signal(number: signal.Signals, status: int, bootstrap: str) -> None:
    with running("top", "--json", "--interval", "0.1", bootstrap=bootstrap) as process:
        assert process.stdout is not None
        assert process.stdout.readline().endswith(b"}\n")
        process.send_signal(number)
        _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (status, b"")


def test_a_member_that_is_interrupted_commits_what_it_has_printed(bootstrap: str) -> None:
    write(bootstrap, b"one")
    with running("consume", "orders", "--follow", "-g", "g", bootstrap=bootstrap) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"one\n"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    write(bootstrap, b"two")
    with running("consume", "orders", "-g", "g", bootstrap=bootstrap) as process:
        assert process.communicate(timeout=PATIENCE)[0] == b"two\n"


def test_a_reader_that_goes_away_ends_it_silently(bootstrap: str) -> None:
    write(bootstrap, *[b"x" * 1000] * 2000)
    with running("consume", "orders", bootstrap=bootstrap) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(30) == 1
        assert process.stderr.read() == b""


@pytest.mark.parametrize("buffering", ["", "1"])
def test_output_is_complete_after_a_stop_while_the_reader_of_the_pipe_does_not_read(
    buffering: str, bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", buffering)
    write(bootstrap, b"x" * 500_000)
    with running("consume", "orders", bootstrap=bootstrap, bufsize=0) as process:
        assert process.stdout is not None
        assert process.stdout.read(1) == b"x"  # the rest does not fit into the pipe, so the command waits
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        process.send_signal(signal.SIGCONT)
        assert len(process.communicate(timeout=PATIENCE)[0]) == 500_000
    assert process.returncode == 0


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_while_the_reader_of_the_pipe_does_not_read(
    number: signal.Signals, status: int, bootstrap: str
) -> None:
    write(bootstrap, b"x" * 500_000)
    with running("consume", "orders", bootstrap=bootstrap) as process:
        assert process.stdout is not None
        assert process.stdout.read(1) == b"x"  # the rest does not fit into the pipe, so the command waits
        process.send_signal(number)
        assert process.wait(PATIENCE) == status
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()


def test_lines_are_sent_as_they_come(bootstrap: str) -> None:
    with running("produce", "orders", bootstrap=bootstrap) as process:
        assert process.stdin is not None
        for number in range(3):
            process.stdin.write(b"line %d\n" % number)
            process.stdin.flush()
            assert read(bootstrap, number + 1)[-1] == b"line %d" % number
        _, err = process.communicate(b"last", timeout=PATIENCE)
    assert process.returncode == 0
    assert err.startswith(b"4 records, ")
    assert read(bootstrap, 4)[-1] == b"last"


def test_producing_ends_at_ctrl_c_and_keeps_what_was_read(bootstrap: str) -> None:
    with running("produce", "orders", bootstrap=bootstrap) as process:
        assert process.stdin is not None
        process.stdin.write(b"one\ntwo\nhal")
        process.stdin.flush()
        assert read(bootstrap, 2) == [b"one", b"two"]
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130  # before standard input is closed, which would end it, too
        out, err = process.communicate()
    assert out == b""
    assert err.startswith(b"2 records, ")
    assert read(bootstrap, 2) == [b"one", b"two"]


def test_producing_ends_at_the_first_failure_while_more_input_may_come(
    kafka_broker: BackgroundBroker, bootstrap: str
) -> None:
    kafka_broker.on(ApiKey.PRODUCE, answer=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with running("produce", "orders", bootstrap=bootstrap) as process:
        assert process.stdin is not None
        process.stdin.write(b"one\ntwo\n")
        process.stdin.flush()
        assert process.wait(PATIENCE) == 1  # standard input is still open
        _, err = process.communicate()
    assert err.startswith(b"aiokafkawire: DeliveryFailed: 2 records not delivered, the first because of TopicAuth")
    assert err.count(b"\n") == 1


@pytest.mark.slow  # the command waits for five seconds
def test_producing_that_is_interrupted_says_how_many_records_are_not_delivered(
    kafka_broker: BackgroundBroker, bootstrap: str
) -> None:
    rule = kafka_broker.on(ApiKey.PRODUCE, swallow="before")
    with running("produce", "orders", bootstrap=bootstrap) as process:
        assert process.stdin is not None
        process.stdin.write(b"one\ntwo\n")
        process.stdin.flush()
        rule.met(1, timeout=PATIENCE)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        _, err = process.communicate()
    assert b"aiokafkawire: 2 records were not acknowledged" in err


@pytest.mark.parametrize("source", ["/dev/null", "file"])
def test_standard_input_may_be_a_file_or_nothing(source: str, bootstrap: str, tmp_path: object) -> None:
    path = source if source != "file" else f"{tmp_path}/input"
    if source == "file":
        with open(path, "wb") as made:
            made.write(b"one\n")
    with open(path, "rb") as stdin, running("produce", "orders", bootstrap=bootstrap, stdin=stdin) as process:
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert err.startswith(b"1 record, " if source == "file" else b"0 records, ")


@pytest.mark.slow
@pytest.mark.parametrize(
    "argv",
    [
        ("topics", "list"),
        ("consume", "orders"),
        ("top", "--once", "--interval", "0.1"),
        ("top", "--json", "--interval", "0.1"),
        ("--help",),
        ("consume", "--help"),
    ],
)
def test_a_pipe_that_nobody_reads_ends_it_silently(argv: tuple[str, ...], bootstrap: str) -> None:
    write(bootstrap, b"one")
    reading, writing = os.pipe()
    os.close(reading)
    with running(*argv, bootstrap=bootstrap, stdout=writing) as process:
        os.close(writing)
        _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (1, b"")


@pytest.mark.parametrize("verb", ["consume", "produce"])
def test_closed_streams_are_told(verb: str, bootstrap: str) -> None:
    script = f'exec "$0" -m aiokafkawire {verb} orders {">&-" if verb == "consume" else "<&-"}'
    environment = os.environ | {"AIOKAFKAWIRE_BOOTSTRAP": bootstrap}
    done = subprocess.run(
        ["/bin/sh", "-c", script, sys.executable], env=environment, capture_output=True, timeout=PATIENCE
    )
    told = {
        "consume": (1, b"aiokafkawire: standard output is closed, so nothing can be printed\n"),
        "produce": (2, b"aiokafkawire: standard input is closed: name a file to send\n"),
    }
    assert (done.returncode, done.stderr) == told[verb]


def test_nobody_at_the_address_is_said_at_once_and_at_the_end(bootstrap: str) -> None:
    with running("topics", "list", "-b", "127.0.0.1:1", "--timeout", "0.3", bootstrap=bootstrap) as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (1, b"")
    warning, failure = err.splitlines()
    assert warning.startswith(b"aiokafkawire: cannot connect to 127.0.0.1:1: connection refused; trying again for ")
    assert failure.startswith(b"aiokafkawire: NoBrokerReachable: ")


def test_deleting_without_a_terminal_needs_yes(bootstrap: str) -> None:
    with running("topics", "delete", "orders", bootstrap=bootstrap) as process:
        out, err = process.communicate(b"y\n", timeout=PATIENCE)
    assert (process.returncode, out) == (2, b"")
    said = b"nothing is done: there is no terminal to ask on; add --yes to delete 1 topic with all records"
    assert err == b"aiokafkawire: " + said + b"\n"
