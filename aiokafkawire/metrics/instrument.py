"""Instrument: one measurement in the form that exporters need, and its definition."""

from collections.abc import Mapping, Sequence
from typing import Literal

import attrs

__all__ = ("Buckets", "Instrument", "InstrumentDefinition", "InstrumentKind")

InstrumentKind = Literal["counter", "gauge", "histogram"]


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

    def plus(self, other: "Buckets") -> "Buckets":
        """Return the values of both histograms as one; they have the same bounds."""
        counts = [mine + its for mine, its in zip(self.counts, other.counts, strict=True)]
        return Buckets(self.bounds, counts, self.sum + other.sum)


@attrs.frozen
class InstrumentDefinition:
    """The name, unit and labels of a measurement."""

    name: str
    """The name, in words with dots and underscores, such as ``"producer.records_sent"``."""
    kind: InstrumentKind
    """``"counter"`` for a total, ``"gauge"`` for a current value, ``"histogram"`` for :class:`Buckets`."""
    unit: str
    """The unit of the value: ``"s"``, ``"By"``, or a noun in braces, such as ``"{record}"`` (UCUM)."""
    labels: tuple[str, ...]
    """The names of the attributes, besides ``client_id``."""
    description: str
    """What is measured."""
    java: str = ""
    """The metrics of the Java client with this meaning."""


@attrs.frozen
class Instrument:
    """A measurement of a client, for exporters."""

    name: str
    """The name, in words with dots and underscores, such as ``"producer.records_sent"``."""
    unit: str
    """The unit of the value: ``"s"``, ``"By"``, or a noun in braces, such as ``"{record}"`` (UCUM)."""
    kind: InstrumentKind
    """As in :class:`InstrumentDefinition`."""
    attributes: Mapping[str, str]
    """What the value belongs to: ``client_id``, and ``topic``, ``partition``, ``group``, ``node_id``, ``api``, ..."""
    value: float | Buckets
    """A number; of a histogram, its buckets."""
    description: str
    """What is measured."""
