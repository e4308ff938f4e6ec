"""What the command line of a test run asks for."""

from __future__ import annotations

import pytest

__all__ = ("is_selective",)


def is_selective(config: pytest.Config) -> bool:
    """Tell whether paths, -k, -m or --lf say which tests to run."""
    option = config.option
    some = config.args != config.getini("testpaths") or option.keyword or option.markexpr
    return bool(some or getattr(option, "lf", False))
