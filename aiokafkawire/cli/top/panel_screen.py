"""A screen of panels that are loaded again and again: the keys for filter, order and zoom."""

from abc import abstractmethod
from collections.abc import Iterable
from time import monotonic
from typing import Any, ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer, Input, Static

from ...errors import KafkaError
from ..shell.safe_text import safe_text
from .pace import Pace
from .panel import OpenTable, Panel, RowTable

__all__ = ("PanelScreen",)

_WIDE_ENOUGH: Final = 24
"""The characters of the first line that its text needs beside the pace."""


class PanelScreen(Screen[None]):
    """A line about all, panels, and a line of keys.

    Args:
        pace: the time between two loads.
    """

    SLOW: ClassVar[float] = 1.0
    """The seconds after which the first line says that a load goes on."""
    DEFAULT_CSS: ClassVar[str] = """
    PanelScreen > #head { height: 1; padding: 0 1; background: $primary; color: $text; }
    PanelScreen > #filter { display: none; height: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("/", "filter", "Filter", key_display="/"),
        Binding("<", "sort(-1)", show=False),
        Binding(">", "sort(1)", "Sort", key_display="< >"),
        Binding("r", "reverse", "Reverse"),
        Binding("z", "zoom", "Zoom"),
    ]

    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self.pace: Pace = pace
        self.problem: str | None = None
        self._took: float | None = None
        self._began: float | None = None
        self.is_zoomed: bool = False
        self._filtered: Panel[Any]
        self._head = Static(id="head", markup=False)
        hint = "show only names with this text; Enter keeps it, Esc ends it"
        self._filter_line = Input(placeholder=hint, id="filter", compact=True)

    @abstractmethod
    def compose_panels(self) -> ComposeResult:
        """Yield the panels, and what is between them."""

    @abstractmethod
    async def load(self) -> None:
        """Read from the cluster, and show the rows.

        Raises:
            KafkaError: the cluster did not answer; the rows stay as they are.
        """

    @abstractmethod
    def summary(self) -> str:
        """Return the text of the first line."""

    def compose(self) -> ComposeResult:
        """Yield the widgets."""
        yield self._head
        yield from self.compose_panels()
        yield self._filter_line
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Start to load; the cursor is in the first table whose rows can be opened."""
        tables = [*self.query(OpenTable), *self.query(RowTable)]
        tables[0].focus()
        self.run_worker(self._keep_loading(), name="loading")
        self.set_interval(1.0, self._draw_slow_load)

    async def _keep_loading(self) -> None:
        self.draw_head()
        while True:
            if not self.pace.is_paused or self._took is None:
                began = self._began = monotonic()
                try:
                    await self.load()
                    self.problem = None
                except KafkaError as error:
                    cause = error.__cause__ if isinstance(error.__cause__, KafkaError) else error  # of a timeout
                    self.problem = f"{type(cause).__name__}: {cause}"
                self._took, self._began = monotonic() - began, None
            self.draw_head()
            await self.pace.wait(self._took)

    def _draw_slow_load(self) -> None:
        if self._began is not None:
            self.draw_head()

    def draw_head(self) -> None:
        """Draw the first line: the summary or the error, and the pace, or for how long the cluster has not answered."""
        waiting = 0.0 if self._began is None else monotonic() - self._began
        if waiting >= self.SLOW:
            pace = f"waiting for {int(waiting)} s"
        elif self.pace.is_paused:
            pace = "paused"
        else:
            took = "" if self._took is None else f", took {self._took:.1f} s"
            pace = f"every {self.pace.interval:g} s{took}"
        width = max(10, self.size.width - 2)
        text = self.summary() if self.problem is None else f"trying again: {self.problem}"
        line = Text(safe_text(text, 500), no_wrap=True, overflow="ellipsis", style="bold")
        if self.problem is not None:
            line.stylize("red")
        left = width - len(pace) - 2
        if left < _WIDE_ENOUGH:  # a narrow terminal has room for one of the two
            line.truncate(width, overflow="ellipsis")
        else:
            line.truncate(left, overflow="ellipsis", pad=True)
            line.append(f"  {pace}")
        self._head.update(line)

    def on_resize(self) -> None:
        """Adjust the first line to the new width."""
        self.draw_head()

    # --- panels ----------------------------------------------------------------------------------------

    def panels(self) -> Iterable[Panel[Any]]:
        """Return the panels, from top to bottom."""
        return self.query(Panel)

    def active_panel(self) -> Panel[Any]:
        """Return the panel with the focus, or the first one."""
        panels = list(self.panels())
        focused = self.focused
        return next((panel for panel in panels if focused is not None and panel in focused.ancestors), panels[0])

    def action_sort(self, step: int) -> None:
        """Sort the active panel by another column."""
        self.active_panel().sort_next(step)

    def action_reverse(self) -> None:
        """Turn the order of the active panel round."""
        self.active_panel().reverse()

    def action_zoom(self) -> None:
        """Show only the active panel, or all again."""
        active, self.is_zoomed = self.active_panel(), not self.is_zoomed
        for panel in self.panels():
            panel.display = panel is active or not self.is_zoomed

    # --- the filter ------------------------------------------------------------------------------------

    def action_filter(self) -> None:
        """Open the line for the filter of the active panel."""
        line, self._filtered = self._filter_line, self.active_panel()
        line.value = self._filtered.filter
        line.display = True
        line.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while the user types."""
        event.stop()
        if self._filter_line.display:
            self._filtered.set_filter(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Keep the filter, and return to the table."""
        event.stop()
        self._close_filter()

    def end_filter(self) -> bool:
        """End the filter that is being typed, and return whether there was one."""
        if not self._filter_line.display:
            return False
        self._filtered.set_filter("")
        self._close_filter()
        return True

    def _close_filter(self) -> None:
        self._filter_line.display = False
        self._filtered.table.focus()
