"""Ctrl-C at every moment, one after the other: KeyboardInterrupt where CPython looks for signals.

CPython looks at the beginning of a function, after the call of a function that is not written in Python, and when a
loop jumps back. A trace function sees all of these, and raises at the one that is asked for. CPython 3.13.0 does not
tell it of opcodes: there it sees the beginnings of functions alone.
"""

from __future__ import annotations

import dis
import sys
from types import FrameType
from typing import Any

__all__ = ("Interrupt",)

_CALLS = frozenset(
    dis.opmap[name] for name in ("CALL", "CALL_KW", "CALL_FUNCTION_EX", "JUMP_BACKWARD") if name in dis.opmap
)


class Interrupt:
    """Raises KeyboardInterrupt at one moment of what this thread does meanwhile, outside the file that uses it.

    with Interrupt(17, but=__file__) as interrupt:
        ...
    if not interrupt.raised:
        ...  # there are fewer moments than that
    """

    def __init__(self, at: int, *, but: str) -> None:
        self._left, self._but = at, but
        self.raised = False
        self._last: dict[FrameType, int] = {}

    def __enter__(self) -> Interrupt:
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        self._last.clear()

    def _trace(self, frame: FrameType, event: str, arg: object) -> Any:
        if frame.f_code.co_filename in (self._but, __file__):
            return None
        if event == "call":
            frame.f_trace_lines, frame.f_trace_opcodes = False, True
            self._last[frame] = -1
            self._look()
        elif event == "opcode":
            last = self._last.get(frame, -1)
            if last >= 0 and frame.f_code.co_code[last] in _CALLS:
                self._look()
            self._last[frame] = frame.f_lasti
        elif event == "exception":
            # After a call that raises it does not look. An error there would leave the one that is handled as that of
            # the thread, for all that runs in it later.
            self._last[frame] = -1
        elif event == "return":
            self._last.pop(frame, None)
            if frame.f_back is not None and frame.f_back in self._last:
                self._last[frame.f_back] = -1  # after a function in Python it does not look
        return self._trace

    def _look(self) -> None:
        self._left -= 1
        if self._left < 0 and not self.raised:
            self.raised = True
            raise KeyboardInterrupt
