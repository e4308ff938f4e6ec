"""The producer whose records are prepared before they are appended. Producers with functions alone use none of this."""

from collections.abc import Sequence
from typing import Any, TypeVar

from ..cluster.cluster import Cluster
from ..config import ProducerConfig
from ..errors import BufferFull, KafkaError, TopicNotReady
from ..records.batch import Delivery
from ..serialization import AnySerializer, knows_record
from ..types import Headers, ProducerIdentity, RecordMetadata
from ._implementation import OpenBatch
from .many_records import ArrowData, many_records
from .producer import Producer
from .record_checks import YIELD_EVERY, PartitionNotKnown
from .record_serializer import RecordSerializer

__all__ = ("SerializingProducer",)

K = TypeVar("K", contravariant=True)
V = TypeVar("V", contravariant=True)


class SerializingProducer(Producer[K, V]):
    """A producer whose serializers may know the record, and may be asynchronous.

    A call awaits the serializers before the record is appended. If it is cancelled meanwhile, nothing is sent.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ProducerConfig,
        lane: str,
        key_serializer: AnySerializer[K] | None,
        value_serializer: AnySerializer[V] | None,
        identity: ProducerIdentity | None,
    ) -> None:
        self._serializer: RecordSerializer | None = None
        functions: tuple[Any, Any] = key_serializer, value_serializer
        if any(knows_record(serializer, "serialize") for serializer in functions):
            self._serializer = RecordSerializer(key_serializer, value_serializer)
            functions = None, None
        super().__init__(cluster, config, lane, *functions, identity)
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
        batch, index = await self._accept(topic, value, key, partition, timestamp_ms, headers)
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
        batch, index = await self._accept(topic, value, key, partition, timestamp_ms, headers)
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
        """Accept one record as :meth:`Producer.send_nowait`; UsageError if a serializer is asynchronous."""
        batch, index = self._accept_now(topic, value, key, partition, timestamp_ms, headers)
        self._wake_for(batch, index)
        return Delivery(batch.result, index)

    async def enqueue_many(
        self,
        topic: str,
        values: Sequence[V | None] | ArrowData,
        *,
        keys: Sequence[K | None] | ArrowData | None = None,
        partition: int | ArrowData | None = None,
        timestamp_ms: int | ArrowData | None = None,
        headers: Headers | ArrowData = (),
    ) -> int:
        """Accept many records as :meth:`Producer.enqueue_many`, each prepared by itself."""
        records, done = many_records(values, keys, partition, timestamp_ms, headers, raw=False), 0
        try:
            while done < len(records):
                await self._let_others_run()
                part = records.rows(done, YIELD_EVERY)
                for index in range(part.count):
                    self._wake_for(*await self._accept(topic, *part.record(index)))
                    done += 1
        except KafkaError as error:
            error.add_note(f"{done} records before it were accepted")
            raise
        return len(records)

    async def _accept(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers,
    ) -> tuple[OpenBatch, int]:
        """Serialize a record and append it to a batch; return the batch and the record's index in the batch."""
        if self._serializer is not None:
            self._require_open()
            transaction = self._transaction
            value, key, headers = await self._serializer.serialize(topic, value, key, headers)
            self._require_same(transaction, "was being serialized")
        try:
            return self._append(topic, value, key, partition, timestamp_ms, headers)
        except (TopicNotReady, BufferFull, PartitionNotKnown):
            return await self._wait_and_append(topic, value, key, partition, timestamp_ms, headers)

    def _accept_now(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers,
    ) -> tuple[OpenBatch, int]:
        """Serialize and append a record as :meth:`_accept`, without waiting."""
        if self._serializer is not None:
            self._require_open()
            value, key, headers = self._serializer.serialize_now(topic, value, key, headers)
        return self._append(topic, value, key, partition, timestamp_ms, headers)

    def _wake_for(self, batch: OpenBatch, index: int) -> None:
        if not index or batch.builder.size >= batch.builder.limit:
            self._sender.wake()
