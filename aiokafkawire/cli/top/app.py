"""The live view of ``aiokafkawire top``, on Textual."""

from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen

from ...client import Client
from .help_screen import HelpScreen
from .overview import Overview
from .pace import Pace
from .panel_screen import PanelScreen
from .sampler import Sampler

__all__ = ("TopApp",)


class TopApp(App[int]):
    """The view; its result is the exit status.

    Args:
        kafka: an open client.
        sampler: takes the samples.
        interval: the seconds between two samples at first.
        timeout: the limit for each response, in seconds.
    """

    TITLE: str | None = "aiokafkawire top"
    ENABLE_COMMAND_PALETTE: ClassVar[bool] = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "pause", "Pause"),
        Binding("plus", "slower", show=False),
        Binding("minus", "faster", "Interval", key_display="+ -"),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", show=False, priority=True),
    ]

    def __init__(self, kafka: Client, sampler: Sampler, *, interval: float, timeout: float) -> None:
        super().__init__()
        self._kafka, self._sampler, self._response_timeout = kafka, sampler, timeout
        self.pace: Pace = Pace(interval)

    def get_default_screen(self) -> Screen[object]:
        """Return the first screen."""
        return Overview(self._kafka, self._sampler, self.pace, self._response_timeout)  # type: ignore[return-value]

    def action_pause(self) -> None:
        """Pause sampling, or go on."""
        self.pace.pause()
        self._draw_heads()

    def action_slower(self) -> None:
        """Choose the next longer interval."""
        self.pace.change(1)
        self._draw_heads()

    def action_faster(self) -> None:
        """Choose the next shorter interval."""
        self.pace.change(-1)
        self._draw_heads()

    def action_help(self) -> None:
        """Show the help."""
        self.push_screen(HelpScreen())

    def _draw_heads(self) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, PanelScreen):
                screen.draw_head()
