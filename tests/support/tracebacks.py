"""What tracebacks show beside their lines: the variables of frames, as error reporters send them."""

import traceback
from collections.abc import Iterator

__all__ = ("variables_of",)


def variables_of(error: BaseException) -> Iterator[str]:
    """The variables of the client's frames in tracebacks of an error and its causes."""
    pending, seen = [error], set[int]()
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        pending += filter(None, (one.__cause__, one.__context__))
        for frame, _ in traceback.walk_tb(one.__traceback__):
            if frame.f_globals.get("__name__", "").startswith("aiokafkawire."):
                yield from (f"{frame.f_code.co_qualname}: {name}={value!r}" for name, value in frame.f_locals.items())
