"""What tests need that not every machine has."""

from __future__ import annotations

import os

import pytest

__all__ = ("require",)


def require(missing: str | None, variable: str = "AIOKAFKAWIRE_REQUIRE_KAFKA") -> None:
    """Skip the test if something is missing; fail it where this environment variable is ``1``."""
    if missing and os.environ.get(variable, "0") not in ("", "0"):
        pytest.fail(f"{variable} is set. {missing}", pytrace=False)
    if missing:
        pytest.skip(missing)
