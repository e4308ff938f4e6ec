"""The iteration of a consumer with interceptors. Consumers without interceptors use none of this."""

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, TypeVar

from ..cluster.cluster import Cluster
from ..config import ConsumerConfig
from ..errors import KafkaError
from ..interceptors import ConsumerInterceptors
from ..records.batch import ConsumerRecord
from ..records.deserialization import FailureHandler
from ..serialization import AnyDeserializer
from ..types import TopicPartition
from .completed_fetch import CompletedFetch
from .consumer_batch import ConsumerBatch
from .fetcher import Fetcher
from .health import ConsumerHealth
from .record_iteration import RecordIteration, check_poll
from .subscription_state import SubscriptionState

__all__ = ("InterceptedBatch", "InterceptedIteration")

K = TypeVar("K")
V = TypeVar("V")


class InterceptedIteration(RecordIteration[K, V]):
    """Hands out what the interceptors make of the records: of one record at a time, or of all that poll() returns."""

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        positions: SubscriptionState,
        fetcher: Fetcher,
        key_deserializer: AnyDeserializer[K] | None,
        value_deserializer: AnyDeserializer[V] | None,
        health: Callable[[], ConsumerHealth],
        failures: FailureHandler | None,
        interceptors: ConsumerInterceptors,
    ) -> None:
        super().__init__(cluster, config, positions, fetcher, key_deserializer, value_deserializer, health, failures)
        self._interceptors = interceptors
        # The records that an interceptor has made of one record, without those that the user has.
        self._made: deque[ConsumerRecord[K, V]] = deque()

    def __aiter__(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        """Iterate as :meth:`Consumer.__aiter__`."""
        return self if self.has_been_closed() else _Records(self)

    async def _next_record(self) -> ConsumerRecord[K, V]:
        while not self._made:
            record = await super()._next_record()
            self._made.extend(self._interceptors.on_consume([record]))
            if not self._made:
                await self.let_others_run()
        return self._made.popleft()

    async def next_or_end(self) -> ConsumerRecord[K, V]:
        """Return the next record; end the iteration after a close."""
        await self.let_others_run(check_clock=True)
        self._check_state(ends=True)
        return await self._next_record()

    async def poll(self, max_records: int = 500, timeout: float | None = None) -> list[ConsumerRecord[K, V]]:
        """Return records as :meth:`Consumer.poll`; without a timeout, wait until the interceptors leave some."""
        check_poll(max_records, timeout)
        self._check_state()
        while True:
            if self._made:
                return [self._made.popleft() for _ in range(min(max_records, len(self._made)))]
            records = await super().poll(max_records, timeout)
            if not records:
                return records
            records = self._interceptors.on_consume(records)
            if records or timeout is not None:
                return records

    def _take_batch(self, reading: CompletedFetch) -> ConsumerBatch[K, V] | None:
        batch = super()._take_batch(reading)
        return None if batch is None else InterceptedBatch(batch, self._interceptors.on_consume)


class _Records(AsyncIterator[ConsumerRecord[K, V]]):
    """An iterator of records that ends when the consumer is closed."""

    def __init__(self, iteration: InterceptedIteration[K, V]) -> None:
        self._iteration = iteration

    async def __anext__(self) -> ConsumerRecord[K, V]:
        return await self._iteration.next_or_end()


class InterceptedBatch(ConsumerBatch[K, V]):
    """A batch whose records pass the interceptors when they are iterated; :meth:`columns` and the like do not."""

    __slots__ = ("_made", "_on_consume")

    def __init__(
        self,
        batch: ConsumerBatch[K, V],
        on_consume: Callable[[list[ConsumerRecord[Any, Any]]], list[ConsumerRecord[Any, Any]]],
    ) -> None:
        at = TopicPartition(batch.topic, batch.partition)
        super().__init__(at, batch._reader, batch.next_offset, batch.timestamp_type)
        self._on_consume = on_consume
        self._made: deque[ConsumerRecord[K, V]] = deque()

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        records: list[ConsumerRecord[K, V]] = []
        failed = None
        try:
            records.extend(self._reader)  # which keeps those before an error
        except KafkaError as error:
            failed = error
        if records:
            self._made.extend(self._on_consume(records))
        while self._made:
            yield self._made.popleft()
        if failed is not None:
            raise failed
