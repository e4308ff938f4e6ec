"""Metric: one measured value with its name, and what it belongs to."""

from collections.abc import Mapping
from typing import Literal

import attrs

__all__ = ("Metric",)


@attrs.frozen
class Metric:
    """A value that a client has measured, as the Java client's metric of this name and group."""

    name: str
    """The name in the Java client, such as ``"record-send-rate"``."""
    attributes: Mapping[str, str]
    """What the value belongs to: the Java client's tags, ``client-id``, ``node-id``, ``topic`` and ``partition``."""
    value: float
    """The value; NaN where nothing was measured yet, as for averages in the Java client."""
    group: str = attrs.field(kw_only=True)
    """The group in the Java client, such as ``"producer-topic-metrics"``."""
    kind: Literal["counter", "gauge"] = attrs.field(kw_only=True)
    """``"counter"`` for a total that only grows while the client lives, ``"gauge"`` for every other value."""
    description: str = attrs.field(kw_only=True)
    """What is measured, with its unit."""
