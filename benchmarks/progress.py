"""The progress of a benchmark: a bar on a terminal with rich installed, and lines elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from benchmarks.machine import has_module


def tell(line: str) -> None:
    """Write a line to standard error, at once."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def progress(total: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that takes the name of each new step."""
    if not (sys.stderr.isatty() and has_module("rich")):
        numbers = count(1)
        yield lambda what: tell(f"{next(numbers)}/{total} {what}")
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.description}"), console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        begun = False

        def advance(what: str) -> None:
            nonlocal begun
            bar.update(task, description=what, advance=1 if begun else 0)
            begun = True

        yield advance
        bar.update(task, advance=1, description="done")
