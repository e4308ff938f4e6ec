"""What docs/spark.md says of options and tests: each option has its place there, and all tests that are named exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from aiokafkawire.spark import options

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "spark.md").read_text()
NAMED = re.compile(r"`((?:tests/spark/)?test_\w+\.py|test_\w+)`")
READING = PAGE.partition("\n## Reading\n")[2].partition("\n## ")[0]
OPTIONS, TESTED = READING.split("\n### Tests of each option\n")
"""The table of options, and that of their tests."""


def rows(text: str) -> list[list[str]]:
    """The cells of the table in a text, without its head."""
    return [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")][1:]


def said(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", cell))


def named(text: str) -> list[tuple[str, str]]:
    """Each file that is named, and each function with the file before it."""
    found, file = [], ""
    for name in NAMED.findall(text):
        if name.endswith(".py"):
            file = name.rpartition("/")[2]
        found.append((file, "" if name.endswith(".py") else name))
    return found


@cache
def functions(file: str) -> frozenset[str]:
    """The functions of a module of tests; FileNotFoundError if there is none."""
    body = ast.parse((Path(__file__).parent / file).read_text()).body
    return frozenset(node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize(("file", "function"), sorted(set(named(PAGE))))
def test_a_test_that_is_named_is_there(file: str, function: str) -> None:
    assert functions(file) >= ({function} if function else set())


@pytest.mark.parametrize("row", rows(TESTED), ids=lambda row: row[0])
def test_every_row_of_options_names_its_tests(row: list[str]) -> None:
    assert len(row) == 2
    assert any(function for _, function in named(row[1]))


def test_every_option_that_is_read_is_explained_and_is_tested_and_no_other_is() -> None:
    of_kafka = {"kafka.*", "kafka.group.id", "kafka.isolation.level", "topic"}
    explained = set().union(*(said(row[0]) for row in rows(OPTIONS.partition("\n### ")[0])))
    tested = set().union(*(said(row[0]) for row in rows(TESTED)))
    read = {re.sub(r"fetchOffset\..*", "fetchOffset.*", name) for name in options._READING}
    assert explained - of_kafka == read
    assert tested - of_kafka == read
    assert of_kafka <= explained | tested


def test_what_is_wrong_is_found() -> None:
    assert named("`test_options.py`: `test_a`; `tests/spark/test_marks.py`") == [
        ("test_options.py", ""),
        ("test_options.py", "test_a"),
        ("test_marks.py", ""),
    ]
    assert "test_that_nobody_wrote" not in functions("test_options.py")
    with pytest.raises(FileNotFoundError):
        functions("test_nothing.py")
