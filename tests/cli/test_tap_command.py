"""The tap command prints what passes, injects faults, and ends when it is told to."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from support.securing import make_papers

from aiokafkawire import Client
from aiokafkawire.cli.main import main
from aiokafkawire.errors import KafkaError
from aiokafkawire.testing import BackgroundBroker

BACKENDS = ["asyncio", "uvloop", "trio"]


@contextmanager
def tap(to: str, *argv: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command as a process, and the bootstrap address that it tells."""
    command = [sys.executable, "-W", "error", "-m", "aiokafkawire", "tap", "--to", to, "--listen", "127.0.0.1:0", *argv]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            told = re.match(r"listening at (\S+) for the cluster at ", process.stderr.readline())
            assert told is not None
            yield process, told[1]
        finally:
            process.kill()


async def produce(bootstrap: str, count: int = 1, bootstrap_timeout_ms: int = 10_000) -> None:
    options: dict[str, Any] = {"client_id": "mine", "bootstrap_timeout_ms": bootstrap_timeout_ms}
    async with Client(bootstrap, **options) as kafka, kafka.producer() as producer:
        for _ in range(count):
            await producer.send("t", b"v")


@pytest.fixture
def broker() -> Iterator[BackgroundBroker]:
    with BackgroundBroker(2) as broker:
        broker.create_topic("t")
        yield broker


def first(broker: BackgroundBroker) -> str:
    return broker.bootstrap.partition(",")[0]


@pytest.mark.parametrize(
    ("number", "status", "backend"),
    [*((signal.SIGINT, 130, backend) for backend in BACKENDS), (signal.SIGTERM, 0, "asyncio")],
)
def test_it_prints_what_passes_until_a_signal(
    broker: BackgroundBroker, backend: str, number: signal.Signals, status: int
) -> None:
    pytest.importorskip(backend)
    with tap(first(broker), "--backend", backend) as (process, bootstrap):
        anyio.run(produce, bootstrap)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == status
    lines = out.splitlines()
    assert any(re.search(r'  \d+ > \d  Produce v\d+  id \d+  "mine"  \d+ bytes$', line) for line in lines)
    assert any(re.search(r'  \d+ < \d  Produce v\d+  id \d+  "mine"  \d+ bytes  [\d.]+ ms$', line) for line in lines)
    assert re.search(r"broker 2 is 127\.0\.0\.1:\d+: clients reach it at port \d+", err)
    assert "Traceback" not in err


def test_faults_in_plain_words_reach_the_client_and_are_counted(broker: BackgroundBroker) -> None:
    faults = ["Produce answer NOT_LEADER_OR_FOLLOWER times 2", "Produce drop after once", "Heartbeat cut"]
    argv = [part for fault in faults for part in ("--fault", fault)]
    with tap(first(broker), "--json", "--only", "Produce", *argv) as (process, bootstrap):
        anyio.run(produce, bootstrap, 2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    events = [json.loads(line) for line in out.splitlines()]
    assert {event["api"] for event in events} == {"Produce"}
    ends = [event for event in events if event["event"] == "response"]
    assert [end["errors"] for end in ends[:2]] == [{"NOT_LEADER_OR_FOLLOWER": 1}] * 2
    assert [end["fault"] for end in ends[:3]] == ["answer='NOT_LEADER_OR_FOLLOWER'"] * 2 + ["drop='after'"]
    assert ends[2]["outcome"] == "dropped"
    assert ends[-1]["outcome"] == "answered"
    assert err.splitlines()[-3:] == [
        f"fault {faults[0]!r} was applied to 2 requests",
        f"fault {faults[1]!r} was applied to 1 request",
        f"fault {faults[2]!r} was applied to 0 requests",
    ]
    assert broker.log("t").log_end_offset == 2  # idempotent, though a response was lost


def test_some_apis_can_be_left_out(broker: BackgroundBroker) -> None:
    with tap(first(broker), "--json", "--except", "Produce,Metadata") as (process, bootstrap):
        anyio.run(produce, bootstrap)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    apis = {json.loads(line)["api"] for line in out.splitlines()}
    assert "ApiVersions" in apis
    assert not apis & {"Produce", "Metadata"}


def test_wire_decodes_the_journal_while_the_tap_runs(
    broker: BackgroundBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = tmp_path / "day.pcap"
    with tap(first(broker), "--journal", str(journal)) as (process, bootstrap):
        assert process.stderr is not None
        assert f"aiokafkawire wire --file {journal}" in process.stderr.readline()
        anyio.run(produce, bootstrap)
        assert main(["wire", "--json", "--file", str(journal)]) == 0
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    frames = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"Produce", "Metadata"} <= {frame["api"] for frame in frames}


def test_a_reader_that_ends_ends_the_tap_silently(broker: BackgroundBroker) -> None:
    with tap(first(broker)) as (process, bootstrap):
        assert process.stdout is not None
        process.stdout.close()
        with suppress(KafkaError):  # the tap may end before the client is done
            anyio.run(produce, bootstrap, 1, 500)
        assert process.wait(30) == 1
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def test_brokers_may_speak_tls(tmp_path: Path) -> None:
    papers = make_papers(tmp_path)
    with BackgroundBroker(tls=papers.server()) as broker:
        broker.create_topic("t")
        with tap(broker.bootstrap, "--tls", "--cafile", papers.ca) as (_, bootstrap):
            anyio.run(produce, bootstrap)
        assert broker.log("t").log_end_offset == 1


@pytest.mark.parametrize(
    ("argv", "status", "why"),
    [
        (["--to", "kafka:port"], 2, "bootstrap server 'kafka:port': the port must be a number"),
        (["--to", "kafka", "--listen", "9092"], 2, "--listen 9092: give HOST:PORT"),
        (["--to", "kafka", "--listen", "a:70000"], 2, "--listen a:70000: give HOST:PORT"),
        (["--to", "kafka", "--only", "Prodce"], 2, "--only: unknown API 'Prodce'; did you mean Produce"),
        (["--to", "kafka", "--except", "x"], 2, "--except: unknown API 'x'"),
        (["--to", "kafka", "--only", "Fetch", "--except", "Produce"], 2, "--only and --except cannot be combined"),
        (["--to", "kafka", "--fault", "Produce"], 2, "--fault 'Produce': an action is missing"),
        (["--to", "kafka", "--cafile", "ca.pem"], 2, "--cafile, --certfile and --keyfile need --tls"),
        (["--to", "kafka", "--tls", "--keyfile", "k.pem"], 2, "--keyfile needs --certfile"),
        (["--to", "kafka", "--tls", "--cafile", "/no/ca.pem"], 2, "cannot use the certificates for TLS"),
        (["--to", "kafka", "--listen", "127.0.0.1:0", "--journal", "/no/day.pcap"], 1, "cannot write the journal"),
    ],
)
def test_arguments_that_cannot_be_are_one_line(
    argv: list[str], status: int, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tap", *argv]) == status
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("aiokafkawire: ")
    assert why in err


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_port_in_use_is_one_line(backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip(backend)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["tap", "--to", "kafka:9092", "--listen", address, "--backend", backend]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"aiokafkawire: cannot listen at {address}: ")
