"""The tap command prints what passes, injects faults, and ends when it is told to."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from support.patience import PATIENCE
from support.securing import make_papers

from aiokafkawire import Client
from aiokafkawire.cli.main import main
from aiokafkawire.errors import KafkaError
from aiokafkawire.testing import BackgroundBroker

BACKENDS = ["asyncio", "uvloop", "trio"]


@contextmanager
def running(
    *argv: str, program: Sequence[str] = ("-W", "error", "-m", "aiokafkawire"), stdout: Any = subprocess.PIPE
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command as a process, and the bootstrap address that it tells."""
    command = [sys.executable, *program, *argv]
    with subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            told = re.match(r"listening at (\S+) for the cluster at ", process.stderr.readline())
            assert told is not None
            yield process, told[1]
        finally:
            process.kill()


def tap(to: str, *argv: str, **options: Any) -> AbstractContextManager[tuple[subprocess.Popen[str], str]]:
    """The tap of a broker, at a free port."""
    return running("tap", "--to", to, "--listen", "127.0.0.1:0", *argv, **options)


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


@pytest.mark.slow
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
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == status
    lines = out.splitlines()
    assert any(re.search(r'  \d+ > \d  Produce v\d+  id \d+  "mine"  \d+ bytes$', line) for line in lines)
    assert any(re.search(r'  \d+ < \d  Produce v\d+  id \d+  "mine"  \d+ bytes  [\d.]+ ms$', line) for line in lines)
    assert re.search(r"broker 2 is 127\.0\.0\.1:\d+: clients reach it at port \d+", err)
    assert "Traceback" not in err


@pytest.mark.slow
def test_faults_in_plain_words_reach_the_client_and_are_counted(broker: BackgroundBroker) -> None:
    faults = ["Produce answer NOT_LEADER_OR_FOLLOWER times 2", "Produce drop after once", "Heartbeat cut"]
    argv = [part for fault in faults for part in ("--fault", fault)]
    with tap(first(broker), "--json", "--only", "Produce", *argv) as (process, bootstrap):
        anyio.run(produce, bootstrap, 2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    events = [json.loads(line) for line in out.splitlines()]
    assert {event["api_name"] for event in events} == {"Produce"}
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
        out, _ = process.communicate(timeout=PATIENCE)
    apis = {json.loads(line)["api_name"] for line in out.splitlines()}
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
        process.communicate(timeout=PATIENCE)
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


def test_brokers_that_speak_tls_are_told_to_a_tap_that_does_not(tmp_path: Path) -> None:
    papers = make_papers(tmp_path)
    with BackgroundBroker(tls=papers.server()) as broker, tap(broker.bootstrap) as (process, bootstrap):
        with pytest.raises(KafkaError):
            anyio.run(produce, bootstrap, 1, 500)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert "the broker speaks TLS, and the tap does not (tls): all bytes are passed on unread" in err


def test_it_has_the_options_of_every_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    papers = make_papers(tmp_path)
    with BackgroundBroker(tls=papers.server()) as broker:
        broker.create_topic("t")
        file = tmp_path / "client.properties"
        lines = (f"bootstrap.servers={broker.bootstrap}", "security.protocol=SSL", f"ssl.ca.location={papers.ca}")
        file.write_text("\n".join(lines))
        monkeypatch.setenv("AIOKAFKAWIRE_CONFIG", str(file))
        with running("--json", "tap", "--timeout", "20", "--listen", "127.0.0.1:0") as (process, bootstrap):
            anyio.run(produce, bootstrap)
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=PATIENCE)
        assert broker.log("t").log_end_offset == 1
    assert {json.loads(line)["event"] for line in out.splitlines()} == {"request", "response"}


def test_without_a_cluster_it_says_how_to_name_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIOKAFKAWIRE_BOOTSTRAP", raising=False)
    monkeypatch.delenv("AIOKAFKAWIRE_CONFIG", raising=False)
    assert main(["tap"]) == 2
    assert "which cluster? Use -b HOST:PORT" in capsys.readouterr().err


