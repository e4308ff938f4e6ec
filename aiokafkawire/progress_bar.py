"""A progress bar on standard error, for reads and writes of whole tables."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .argument_checks import check_flag

__all__ = ("progress_bar",)


@contextmanager
def progress_bar(title: str, unit: str, *, shown: bool) -> Iterator[Callable[[int, int | None], object]]:
    """Show a bar if ``shown``, and provide the function that takes the units so far and of all, if that is known.

    Where standard error is no terminal, the last state is printed at the end.

    Raises:
        UsageError: ``shown`` is neither True nor False.
        ImportError: rich is not installed (``pip install aiokafkawire[demo]``).
    """
    check_flag("progress", shown)
    if not shown:
        yield lambda done, total: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
    except ImportError as missing:
        raise ImportError("a progress bar needs rich: pip install aiokafkawire[demo]") from missing
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn(f"{{task.completed:,.0f}} {unit}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
    with bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
