"""The screen that explains the keys and the columns."""

from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

__all__ = ("HelpScreen",)

_TEXT: Final = """\
Keys
  Tab, Shift+Tab   the next table, the one before
  Up, Down, ...    move in a table; Page Up, Page Down
  Enter            open a topic's newest records, or a group's partitions
                   and members
  Esc              back
  /                show only names that contain a text
  < >              sort by the next column to the left or right
  r                reverse the order (a click on a title sorts, too)
  z                only the table with the cursor; again: all tables
  p                pause, and go on
  + -              sample less often, more often
  q                quit

Brokers
  *                the controller
  LEADS            partitions that the broker leads
  UNDER            of these, partitions with a replica that is not in sync
  IN SYNC          replicas that it holds in sync, of all that it holds
  RECORDS/S        new records per second of the partitions that it leads

Topics
  RECORDS/S        new records per second, from the last two samples
  UNDER            partitions with a replica that is not in sync
  NO LEADER        partitions without a leader

Groups
  LAG              records from the committed offsets to the ends; red while
                   it grows, with + if that of some partitions is not known
  TREND            the lag of the last samples, the newest at the right
"""


class HelpScreen(ModalScreen[None]):
    """The help; any of its keys closes it."""

    DEFAULT_CSS: ClassVar[str] = """
    HelpScreen { align: center middle; }
    HelpScreen > VerticalScroll { width: 80; height: 100%; padding: 0 1; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,q,enter", "dismiss", "Close")]

    def compose(self) -> ComposeResult:
        """Yield the text."""
        with VerticalScroll():
            yield Static(Text(_TEXT))
