"""Instrument: one measurement in the form that exporters need."""

from collections.abc import Mapping, Sequence
from typing import Literal

import attrs

__all__ = ("Buckets", "Instrument")


@attrs.frozen
class Buckets:
    """The value of a histogram."""

    bounds: Sequence[float]
    """The upper bounds of the buckets, which belong to them, in increasing order; a last bucket has no bound."""
    counts: Sequence[int]
    """The number of values in each bucket, each value in one: one more than there are bounds."""
    sum: float
    """The sum of all values."""

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self.counts)


@attrs.frozen
class Instrument:
    """A measurement of a client, for exporters."""

    name: str
    """The name, in words with dots and underscores, such as ``"producer.records_sent"``."""
    unit: str
    """The unit of the value: ``"s"``, ``"By"``, or a noun in braces, such as ``"{record}"`` (UCUM)."""
    kind: Literal["counter", "gauge", "histogram"]
    """``"counter"`` for a value that only grows, ``"gauge"`` for a current value, ``"histogram"`` for :class:`Buckets`."""
    attributes: Mapping[str, str]
    """What the value belongs to: ``client_id``, and ``topic``, ``partition``, ``group``, ``node_id``, ``api``, ..."""
    value: float | Buckets
    """A number; of a histogram, its buckets."""
    description: str
    """What is measured."""
