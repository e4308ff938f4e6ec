"""Rows of the tables, from the last two samples: rates, lags and their trends."""

from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

import attrs

from ...types import TopicPartition
from .sample import Sample, SampledGroup

__all__ = ("BrokerRow", "GroupRow", "History", "Lag", "TopicRow", "lag_of_group")

TREND: Final = 24
"""The number of samples in a trend."""


@attrs.frozen
class BrokerRow:
    """A broker. ``address`` is None if the broker is not in service, and ``rate`` without two samples, in records/s."""

    node_id: int
    address: str | None
    rack: str | None
    is_controller: bool
    leads: int
    under_replicated: int
    replicas: int
    in_sync: int
    rate: float | None
    error: str | None


@attrs.frozen
class TopicRow:
    """A topic. ``rate`` is in records/s; ``unread`` is the number of partitions with a leader but no end offset."""

    name: str
    partitions: int
    rate: float | None
    under_replicated: int
    leaderless: int
    unread: int


@attrs.frozen
class GroupRow:
    """A group.

    ``lag`` is the sum over the partitions with a known lag, None if there is none; ``unknown`` is the number of the
    other partitions. ``lag_rate`` is the change of the lag in records/s, and ``trend`` has the lag of the last samples,
    the newest last.
    """

    group_id: str
    state: str
    type: str
    members: int | None
    lag: int | None
    lag_rate: float | None
    trend: tuple[int | None, ...]
    unknown: int
    error: str | None


class Lag(NamedTuple):
    """The lag of a group: the sum over partitions, None if none is known; and the number of unknown ones."""

    total: int | None
    unknown: int


def lag_of_group(group: SampledGroup, ends: Mapping[TopicPartition, int]) -> Lag:
    """Return a group's lag. A committed offset beyond the end counts as no lag."""
    total = known = unknown = 0
    for partition, offset in group.committed.items():
        lag = group.known_lag.get(partition)
        if lag is None and partition in ends:
            lag = max(0, ends[partition] - offset)
        if lag is None:
            unknown += 1
        else:
            known += 1
            total += lag
    return Lag(total if known else None, unknown)


class History:
    """The last two samples, and the lag of each group in the samples before."""

    def __init__(self) -> None:
        self.newest: Sample | None = None
        self._before: Sample | None = None
        self._lags: dict[str, deque[int | None]] = {}
        self._by_topic: dict[str, float] = {}
        self._by_broker: dict[int, float] = {}

    def add(self, sample: Sample) -> None:
        """Add the newest sample."""
        self._before, self.newest = self.newest, sample
        lags: dict[str, deque[int | None]] = {}
        for group_id, group in sample.groups.items():
            lags[group_id] = self._lags.get(group_id) or deque(maxlen=TREND)
            lags[group_id].append(lag_of_group(group, sample.ends).total)
        self._lags = lags
        self._by_topic, self._by_broker = _rates(self._before, sample)

    @property
    def seconds(self) -> float | None:
        """The seconds between the two samples; None without two."""
        if self._before is None or self.newest is None or self.newest.at <= self._before.at:
            return None
        return self.newest.at - self._before.at

    def broker_rows(self) -> list[BrokerRow]:
        """Return a row for each broker, by id."""
        if self.newest is None:
            return []
        layout, errors, rows = self.newest.layout, self.newest.broker_errors, []
        for node_id in sorted(layout.brokers):
            numbers, node = layout.brokers[node_id], layout.nodes.get(node_id)
            rows.append(
                BrokerRow(
                    node_id=node_id,
                    address=str(node.address) if node is not None else None,
                    rack=node.rack if node is not None else None,
                    is_controller=node_id == layout.controller_id,
                    leads=numbers.leads,
                    under_replicated=numbers.under_replicated,
                    replicas=numbers.replicas,
                    in_sync=numbers.in_sync,
                    rate=self._by_broker.get(node_id),
                    error=errors.get(node_id) if node is not None else "not in service",
                )
            )
        return rows

    def topic_rows(self) -> list[TopicRow]:
        """Return a row for each topic to show, by name."""
        if self.newest is None:
            return []
        layout, read = self.newest.layout, dict.fromkeys(self.newest.layout.topics, 0)
        for partition in self.newest.ends:
            if partition.topic in read:
                read[partition.topic] += 1
        return [
            TopicRow(
                name=name,
                partitions=topic.partitions,
                rate=self._by_topic.get(name),
                under_replicated=topic.under_replicated,
                leaderless=topic.leaderless,
                unread=max(0, topic.partitions - topic.leaderless - read[name]),
            )
            for name, topic in sorted(layout.topics.items())
        ]

    def group_rows(self) -> list[GroupRow]:
        """Return a row for each group to show, by id."""
        if self.newest is None:
            return []
        rows, seconds = [], self.seconds
        for group_id, group in sorted(self.newest.groups.items()):
            trend = tuple(self._lags[group_id])
            lag, unknown = lag_of_group(group, self.newest.ends)
            before = trend[-2] if len(trend) > 1 else None
            changed = None if lag is None or before is None or seconds is None else (lag - before) / seconds
            error = group.error or group.offsets_error
            rows.append(GroupRow(group_id, group.state, group.type, group.members, lag, changed, trend, unknown, error))
        return rows


def _rates(before: Sample | None, now: Sample) -> tuple[dict[str, float], dict[int, float]]:
    """Return the records per second of topics and of the brokers that lead them.

    A partition counts if both samples have its end. Its end may be lower than before, if the topic was deleted and
    created again; it then counts as no records.
    """
    by_topic: dict[str, float] = {}
    by_broker: dict[int, float] = {}
    if before is None or now.at <= before.at:
        return by_topic, by_broker
    seconds, leaders = now.at - before.at, now.layout.leaders
    for partition, end in now.ends.items():
        earlier = before.ends.get(partition)
        if earlier is None:
            continue
        rate = max(0, end - earlier) / seconds
        by_topic[partition.topic] = by_topic.get(partition.topic, 0.0) + rate
        leader = leaders.get(partition)
        if leader is not None:
            by_broker[leader] = by_broker.get(leader, 0.0) + rate
    return by_topic, by_broker
