"""The values that a client has now: free buffers, requests in flight, lag, assigned partitions, connections."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import ref

import attrs

from ..cluster.cluster import Cluster
from ..types import TopicPartition
from .parts import part_of

if TYPE_CHECKING:
    from ..consumer.consumer import Consumer
    from ..producer.producer import Producer
    from ..share.share_consumer import ShareConsumer

__all__ = ("LiveClient", "OpenParts", "PartitionValues")

T = TypeVar("T")
NamedT = TypeVar("NamedT", "Producer[Any, Any]", "Consumer[Any, Any]", "ShareConsumer[Any, Any]")

_IN_USE = ("open", "closing")


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


class _Alive(Generic[T]):
    """Objects, while they exist. Unlike a WeakSet, which may change while another thread iterates, it can be copied."""

    def __init__(self) -> None:
        self._refs: set[ref[T]] = set()

    def add(self, it: T) -> None:
        self._refs.add(ref(it, self._refs.discard))

    def all(self) -> list[T]:
        return [it for each in list(self._refs) if (it := each()) is not None]


class LiveClient:
    """A client and the producers and consumers that it has made. Any thread may read the values."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster: Cluster = cluster
        self._producers: _Alive[Producer[Any, Any]] = _Alive()
        self._consumers: _Alive[Consumer[Any, Any]] = _Alive()
        self._share_consumers: _Alive[ShareConsumer[Any, Any]] = _Alive()

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
            _in_order(one for one in self._producers.all() if one._state in _IN_USE),
            _in_order(one for one in self._consumers.all() if one._iteration.state in _IN_USE),
            _in_order(one for one in self._share_consumers.all() if one._state in _IN_USE),
        )

    @property
    def has_producers(self) -> bool:
        """Whether there is a producer."""
        return bool(self._producers.all())

    @property
    def has_consumers(self) -> bool:
        """Whether there is a consumer, which is no share consumer."""
        return bool(self._consumers.all())

    @property
    def has_share_consumers(self) -> bool:
        """Whether there is a share consumer."""
        return bool(self._share_consumers.all())

    def is_share_group(self, group: str) -> bool:
        """Return whether a share consumer is a member of this group."""
        return any(member._config.group_id == group for member in self._share_consumers.all())

    def producers(self) -> Iterator[_ProducerValues]:
        """Return the values of each open producer."""
        for producer in self._producers.all():
            if producer._state == "open":
                accumulator = producer._accumulator
                yield _ProducerValues(accumulator.space.limit, accumulator.space.used)

    def partitions(self) -> Iterator[PartitionValues]:
        """Return the values of each assigned partition of each consumer."""
        for consumer in self._consumers.all():
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
        for consumer in self._consumers.all():
            consumer._positions.settle()

    def assigned_partitions(self) -> dict[str, int]:
        """Return the number of assigned partitions of each group; "" stands for consumers without a group."""
        found: dict[str, int] = {}
        for consumer in self._consumers.all():
            group = consumer._config.group_id or ""
            found[group] = found.get(group, 0) + len(consumer._positions.assigned)
        for member in self._share_consumers.all():
            group = member._config.group_id or ""
            found[group] = found.get(group, 0) + len(member.assignment)
        return found

    def last_poll(self) -> float | None:
        """Return when a consumer last received records, in seconds of the runtime's clock; None if none has."""
        found = [consumer._iteration.got_at for consumer in self._consumers.all()]
        return max((at for at in found if at is not None), default=None)

    def last_share_poll(self) -> float | None:
        """Return when a share consumer was last called for records, within 10 ms; None if none was."""
        found = [member._yielded_at for member in self._share_consumers.all()]
        return max((at for at in found if at), default=None)

    def connections(self) -> Iterator[tuple[str, int]]:
        """Return the part of the client that each open connection belongs to, and its number of requests in flight."""
        for lane, connection in self.cluster.brokers.in_use():
            yield part_of(lane), connection.in_flight

    def metadata_age(self, now: float) -> float:
        """Return the seconds since a broker last sent metadata; NaN if none has."""
        at = self.cluster.metadata.updated_at
        return math.nan if at is None else now - at


def _in_order(parts: Iterable[NamedT]) -> list[NamedT]:
    """Return producers or consumers by the numbers in their names."""
    return sorted(parts, key=lambda one: int(one.name.rpartition("-")[2]))
