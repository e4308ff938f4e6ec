"""The parts of a tap that its connections share."""

from collections.abc import Callable

import attrs

from ..faults.request_log import RequestLog
from ..faults.rules import FaultRules
from .journal import Journal
from .listeners import TapListeners
from .observed_cluster import ObservedCluster
from .tap_events import TapEvent

__all__ = ("TapState",)


@attrs.define(eq=False, kw_only=True)
class TapState:
    """The fault rules, the request log, the listeners, the journal and the observer of one tap."""

    rules: FaultRules
    requests: RequestLog
    listeners: TapListeners
    emit: Callable[[TapEvent], None]
    on_fault: Callable[[Exception], None]
    """Called with unexpected exceptions."""
    journal: Journal | None = None
    cluster: ObservedCluster = attrs.field(factory=ObservedCluster)
