"""The way of a release, and the workflows of the forge: they name what is there."""

import ast
import re
import tarfile
import tomllib
from io import BytesIO
from pathlib import Path

import pytest
from releasing.distributions import normalize_sdist, without_extensions
from releasing.prepare import changelog_problem, version
from releasing.wheels import PYTHONS

from aiokafkawire import __version__

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def nox_sessions() -> dict[str, list[str]]:
    """The sessions of the noxfile, and the versions of Python that they name."""
    found = {}
    for node in ast.parse((ROOT / "noxfile.py").read_text()).body:
        for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            if ast.unparse(decorator).startswith("nox.session"):
                assert isinstance(node, ast.FunctionDef)
                options = decorator.keywords if isinstance(decorator, ast.Call) else []
                pythons = [ast.literal_eval(option.value) for option in options if option.arg == "python"]
                found[node.name] = pythons[0] if pythons else []
    return found


def named_sessions(workflow: str) -> set[str]:
    """The sessions that a workflow runs, with the values of its matrix in their places."""
    named: set[str] = set()
    for command in re.findall(r"^.*run: nox -s (.+)$", workflow, re.MULTILINE):
        if command.startswith("${{ matrix.session }}"):
            named |= set(re.findall(r"session: (\w+)", workflow))
        else:
            named.add(command.replace("${{ matrix.python }}", "*").split()[0])
    return named


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_nox_session_that_a_workflow_names_exists(path: Path) -> None:
    workflow = path.read_text()
    known = nox_sessions()
    named = named_sessions(workflow)
    assert named
    for name in named:
        session, _, python = name.partition("-")
        assert session in known, name
        assert not python or python == "*" or python in known[session], name
    for python in re.findall(r'python: "([\d.]+)"', workflow):
        assert python in known["tests"]


def test_a_session_that_is_not_there_is_found() -> None:
    workflow = (
        "run: nox -s lint\nrun: nox -s tests-${{ matrix.python }} -- -x\nrun: nox -s ${{ matrix.session }} ${{ m }}\n"
    )
    assert named_sessions(workflow + "- {session: soak}\n") == {"lint", "tests-*", "soak"}
    assert "nonsense" not in nox_sessions()


def test_pre_commit_runs_the_versions_that_nox_runs() -> None:
    pinned = dict(one.split("==") for one in PROJECT["project"]["optional-dependencies"]["dev"] if "==" in one)
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    revisions = dict(re.findall(r"repo: \S+/(\S+)\n\s+rev: v(\S+)", hooks))
    assert revisions["ruff-pre-commit"] == pinned["ruff"]
    assert f"mypy=={pinned['mypy']}" in hooks


def test_every_python_that_has_wheels_is_classified_and_tested() -> None:
    built = {one.removeprefix("cp").removesuffix("-*") for one in PROJECT["tool"]["cibuildwheel"]["build"].split()}
    assert built == {python.replace(".", "") for python in PYTHONS}
    with_lock = [python for python in PYTHONS if not python.endswith("t")]
    assert nox_sessions()["tests"] == with_lock
    classified = [one.rpartition(" ")[2] for one in PROJECT["project"]["classifiers"] if ":: 3." in one]
    assert classified == with_lock


def test_the_version_has_one_place() -> None:
    assert version((ROOT / "aiokafkawire" / "version.py").read_text()) == __version__
    assert f"version: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    with pytest.raises(SystemExit, match=r"states no version such as 1\.2\.3"):
        version('__version__: Final = "next"\n')


@pytest.mark.parametrize(
    ("heading", "problem"),
    [
        ("## 1.2.3 (2026-01-31)\n\n- Something.\n", None),
        ("## 1.2.3 (unreleased)\n\n- Something.\n", "has no date for 1.2.3"),
        ("## 1.2.2 (2026-01-31)\n\n- Something.\n", "begins with '1.2.2 (2026-01-31)', not with 1.2.3"),
        ("## 1.2.3 (2026-01-31)\n\n## 1.2.2 (2026-01-01)\n", "says nothing of 1.2.3"),
        ("", "begins with ''"),
    ],
)
def test_a_release_needs_its_section_of_the_changelog(heading: str, problem: str | None) -> None:
    found = changelog_problem("# Changelog\n\n" + heading, "1.2.3")
    assert (found is None) if problem is None else (found is not None and problem in found)


def test_the_pure_wheel_is_built_without_the_extensions_and_as_before_otherwise() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    expected = tomllib.loads(text)
    assert expected["tool"]["setuptools"].pop("ext-modules")
    assert tomllib.loads(without_extensions(text)) == expected


def write_sdist(path: Path, names: list[str], time: int) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uid, member.mode = 1, time, time % 7, 0o600 + time % 8
            archive.addfile(member, BytesIO(b"x"))


def test_an_sdist_has_the_same_bytes_wherever_and_whenever_it_was_made(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.tar.gz", tmp_path / "theirs.tar.gz"
    write_sdist(ours, ["a/one", "a/two"], 1_000)
    write_sdist(theirs, ["a/two", "a/one"], 2_000_005)
    assert ours.read_bytes() != theirs.read_bytes()
    normalize_sdist(ours, 1_700_000_000)
    normalize_sdist(theirs, 1_700_000_000)
    assert ours.read_bytes() == theirs.read_bytes()
    with tarfile.open(ours) as archive:
        assert [(member.name, member.mtime, member.mode) for member in archive] == [
            ("a/one", 1_700_000_000, 0o644),
            ("a/two", 1_700_000_000, 0o644),
        ]
