"""The producer with interceptors. Producers without interceptors use none of this."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..cluster.cluster import Cluster
from ..config import ProducerConfig
from ..errors import BufferFull, KafkaError, TopicNotReady
from ..interceptors import ProducerInterceptors, ProducerRecord
from ..records.batch import Delivery
from ..types import Header, Headers, ProducerIdentity, RecordMetadata
from ._implementation import OpenBatch
from .batch import BatchResult
from .producer import Producer, checked_columns, part_of_column
from .record_checks import YIELD_EVERY, header_pairs

if TYPE_CHECKING:  # most producers use no Arrow arrays
    import pyarrow as pa

__all__ = ("InterceptedProducer",)

K = TypeVar("K", contravariant=True)
V = TypeVar("V", contravariant=True)


class InterceptedProducer(Producer[K, V]):
    """A producer whose interceptors see each record before it is serialized, and its result before the user does."""

    def __init__(
        self,
        cluster: Cluster,
        config: ProducerConfig,
        lane: str,
        key_serializer: Callable[[K], bytes] | None,
        value_serializer: Callable[[V], bytes] | None,
        identity: ProducerIdentity | None,
        interceptors: ProducerInterceptors,
    ) -> None:
        super().__init__(cluster, config, lane, key_serializer, value_serializer, identity)
        self._interceptors = interceptors
        self._accepted = 0

    async def send(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> RecordMetadata:
        """Send one record as :meth:`Producer.send`."""
        batch, index = await self._accept(self._intercepted(topic, value, key, partition, timestamp_ms, headers))
        if not index:
            unwritten = self._sender.send_immediately()
            if unwritten is not None:
                await unwritten
        else:
            self._wake_for(batch, index)
        return await batch.result.wait(index)

    async def enqueue(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> Delivery:
        """Accept one record as :meth:`Producer.enqueue`."""
        self._accepted += 1
        if self._accepted % YIELD_EVERY == 0:
            await self._let_others_run()
        batch, index = await self._accept(self._intercepted(topic, value, key, partition, timestamp_ms, headers))
        self._wake_for(batch, index)
        return Delivery(batch.result, index)

    def send_nowait(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> Delivery:
        """Accept one record as :meth:`Producer.send_nowait`."""
        record = self._intercepted(topic, value, key, partition, timestamp_ms, headers)
        try:
            batch, index = self._append(*_arguments(record))
        except BaseException as error:
            self._not_accepted(record, error)
            raise
        self._watch(batch, record)
        self._wake_for(batch, index)
        return Delivery(batch.result, index)

    async def enqueue_many(
        self,
        topic: str,
        values: "Sequence[V | None] | pa.Array | pa.ChunkedArray",
        *,
        keys: "Sequence[K | None] | pa.Array | pa.ChunkedArray | None" = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> int:
        """Accept many records as :meth:`Producer.enqueue_many`, each through the interceptors."""
        count, done = checked_columns(values, keys), 0
        try:
            for first in range(0, count, YIELD_EVERY):
                await self._let_others_run()
                part = part_of_column(values, first)
                part_keys = [None] * len(part) if keys is None else part_of_column(keys, first)
                for value, key in zip(part, part_keys, strict=True):
                    record = self._intercepted(topic, value, key, partition, timestamp_ms, headers)
                    self._wake_for(*await self._accept(record))
                    done += 1
        except KafkaError as error:
            error.add_note(f"{done} records before it were accepted")
            raise
        return count

    def _intercepted(
        self,
        topic: str,
        value: V | None,
        key: K | None,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers,
    ) -> ProducerRecord[Any, Any]:
        self._cluster.owner.require_own_loop()
        return self._interceptors.on_send(
            ProducerRecord(
                topic=topic,
                value=value,
                key=key,
                partition=partition,
                timestamp_ms=timestamp_ms,
                headers=() if headers is None else tuple(header_pairs(headers)),
            )
        )

    async def _accept(self, record: ProducerRecord[Any, Any]) -> tuple[OpenBatch, int]:
        try:
            try:
                batch, index = self._append(*_arguments(record))
            except (TopicNotReady, BufferFull):
                batch, index = await self._wait_and_append(*_arguments(record))
        except BaseException as error:
            self._not_accepted(record, error)
            raise
        self._watch(batch, record)
        return batch, index

    def _wake_for(self, batch: OpenBatch, index: int) -> None:
        if not index or batch.builder.size >= batch.builder.limit:
            self._sender.wake()

    def _not_accepted(self, record: ProducerRecord[Any, Any], error: BaseException) -> None:
        """Call the interceptors for a record that no batch has."""
        reason = error
        if not isinstance(reason, Exception):
            reason = KafkaError("the call was cancelled before the record was accepted")
            reason.__cause__ = error
        partition = -1 if record.partition is None else record.partition
        self._interceptors.on_acknowledgement(RecordMetadata(record.topic, partition, -1, -1), reason, record.headers)

    def _watch(self, batch: OpenBatch, record: ProducerRecord[Any, Any]) -> None:
        """Call the interceptors when the batch, whose last record this is, has ended."""
        result = batch.result
        assert isinstance(result, BatchResult)  # this producer's accumulator has made it
        if result.on_end is None:
            result.on_end = _BatchEnd(self._interceptors)
        result.on_end.headers.append(record.headers)

    async def _stop(self) -> None:
        try:
            await super()._stop()
        finally:
            self._interceptors.close()


class _BatchEnd:
    """Calls the interceptors for each record of a batch that has ended.

    Args:
        interceptors: the producer's interceptors.
        headers: the headers of each record of the batch.
    """

    def __init__(self, interceptors: ProducerInterceptors, headers: Sequence[tuple[Header, ...]] = ()) -> None:
        self._interceptors = interceptors
        self.headers: list[tuple[Header, ...]] = list(headers)
        """The headers of each record, in order."""

    def __call__(self, result: BatchResult) -> None:
        """Call the interceptors with the result of each record."""
        for index, headers in enumerate(self.headers):
            failed = RecordMetadata(*result.partition, -1, -1)
            metadata = result.metadata_at(index) if result.error is None else failed
            self._interceptors.on_acknowledgement(metadata, result.error, headers)

    def part(self, first: int, count: int) -> "_BatchEnd":
        """Return the object for ``count`` records from ``first`` on, when the batch is split."""
        return _BatchEnd(self._interceptors, self.headers[first : first + count])


def _arguments(record: ProducerRecord[Any, Any]) -> tuple[str, Any, Any, int | None, int | None, Headers]:
    return record.topic, record.value, record.key, record.partition, record.timestamp_ms, record.headers
