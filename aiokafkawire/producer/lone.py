"""Requests with one batch, as single sends are: they differ by the batch, its length, and nothing else."""

from struct import Struct
from typing import Final, NamedTuple
from uuid import UUID

from ..protocol.compiler import encode_into
from ..protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ..protocol.primitives import Buffer, encode_uvarint
from ..types import TopicPartition

__all__ = ("LoneRequests",)

_INT32: Final = Struct(">i")
_KEPT: Final = 1_000
"""Partitions whose requests are remembered, some hundred bytes each."""
_NO_SINGLETON: Final = 2
"""Of fewer bytes there are objects that everybody shares."""


class _Around(NamedTuple):
    """What is around the batch in the requests for one partition."""

    version: int
    topic_id: UUID
    compact: bool
    """Whether the batch's length is a varint."""
    before: bytes
    """All that comes before this length."""
    behind: bytes


class LoneRequests:
    """Encodes Produce requests with one batch each; what their frames have in common is encoded once a partition."""

    def __init__(self, *, acks: int, timeout_ms: int, transactional_id: str | None) -> None:
        self._acks, self._timeout_ms, self._transactional_id = acks, timeout_ms, transactional_id
        self._known: dict[TopicPartition, _Around] = {}

    def encoded(self, version: int, where: TopicPartition, topic_id: UUID, records: bytes) -> tuple[Buffer, ...]:
        """The request's parts, as :func:`~aiokafkawire.protocol.compiler.encode_into` has them.

        Raises:
            InvalidMessage, UnsupportedVersion: the version cannot carry it.
        """
        around = self._known.get(where)
        # An id that is equal, and of another snapshot, does no harm.
        if around is None or around.version != version or around.topic_id is not topic_id:
            if len(self._known) >= _KEPT:
                self._known.clear()
            around = self._known[where] = self._around(version, where, topic_id)
        size = len(records)
        length = encode_uvarint(size + 1) if around.compact else _INT32.pack(size)
        return around.before, length, records, around.behind

    def _around(self, version: int, where: TopicPartition, topic_id: UUID) -> _Around:
        records = bytes(_NO_SINGLETON)  # the encoder puts it among the parts as it is, behind its length
        data = PartitionProduceData(index=where.partition, records=records)
        topic = TopicProduceData(name=where.topic, topic_id=topic_id, partition_data=[data])
        request = ProduceRequest(
            transactional_id=self._transactional_id, acks=self._acks, timeout_ms=self._timeout_ms, topic_data=[topic]
        )
        parts: list[Buffer] = []
        encode_into(request, version, parts)
        at = next(index for index, part in enumerate(parts) if part is records)
        compact = version in ProduceRequest.flexible
        length = encode_uvarint(len(records) + 1) if compact else _INT32.pack(len(records))
        before = b"".join(parts[:at])
        return _Around(version, topic_id, compact, before.removesuffix(length), b"".join(parts[at + 1 :]))
