"""The tests that docs/security.md and docs/security-review.md name are there; threats and requirements have them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from support.rows import every_row

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "security.md").read_text()
REVIEW = (ROOT / "docs" / "security-review.md").read_text()
SHORT = {
    "R": "test_real_kafka.py",
    "A": "test_real_access.py",
    "K": "test_real_kerberos.py",
    "O": "tests/kafka/test_release_logins.py",
}
NAMED = re.compile(r"`((?:tests/(?:\w+/)*)?test_\w+\.py|[A-Z])(?:::(\w+))?`")
THREATS = [line for line in PAGE.partition("## Threats and defences")[2].splitlines() if line.startswith("| ")][1:]
REQUIREMENTS = [
    line for line in REVIEW.splitlines() if line.startswith("| ") and not line.startswith("| requirement |")
]
WITHOUT_A_TEST = re.compile(r"(?:Not met|Does not apply)\b.*\.|.*\(measured once\)")
assert THREATS
assert len(REQUIREMENTS) > 50


def named(text: str) -> set[tuple[str, str]]:
    """The files and the functions in a text."""
    return {(SHORT.get(file, file), function) for file, function in NAMED.findall(text)}


@every_row(("file", "function"), sorted(named(PAGE) | named(REVIEW)))
def test_a_test_that_is_named_is_there(file: str, function: str) -> None:
    path = ROOT / file if "/" in file else Path(__file__).parent / file
    functions = {getattr(node, "name", "") for node in ast.parse(path.read_text()).body}
    assert not function or function in functions


@pytest.mark.parametrize("threat", THREATS)
def test_every_threat_names_its_tests(threat: str) -> None:
    assert len(threat.split(" | ")) == 4
    tests = named(threat.rpartition(" | ")[2])
    assert tests
    assert all(function for _, function in tests)


@pytest.mark.parametrize("requirement", REQUIREMENTS)
def test_every_requirement_names_its_tests_or_says_that_it_has_none(requirement: str) -> None:
    _, answer, tests = (cell.strip() for cell in requirement.strip("|").split("|"))
    if WITHOUT_A_TEST.fullmatch(answer):
        assert not tests
    else:
        assert named(tests)
        assert all(function for _, function in named(tests))
