"""What tests need that not every machine has."""

from __future__ import annotations

import os

import pytest

__all__ = ("require",)


def require(missing: str | None) -> None:
    """Skip the test if something is missing; fail it where ``AIOKAFKAWIRE_REQUIRE_KAFKA=1`` is in the environment."""
    if missing and os.environ.get("AIOKAFKAWIRE_REQUIRE_KAFKA", "0") not in ("", "0"):
        pytest.fail(f"AIOKAFKAWIRE_REQUIRE_KAFKA is set. {missing}", pytrace=False)
    if missing:
        pytest.skip(missing)
