"""How much a call does, counted instead of timed."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from aiokafkawire.errors import WireError

__all__ = ("lines_run",)


def lines_run(call: Callable[[], object]) -> int:
    """How many lines of compiled codecs, and of the primitives they use, ``call`` runs; it may end with WireError."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.startswith("<aiokafkawire") and "primitives" not in frame.f_code.co_filename:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except WireError:
        pass
    finally:
        sys.settrace(before)
    return count
