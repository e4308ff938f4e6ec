"""A clock that jumps (trio's), for tests of limits that are to be met however busy the machine is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

__all__ = ("VIRTUAL", "until", "virtual_backend", "virtual_time")

VIRTUAL = "virtual"


def virtual_backend() -> tuple[str, dict[str, Any]]:
    """A loop whose clock begins anew."""
    testing = pytest.importorskip("trio.testing")
    return "trio", {"clock": testing.MockClock(autojump_threshold=0)}


virtual_time = pytest.mark.parametrize("anyio_backend", [VIRTUAL], indirect=True)
"""The test runs on trio, and whenever all of its tasks wait the time is what the first of them waits for."""


async def until(reached: Callable[[], bool]) -> None:
    """Wait for up to 100 s of the clock's time until this is so."""
    for _ in range(1_000):
        if reached():
            return
        await anyio.sleep(0.1)
    raise AssertionError("waited in vain")
