"""Fault rules of a broker or a tap that runs on a thread, for callers on other threads."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Literal, Unpack

from ..protocol.api import ApiKey
from .background_faults import BackgroundFaultRule, BackgroundHold
from .faults.request_log import Which
from .faults.rules import Answer, When

__all__ = ("BackgroundRules",)


class BackgroundRules(ABC):
    """Methods of ``BackgroundBroker`` and ``BackgroundTap`` that call those of :class:`Broker` or :class:`Tap`."""

    @abstractmethod
    def do(self, function: Callable[[Any], Any]) -> Any:
        """Call ``function`` with the broker or the tap on its thread, and return the result; it may be async."""

    def on(
        self,
        api: ApiKey | None,
        *,
        answer: Answer | None = None,
        drop: When | None = None,
        swallow: When | None = None,
        cut: bool = False,
        corrupt: int | Literal["records"] | None = None,
        delay: float = 0.0,
        delay_answer: float = 0.0,
        times: int | None = 1,
        after: int = 0,
        **which: Unpack[Which],
    ) -> BackgroundFaultRule:
        """Add a fault rule for certain requests; arguments and errors are those of ``Broker.on``.

        Returns:
            The rule, with ``count``, ``remove()`` and ``met()``.
        """
        rule = self.do(
            lambda target: target.on(
                api,
                answer=answer,
                drop=drop,
                swallow=swallow,
                cut=cut,
                corrupt=corrupt,
                delay=delay,
                delay_answer=delay_answer,
                times=times,
                after=after,
                **which,
            )
        )
        return BackgroundFaultRule(self.do, rule)

    def hold(
        self,
        api: ApiKey | None,
        at: When = "before",
        *,
        times: int | None = None,
        after: int = 0,
        **which: Unpack[Which],
    ) -> BackgroundHold:
        """Return a context that holds requests while it is open. Arguments and errors are as in ``Broker.hold``."""
        made = self.do(lambda target: target.hold(api, at, times=times, after=after, **which))
        return BackgroundHold(self.do, made)

    def clear_orders(self) -> None:
        """Call ``clear_orders`` of the broker or the tap on its thread."""
        self.do(lambda target: target.clear_orders())

    def freeze_node(self, node_id: int) -> None:
        """Call ``freeze_node`` of the broker or the tap on its thread."""
        self.do(lambda target: target.freeze_node(node_id))

    def thaw_node(self, node_id: int) -> None:
        """Call ``thaw_node`` of the broker or the tap on its thread."""
        self.do(lambda target: target.thaw_node(node_id))

    def refuse_connections(self, node_id: int) -> None:
        """Call ``refuse_connections`` of the broker or the tap on its thread."""
        self.do(lambda target: target.refuse_connections(node_id))

    def accept_connections(self, node_id: int) -> None:
        """Call ``accept_connections`` of the broker or the tap on its thread."""
        self.do(lambda target: target.accept_connections(node_id))

    def pause_partition(self, topic: str, partition: int = 0) -> None:
        """Call ``pause_partition`` of the broker or the tap on its thread."""
        self.do(lambda target: target.pause_partition(topic, partition))

    def resume_partition(self, topic: str, partition: int = 0) -> None:
        """Call ``resume_partition`` of the broker or the tap on its thread."""
        self.do(lambda target: target.resume_partition(topic, partition))
