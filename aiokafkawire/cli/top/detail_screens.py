"""The screens of one group and of one topic."""

from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from ...client import Client
from .columns import big_number
from .detail_rows import LAGS, MEMBERS, RECORDS, LagRow, MemberRow, RecordRow, record_text
from .details import read_group, read_newest_records
from .pace import Pace
from .panel import Panel
from .panel_screen import PanelScreen
from .rows import GroupRow

__all__ = ("GroupScreen", "TopicScreen")

_RECORDS: Final = 50
"""The number of records that a topic's screen reads."""


class DetailScreen(PanelScreen):
    """A screen that Escape leaves.

    Args:
        kafka: an open client.
        pace: the time between two loads.
        timeout: the limit for each call, in seconds.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", "Back", key_display="Esc")]

    def __init__(self, kafka: Client, pace: Pace, timeout: float) -> None:
        super().__init__(pace)
        self._kafka, self._timeout = kafka, timeout

    def action_back(self) -> None:
        """End the filter that is being typed, or return to the screen before."""
        if not self.end_filter():
            self.workers.cancel_node(self)
            self.app.pop_screen()


class GroupScreen(DetailScreen):
    """The members of a group, and its partitions with their lag."""

    def __init__(self, kafka: Client, group: GroupRow, pace: Pace, timeout: float) -> None:
        super().__init__(kafka, pace, timeout)
        self._group = group
        self._state = group.state
        self._lag: int | None = None
        self._lags = Panel[LagRow](LAGS, id="lags")
        self._members = Panel[MemberRow](MEMBERS, id="members")

    def compose_panels(self) -> ComposeResult:
        """Yield the partitions and the members."""
        yield self._lags
        yield self._members

    async def load(self) -> None:
        """Describe the group. Raises as :func:`.read_group`."""
        found = await read_group(self._kafka, self._group.group_id, self._group.type, timeout=self._timeout)
        known = [row.lag for row in found.partitions if row.lag is not None]
        self._lag = sum(known) if known else None
        self._state = found.state or self._state
        self._lags.show_rows(found.partitions)
        note = "not shown for streams groups" if found.members is None else None
        self._members.show_rows(found.members or (), note)

    def summary(self) -> str:
        """Return the group's id, state, type and lag."""
        group = self._group
        return f"group {group.group_id}, {self._state or 'state unknown'}, {group.type}, lag {big_number(self._lag)}"


class TopicScreen(DetailScreen):
    """The newest records of a topic, and all of the record at the cursor."""

    DEFAULT_CSS: ClassVar[str] = """
    TopicScreen > #record { height: 8; border-top: solid $primary; padding: 0 1; }
    """

    def __init__(self, kafka: Client, topic: str, pace: Pace, timeout: float) -> None:
        super().__init__(kafka, pace, timeout)
        self._topic = topic
        self._records = Panel[RecordRow](RECORDS, id="records", on_move=self._show_record)
        self._record = Static(id="text", markup=False)

    def compose_panels(self) -> ComposeResult:
        """Yield the records, and the record at the cursor."""
        yield self._records
        with VerticalScroll(id="record"):
            yield self._record

    async def load(self) -> None:
        """Read the newest records. Raises as :func:`.read_newest_records`."""
        rows = await read_newest_records(self._kafka, self._topic, _RECORDS, timeout=self._timeout)
        self._records.show_rows(rows)
        shown = self._records.cursor_row
        if shown is not None:
            self._show_record(shown)

    def summary(self) -> str:
        """Return the topic's name."""
        return f"topic {self._topic}"

    def _show_record(self, row: RecordRow) -> None:
        self._record.update(Text(record_text(row)))
