"""``aiokafkawire migrate`` on code bases: its lines and JSON, what it skips, its status, and what it writes."""

from __future__ import annotations

import errno
import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.vocabulary import unknown_keys

from aiokafkawire.cli.main import main
from aiokafkawire.cli.migrate.source_files import MAX_BYTES

Capture = pytest.CaptureFixture[str]

FILES = {
    "pyproject.toml": '[project]\ndependencies = ["aiokafka>=0.12"]\n',
    "requirements-dev.txt": "kafka-python  # for tests\n",
    "app/__init__.py": "",
    "app/send.py": (
        "from aiokafka import AIOKafkaProducer\n\n\n"
        "async def send(producer: AIOKafkaProducer) -> None:\n"
        "    await producer.send('t', b'v')\n"
    ),
    "app/old.py": (
        "from confluent_kafka import Producer\n\nproducer = Producer({'bootstrap.servers': 'a', 'stats_cb': print})\n"
        "producer.poll(0)\nproducer.poll(0)\nproducer.set_sasl_credentials(1, 2)\n"
    ),
    "app/other.py": "import json\n",
    ".venv/lib/x.py": "import aiokafka\n",
    "env/pyvenv.cfg": "",
    "env/x.py": "import aiokafka\n",
    "node_modules/x.py": "import aiokafka\n",
    "app/__pycache__/x.py": "import aiokafka\n",
    "README.md": "aiokafka\n",
}


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(capsys: Capture, *argv: str, status: int = 0) -> list[dict[str, Any]]:
    assert main(["migrate", *argv, "--json"]) == status
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_each_place_has_a_line(code: Path, capsys: Capture) -> None:
    assert main(["migrate", "."]) == 0
    out, err = capsys.readouterr()
    places = [" ".join(line.split(": ")[:3]) for line in out.splitlines()]
    assert places == [
        "pyproject.toml:2:18 look aiokafka",
        "requirements-dev.txt:1:1 look kafka-python",
        "app/old.py:1:29 look confluent_kafka.Producer",
        "app/old.py:3:48 look confluent_kafka['stats_cb']",
        "app/old.py:4:10 look confluent_kafka.Producer.poll",
        "app/old.py:5:10 look confluent_kafka.Producer.poll",
        "app/old.py:6:10 no-counterpart confluent_kafka.Producer.set_sasl_credentials",
        "app/send.py:1:22 drop-in aiokafka.AIOKafkaProducer",
    ]
    assert "docs/" not in out + err
    assert out.endswith(": import it from `aiokafkawire.aiokafka`, which does the same\n")
    assert err == (
        "6 files read, 4 of them with other clients: 6 places to look at, 1 that the drop-in changes, "
        "1 without a counterpart\n"
        "see 'Moving from another client' of the documentation, sections 'From aiokafka', 'From confluent-kafka' and "
        "'From kafka-python'; --json prints what stands for drop-in names in the client's own API, as own_api\n"
    )


def test_the_first_line_about_a_name_says_what_differs(code: Path, capsys: Capture) -> None:
    (code / "app/old.py").write_text("from confluent_kafka import Producer\n" * 2)
    assert main(["migrate", "app/old.py"]) == 0
    out, err = capsys.readouterr()
    first, second = (line.partition(": look: ")[2] for line in out.splitlines())
    assert first.startswith(f"{second}; ")
    assert err.endswith("\nsee 'Moving from another client' of the documentation, section 'From confluent-kafka'\n")


def test_where_nothing_is_found_no_page_is_named(code: Path, capsys: Capture) -> None:
    assert main(["migrate", "app/other.py"]) == 0
    assert capsys.readouterr() == ("", "1 file read, 0 of them with other clients\n")


def test_json_has_the_keys_of_the_vocabulary(code: Path, capsys: Capture) -> None:
    found = rows(capsys, "app")
    assert len(found) == 6
    assert [unknown_keys(row) for row in found] == [set()] * 6
    assert found[-1]["library"] == "aiokafka"
    assert found[-1]["section"] == "From aiokafka"
    assert found[-1]["advice"].startswith("import it from `aiokafkawire.aiokafka`")


def test_what_is_named_is_read_once_even_where_it_would_be_skipped(code: Path, capsys: Capture) -> None:
    assert [row["path"] for row in rows(capsys, ".venv", ".venv/lib/x.py", "node_modules/x.py")] == [
        ".venv/lib/x.py",
        "node_modules/x.py",
    ]


def test_check_has_a_status_of_its_own(code: Path, capsys: Capture) -> None:
    assert main(["migrate", "app", "--check"]) == 3
    assert main(["migrate", "app/other.py", "--check"]) == 0
    assert "1 file read, 0 of them with other clients\n" in capsys.readouterr().err


