"""The open transaction: its partitions and offsets, some of which must still be sent to coordinators."""

from collections.abc import Mapping
from enum import IntEnum
from uuid import UUID

import attrs

from ..errors import KafkaError, copy_for_reraise
from ..protocol.messages.transactions import AddOffsetsToTxnRequest, AddPartitionsToTxnRequest
from ..types import GroupMetadata, OffsetAndMetadata, ProducerIdentity, TopicPartition
from .transaction_requests import TransactionRequest, add_offsets, add_partitions, commit_offsets

__all__ = ("TransactionStarted", "OffsetsCommit", "OpenTransaction")


class TransactionStarted(IntEnum):
    """The producer's knowledge of whether the transaction has started at the coordinator."""

    NO = 0
    MAYBE = 1
    YES = 2


@attrs.define(eq=False)
class OffsetsCommit:
    """The commit of a group's offsets with the transaction; if ``done`` and without an ``error``, it has succeeded."""

    done: bool = False
    error: KafkaError | None = None

    def complete(self, error: KafkaError | None = None) -> None:
        """Complete the commit, with an error if it failed; later calls are ignored."""
        if not self.done:
            self.done, self.error = True, error


@attrs.define(eq=False)
class _WaitingOffsets:
    """The offsets to send to one group's coordinator, and the commits that wait for its response."""

    offsets: dict[TopicPartition, OffsetAndMetadata] = attrs.field(factory=dict)
    topic_ids: dict[str, UUID] = attrs.field(factory=dict)
    """The ids of the topics that the offsets belong to, as far as they are known."""
    commits: list[OffsetsCommit] = attrs.field(factory=list)


@attrs.define(eq=False)
class OpenTransaction:
    """A transaction of the producer, from its beginning to its end."""

    started: TransactionStarted = TransactionStarted.NO
    bump: bool = False
    """Whether the producer's epoch is bumped after the transaction."""
    in_doubt: bool = False
    """Whether a broker may still write records or offsets of the transaction."""
    partitions: set[TopicPartition] = attrs.field(factory=set)
    """The partitions of the transaction's records; batches may be sent only to those in ``added``."""
    added: set[TopicPartition] = attrs.field(factory=set)
    topic_ids: dict[str, UUID] = attrs.field(factory=dict)
    """The ids of the topics to which batches of the transaction were written, as of each topic's first batch."""
    _new: list[TopicPartition] = attrs.field(factory=list)
    _adding: list[TopicPartition] = attrs.field(factory=list)
    _groups: set[str] = attrs.field(factory=set)
    _waiting: dict[GroupMetadata, _WaitingOffsets] = attrs.field(factory=dict)
    _committing: list[OffsetsCommit] = attrs.field(factory=list)

    @property
    def has_waiting_offsets(self) -> bool:
        """Whether offsets wait to be sent to a coordinator."""
        return bool(self._waiting)

    def mark_started(self, started: TransactionStarted) -> None:
        """Record that the transaction has started, or may have started, at the coordinator."""
        self.started = max(self.started, started)

    def add(self, partition: TopicPartition, version: int) -> None:
        """Add the partition of a record to this transaction of ``version`` 1 or 2 (``transaction.version``)."""
        self.partitions.add(partition)
        if version < 2:
            self._new.append(partition)
        else:
            self.added.add(partition)
            self.mark_started(TransactionStarted.MAYBE)

    def add_offsets(
        self, group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata], topic_ids: Mapping[str, UUID]
    ) -> OffsetsCommit:
        """Return a new commit of these offsets; they are sent together with the group's other waiting offsets."""
        waiting = self._waiting.setdefault(group, _WaitingOffsets())
        waiting.offsets.update(offsets)
        waiting.topic_ids.update(topic_ids)
        waiting.commits.append(OffsetsCommit())
        return waiting.commits[-1]

    def next_request(self, identity: ProducerIdentity) -> TransactionRequest | None:
        """Return the next request: for new partitions, otherwise for waiting offsets; None if there are neither."""
        request = self._next_partitions(identity) or self._next_offsets(identity)
        if request is not None:
            self.mark_started(TransactionStarted.MAYBE)
        return request

    def _next_partitions(self, identity: ProducerIdentity) -> TransactionRequest | None:
        if not self._new:
            return None
        self._adding, self._new = self._new, []
        return add_partitions(identity, self._adding)

    def _next_offsets(self, identity: ProducerIdentity) -> TransactionRequest | None:
        if not self._waiting:
            return None
        group = next(iter(self._waiting))
        if identity.transaction_version < 2 and group.group_id not in self._groups:
            return add_offsets(identity, group.group_id)
        waiting = self._waiting.pop(group)
        self._committing = waiting.commits
        return commit_offsets(identity, group, waiting.offsets, waiting.topic_ids)

    def succeeded(self, done: TransactionRequest) -> None:
        """Record that a coordinator has carried out the request ``done``."""
        self.mark_started(TransactionStarted.YES)
        if isinstance(done.request, AddPartitionsToTxnRequest):
            self.added.update(self._adding)
        elif isinstance(done.request, AddOffsetsToTxnRequest):
            self._groups.add(done.request.group_id)
        else:
            for commit in self._committing:
                commit.complete()

    def drop_new_partitions(self) -> None:
        """Drop the partitions that were not sent to the coordinator: no record will be written to them."""
        self._new.clear()

    def fail_offsets(self, error: KafkaError) -> None:
        """Fail all commits of offsets, except those that are done."""
        waiting = [commit for offsets in self._waiting.values() for commit in offsets.commits]
        for commit in [*self._committing, *waiting]:
            commit.complete(copy_for_reraise(error))
        self._waiting.clear()
