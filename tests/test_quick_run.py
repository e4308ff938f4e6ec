"""What a bare run of the tests leaves out."""

from __future__ import annotations

import pytest
from support import quick_run

pytest_plugins = ["pytester"]

TESTS = """
    import pytest

    def test_quick():
        pass

    @pytest.mark.slow
    def test_slow():
        pass

    @pytest.mark.slow
    @pytest.mark.kafka
    def test_on_apache_kafka():
        pass
"""
MARKERS = "[pytest]\ntestpaths = tests\nmarkers = kafka: on Apache Kafka"


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeini(MARKERS)
    pytester.makepyfile(test_it=TESTS).rename(pytester.mkdir("tests") / "test_it.py")
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> tuple[set[str], str]:
    """Run what the command line selects; return the tests' names, and what the summary says of the others."""
    result = project.runpytest_inprocess(
        "-v", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:asyncio", *arguments, plugins=[quick_run]
    )
    assert result.ret == pytest.ExitCode.OK
    names = {line.partition("::")[2].split()[0] for line in result.outlines if " PASSED " in line}
    return names, next((line for line in result.outlines if line.startswith("left out")), "")


def test_a_bare_run_is_quick_and_tells_what_it_leaves_out(project: pytest.Pytester) -> None:
    names, told = run(project)
    assert names == {"test_quick"}
    assert told.endswith("1 slow (pytest -m slow), 1 kafka (pytest -m kafka)")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["tests/test_it.py"], {"test_quick", "test_slow", "test_on_apache_kafka"}),
        (["-k", "test_slow"], {"test_slow"}),
        (["-m", "slow or kafka"], {"test_slow", "test_on_apache_kafka"}),
        (["-m", "not slow"], {"test_quick"}),
    ],
)
def test_what_is_selected_runs(project: pytest.Pytester, arguments: list[str], expected: set[str]) -> None:
    assert run(project, *arguments) == (expected, "")