def test_files_that_are_no_python_are_skipped_with_a_line(code: Path, capsys: Capture) -> None:
    (code / "app/a.py").write_text("from kafka import (\n")
    (code / "app/b.py").write_bytes(b"import kafka  # \xff\n")
    (code / "app/c.py").write_bytes(b"import kafka\n" + b"#" * MAX_BYTES)
    (code / "app/d.py").write_text("# coding: nonsense\nimport kafka\n")
    (code / "app/e.py").symlink_to("e.py")
    assert len(rows(capsys, "app", status=1)) == 6
    assert main(["migrate", "app"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(" since ")[0] for line in said[:4]] == [f"app/{name}.py: skipped," for name in "abcd"]
    assert said[2].endswith("since it is larger than 4 MB")
    assert said[4].endswith("; 4 files could not be read")


def test_a_file_without_rights_is_skipped(code: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    opens = Path.open

    def refuse(path: Path, *args: Any) -> Any:
        if path.name == "send.py":
            raise PermissionError(errno.EACCES, "Permission denied")
        return opens(path, *args)

    monkeypatch.setattr(Path, "open", refuse)
    assert main(["migrate", "app"]) == 1
    assert "app/send.py: skipped, since Permission denied\n" in capsys.readouterr().err


def test_a_folder_without_rights_is_skipped_with_a_line(
    code: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def refusing(function: Any, what: str) -> Any:
        def refuse(path: Any, *args: Any, **options: Any) -> Any:
            if str(path).endswith(what):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return function(path, *args, **options)

        return refuse

    monkeypatch.setattr("os.scandir", refusing(os.scandir, "app"))
    monkeypatch.setattr("os.stat", refusing(os.stat, "app/pyvenv.cfg"))
    for options in ([], ["--check"], ["--write", "--yes"]):
        assert main(["migrate", ".", *options]) == 1
        err = capsys.readouterr().err
        assert "app: skipped, since Permission denied\n" in err
        assert "; 1 file could not be read\n" in err


@pytest.mark.parametrize("nested", ["(" * 5000 + ")" * 5000, "[" * 190 + "]" * 190, "a" + ".b" * 3000])
def test_a_deeply_nested_file_is_skipped(nested: str, code: Path, capsys: Capture) -> None:
    (code / "app/deep.py").write_text(f"import kafka\nx = {nested}\n")
    assert main(["migrate", "app/deep.py"]) == 1
    assert "app/deep.py: skipped, since it" in capsys.readouterr().err


def test_a_path_that_is_not_there_is_wrong_usage(code: Path, capsys: Capture) -> None:
    assert main(["migrate", "app", "nowhere"]) == 2
    assert capsys.readouterr() == ("", "aiokafkawire: nowhere does not exist\n")


def test_control_characters_of_a_file_name_do_not_reach_the_terminal(code: Path, capsys: Capture) -> None:
    (code / "app/\x1b[31m.py").write_text("import kafka\n")
    assert main(["migrate", "app"]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_a_package_of_the_code_base_with_the_name_of_a_library_is_not_taken_for_it(code: Path, capsys: Capture) -> None:
    (code / "kafka").mkdir()
    (code / "kafka/__init__.py").write_text("")
    (code / "app/uses.py").write_text("from kafka import KafkaProducer, handlers\n")
    assert [row["name"] for row in rows(capsys, ".") if row["path"] == "app/uses.py"] == ["kafka.KafkaProducer"]
    assert len([row for row in rows(capsys, "app") if row["path"] == "app/uses.py"]) == 2


def test_write_shows_the_diff_and_changes_nothing_without_consent(code: Path, capsys: Capture) -> None:
    assert main(["migrate", ".", "--write"]) == 2
    out, err = capsys.readouterr()
    assert out == (
        "--- app/send.py\n+++ app/send.py\n@@ -1,4 +1,4 @@\n"
        "-from aiokafka import AIOKafkaProducer\n+from aiokafkawire.aiokafka import AIOKafkaProducer\n \n \n"
        " async def send(producer: AIOKafkaProducer) -> None:\n"
    )
    assert err.endswith("nothing is done: there is no terminal to ask on; add --yes to change 1 file\n")
    assert (code / "app/send.py").read_text() == FILES["app/send.py"]


def test_write_changes_the_imports_and_nothing_else(code: Path, capsys: Capture) -> None:
    (code / "app/send.py").chmod(0o755)
    assert main(["migrate", ".", "--write", "--yes"]) == 0
    out, err = capsys.readouterr()
    assert "+from aiokafkawire.aiokafka import AIOKafkaProducer\n" in out
    assert err == "1 file changed; 7 places left to look at: run the command again without --write\n"
    changed = {name for name, text in FILES.items() if (code / name).read_text() != text}
    assert changed == {"app/send.py"}
    assert (code / "app/send.py").stat().st_mode & 0o777 == 0o755
    assert main(["migrate", ".", "--write", "--yes"]) == 0
    assert capsys.readouterr().out == ""


def test_write_counts_what_the_list_has_afterwards(code: Path, capsys: Capture) -> None:
    (code / "app/send.py").write_text(
        "from aiokafka import AIOKafkaProducer\nfrom aiokafka.conn import create_conn\n__import__('aiokafka')\n"
    )
    assert main(["migrate", "app/send.py", "--write", "--yes"]) == 0
    said = "1 file changed; 2 places left to look at: run the command again without --write\n"
    assert capsys.readouterr().err == said
    assert [row["line"] for row in rows(capsys, "app/send.py")] == [2, 3]


def test_write_says_that_nothing_is_left(code: Path, capsys: Capture) -> None:
    assert main(["migrate", "app/send.py", "--write", "--yes"]) == 0
    assert capsys.readouterr().err == "1 file changed; no place is left to look at\n"
    assert rows(capsys, "app/send.py", "--check") == []
    assert main(["migrate", "app/send.py", "--write", "--yes"]) == 0
    said = "no import of aiokafka can be changed by itself; no place is left to look at\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("more", "ending"),
    [
        ("", "1 place left to look at: the 1 above"),
        (
            "__import__('aiokafka')\n",
            "2 places left to look at: the 1 above, and 1 that the command lists without --write",
        ),
    ],
)
def test_write_prints_the_places_that_the_list_loses(code: Path, more: str, ending: str, capsys: Capture) -> None:
    (code / "app/send.py").write_text(
        f"from aiokafka import AIOKafkaProducer\n{more}producer = AIOKafkaProducer()\nproducer._sender\n"
    )
    assert main(["migrate", "app/send.py", "--write", "--yes"]) == 0
    line, last = capsys.readouterr().err.splitlines()
    assert "look: aiokafka.AIOKafkaProducer._sender: it is private" in line
    assert last == f"1 file changed; {ending}"
    assert "aiokafka.AIOKafkaProducer._sender" not in [row["name"] for row in rows(capsys, "app/send.py")]


def test_a_file_that_cannot_be_written_stays_and_the_others_are_changed(
    code: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    source = FILES["app/send.py"]
    (code / "app/first.py").write_text(source)
    replace = Path.replace

    def full(file: Path, target: Path) -> Path:
        if target.name == "first.py":
            raise OSError(28, "No space left on device")
        return replace(file, target)

    monkeypatch.setattr(Path, "replace", full)
    assert main(["migrate", "app", "--write", "--yes"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "app/first.py: it stays as it is: No space left on device"
    assert said[-1].startswith("1 file changed; ")
    assert (code / "app/first.py").read_text() == source
    assert (code / "app/send.py").read_text() != source
    assert [path for path in (code / "app").iterdir() if path.name.startswith(".")] == []


def test_a_file_that_changes_meanwhile_stays_and_the_others_are_changed(
    code: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (code / "app/first.py").write_text(FILES["app/send.py"])
    edited = "import aiokafka  # edited\n"

    def confirm(*args: object, **options: object) -> None:
        (code / "app/first.py").write_text(edited)

    monkeypatch.setattr("aiokafkawire.cli.verbs.migrate.confirm", confirm)
    assert main(["migrate", "app", "--write"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "app/first.py: it stays as it is: it has changed meanwhile; run the command again"
    assert (code / "app/first.py").read_text() == edited
    assert (code / "app/send.py").read_text() != FILES["app/send.py"]


@pytest.mark.parametrize("changes", [True, False])
def test_a_file_that_cannot_be_read_has_a_line_and_status_1_with_every_option(
    code: Path, changes: bool, capsys: Capture
) -> None:
    (code / "app/bad.py").write_text("import aiokafka\nx = (\n")
    if not changes:
        (code / "app/send.py").unlink()
    assert main(["migrate", "app", "--check"]) == 1
    assert main(["migrate", "app"]) == 1
    capsys.readouterr()
    assert main(["migrate", "app", "--write", "--yes"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "app/bad.py: skipped, since it cannot be parsed as Python: line 2: '(' was never closed"
    done = "1 file changed" if changes else "no import of aiokafka can be changed by itself"
    left = "5 places left to look at: run the command again without --write"
    assert said[1:] == [f"{done}; {left}; 1 file could not be read"]


def test_a_file_without_a_last_newline_has_a_diff_that_says_so(code: Path, capsys: Capture) -> None:
    (code / "app/send.py").write_text("import aiokafka")
    assert main(["migrate", "app", "--write", "--yes"]) == 0
    assert capsys.readouterr().out.count("\\ No newline at end of file\n") == 2


@pytest.mark.parametrize("option", ["--json", "--check"])
def test_write_is_for_people(code: Path, option: str, capsys: Capture) -> None:
    assert main(["migrate", ".", "--write", option]) == 2
    assert capsys.readouterr().err == "aiokafkawire: --write prints a diff: leave --json and --check out\n"


def test_without_libcst_it_says_what_to_install(code: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "aiokafkawire.cli.verbs.migrate.find_spec", lambda name: None if name == "libcst" else find(name)
    )
    assert main(["migrate", "."]) == 2
    needs = 'migrate needs libcst, which is not installed: pip install "aiokafkawire[migrate]"'
    assert capsys.readouterr() == ("", f"aiokafkawire: {needs}\n")
