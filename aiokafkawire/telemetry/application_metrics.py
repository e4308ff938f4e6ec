"""ApplicationMetric: a metric of the application that its Kafka client pushes (KIP-1076)."""

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

import attrs

from ..argument_checks import check_mapping, check_text, shown
from ..errors import UsageError
from ..event_log import EventLog

__all__ = ("ApplicationMetric", "ApplicationMetrics", "ApplicationValue")

_log = EventLog("aiokafkawire.telemetry")
_OF_CLIENTS: Final = ("admin-client-", "app-info", "consumer-", "kafka-metrics-count", "producer-", "share-")


def _check_value(_: object, __: object, value: Any) -> None:
    if not callable(value) and not _is_number(value):
        raise UsageError(f"value must be a number, or a function that returns one, got {shown(value)}")


def _check_name(_: object, attribute: "attrs.Attribute[str]", name: Any) -> None:
    check_text(attribute.name, name)


def _check_group(_: object, __: object, group: Any) -> None:
    check_text("group", group)
    if group.lower().startswith(_OF_CLIENTS):
        raise UsageError(f"group {group!r} is one of the Kafka client's own metrics: use a name of your application")


def _check_attributes(_: object, __: object, attributes: Any) -> None:
    check_mapping("attributes", attributes, "{'queue': 'orders'}")
    for name, value in attributes.items():
        check_text("an attribute's name", name)
        check_text(f"the attribute {name}", value, empty=True)


def _check_kind(_: object, __: object, kind: Any) -> None:
    if kind not in ("counter", "gauge"):
        raise UsageError(f"kind must be 'counter' or 'gauge', got {shown(kind)}")


def _is_number(value: object) -> bool:
    """Return whether a value is a number that a metric can have: a double, or an integer that is no larger."""
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) <= sys.float_info.max
    return isinstance(value, float)


@attrs.define(eq=False)
class ApplicationMetric:
    """A metric of the application; register it with ``kafka.register_metric_for_subscription(metric)``.

    Brokers know it as ``org.apache.kafka.<group>.<name>``, in lower case and with dots for hyphens.

    Raises:
        UsageError: an argument is invalid, or the group is one of the client's own metrics.
    """

    name: str = attrs.field(validator=_check_name, on_setattr=attrs.setters.frozen)
    """The name, such as ``"open-orders"``."""
    value: float | Callable[[], float] = attrs.field(validator=_check_value)
    """The value, which may be set at any time; or a function that returns it, called in the event loop at each push."""
    attributes: Mapping[str, str] = attrs.field(
        factory=dict, validator=_check_attributes, on_setattr=attrs.setters.frozen
    )
    """What the value belongs to, such as ``{"queue": "orders"}``."""
    group: str = attrs.field(
        default="application", kw_only=True, validator=_check_group, on_setattr=attrs.setters.frozen
    )
    """The first part of the name."""
    kind: Literal["counter", "gauge"] = attrs.field(
        default="gauge", kw_only=True, validator=_check_kind, on_setattr=attrs.setters.frozen
    )
    """``"counter"`` for a total that only grows, ``"gauge"`` for every other value."""


@attrs.frozen
class ApplicationValue:
    """The current value of an application's metric."""

    name: str
    attributes: Mapping[str, str]
    value: float
    group: str
    kind: str


class ApplicationMetrics:
    """The metrics of the application that one client pushes."""

    def __init__(self) -> None:
        self._metrics: dict[tuple[str, str, frozenset[tuple[str, str]]], ApplicationMetric] = {}
        self._failed: set[ApplicationMetric] = set()

    def register(self, metric: ApplicationMetric) -> None:
        """Add a metric; ignore one that is registered.

        Raises:
            UsageError: this is no ApplicationMetric, or another metric has its group, name and attributes.
        """
        key = _key(metric)
        if self._metrics.setdefault(key, metric) is not metric:
            raise UsageError(
                f"another metric {metric.group}/{metric.name} with these attributes is registered: "
                "unregister it first, or use another name"
            )

    def unregister(self, metric: ApplicationMetric) -> None:
        """Remove a metric; ignore one that is not registered.

        Raises:
            UsageError: this is no ApplicationMetric.
        """
        key = _key(metric)
        if self._metrics.get(key) is metric:
            del self._metrics[key]
        self._failed.discard(metric)

    def values(self) -> Iterator[ApplicationValue]:
        """Return the current values; log each failing function once.

        A gauge whose function fails is left out; a counter is NaN, so that it later grows from its last push.
        """
        for metric in list(self._metrics.values()):
            value: Any = metric.value
            try:
                if callable(value):
                    value = value()
                if not _is_number(value):
                    raise TypeError(f"it returned {shown(value)}, which is no number")
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # a CancelledError would end the pushes
                if metric not in self._failed:
                    self._failed.add(metric)
                    message = "the metric %(metric)s is not pushed while its function fails: %(error)s"
                    text = {"metric": f"{metric.group}/{metric.name}"}
                    _log.warning(message, text=text, error=error, exc_info=error)
                if metric.kind != "counter":
                    continue
                value = math.nan
            else:
                self._failed.discard(metric)
            yield ApplicationValue(metric.name, metric.attributes, value, metric.group, metric.kind)


def _key(metric: object) -> tuple[str, str, frozenset[tuple[str, str]]]:
    if not isinstance(metric, ApplicationMetric):
        raise UsageError(f"metric must be an ApplicationMetric, got {shown(metric)}")
    return metric.group, metric.name, frozenset(metric.attributes.items())
