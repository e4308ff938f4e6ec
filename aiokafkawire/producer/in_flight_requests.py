"""The produce requests in flight, by broker and by partition."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import attrs

from ..cluster.metadata import Snapshot
from ..errors import KafkaError
from ..types import TopicPartition
from .batch import ProducerBatch

__all__ = ("InFlightRequest", "InFlightRequests")


class _HandlesResponses(Protocol):
    """The part of the sender to which a request passes its result."""

    def response_received(self, request: "InFlightRequest", frame: bytes, position: int) -> None:
        """Complete the request with its response, whose body begins at ``position`` of ``frame``."""

    def request_failed(self, request: "InFlightRequest", error: KafkaError) -> None:
        """Complete a request that gets no response."""


@attrs.define(eq=False)
class InFlightRequest:
    """A produce request. The connection calls either :meth:`resolve` or :meth:`fail`, once."""

    broker: int
    """The broker's node id."""
    batches: list[ProducerBatch]
    sent_at: float
    sender: _HandlesResponses = attrs.field(init=False)
    snapshot: Snapshot = attrs.field(init=False)
    """The metadata that named the broker as the leader of the batches' partitions."""
    connection: Any = attrs.field(init=False)  # a Connection; this module may not import the network
    version: int = -1

    def resolve(self, frame: bytes, position: int) -> None:
        """Pass the response on to the sender."""
        self.sender.response_received(self, frame, position)

    def fail(self, error: KafkaError) -> None:
        """Pass the connection's error on to the sender."""
        self.sender.request_failed(self, error)


class InFlightRequests:
    """The requests that were sent and have neither a response nor an error, oldest first."""

    def __init__(self) -> None:
        self._by_broker: dict[int, deque[InFlightRequest]] = {}
        self._by_partition: dict[TopicPartition, deque[ProducerBatch]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_broker)

    def add(self, request: InFlightRequest) -> None:
        """Add a request and its batches."""
        self._by_broker.setdefault(request.broker, deque()).append(request)
        for batch in request.batches:
            self._by_partition.setdefault(batch.partition, deque()).append(batch)

    def remove(self, request: InFlightRequest) -> None:
        """Remove a request and its batches."""
        _remove(self._by_broker, request.broker, request)
        for batch in request.batches:
            _remove(self._by_partition, batch.partition, batch)

    def remove_batch(self, request: InFlightRequest, batch: ProducerBatch) -> None:
        """Remove one batch, which was not sent, from its request."""
        request.batches.remove(batch)
        _remove(self._by_partition, batch.partition, batch)

    def requests(self, broker: int) -> Sequence[InFlightRequest]:
        """Return the requests in flight to this broker, oldest first."""
        return self._by_broker.get(broker, ())

    def batches(self, partition: TopicPartition) -> Sequence[ProducerBatch]:
        """Return the partition's batches in flight, oldest first."""
        return self._by_partition.get(partition, ())

    def all_batches(self) -> Iterator[ProducerBatch]:
        """Return all batches in flight."""
        return (batch for batches in self._by_partition.values() for batch in batches)

    def all_requests(self) -> list[InFlightRequest]:
        """Return all requests in flight; those to one broker are in their order."""
        return [request for requests in self._by_broker.values() for request in requests]

    def oldest(self) -> Iterable[InFlightRequest]:
        """Return the oldest request in flight to each broker."""
        return [requests[0] for requests in self._by_broker.values()]


def _remove(queues: dict[Any, deque[Any]], key: object, item: object) -> None:
    queue = queues[key]
    if queue[0] is item:
        queue.popleft()
    else:
        queue.remove(item)
    if not queue:
        del queues[key]
