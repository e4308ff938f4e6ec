"""Calls of the admin that fail for some of several resources."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from aiokafkawire.errors import AdminError

__all__ = ("failing",)


@contextmanager
def failing(told: str) -> Iterator[pytest.ExceptionInfo[AdminError]]:
    """Expect an AdminError whose whole text, with the errors of the resources, has this pattern."""
    with pytest.raises(AdminError) as failed:
        yield failed
    assert re.search(told, str(failed.value)), str(failed.value)
