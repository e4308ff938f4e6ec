"""The values that a client has now: free buffers, requests in flight, lag, assigned partitions, connections."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import attrs

from ..cluster.cluster import Cluster
from ..types import TopicPartition

if TYPE_CHECKING:
    from ..consumer.consumer import Consumer
    from ..producer.producer import Producer
    from ..share.share_consumer import ShareConsumer

__all__ = ("LiveClient", "OpenParts", "PartitionValues", "part_of")

_IN_USE = ("open", "closing")
_PRODUCER_LANES = ("produce-",)
_CONSUMER_LANES = ("fetch-", "commit-", "group-", "join-", "share-")


def part_of(lane: str) -> str:
    """Return what a connection is for: ``"producer"``, ``"consumer"`` or ``"admin-client"``.

    The shared connections, for metadata and coordinators, count as those of the admin client.
    """
    if lane.startswith(_PRODUCER_LANES):
        return "producer"
    return "consumer" if lane.startswith(_CONSUMER_LANES) else "admin-client"


@attrs.frozen
class PartitionValues:
    """A consumer's partition."""

    group: str
    """The consumer's group; "" without one."""
    partition: TopicPartition
    lag: int | None
    """The number of records to read; None if it is not known yet."""
    lead: int | None
    """The number of records between the beginning of the log and the position; None if it is not known."""
    replica: int
    """The replica that is read instead of the leader; -1 if the leader is read."""


@attrs.frozen
class _ProducerValues:
    buffer_total: int
    buffer_used: int


@attrs.frozen
class OpenParts:
    """The open producers and consumers of a client."""

    producers: "Sequence[Producer[Any, Any]]"
    consumers: "Sequence[Consumer[Any, Any]]"
    share_consumers: "Sequence[ShareConsumer[Any, Any]]"


class LiveClient:
    """A client and the producers and consumers that it has made. Any thread may read the values."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster: Cluster = cluster
        self._producers: WeakSet[Producer[Any, Any]] = WeakSet()
        self._consumers: WeakSet[Consumer[Any, Any]] = WeakSet()
        self._share_consumers: WeakSet[ShareConsumer[Any, Any]] = WeakSet()

    def add_producer(self, producer: "Producer[Any, Any]") -> None:
        """Read this producer's values, too, while it exists."""
        self._producers.add(producer)

    def add_consumer(self, consumer: "Consumer[Any, Any]") -> None:
        """Read this consumer's values, too, while it exists."""
        self._consumers.add(consumer)

    def add_share_consumer(self, consumer: "ShareConsumer[Any, Any]") -> None:
        """Read this share consumer's values, too, while it exists."""
        self._share_consumers.add(consumer)

    def parts(self) -> "OpenParts":
        """Return the client's open producers and consumers, in the order in which they were made."""
        return OpenParts(
            sorted((one for one in list(self._producers) if one._state in _IN_USE), key=lambda one: _number(one.name)),
            sorted(
                (one for one in list(self._consumers) if one._iteration.state in _IN_USE),
                key=lambda one: _number(one.name),
            ),
            sorted(
                (one for one in list(self._share_consumers) if one._state in _IN_USE),
                key=lambda one: _number(one.name),
            ),
        )

    @property
    def has_producers(self) -> bool:
        """Whether there is a producer."""
        return bool(self._producers)

    @property
    def has_consumers(self) -> bool:
        """Whether there is a consumer or a share consumer."""
        return bool(self._consumers) or bool(self._share_consumers)

    def producers(self) -> Iterator[_ProducerValues]:
        """Return the values of each open producer."""
        for producer in list(self._producers):
            if producer._state == "open":
                accumulator = producer._accumulator
                yield _ProducerValues(accumulator.space.limit, accumulator.space.used)

    def partitions(self) -> Iterator[PartitionValues]:
        """Return the values of each assigned partition of each consumer."""
        for consumer in list(self._consumers):
            for state in consumer._positions.unsettled():
                position, end, start = state.position, state.high_watermark, state.log_start
                if state.committed_end is not None:
                    end = state.committed_end
                yield PartitionValues(
                    consumer._config.group_id or "",
                    state.partition,
                    max(0, end - position) if position is not None and end is not None else None,
                    max(0, position - start) if position is not None and start is not None else None,
                    -1 if state.replica is None else state.replica,
                )

    def settle(self) -> None:
        """Move positions past the records that a blocking consumer's thread has taken; only for the client's loop."""
        for consumer in list(self._consumers):
            consumer._positions.settle()

    def assigned_partitions(self) -> dict[str, int]:
        """Return the number of assigned partitions of each group; "" stands for consumers without a group."""
        found: dict[str, int] = {}
        for consumer in list(self._consumers):
            group = consumer._config.group_id or ""
            found[group] = found.get(group, 0) + len(consumer._positions.assigned)
        for member in list(self._share_consumers):
            group = member._config.group_id or ""
            found[group] = found.get(group, 0) + len(member.assignment)
        return found

    def last_poll(self) -> float | None:
        """Return when a consumer last received records, in seconds of the runtime's clock; None if none has."""
        found = [consumer._iteration.got_at for consumer in list(self._consumers)]
        return max((at for at in found if at is not None), default=None)

    def connections(self) -> Iterator[tuple[str, str, int]]:
        """Return what each open connection is for, the broker's address, and its number of requests in flight."""
        for address, lane, connection in self.cluster.brokers.in_use():
            yield part_of(lane), str(address), connection.in_flight

    def node_ids(self) -> dict[str, str]:
        """Return the ids of the known brokers by address."""
        return {str(node.address): str(node_id) for node_id, node in self.cluster.metadata.snapshot.nodes.items()}

    def metadata_age(self, now: float) -> float:
        """Return the seconds since a broker last sent metadata; NaN if none has."""
        at = self.cluster.metadata.updated_at
        return math.nan if at is None else now - at


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])
