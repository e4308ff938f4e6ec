"""The demo's output: two progress bars during the run, then tables. Files and pipes get only the final output."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import anyio
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from .delivery_check import Flow
from .flights import CarrierDelay

__all__ = ("Bars", "Report")

_EVERY = 0.1
"""Seconds between two updates of the bars."""


class Report:
    """The demo's output to the terminal, a file or a pipe."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)

    def say(self, text: str) -> None:
        """Print one line of plain text."""
        self._console.print(text, markup=False, soft_wrap=True)

    @contextmanager
    def bars(self, flows: Iterable[Flow], expected: int) -> Iterator["Bars"]:
        """Show a progress bar for each flow until the context ends."""
        # The event loop draws the bars instead of rich's thread, and only on a terminal.
        progress = Progress(
            TextColumn("{task.description:<9}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:>9,.0f} records"),
            TextColumn("{task.fields[rate]:>9,.0f}/s"),
            TextColumn("{task.fields[seconds]:>6.1f} s"),
            console=self._console,
            auto_refresh=False,
        )
        bars = Bars(progress, flows, expected)
        with progress:
            try:
                yield bars
            finally:
                bars.draw(anyio.current_time())

    def carriers(self, carriers: Iterable[CarrierDelay], total: CarrierDelay, names: Mapping[str, str]) -> None:
        """Print a table of flights and mean arrival delay by carrier."""
        table = Table(box=SIMPLE_HEAD, show_footer=True)
        table.add_column("carrier")
        table.add_column("airline", footer="all")
        table.add_column("flights", footer=f"{total.flights:,}", justify="right")
        table.add_column("mean arrival delay", footer=_minutes(total), justify="right")
        for row in carriers:
            table.add_row(row.carrier, names.get(row.carrier, "?"), f"{row.flights:,}", _minutes(row))
        self._console.print(table)

    def throughput(self, flows: Iterable[Flow]) -> None:
        """Print a table of each flow's records and bytes (of keys and values), in total and per second."""
        table = Table(box=SIMPLE_HEAD)
        for heading in ("", "records", "MB", "seconds", "records/s", "MB/s"):
            table.add_column(heading, justify="right" if heading else "left")
        for flow in flows:
            seconds = flow.seconds(anyio.current_time())
            records, megabytes = flow.ledger.records, flow.ledger.bytes / 1e6
            rates = f"{records / seconds:,.0f}", f"{megabytes / seconds:.1f}"
            table.add_row(flow.name, f"{records:,}", f"{megabytes:.1f}", f"{seconds:.2f}", *rates)
        self._console.print(table)


class Bars:
    """The progress bars of several flows."""

    def __init__(self, progress: Progress, flows: Iterable[Flow], expected: int) -> None:
        self._progress = progress
        self._rows = [(flow, progress.add_task(flow.name, total=expected, rate=0.0, seconds=0.0)) for flow in flows]

    def draw(self, now: float) -> None:
        """Draw the bars from the flows' current counters; ``now`` is the event loop's time, in seconds."""
        for flow, row in self._rows:
            seconds, records = flow.seconds(now), flow.ledger.records
            total = records if flow.ended is not None else None  # replaces the expected number
            self._progress.update(row, completed=records, total=total, rate=records / seconds, seconds=seconds)
        self._progress.refresh()

    async def keep_drawing(self) -> None:
        """Draw the bars repeatedly until cancelled; return at once if the output is not a terminal."""
        while self._progress.console.is_terminal:
            self.draw(anyio.current_time())
            await anyio.sleep(_EVERY)


def _minutes(row: CarrierDelay) -> str:
    return "-" if row.mean_delay is None else f"{row.mean_delay:.1f} min"
