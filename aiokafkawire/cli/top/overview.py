"""The first screen: brokers, topics and groups."""

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from ...client import Client
from .columns import BROKERS, GROUPS, TOPICS
from .detail_screens import GroupScreen, TopicScreen
from .pace import Pace
from .panel import Panel
from .panel_screen import PanelScreen
from .rows import BrokerRow, GroupRow, History, TopicRow
from .sampler import Sampler

__all__ = ("Overview",)

_BROKERS_SHOWN: Final = 4
_ABOVE_ROWS: Final = 2
"""The lines of a title and of the columns' names."""


class Overview(PanelScreen):
    """The tables of brokers, topics and groups.

    Args:
        kafka: an open client.
        sampler: takes the samples.
        pace: the time between two samples.
        timeout: the limit for each response, in seconds.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "end_filter", show=False)]

    def __init__(self, kafka: Client, sampler: Sampler, pace: Pace, timeout: float) -> None:
        super().__init__(pace)
        self._kafka, self._sampler, self._timeout = kafka, sampler, timeout
        self.history: History = History()
        self._brokers = Panel[BrokerRow](BROKERS, id="brokers")
        self._topics = Panel[TopicRow](TOPICS, id="topics", on_open=self._open_topic)
        self._groups = Panel[GroupRow](GROUPS, id="groups", on_open=self._open_group)

    def compose_panels(self) -> ComposeResult:
        """Yield the three panels."""
        yield self._brokers
        yield self._topics
        yield self._groups

    async def load(self) -> None:
        """Take a sample, and show it. Raises as :meth:`.Sampler.sample`."""
        self.history.add(await self._sampler.sample())
        self._brokers.show_rows(self.history.broker_rows())
        self._topics.show_rows(self.history.topic_rows())
        self._groups.show_rows(self.history.group_rows())
        self._fit_brokers()

    def summary(self) -> str:
        """Return the cluster's id, and the controller if it is no broker."""
        newest = self.history.newest
        if newest is None:
            return "aiokafkawire top: connecting"
        layout = newest.layout
        text = f"aiokafkawire top: cluster {layout.cluster_id or '(without an id)'}"
        if layout.controller_id is not None and layout.controller_id not in layout.nodes:
            text += f", controller {layout.controller_id}"
        return text

    def action_zoom(self) -> None:
        """Show only the active table, or all again."""
        super().action_zoom()
        self._fit_brokers()

    def _fit_brokers(self) -> None:
        """Leave the lines that the brokers do not need to topics and groups."""
        rows = min(len(self._brokers.rows), _BROKERS_SHOWN)
        self._brokers.styles.height = "1fr" if self.is_zoomed else rows + _ABOVE_ROWS

    def action_end_filter(self) -> None:
        """End the filter that is being typed."""
        self.end_filter()

    def _open_topic(self, row: TopicRow) -> None:
        self.app.push_screen(TopicScreen(self._kafka, row.name, self.pace, self._timeout))

    def _open_group(self, row: GroupRow) -> None:
        self.app.push_screen(GroupScreen(self._kafka, row, self.pace, self._timeout))
