"""The values that a client has now: free buffers, requests in flight, lag, assigned partitions, connections."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import ref

from .._lazy_classes import frozen
from ..cluster.cluster import Cluster
from ..cluster.live_values import MemberValues, PartitionValues, ProducerValues
from .parts import part_of

if TYPE_CHECKING:
    from ..consumer.consumer import Consumer
    from ..producer.producer import Producer
    from ..share.share_consumer import ShareConsumer

__all__ = ("LiveClient", "OpenParts")

T = TypeVar("T")
NamedT = TypeVar("NamedT", "Producer[Any, Any]", "Consumer[Any, Any]", "ShareConsumer[Any, Any]")

_IN_USE = ("open", "closing")


@frozen
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
            _in_order(one for one in self._producers.all() if one._live_values().state in _IN_USE),
            _in_order(one for one in self._consumers.all() if one._live_values().state in _IN_USE),
            _in_order(one for one in self._share_consumers.all() if one._live_values().state in _IN_USE),
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
        return any(member.group_id == group for member in self.share_members())

    def producers(self) -> list[ProducerValues]:
        """Return the values of each producer, open or not."""
        return [producer._live_values() for producer in self._producers.all()]

    def open_producers(self) -> list[ProducerValues]:
        """Return the values of each open producer."""
        return [each for each in self.producers() if each.state == "open"]

    def members(self) -> list[MemberValues]:
        """Return the values of each consumer, open or not."""
        return [consumer._live_values() for consumer in self._consumers.all()]

    def share_members(self) -> list[MemberValues]:
        """Return the values of each share consumer, open or not."""
        return [member._live_values() for member in self._share_consumers.all()]

    def partitions(self) -> Iterator[PartitionValues]:
        """Return the values of each assigned partition of each consumer that is in use."""
        consumers = self._consumers.all()
        # A consumer without a group keeps its assignment when it is closed.
        in_use = [consumer for consumer in consumers if consumer._live_values().state in _IN_USE]
        return chain.from_iterable(consumer._live_partitions() for consumer in in_use)

    def settle(self) -> None:
        """Move positions past the records that a blocking consumer's thread has taken; only for the client's loop."""
        for consumer in self._consumers.all():
            consumer._settle()

    def assigned_partitions(self) -> dict[str, int]:
        """Return the number of assigned partitions of each group in use; "" stands for consumers without a group."""
        found: dict[str, int] = {}
        for member in (*self.members(), *self.share_members()):
            if member.state not in _IN_USE:
                continue
            group = member.group_id or ""
            found[group] = found.get(group, 0) + member.assigned
        return found

    def last_poll(self) -> float | None:
        """Return when a consumer last received records, in seconds of the runtime's clock; None if none has."""
        return _latest(self.members())

    def last_share_poll(self) -> float | None:
        """Return when a share consumer was last called for records, within 10 ms; None if none was."""
        return _latest(self.share_members())

    def connections(self) -> Iterator[tuple[str, int]]:
        """Return the part of the client that each open connection belongs to, and its number of requests in flight."""
        for lane, connection in self.cluster.brokers.in_use():
            yield part_of(lane), connection.in_flight

    def metadata_age(self, now: float) -> float:
        """Return the seconds since a broker last sent metadata; NaN if none has, or the client is closed."""
        at = self.cluster.metadata.updated_at
        return math.nan if at is None or self.cluster.owner.has_closed else now - at


def _latest(members: Iterable[MemberValues]) -> float | None:
    return max((member.polled_at for member in members if member.polled_at is not None), default=None)


def _in_order(parts: Iterable[NamedT]) -> list[NamedT]:
    """Return producers or consumers by the numbers in their names."""
    return sorted(parts, key=lambda one: int(one.name.rpartition("-")[2]))
