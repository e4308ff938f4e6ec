"""The shell: help, wrong usage, completion, the extra that it needs, and the options of all verbs."""

import os
import re
import subprocess
import sys

import pytest
from support.patience import PATIENCE
from support.shell import shell_command

from aiokafkawire.cli.exit_status import explain
from aiokafkawire.cli.main import main
from aiokafkawire.cli.shell.verb_list import PLAIN_VERBS, SHELL_VERBS, VERBS
from aiokafkawire.errors import AdminError, KafkaError, UnsupportedVersion

Capture = pytest.CaptureFixture[str]


def leave(*argv: str) -> int | str | None:
    with pytest.raises(SystemExit) as left:
        main(argv)
    return left.value.code


def test_help_lists_every_verb(capsys: Capture) -> None:
    assert leave("--help") == 0
    out = capsys.readouterr().out
    assert all(re.search(rf"^  {verb} +{re.escape(about[:20])}", out, re.M) for verb, about in VERBS.items())


def test_help_imports_no_verb_and_no_library_of_one() -> None:
    script = (
        "import sys; from aiokafkawire.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in sys.modules if name.startswith(('aiokafkawire.cli.verbs.', 'rich', 'pyarrow'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("verb", SHELL_VERBS)
def test_the_help_of_every_verb_teaches_with_examples(verb: str, capsys: Capture) -> None:
    assert leave(verb, "--help") == 0
    out = capsys.readouterr().out
    assert "Examples:" in out
    assert f"aiokafkawire {verb}" in out.partition("Examples:")[2]
    assert ("--bootstrap" in out) is (verb not in ("completion", "migrate"))


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["consum"], "there is no command 'consum': did you mean consume?"),
        (["topics", "lst"], "there is no command 'lst': did you mean list?"),
        (["groups", "xyz"], "there is no command 'xyz': known: list, describe"),
        (["xyz"], "there is no command 'xyz': known: produce, consume"),
        (["consume"], "TOPIC is missing"),
        (["consume", "orders", "--lst", "3"], "--lst"),
        (["consume", "orders", "--last", "0"], "--last"),
        (["produce", "orders", "-z", "brotli"], "brotli"),
        (["topics"], "Commands:\n  list "),
        (["topics", "lst"], "lst"),
        (["consume", "orders", "--timeout", "0"], "'0' is not a number of seconds from 0.001 to 86400"),
        (["consume", "orders", "--timeout", "nan"], "'nan' is not a number of seconds"),
        (["reassign", "watch", "plan.json", "--interval", "nan"], "'nan' is not a number of seconds from 0.05"),
    ],
)
def test_wrong_usage_is_status_2_and_names_what_is_wrong(argv: list[str], told: str, capsys: Capture) -> None:
    assert leave(*argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err


def test_without_brokers_it_says_where_to_name_them(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIOKAFKAWIRE_BOOTSTRAP", raising=False)
    monkeypatch.delenv("AIOKAFKAWIRE_CONFIG", raising=False)
    assert main(["topics", "list"]) == 2
    ways = "Use -b HOST:PORT, set AIOKAFKAWIRE_BOOTSTRAP, or put bootstrap.servers into the file of --config"
    assert capsys.readouterr() == ("", f"aiokafkawire: which cluster? {ways}\n")


@pytest.mark.parametrize("verb", SHELL_VERBS)
def test_without_click_a_verb_says_what_to_install(verb: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setitem(sys.modules, "click", None)
    assert main([verb, "orders"]) == 2
    extra = verb if verb in ("top", "migrate") else "shell"
    said = f'aiokafkawire: {verb} needs click, which is not installed: pip install "aiokafkawire[{extra}]"\n'
    assert capsys.readouterr() == ("", said)


def test_without_click_the_other_verbs_work_and_help_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setitem(sys.modules, "click", None)
    assert leave("--help") == 0
    out = capsys.readouterr().out
    assert all(verb in out for verb in PLAIN_VERBS)
    assert 'pip install "aiokafkawire[shell]"' in out
    assert main([]) == 2
    assert "aiokafkawire demo" in capsys.readouterr().err
    assert main(["wire", "00"]) == 1


def test_options_of_all_verbs_may_stand_before_the_verb(capsys: Capture) -> None:
    assert main(["-b", "localhost:nowhere", "topics", "list"]) == 2
    assert "'localhost:nowhere'" in capsys.readouterr().err
    assert main(["topics", "-b", "localhost:nowhere", "list"]) == 2
    assert "'localhost:nowhere'" in capsys.readouterr().err


def test_shared_options_before_a_plain_verb_are_those_that_it_has(capsys: Capture) -> None:
    assert leave("-b", "localhost:9092", "wire", "00") == 2
    assert "wire has no option --bootstrap" in capsys.readouterr().err
    assert main(["--json", "wire", "00"]) == 1
    assert leave("-b", "localhost:9092", "demo", "--limit", "x") == 2
    assert "argument --limit" in capsys.readouterr().err


def test_an_admins_error_has_a_line_for_each_resource() -> None:
    error = AdminError(
        "deleting topics failed for 2 of 3", {"a": KafkaError("why\nnot"), "b": UnsupportedVersion("old")}, {"c": None}
    )
    lines = "deleting topics failed for 2 of 3:\n  a: KafkaError: why not\n  b: UnsupportedVersion: old"
    assert explain(ExceptionGroup("", [error])) == (1, lines)


# --- completion ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_call_the_command(shell: str, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["completion", shell]) == 0
    out = capsysbinary.readouterr().out.decode()
    assert f"_AIOKAFKAWIRE_COMPLETE={shell}_complete" in out


def completed(line: str) -> list[str]:
    """What bash is offered after this line."""
    words = line.split(" ")
    asked = {"_AIOKAFKAWIRE_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run(shell_command(), env=os.environ | asked, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return [offer.partition(",")[2] for offer in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("aiokafkawire cons", ["consume"]),
        ("aiokafkawire topics de", ["describe", "delete", "delete-records"]),
        ("aiokafkawire consume --fo", ["--follow", "--format"]),
        ("aiokafkawire produce orders --compression z", ["zstd"]),
        ("aiokafkawire demo --li", ["--limit"]),
        ("aiokafkawire tap --bo", ["--bootstrap"]),
        ("aiokafkawire top --on", ["--once"]),
    ],
)
def test_bash_is_offered_verbs_options_and_values(line: str, offered: list[str]) -> None:
    assert completed(line) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_itself_accepts_the_script(shell: str) -> None:
    try:
        script = subprocess.run(
            shell_command("completion", shell), capture_output=True, timeout=PATIENCE, check=True
        ).stdout
        done = subprocess.run([shell, "-n"], input=script, capture_output=True, timeout=PATIENCE)
    except FileNotFoundError:
        pytest.skip(f"{shell} is not installed")
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(("given", "suggested"), [("--set", None), ("--form-file", "--from-file")])
def test_only_a_similar_option_is_suggested(
    given: str, suggested: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["configs", "alter", "topic", "orders", given, "a=b"])
    assert ended.value.code == 2
    line, example, more = capsys.readouterr().err.splitlines()
    hint = "" if suggested is None else f"; did you mean {suggested}?"
    assert line == f"aiokafkawire: there is no option {given}{hint}"
    assert example.startswith("for example: aiokafkawire configs alter topic orders ")
    assert more == "help: aiokafkawire configs alter --help"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ("topics create a --partitions x", "--partitions must be a whole number from 1 to 2147483647, got 'x'"),
        ("topics create a --partitions 0", "--partitions must be a whole number from 1 to 2147483647, got '0'"),
        ("reassign watch p --interval x", "--interval is wrong: 'x' is not a number of seconds from 0.05 to 86400"),
        ("topics create a --partitions", "--partitions needs a value"),
        ("topics list --internal=yes", "--internal takes no value"),
        ("topics add-partitions a", "--partitions is missing"),
        ("configs describe", "TYPE is missing: one of topic, broker, "),
        ("log-dirs describe --by size", "--by is one of directory, topic, replica, got 'size'"),
        ("users describe", "USER is missing"),
        ("reassign status", "FILE is missing"),
        ("completion bash zsh", "unexpected argument: zsh"),
        ("reassign status /", "FILE is wrong: "),
    ],
)
def test_wrong_usage_is_said_in_plain_words(argv: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(argv.split())
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(f"aiokafkawire: {said}")


@pytest.mark.parametrize("verb", ["consume", "topics list"])
@pytest.mark.parametrize("is_installed", [True, False])
def test_records_are_received_on_uvloop_if_it_is_installed(
    verb: str, is_installed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[dict[str, bool]] = []

    def run(*_: object, backend_options: dict[str, bool]) -> int:
        started.append(backend_options)
        return 0

    monkeypatch.setattr("anyio.run", run)
    monkeypatch.setattr("aiokafkawire.cli.shell.session.find_spec", lambda _: object() if is_installed else None)
    assert main([*verb.split(), *(["orders"] if verb == "consume" else []), "-b", "localhost"]) == 0
    assert started == [{"use_uvloop": is_installed and verb == "consume"}]
