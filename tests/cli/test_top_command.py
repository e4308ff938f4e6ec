"""``aiokafkawire top`` on the command line: plain tables, JSON, and what it says when it cannot start."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import anyio
import pytest
from cli.test_top_rows import sample
from support.patience import PATIENCE

from aiokafkawire import TopicPartition, blocking
from aiokafkawire.cli.main import main
from aiokafkawire.cli.top import command
from aiokafkawire.cli.top.options import TopOptions
from aiokafkawire.cli.top.sample import Sample
from aiokafkawire.cli.top.sampler import Sampler
from aiokafkawire.errors import RequestTimeout

if TYPE_CHECKING:
    from aiokafkawire.testing.background import BackgroundBroker

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def broker(kafka_broker: BackgroundBroker) -> BackgroundBroker:
    """A broker with two topics and a group."""
    kafka_broker.create_topic("orders", partitions=2)
    kafka_broker.create_topic("log")
    with blocking.Client(kafka_broker.bootstrap) as kafka:
        with kafka.producer() as producer:
            producer.send_many("orders", [b"x"] * 5, partition=0)
        kafka.admin.alter_consumer_group_offsets("billing", {TopicPartition("orders", 0): 2})
    return kafka_broker


def test_once_prints_plain_tables(broker: BackgroundBroker, capsys: Capture) -> None:
    assert main(["top", "-b", broker.bootstrap, "--once", "--interval", "0.1"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    brokers, topics, groups = out.split("\n\n")
    assert brokers.splitlines()[1].split() == ["1*", broker.bootstrap, "-", "53", "0", "53/53", "0"]
    assert [line.split() for line in topics.splitlines()[1:]] == [
        ["__consumer_offsets", "0", "50", "0", "0"],
        ["log", "0", "1", "0", "0"],
        ["orders", "0", "2", "0", "0"],
    ]
    assert groups.splitlines()[1].split()[:5] == ["billing", "Empty", "classic", "0", "3"]


def test_once_and_json_print_one_object(broker: BackgroundBroker, capsys: Capture) -> None:
    argv = [
        "top",
        "-b",
        broker.bootstrap,
        "--once",
        "--json",
        "--interval",
        "0.1",
        "--topics",
        "ord.*",
        "--groups",
        "none",
    ]
    assert main(argv) == 0
    (line,) = capsys.readouterr().out.splitlines()
    found = json.loads(line)
    assert [topic["topic"] for topic in found["topics"]] == ["orders"]
    assert found["groups"] == []
    assert found["seconds"] >= 0.1


def test_the_cluster_may_be_in_the_environment_or_in_a_file(
    broker: BackgroundBroker, capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={broker.bootstrap}\nclient.id=watcher\n")
    assert main(["top", "--once", "--interval", "0.1", "--config", str(file)]) == 0
    monkeypatch.setenv("AIOKAFKAWIRE_BOOTSTRAP", broker.bootstrap)
    assert main(["top", "--once", "--interval", "0.1"]) == 0
    assert capsys.readouterr().out.count("billing") == 2
    assert "watcher" in {request.client_id for request in broker.requests.of()}


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--topics", "("], "--topics is not a regular expression: '(': "),
        (["--groups", "["], "--groups is not a regular expression: '[': "),
        (
            ["--groups", "a{99999999999}"],
            "--groups is not a regular expression: 'a{99999999999}': the repetition number",
        ),
    ],
)
def test_a_wrong_pattern_is_named(argv: list[str], message: str, capsys: Capture) -> None:
    assert main(["top", "-b", "localhost:9", "--once", *argv]) == 2
    assert message in capsys.readouterr().err


def test_without_a_cluster_it_says_how_to_name_one(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIOKAFKAWIRE_BOOTSTRAP", raising=False)
    monkeypatch.delenv("AIOKAFKAWIRE_CONFIG", raising=False)
    assert main(["top", "--once"]) == 2
    assert "which cluster? Use -b HOST:PORT" in capsys.readouterr().err


def test_it_has_the_options_of_every_command(
    broker: BackgroundBroker, capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={broker.bootstrap}\nclient.id=of-the-file\n")
    monkeypatch.delenv("AIOKAFKAWIRE_BOOTSTRAP", raising=False)
    monkeypatch.setenv("AIOKAFKAWIRE_CONFIG", str(file))
    assert main(["--json", "top", "-X", "client.id=set", "--once", "--interval", "0.1"]) == 0
    assert json.loads(capsys.readouterr().out)["topics"]
    assert {request.client_id for request in broker.requests.of()} >= {"set"}
    assert "of-the-file" not in {request.client_id for request in broker.requests.of()}
    assert main(["top", "--once", "-X", "lingr.ms=5"]) == 2
    assert "did you mean linger.ms" in capsys.readouterr().err


@pytest.mark.parametrize("interval", ["0", "0.01", "nan", "4000", "often"])
def test_a_wrong_interval_is_named(interval: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as left:
        main(["top", "-b", "localhost:9", "--interval", interval])
    assert left.value.code == 2
    assert "is not a number of seconds from 0.1 to 3600" in capsys.readouterr().err


def test_without_textual_it_says_what_to_install(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textual", None)
    assert main(["top", "-b", "localhost:9"]) == 2
    assert 'pip install "aiokafkawire[top]"' in capsys.readouterr().err


def test_once_needs_no_textual(broker: BackgroundBroker, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textual", None)
    monkeypatch.setitem(sys.modules, "rich", None)
    assert main(["top", "-b", broker.bootstrap, "--once", "--interval", "0.1"]) == 0


def test_without_a_terminal_it_says_what_to_do(capsys: Capture) -> None:
    assert main(["top", "-b", "localhost:9"]) == 2
    assert "the live view needs a terminal: use --once or --json" in capsys.readouterr().err


def test_a_cluster_that_cannot_be_reached_is_said_at_once_and_at_the_end(capsys: Capture) -> None:
    assert main(["top", "-b", "localhost:9", "--once", "--timeout", "0.2"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    warning, failure = err.splitlines()
    assert warning.startswith("aiokafkawire: cannot connect to localhost:9: connection refused; trying again for 0.2 s")
    assert failure.startswith("aiokafkawire: NoBrokerReachable: ")


class Done(Exception):
    """The end of what a sampler gives."""


class Samples:
    """Gives samples, or raises errors, one after the other."""

    def __init__(self, *given: Sample | Exception) -> None:
        self._left = [*given, Done()]

    async def sample(self) -> Sample:
        one = self._left.pop(0)
        if isinstance(one, Exception):
            raise one
        return one


def printed(*given: Sample | Exception, once: bool) -> None:
    options = TopOptions(interval=0.001, once=once, json=True)
    anyio.run(command._print, cast("Sampler", Samples(*given)), options)


def test_lines_of_json_go_on_after_an_error(capsys: Capture) -> None:
    with pytest.raises(Done):
        printed(sample(1.0, {}), sample(2.0, {}), RequestTimeout("no metadata"), sample(4.0, {}), once=False)
    out, err = capsys.readouterr()
    assert [json.loads(line)["seconds"] for line in out.splitlines()] == [1.0, 2.0]
    assert err == "aiokafkawire: trying again: RequestTimeout: no metadata\n"


def test_lines_of_json_begin_after_an_error_of_the_first_sample(capsys: Capture) -> None:
    with pytest.raises(Done):
        printed(RequestTimeout("no metadata"), sample(1.0, {}), sample(2.0, {}), once=False)
    out, err = capsys.readouterr()
    assert [json.loads(line)["seconds"] for line in out.splitlines()] == [1.0]
    assert err == "aiokafkawire: trying again: RequestTimeout: no metadata\n"


def test_after_a_sample_that_took_long_the_next_one_waits_as_long(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    took, waits = iter([0.0, 3.0, 0.0, 0.0001]), list[float]()

    class Slow(Samples):
        async def sample(self) -> Sample:
            clock[0] += next(took)
            return await super().sample()

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    clock = [100.0]
    monkeypatch.setattr(anyio, "current_time", lambda: clock[0])
    monkeypatch.setattr(anyio, "sleep", wait)
    options = TopOptions(interval=0.001, json=True)
    slow = Slow(sample(1.0, {}), sample(2.0, {}), RequestTimeout("no metadata"))
    with pytest.raises(Done):
        anyio.run(command._print, cast("Sampler", slow), options)
    assert waits == [0.001, 3.0, 0.001]


def test_once_ends_with_an_error(capsys: Capture) -> None:
    with pytest.raises(RequestTimeout):
        printed(sample(1.0, {}), RequestTimeout("no metadata"), once=True)
    assert capsys.readouterr().out == ""


def test_help_imports_neither_the_view_nor_textual() -> None:
    code = (
        "import sys\n"
        "from aiokafkawire.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted(name for name in sys.modules if name.startswith(('textual', 'rich', 'aiokafkawire.cli.top'))))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "watch brokers, topics and groups" in done.stdout
