"""The tests that take minutes run only where ``-m`` names them: ``pytest -m faults``."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "faults: kills brokers of a real cluster for minutes; run by `nox -s faults`")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "faults" in config.getoption("markexpr"):
        return
    long = [item for item in items if item.get_closest_marker("faults")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]
