"""A clock that jumps (trio's), for tests of limits that are to be met however busy the machine is."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

__all__ = ("virtual_time",)


def _backend() -> Any:
    if find_spec("trio") is None:
        return pytest.param(None, marks=pytest.mark.skip(reason="trio is not installed"))
    from trio.testing import MockClock

    return pytest.param(("trio", {"clock": MockClock(autojump_threshold=0)}), id="virtual")


virtual_time = pytest.mark.parametrize("anyio_backend", [_backend()])
"""The test runs on trio, and whenever all of its tasks wait the time is what the first of them waits for."""
