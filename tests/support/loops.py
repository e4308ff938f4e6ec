"""Which event loops a run takes: ``--loops`` and the marker ``every_loop``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Literal

import pytest
from support.command_line import is_selective

__all__ = ("LOOPS", "Choice", "loop_of", "split_by_loop")

LOOPS = ("asyncio", "uvloop", "trio")
"""The event loops, the one that a default run prefers first."""

Choice = Literal["default", "others", "all"]

_HELP = """
The event loops that tests run on. "default": each test on one, which is the first that it has of asyncio, uvloop and
trio; those marked every_loop on each, unless they are on Apache Kafka. "others": what "default" leaves out. "all":
both. If this option is absent, a bare `pytest` takes "default", and one with paths, -k, -m or --lf takes "all".
"""


def loop_of(item: Any) -> str | None:
    """Return the event loop in a test's name, if there is one."""
    callspec = getattr(item, "callspec", None)
    if callspec is None or "anyio_backend" not in callspec.params:
        return None
    return next((part for part in callspec.id.split("-") if part in LOOPS), None)


def split_by_loop(items: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """Split tests into those of a default run and the others, each in the order that they come in."""
    items = list(items)
    found: dict[str, set[str]] = defaultdict(set)
    for item in items:
        if (loop := loop_of(item)) is not None:
            found[_without_loop(item, loop)].add(loop)

    def is_default(item: Any) -> bool:
        loop = loop_of(item)
        if loop is None or (item.get_closest_marker("every_loop") and not item.get_closest_marker("kafka")):
            return True
        return loop == min(found[_without_loop(item, loop)], key=LOOPS.index)

    return [item for item in items if is_default(item)], [item for item in items if not is_default(item)]


def _without_loop(item: Any, loop: str) -> str:
    """Return what a test is called on every loop."""
    name, _, parameters = item.nodeid.partition("[")
    parts = parameters.removesuffix("]").split("-")
    parts.remove(loop)
    return f"{name}[{'-'.join(parts)}]"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("aiokafkawire's tests")
    group.addoption("--loops", choices=("default", "others", "all"), help=" ".join(_HELP.split()))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "every_loop: a default run takes this test on each event loop; see --loops")


@pytest.hookimpl(tryfirst=True)  # before xdist gives the options to its workers
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Choose the loops where the command line does not."""
    if config.option.loops is None:
        config.option.loops = "all" if is_selective(config) else "default"


def pytest_report_header(config: pytest.Config) -> str:
    return f"event loops: {config.option.loops} (see --loops in --help)"


# Conftests of folders come before this, -k and -m after it: what they take away changes no test's default loop.
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    choice: Choice = config.option.loops
    default, others = split_by_loop(items)
    left_out = {"default": others, "others": default, "all": []}[choice]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = others if choice == "others" else default
