"""The same tests on ``aiokafkawire.aiokafka``, and on aiokafka itself where it is installed."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import pytest

OURS = "aiokafkawire.aiokafka"


class Api:
    """The modules of one of the two, by their names: ``api("errors")``; and the names of its package."""

    def __init__(self, package: str) -> None:
        self.is_ours = package == OURS
        self._package = package

    def __call__(self, module: str) -> Any:
        return importlib.import_module(f"{self._package}.{module}")

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._package), name)


@pytest.fixture(params=[OURS, "aiokafka"], ids=["ours", "theirs"])
def api(request: pytest.FixtureRequest) -> Api:
    """aiokafka's API by this project, and by aiokafka."""
    if request.param != OURS:
        theirs: ModuleType = pytest.importorskip("aiokafka.producer", reason="aiokafka is not installed")
        assert theirs.__name__ == "aiokafka.producer"
    return Api(request.param)
