"""A sample of the cluster: its layout, the end offsets of partitions, and its groups, all at one time."""

from collections.abc import Mapping

import attrs

from ...types import TopicPartition
from .layout import Layout

__all__ = ("Sample", "SampledGroup")


@attrs.frozen
class SampledGroup:
    """A group.

    ``committed`` are its offsets by partition, and ``known_lag`` is the lag that the broker reports itself, as for
    share groups (KIP-1226). ``members`` is None if the group cannot be described. ``offsets_error`` is the reason for
    which the offsets are not known, ``error`` that for which the group cannot be described.
    """

    group_id: str
    coordinator: int
    type: str = "classic"
    state: str = ""
    members: int | None = None
    committed: Mapping[TopicPartition, int] = attrs.field(factory=dict)
    known_lag: Mapping[TopicPartition, int] = attrs.field(factory=dict)
    error: str | None = None
    offsets_error: str | None = None


@attrs.frozen
class Sample:
    """One view of the cluster.

    ``at`` is the time at which the end offsets were requested, in seconds of a monotonic clock; ``time_ms`` is the same
    in ms since the epoch. ``broker_errors`` are those of brokers that did not answer, by the brokers' ids.
    """

    at: float
    time_ms: int
    layout: Layout
    ends: Mapping[TopicPartition, int] = attrs.field(factory=dict)
    groups: Mapping[str, SampledGroup] = attrs.field(factory=dict)
    broker_errors: Mapping[int, str] = attrs.field(factory=dict)
