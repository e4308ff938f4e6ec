"""What those wait on who await records."""

import asyncio

import anyio

from ..types import Event
from .appending import Waiters

__all__ = ("new_event",)


def new_event() -> Event:
    """An event for the records of a batch: a hundred thousand of them may be awaited in a second."""
    loop = asyncio._get_running_loop()  # trio's tasks have none
    return anyio.Event() if loop is None else Waiters(loop)