def test_it_needs_no_extra(broker: BackgroundBroker, tmp_path: Path) -> None:
    blocked = "import sys; sys.modules |= dict.fromkeys(('click', 'textual', 'rich')); "
    code = f"{blocked}from aiokafkawire.cli.main import main; sys.exit(main(sys.argv[1:]))"
    with running("tap", "-b", first(broker), "--listen", "127.0.0.1:0", program=("-c", code)) as (process, bootstrap):
        anyio.run(produce, bootstrap)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE)
    assert "Produce" in out


def test_two_clients_are_told_apart(broker: BackgroundBroker) -> None:
    with tap(first(broker), "--json", "--only", "Produce") as (process, bootstrap):
        for _ in range(2):
            anyio.run(produce, bootstrap)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE)
    events = [json.loads(line) for line in out.splitlines()]
    assert len({event["client"] for event in events}) == 2
    assert len({event["connection"] for event in events}) == 2
    assert broker.log("t").log_end_offset == 2


def test_a_broker_that_is_away_is_named_and_served_when_it_is_back() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        with tap(f"127.0.0.1:{port}") as (process, bootstrap):
            assert process.stderr is not None
            assert process.stderr.readline() == (
                f"aiokafkawire: cannot connect to 127.0.0.1:{port}: connection refused; "
                "the tap tries again when a client connects\n"
            )
            with pytest.raises(KafkaError):
                anyio.run(produce, bootstrap, 1, 300)
            assert f"cannot connect to 127.0.0.1:{port}: " in process.stderr.readline()
            held.close()
            with BackgroundBroker(port=port) as broker:
                broker.create_topic("t")
                anyio.run(produce, bootstrap)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=PATIENCE)
    assert "Produce" in out
    assert "Traceback" not in err


def test_a_journal_that_cannot_grow_is_told_once_and_the_traffic_goes_on(
    broker: BackgroundBroker, tmp_path: Path
) -> None:
    journal = tmp_path / "day.pcap"
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)); "
    code = f"import sys; {limited}from aiokafkawire.cli.main import main; sys.exit(main(sys.argv[1:]))"
    with tap(first(broker), "--journal", str(journal), program=("-c", code)) as (process, bootstrap):
        anyio.run(produce, bootstrap, 20)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    told = f"aiokafkawire: cannot write the journal {journal}, which ends here: [Errno 27] File too large"
    assert [line for line in err.splitlines() if line.startswith("aiokafkawire: ")] == [told]
    assert broker.log("t").log_end_offset == 20
    assert journal.stat().st_size <= 2000


def test_a_journal_that_is_a_pipe_without_a_reader_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert main(["tap", "--to", "kafka", "--listen", "127.0.0.1:0", "--journal", str(pipe)]) == 1
    assert capsys.readouterr().err.startswith(f"aiokafkawire: cannot write the journal {pipe}: ")


def test_output_that_cannot_be_written_ends_it_with_the_reason(broker: BackgroundBroker) -> None:
    with open("/dev/full", "w") as full, tap(first(broker), stdout=full) as (process, bootstrap):
        with suppress(KafkaError):
            anyio.run(produce, bootstrap, 1, 500)
        assert process.wait(30) == 1
        assert process.stderr is not None
        err = process.stderr.read()
    assert err.splitlines()[-1] == "aiokafkawire: cannot write the output: No space left on device"
    assert "Traceback" not in err


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
        (["--to", "kafka", "-X", "security.protocol=SSL", "--cafile", "/no/ca.pem"], 2, "cannot use the certificates"),
        (["--to", "kafka", "-X", "securty.protocol=SSL"], 2, "did you mean security.protocol"),
        (["--config", "/no/client.properties"], 2, "cannot read the settings in /no/client.properties"),
        (["--to", "localhost:19092"], 2, "the tap would connect to itself at localhost:19092: give a broker with --to"),
        (["--to", "kafka", "--listen", "127.0.0.1:0", "--journal", "/no/day.pcap"], 1, "cannot write the journal"),
        (
            ["--to", "kafka", "--listen", "127.0.0.1:0", "--journal", "/dev/full"],
            1,
            "cannot write the journal /dev/full",
        ),
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
