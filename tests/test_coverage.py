"""docs/coverage.md and docs/legacy.md name tests for every row, and these tests are there."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
DOCS = TESTS.parent / "docs"
PAGES = ("coverage.md", "legacy.md")
_NODE = re.compile(r"`([a-z0-9_/]+\.py)::(test_[a-z0-9_]+)`")
_HEADS = ("the guide", "the design", "the KIP", "the document", "the case")


def rows(page: str) -> list[str]:
    """The rows of every table that is about what a document says."""
    found, inside = [], False
    for line in (DOCS / page).read_text().splitlines():
        if not line.startswith("|"):
            inside = False
        elif line.strip("| ").split(" | ")[0] in _HEADS:
            inside = True
        elif inside and not line.startswith("|---"):
            found.append(line)
    return found


@cache
def names(file: str) -> frozenset[str]:
    path = TESTS / file
    if not path.exists():
        return frozenset()
    nodes = ast.walk(ast.parse(path.read_text()))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("page", PAGES)
def test_every_row_names_tests_or_says_why_there_is_no_code(page: str) -> None:
    found = rows(page)
    assert len(found) > 20
    assert [row for row in found if not _NODE.search(row) and "no code" not in row] == []


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_all_tests_that_are_named_exist(page: str) -> None:
    text = (DOCS / page).read_text()
    missing = [f"{file}::{name}" for file, name in _NODE.findall(text) if name not in names(file)]
    assert missing == []
    assert len(re.findall(r"\.py::", text)) == len(_NODE.findall(text)), "each is written as `file.py::test_name`"


def test_what_is_no_test_is_found() -> None:
    assert "test_all_tests_that_are_named_exist" in names("test_coverage.py")
    assert "test_that_nobody_wrote" not in names("test_coverage.py")
    assert names("test_nothing.py") == frozenset()
