"""Tables whose rows are checked in one test: a row as a test of its own costs more than its check."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

__all__ = ("every_row",)

_SHOWN = 20

Check = Callable[..., None]


def every_row(names: str | Sequence[str], rows: Iterable[Any]) -> Callable[[Check], Check]:
    """Decorate a test that takes rows as with ``pytest.mark.parametrize``, but checks all of them in one test.

    An ExceptionGroup has the failures with their rows. A table without rows fails, too.
    """
    names = (names,) if isinstance(names, str) else tuple(names)
    table = [_named(row, names) for row in rows]

    def decorate(check: Check) -> Check:
        signature = inspect.signature(check)
        missing = set(names) - signature.parameters.keys()
        if missing:
            raise TypeError(f"{check.__name__} has no parameter {', '.join(sorted(missing))}")

        @functools.wraps(check)
        def test(**fixtures: Any) -> None:
            assert table, "the table has no rows"
            failures = []
            for label, values in table:
                try:
                    check(**fixtures, **values)
                except Exception as failure:
                    failure.add_note(f"row: {label or ', '.join(f'{name}={values[name]!r:.200}' for name in names)}")
                    failures.append(failure)
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(table)} rows failed", failures[:_SHOWN])

        kept = [parameter for name, parameter in signature.parameters.items() if name not in names]
        test.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]  # pytest reads it
        return test

    return decorate


def _named(row: Any, names: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    """Return what a row is called, or an empty text, and its values by their names."""
    label, values = "", row if len(names) > 1 else (row,)
    if isinstance(row, type(pytest.param())):
        label, values = str(row.id or ""), row.values
    return label, dict(zip(names, values, strict=True))
