"""What a run of the tests leaves out unless the command line names it, so that a bare ``pytest`` takes minutes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from support.command_line import is_selective

__all__ = ("LONG", "NOT_QUICK")

LONG = ("brokers", "faults", "matrix", "networks", "soak", "spark", "thorough")
"""Markers of what runs only where -m names it."""
NOT_QUICK = ("kafka", "slow")
"""Markers of what a bare ``pytest`` leaves out; paths, -k and -m select it like all else."""

_COUNTS = pytest.StashKey[dict[str, int]]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes a second or more; a bare `pytest` leaves it to `nox -s slow`")


@pytest.hookimpl(trylast=True)  # --loops takes its part first, so that each test counts once
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _leave_out(config, items, [marker for marker in LONG if marker not in config.option.markexpr])
    counts = {} if is_selective(config) else _leave_out(config, items, NOT_QUICK)
    config.stash[_COUNTS] = counts
    if hasattr(config, "workeroutput"):  # with xdist another process writes the summary
        config.workeroutput["left_out"] = counts


def _leave_out(config: pytest.Config, items: list[pytest.Item], markers: Sequence[str]) -> dict[str, int]:
    """Deselect the tests with one of these markers; return how many there are, by the first marker that each has."""
    found = {item: next((marker for marker in markers if item.get_closest_marker(marker)), None) for item in items}
    left_out = [item for item in items if found[item]]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not found[item]]
    return dict(Counter(marker for marker in found.values() if marker))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    output = getattr(node, "workeroutput", {})  # a worker that crashed has none
    node.config.stash[_COUNTS] = output.get("left_out", {})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if counts := config.stash.get(_COUNTS, {}):
        told = ", ".join(f"{count:,} {marker} (pytest -m {marker})" for marker, count in counts.items())
        terminalreporter.write_line(f"left out of this quick run, and run by `nox -s slow`: {told}", yellow=True)
