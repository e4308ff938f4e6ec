"""The producer with interceptors. Producers without interceptors use none of this."""

from collections.abc import Sequence
from typing import Any, TypeVar

from ..cluster.cluster import Cluster
from ..config import ProducerConfig
from ..errors import KafkaError
from ..interceptors import ProducerInterceptors, ProducerRecord
from ..serialization import AnySerializer
from ..types import Header, Headers, ProducerIdentity, RecordMetadata
from ._implementation import OpenBatch
from .batch import BatchResult
from .record_checks import header_pairs
from .serializing_producer import SerializingProducer

__all__ = ("InterceptedProducer",)

K = TypeVar("K", contravariant=True)
V = TypeVar("V", contravariant=True)


class InterceptedProducer(SerializingProducer[K, V]):
    """A producer whose interceptors see each record before it is serialized, and its result before the user does."""

    def __init__(
        self,
        cluster: Cluster,
        config: ProducerConfig,
        lane: str,
        key_serializer: AnySerializer[K] | None,
        value_serializer: AnySerializer[V] | None,
        identity: ProducerIdentity | None,
        interceptors: ProducerInterceptors,
    ) -> None:
        super().__init__(cluster, config, lane, key_serializer, value_serializer, identity)
        self._interceptors = interceptors

    async def _accept(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers,
    ) -> tuple[OpenBatch, int]:
        record = self._intercepted(topic, value, key, partition, timestamp_ms, headers)
        try:
            batch, index = await super()._accept(*_arguments(record))
        except BaseException as error:
            self._not_accepted(record, error)
            raise
        self._watch(batch, record)
        return batch, index

    def _accept_now(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers,
    ) -> tuple[OpenBatch, int]:
        record = self._intercepted(topic, value, key, partition, timestamp_ms, headers)
        try:
            batch, index = super()._accept_now(*_arguments(record))
        except BaseException as error:
            self._not_accepted(record, error)
            raise
        self._watch(batch, record)
        return batch, index

    def _intercepted(
        self,
        topic: str,
        value: Any,
        key: Any,
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
