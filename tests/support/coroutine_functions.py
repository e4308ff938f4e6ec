"""Whether mocks take a function for a coroutine function."""

import asyncio
import inspect
import sys
from typing import Any

__all__ = ("looks_async",)


def looks_async(function: Any) -> bool:
    """Return whether a function is a coroutine function, or says that it is one."""
    if sys.version_info >= (3, 12):
        return inspect.iscoroutinefunction(function)
    return asyncio.iscoroutinefunction(function)
