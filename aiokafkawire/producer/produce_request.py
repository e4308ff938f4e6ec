"""The encoding of batches in Produce requests, and the assignment of the responses to the batches."""

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from ..errors import UnsupportedVersion
from ..protocol.compiler import encode_into
from ..protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ..protocol.primitives import Buffer, encode_uvarint
from ..protocol.schema import Versions
from ..types import TopicPartition
from .batch import ProducerBatch
from .in_flight_requests import InFlightRequest
from .legacy_message_format import FIRST_WITH_BATCHES, NEWEST_MAGIC, magic_of

__all__ = ("BatchResponse", "ProduceRequestEncoder", "accepted_versions", "batch_responses", "single_response")

BatchResponse: TypeAlias = tuple[ProducerBatch, PartitionProduceResponse | None]
"""A batch with its part of the response; None if the response lacks the batch."""

# Requests have no topic names from v13 on (KIP-516), so v12 is the last version for topics without known ids.
_ANY: Final = Versions.parse("0+")
_BY_NAME: Final = Versions.parse("0-12")
_INT32: Final = Struct(">i")
_MAX_CACHED: Final = 1_000
"""The maximum number of partitions with a cached envelope, which has a few hundred bytes."""
_NO_SINGLETON: Final = 2
"""The minimum length of a bytes object with a unique identity: shorter ones are interned."""


def accepted_versions(batches: Sequence[ProducerBatch]) -> Versions:
    """Return all versions of Produce, or only those with topic names if the id of a batch's topic is unknown."""
    return _ANY if all(batch.topic_id.int for batch in batches) else _BY_NAME


class _Envelope(NamedTuple):
    """The bytes before and after the batch in a partition's requests with a single batch."""

    version: int
    topic_id: UUID
    compact: bool
    """Whether the batch's length is a varint."""
    before: bytes
    """The request's bytes before the batch's length."""
    after: bytes


class ProduceRequestEncoder:
    """The encoder of Produce requests; for requests with one batch, it caches each partition's :class:`_Envelope`."""

    def __init__(self, *, acks: int, timeout_ms: int, transactional_id: str | None, requires_idempotence: bool) -> None:
        self._acks, self._timeout_ms, self._transactional_id = acks, timeout_ms, transactional_id
        self._requires_idempotence = requires_idempotence
        self._envelopes: dict[TopicPartition, _Envelope] = {}

    def encode(self, version: int, batches: Sequence[ProducerBatch]) -> Sequence[Buffer]:
        """Return the encoded request in parts, which are to be sent one after the other.

        Raises:
            InvalidMessage, UnsupportedVersion: this version of the request cannot carry the batches.
        """
        magic = NEWEST_MAGIC if version >= FIRST_WITH_BATCHES else magic_of(version)
        if len(batches) == 1:
            batch = batches[0]
            return self.encode_single(version, batch.partition, batch.topic_id, batch.encode(magic))
        topics: dict[str, TopicProduceData] = {}
        for batch in batches:
            name, index = batch.partition
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = TopicProduceData(name=name, topic_id=batch.topic_id, partition_data=[])
            topic.partition_data.append(PartitionProduceData(index=index, records=batch.encode(magic)))
        return self._encode(version, list(topics.values()))

    def encode_single(
        self, version: int, partition: TopicPartition, topic_id: UUID, records: bytes
    ) -> tuple[Buffer, ...]:
        """Return the parts of a request with one batch; raises as :meth:`encode`."""
        envelope = self._envelopes.get(partition)
        # Comparing the ids' identity is enough: an equal id of another snapshot only costs a new envelope.
        if envelope is None or envelope.version != version or envelope.topic_id is not topic_id:
            if len(self._envelopes) >= _MAX_CACHED:
                self._envelopes.clear()
            envelope = self._envelopes[partition] = self._envelope(version, partition, topic_id)
        size = len(records)
        length = encode_uvarint(size + 1) if envelope.compact else _INT32.pack(size)
        return envelope.before, length, records, envelope.after

    def _encode(self, version: int, topics: list[TopicProduceData]) -> list[Buffer]:
        request = ProduceRequest(
            transactional_id=self._transactional_id, acks=self._acks, timeout_ms=self._timeout_ms, topic_data=topics
        )
        parts: list[Buffer] = []
        encode_into(request, version, parts)
        return parts

    def _envelope(self, version: int, partition: TopicPartition, topic_id: UUID) -> _Envelope:
        records = bytes(_NO_SINGLETON)  # the encoder puts this very object among the parts, behind its length
        data = PartitionProduceData(index=partition.partition, records=records)
        parts = self._encode(
            version, [TopicProduceData(name=partition.topic, topic_id=topic_id, partition_data=[data])]
        )
        at = next(index for index, part in enumerate(parts) if part is records)
        compact = version in ProduceRequest.flexible
        length = encode_uvarint(len(records) + 1) if compact else _INT32.pack(len(records))
        before = b"".join(parts[:at])
        return _Envelope(version, topic_id, compact, before.removesuffix(length), b"".join(parts[at + 1 :]))

    def unsupported(
        self, version: int, batches: Sequence[ProducerBatch], broker: str
    ) -> list[tuple[ProducerBatch, UnsupportedVersion]]:
        """Return each batch that an old version of the request cannot carry, with the error that explains it."""
        refused: list[tuple[ProducerBatch, UnsupportedVersion]] = []
        for batch in batches if version < FIRST_WITH_BATCHES else ():
            try:
                if batch.base_sequence >= 0 and self._requires_idempotence:
                    raise UnsupportedVersion(
                        f"{broker} is older than idempotence, which came with Kafka 0.11 (KIP-98): "
                        "leave enable_idempotence out"
                    )
                batch.encode(magic_of(version))
            except UnsupportedVersion as error:
                refused.append((batch, error))
        return refused


def single_response(request: InFlightRequest, response: ProduceResponse) -> PartitionProduceResponse | None:
    """Return the response's part for the request's only batch; None if there are several batches or no such part."""
    if len(request.batches) != 1 or len(response.responses) != 1:
        return None
    batch, topic = request.batches[0], response.responses[0]
    answers = topic.partition_responses
    is_it = topic.name == batch.partition.topic or (not topic.name and topic.topic_id.int == batch.topic_id.int)
    return answers[0] if is_it and len(answers) == 1 and answers[0].index == batch.partition.partition else None


def batch_responses(request: InFlightRequest, response: ProduceResponse) -> Iterator[BatchResponse]:
    """Yield each batch of the request with its part of the response, or with None if there is no such part."""
    names = {batch.topic_id: batch.partition.topic for batch in request.batches}
    found: dict[Any, PartitionProduceResponse] = {}
    for topic in response.responses:
        name = topic.name or names.get(topic.topic_id, "")
        for answer in topic.partition_responses:
            found[TopicPartition(name, answer.index)] = answer
    for batch in request.batches:
        yield batch, found.get(batch.partition)
