"""A batch on its way through the producer."""

from typing import Final
from uuid import UUID

import attrs

from ..errors import KafkaError
from ..protocol.primitives import ZERO_UUID
from ..records.batch import BatchBuilder, halve
from ..types import TopicPartition
from .appending import OpenBatch
from .idempotence import after
from .old_formats import NEWEST_MAGIC, as_message_set
from .result import BatchResult

__all__ = ("Batch",)

_HEAVY: Final = 64 * 1024
"""Batches above this are compressed on a thread."""


@attrs.define(eq=False)
class Batch:
    """Records of one partition that travel together."""

    where: TopicPartition
    order: tuple[int, int]
    """Batches of a partition go in this order: its number, and which of that batch's records is its first."""
    opened: OpenBatch
    """Its records, and where they come in as long as it is open."""
    result: BatchResult
    created_at: float
    transactional: bool = False
    compressing: bool = False
    """Whether a thread is at work on it."""
    compressed: bool = False
    not_before: float = float("-inf")
    """When it may be tried again."""
    tries: int = 0
    last_error: KafkaError | None = None
    """Why it is still here: what the last try brought, its own or that of the batch before it."""
    sealed: bytes | None = None
    """Its bytes, once built; a retry sends the same."""
    magic: int = NEWEST_MAGIC
    """The format of ``sealed``."""
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    sent_to: int = -1
    """The broker that it was last sent to."""
    topic_id: UUID = ZERO_UUID
    """Its topic's id when it was last sent."""
    in_doubt: bool = False
    """Whether a request may have written it, although no acknowledgement came."""

    @property
    def builder(self) -> BatchBuilder:
        """Its records, encoded."""
        return self.opened.builder

    @property
    def closed(self) -> bool:
        """Whether it takes no more records: it is full, was sent once, or will not be sent."""
        return self.opened.closed

    def close(self) -> None:
        """It takes no more records."""
        self.opened.closed = True

    @property
    def count(self) -> int:
        """How many records it has."""
        return self.builder.count

    @property
    def is_heavy(self) -> bool:
        """Whether compressing it would hold the event loop for long."""
        return bool(self.builder.codec) and not self.compressed and self.builder.size > _HEAVY

    def seal(self, magic: int = NEWEST_MAGIC) -> bytes:
        """Its bytes, with its number in them; in message sets, of a ``magic`` below 2, numbers have no place.

        Raises:
            UnsupportedVersion: an old format has no place for something else, which is of use: headers, transactions.
        """
        if self.magic != magic:
            self.sealed, self.magic = None, magic
        if self.sealed is None and magic < NEWEST_MAGIC:
            self.sealed = as_message_set(self.builder, magic, transactional=self.transactional)
        elif self.sealed is None:
            self.sealed = self.opened.builder.build(
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                base_sequence=self.base_sequence,
                transactional=self.transactional,
            )
        return self.sealed

    def went_to_another_topic(self, topic_id: UUID) -> bool:
        """Return whether it was last sent to another topic than the one that has this id now."""
        return bool(self.tries) and ZERO_UUID not in (self.topic_id, topic_id) and self.topic_id != topic_id

    def forget_number(self) -> None:
        """It was not written under its number, and gets another."""
        self.producer_id = self.producer_epoch = self.base_sequence = -1
        self.sealed = None

    def halves(self) -> "tuple[Batch, Batch]":
        """Two batches with the records of one that a broker found too large. Their numbers are within its own.

        Whoever waits for a record does not notice: the result passes them on.
        """
        parts, first = [], 0
        builders = halve(self.builder)
        results = self.result.split([builder.count for builder in builders])
        for builder, result in zip(builders, results, strict=True):
            part = attrs.evolve(
                self,
                order=(self.order[0], self.order[1] + first),
                opened=OpenBatch(builder, result, result.timestamps),
                result=result,
                compressed=False,
                sealed=None,
                base_sequence=after(self.base_sequence, first) if self.base_sequence >= 0 else -1,
            )
            part.close()
            parts.append(part)
            first += builder.count
        return parts[0], parts[1]
