"""What is in the open transaction, what the coordinators know of it, and what they have to be told next."""

from collections.abc import Mapping
from enum import IntEnum
from uuid import UUID

import attrs

from ..errors import KafkaError, copy_for_reraise
from ..protocol.messages.transactions import AddOffsetsToTxnRequest, AddPartitionsToTxnRequest
from ..types import GroupMetadata, OffsetAndMetadata, ProducerIdentity, TopicPartition
from .transaction_requests import Ask, add_offsets, add_partitions, commit_offsets

__all__ = ("Begun", "OffsetsCommit", "OpenTransaction")


class Begun(IntEnum):
    """Whether the coordinator has an open transaction."""

    NO = 0
    PERHAPS = 1
    YES = 2


@attrs.define(eq=False)
class OffsetsCommit:
    """A group's offsets on their way into the transaction. Once it is ``done``, ``error`` says why they are not in."""

    done: bool = False
    error: KafkaError | None = None

    def end(self, error: KafkaError | None = None) -> None:
        """They are in, or will never be; the first word counts."""
        if not self.done:
            self.done, self.error = True, error


@attrs.define(eq=False)
class _Waiting:
    """The offsets that wait for one group's coordinator, and who waits for them."""

    offsets: dict[TopicPartition, OffsetAndMetadata] = attrs.field(factory=dict)
    commits: list[OffsetsCommit] = attrs.field(factory=list)


@attrs.define(eq=False)
class OpenTransaction:
    """One transaction, from its begin to its end."""

    begun: Begun = Begun.NO
    bump: bool = False
    """Whether the epoch is to be bumped after it."""
    in_doubt: bool = False
    """Whether something of it may still be under way."""
    known: set[TopicPartition] = attrs.field(factory=set)
    """The partitions of its records; batches may go to those that are taken."""
    taken: set[TopicPartition] = attrs.field(factory=set)
    topic_ids: dict[str, UUID] = attrs.field(factory=dict)
    """The topics that acknowledged records of it, with the ids that they had then."""
    _new: list[TopicPartition] = attrs.field(factory=list)
    _asked: list[TopicPartition] = attrs.field(factory=list)
    _groups: set[str] = attrs.field(factory=set)
    _waiting: dict[GroupMetadata, _Waiting] = attrs.field(factory=dict)
    _on_their_way: list[OffsetsCommit] = attrs.field(factory=list)

    @property
    def has_waiting_offsets(self) -> bool:
        """Whether there are offsets that were not sent yet."""
        return bool(self._waiting)

    def begins(self, begun: Begun) -> None:
        """As far as is known."""
        self.begun = max(self.begun, begun)

    def add(self, where: TopicPartition, version: int) -> None:
        """Records for one more partition."""
        self.known.add(where)
        if version < 2:
            self._new.append(where)
        else:
            self.taken.add(where)
            self.begins(Begun.PERHAPS)

    def add_offsets(self, group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> OffsetsCommit:
        """Offsets of a group, together with those of it that wait."""
        waiting = self._waiting.setdefault(group, _Waiting())
        waiting.offsets.update(offsets)
        waiting.commits.append(OffsetsCommit())
        return waiting.commits[-1]

    def next(self, identity: ProducerIdentity) -> Ask | None:
        """What the coordinators do not know yet: partitions first."""
        ask = self._next_partitions(identity) or self._next_offsets(identity)
        if ask is not None:
            self.begins(Begun.PERHAPS)
        return ask

    def _next_partitions(self, identity: ProducerIdentity) -> Ask | None:
        if not self._new:
            return None
        self._asked, self._new = self._new, []
        return add_partitions(identity, self._asked)

    def _next_offsets(self, identity: ProducerIdentity) -> Ask | None:
        if not self._waiting:
            return None
        group = next(iter(self._waiting))
        if identity.transaction_version < 2 and group.group_id not in self._groups:
            return add_offsets(identity, group.group_id)
        waiting = self._waiting.pop(group)
        self._on_their_way = waiting.commits
        return commit_offsets(identity, group, waiting.offsets)

    def told(self, ask: Ask) -> None:
        """The coordinator knows it now."""
        self.begins(Begun.YES)
        if isinstance(ask.request, AddPartitionsToTxnRequest):
            self.taken.update(self._asked)
        elif isinstance(ask.request, AddOffsetsToTxnRequest):
            self._groups.add(ask.request.group_id)
        else:
            for commit in self._on_their_way:
                commit.end()

    def forget_partitions(self) -> None:
        """Nothing will be written to those that no coordinator was asked to take."""
        self._new.clear()

    def end_offsets(self, error: KafkaError) -> None:
        """No offsets get in any more."""
        waiting = [commit for each in self._waiting.values() for commit in each.commits]
        for commit in [*self._on_their_way, *waiting]:
            commit.end(copy_for_reraise(error))
        self._waiting.clear()
