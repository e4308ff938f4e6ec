"""A quicker way for trio to note the deadlines of cancel scopes, for runs of many seeds; it changes no behaviour.

Trio uses a generator as a context manager twice for each cancel scope, which takes a tenth of the time of a seed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Any

from trio._core import _run

__all__ = ("quick_scopes",)

_METHOD = "_might_change_registered_deadline"


class _Change:
    """The context in which the deadline of a scope may change."""

    __slots__ = ("_scope",)

    def __init__(self, scope: Any) -> None:
        self._scope = scope

    def __enter__(self) -> None:
        pass

    def __exit__(self, *raised: object) -> None:
        scope = self._scope
        old = scope._registered_deadline
        new = inf if scope._cancel_status is None or scope._cancel_called else scope._deadline
        if old != new:
            scope._registered_deadline = new
            deadlines = _run.GLOBAL_RUN_CONTEXT.runner.deadlines
            if old != inf:
                deadlines.remove(old, scope)
            if new != inf:
                deadlines.add(new, scope)


@contextmanager
def quick_scopes() -> Iterator[None]:
    """Replace the generator while the context is open. A release of trio without it stays as it is."""
    before = getattr(_run.CancelScope, _METHOD, None)
    if before is None:
        yield
        return
    setattr(_run.CancelScope, _METHOD, lambda scope: _Change(scope))  # a function, which is bound to its scope
    try:
        yield
    finally:
        setattr(_run.CancelScope, _METHOD, before)
