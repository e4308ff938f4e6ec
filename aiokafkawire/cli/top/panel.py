"""A table of the live view, with a title, a filter and an order of its own."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, Generic, TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.coordinate import Coordinate
from textual.events import Resize
from textual.widgets import DataTable, Static

from ..shell.safe_text import safe_text
from .columns import TableColumn, TableKind, fit_columns, select_rows

__all__ = ("OpenTable", "Panel", "RowTable")

R = TypeVar("R")

SHOWN: Final = 500
"""The greatest number of rows in a table; a filter finds the others."""


class RowTable(DataTable[Text]):
    """A table with a cursor on a row."""


class OpenTable(RowTable):
    """A table whose rows Enter opens, which the line of keys says."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select_cursor", "Open", key_display="Enter")]


class Panel(Vertical, Generic[R]):
    """A table and a line above it, which has the number of rows, the filter, and the first error.

    Args:
        kind: the table.
        id: the widget's id.
        on_open: called with a row that is opened with Enter; None if rows cannot be opened.
        on_move: called with the row that the cursor moves to; None if there is nothing to do.
    """

    DEFAULT_CSS: ClassVar[str] = """
    Panel { height: 1fr; }
    Panel > Static { height: 1; padding: 0 1; text-style: bold; color: $text-accent; }
    Panel > DataTable { height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; }
    """

    def __init__(
        self,
        kind: TableKind[R],
        *,
        id: str,  # noqa: A002  # Textual's name
        on_open: Callable[[R], None] | None = None,
        on_move: Callable[[R], None] | None = None,
    ) -> None:
        super().__init__(id=id)
        self.kind: TableKind[R] = kind
        self.sorted_by: int = kind.sorted_by
        self.descending: bool = kind.columns[kind.sorted_by].descending
        self.filter: str = ""
        self.note: str | None = None
        self._open_row, self._visit_row = on_open, on_move
        self.rows: Sequence[R] = ()
        self._chosen: list[R] = []
        self._shown: list[R] = []
        self._column_indexes: list[int] = []
        """The indexes of the columns that the terminal has room for."""
        self._selected: str | None = None
        self._width = 0
        self._title_line = Static(self.kind.title, markup=False)
        self.table: RowTable = (RowTable if on_open is None else OpenTable)(cursor_type="row", show_row_labels=False)

    def compose(self) -> ComposeResult:
        """Yield the title and the table."""
        yield self._title_line
        yield self.table

    @property
    def cursor_row(self) -> R | None:
        """The row at the cursor; None if the table is empty."""
        index = self.table.cursor_row
        return self._shown[index] if 0 <= index < len(self._shown) else None

    # --- what is shown ---------------------------------------------------------------------------------

    def show_rows(self, rows: Sequence[R], note: str | None = None) -> None:
        """Show the rows of the newest sample, and a note about all of them."""
        self.rows, self.note = rows, note
        self.draw()

    def set_filter(self, text: str) -> None:
        """Show only rows whose name contains the text."""
        self.filter = text
        self.draw()

    def sort_next(self, step: int) -> None:
        """Sort by the next column to the right (1) or to the left (-1)."""
        columns = self._column_indexes or list(range(len(self.kind.columns)))
        at = columns.index(self.sorted_by) if self.sorted_by in columns else 0
        self.sort_by(columns[(at + step) % len(columns)])

    def sort_by(self, index: int) -> None:
        """Sort by a column; reverse the order if the table is already sorted by it."""
        if index == self.sorted_by:
            self.reverse()
            return
        self.sorted_by, self.descending = index, self.kind.columns[index].descending
        self._make_columns()

    def reverse(self) -> None:
        """Turn the order round."""
        self.descending = not self.descending
        self._make_columns()

    def draw(self) -> None:
        """Draw the rows; the cursor stays on its row, or at the top if it is there."""
        if not self.is_attached or not self.table.columns:
            return
        table, columns = self.table, [self.kind.columns[index] for index in self._column_indexes]
        self._chosen = select_rows(
            self.rows, self.kind, sorted_by=self.sorted_by, descending=self.descending, text=self.filter
        )
        self._shown = self._chosen[:SHOWN]
        with self.app.batch_update():
            for index, row in enumerate(self._shown):
                cells = [_cell(column, row) for column in columns]
                if index >= table.row_count:
                    table.add_row(*cells, key=str(index))
                    continue
                for place, cell in enumerate(cells):
                    at = Coordinate(index, place)
                    if table.get_cell_at(at) != cell:
                        table.update_cell_at(at, cell)
            for index in range(table.row_count - 1, len(self._shown) - 1, -1):
                table.remove_row(str(index))
            self._follow_selected()
            self._title_line.update(self._title())

    def _follow_selected(self) -> None:
        if self._selected is None or self.table.cursor_row == 0:
            return
        names = [self.kind.name(row) for row in self._shown]
        if self._selected in names:
            self.table.move_cursor(row=names.index(self._selected))

    def _title(self) -> Text:
        count, all_rows = len(self._chosen), len(self.rows)
        numbers = f"{count:,}" if count == all_rows else f"{count:,} of {all_rows:,}"
        if count > SHOWN:
            numbers += f", the first {SHOWN} shown"
        title = Text(f"{self.kind.title} {numbers}", no_wrap=True, overflow="ellipsis")
        if self.filter:
            title.append(f"  filter: {safe_text(self.filter, 30)}", style="italic")
        problem = self.note or self._first_error()
        if problem:
            title.append(f"  {safe_text(problem, 300)}", style="red")
        return title

    def _first_error(self) -> str | None:
        for row in self._chosen:
            error = self.kind.error(row)
            if error is not None:
                return f"{self.kind.name(row)}: {error}"
        return None

    def _make_columns(self) -> None:
        table, shown = self.table, fit_columns(self.kind.columns, self.size.width - 1)
        if not self.size.width:
            return
        cursor = table.cursor_row
        table.clear(columns=True)
        self._column_indexes = list(shown)
        for index, width in shown.items():
            column = self.kind.columns[index]
            mark = ("▼" if self.descending else "▲") if index == self.sorted_by else ""
            title = mark + column.title if column.right else column.title + mark
            label = Text(title, justify="right" if column.right else "left", no_wrap=True, overflow="ellipsis")
            table.add_column(label, width=width, key=str(index))
        self.draw()
        table.move_cursor(row=cursor)

    # --- events ----------------------------------------------------------------------------------------

    def on_resize(self, _: Resize) -> None:
        """Adjust the columns to the new width."""
        if self.size.width != self._width:
            self._width = self.size.width
            self._make_columns()

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Remember the row that the user moved the cursor to."""
        event.stop()
        row = self.cursor_row
        if row is None:
            return
        self._selected = self.kind.name(row)
        if self._visit_row is not None:
            self._visit_row(row)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open the row at the cursor."""
        event.stop()
        row = self.cursor_row
        if row is not None and self._open_row is not None:
            self._open_row(row)

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        """Sort by the column whose title was clicked."""
        event.stop()
        self.sort_by(int(event.column_key.value or 0))


def _cell(column: TableColumn[Any], row: Any) -> Text:
    style = "red" if column.is_bad(row) else ""
    return Text(
        column.text(row), style=style, justify="right" if column.right else "left", no_wrap=True, overflow="ellipsis"
    )
