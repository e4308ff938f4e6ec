"""A consumer's assigned partitions and their positions."""

import math
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Protocol
from uuid import UUID

import attrs

from ..errors import CommitFailed, UsageError
from ..types import GroupMetadata, OffsetAndMetadata, OffsetSpec, TopicPartition
from ._implementation import IteratorState
from .offset_reset_policy import Start

__all__ = ("LostInHand", "PartitionState", "SubscriptionState", "format_partitions", "known_ids")


@attrs.define(eq=False)
class PartitionState:
    """The state of an assigned partition.

    ``position`` is the offset of the next record to hand out; it is None until a lookup has found it. With
    ``ask_group`` the lookup uses the group's committed offset, if there is one; otherwise it uses ``spec``. ``epoch``
    changes with each seek, so that responses to earlier requests can be dropped. A ``lost`` partition can neither be
    read nor looked up: it waits for a seek.
    """

    partition: TopicPartition
    position: int | None
    spec: Start | None
    epoch: int = 0
    ask_group: bool = False
    leader_epoch: int | None = None
    """The leader epoch of the record before the position (KIP-320); None if unknown."""
    held: int | None = None
    """The offset of the first record that was handed out and that the user has not finished; None without one."""
    sought_in_hand: bool = False
    """Whether the user has unfinished records from before a seek, after which ``held`` is None."""
    returned_at: float = -math.inf
    """When the user last finished records of the partition, in seconds of the runtime's clock."""
    handed_out_from: int | None = None
    """The lowest offset that was handed out since the partition was assigned; None before the first."""
    handed_out_to: int = 0
    """The highest position before a seek: offsets below this position, or below the current one, were handed out."""
    paused: bool = False
    auto_committed: OffsetAndMetadata | None = None
    """The offset of the last auto-commit; None without one, and after a commit on request."""
    withheld: bool = False
    """Whether a rebalance is about to move the partition from or to this consumer: no record is handed out."""
    passed_over: bool = False
    """Whether unread data of the partition stays unread, since the user waits for records of other partitions alone."""
    looking_up: bool = False
    lost: bool = False
    served: int = 0
    """The sequence number of the partition's last result with data, counted over all partitions; 0 without one."""
    high_watermark: int | None = None
    """The end of the log at the last fetch: the offset after the last record that all replicas have."""
    committed_end: int | None = None
    """The first offset that readers of committed records cannot read yet, at the last fetch; None without one."""
    log_start: int | None = None
    """The first offset of the log at the last fetch; None if the broker does not send it."""
    validated: int | None = None
    """The leader epoch under which the position was last validated."""
    validating: bool = False
    replica: int | None = None
    """The replica to read from instead of the leader (KIP-392)."""
    replica_until: float = 0.0
    """When to read from the leader again, in seconds of the runtime's clock."""
    until: int | None = None
    """The offset at which reading ends; None for no end."""
    topic_id: UUID | None = None
    """The id of the topic that the position belongs to; None until a fetch from the position has succeeded."""
    assigned_id: UUID | None = None
    """The id of the assigned topic; None if the assignment has only names."""
    by_group: bool = False
    """Whether the group has assigned the partition, rather than the user."""
    fetch_bytes: int | None = None
    """The bytes that the next fetch must allow, if more than ``max_partition_fetch_bytes``; else None."""

    @property
    def known_id(self) -> UUID | None:
        """The id of the topic that is read, as the coordinator or the first fetch has shown; None before."""
        return self.assigned_id or self.topic_id

    def begin(self, at: OffsetAndMetadata) -> None:
        """Continue from the group's committed offset."""
        self.position, self.spec, self.ask_group = at.offset, None, False
        self.leader_epoch = at.leader_epoch

    def hold(self) -> None:
        """Record that the user is about to receive the records from the position on."""
        position = self.position
        self.held = position
        if position is not None and (self.handed_out_from is None or position < self.handed_out_from):
            self.handed_out_from = position

    @property
    def is_in_hand(self) -> bool:
        """Whether the user has received records of the partition, and has not finished all of them."""
        return self.held is not None or self.sought_in_hand

    def finish(self, now: float) -> None:
        """Record that the user has finished the records that it received."""
        if self.is_in_hand:
            self.returned_at = now
        self.held, self.sought_in_hand = None, False

    def has_handed_out(self, offset: int) -> bool:
        """Return whether the user received the record of this offset since the partition was assigned."""
        if self.handed_out_from is None:
            return False
        return self.handed_out_from <= offset < max(self.handed_out_to, self.position or 0)

    @property
    def is_suspended(self) -> bool:
        """Whether the partition is paused or withheld: its records are neither handed out nor fetched."""
        return self.paused or self.withheld

    @property
    def has_reached_end(self) -> bool:
        """Whether the position has reached ``until``, the offset at which reading ends."""
        return self.until is not None and self.position is not None and self.position >= self.until

    @property
    def needs_lookup(self) -> bool:
        """Whether the partition has no position, no lookup in progress, and a start to look up."""
        return self.position is None and not self.looking_up and not self.lost

    def needs_validation(self, leader_epoch: int) -> bool:
        """Return whether the log may have been truncated before the position under a new leader (KIP-320).

        False if the epoch of the record before the position, or of the leader (-1), is unknown.
        """
        return self.leader_epoch is not None and leader_epoch >= 0 and self.validated != leader_epoch


class Lends(Protocol):
    """Fetched records that another thread may take directly, until the loop takes them back; see ``read_ahead.py``."""

    def settle(self) -> None:
        """Move the positions past the records that the thread has taken."""

    def taken(self) -> tuple[Any, int]:
        """Return what the thread had taken when the positions were settled last."""

    def finish(self, taken: tuple[Any, int] | None = None) -> None:
        """Mark the records that the thread has taken as finished: all, or those that it had at an earlier moment."""


@attrs.frozen
class LostInHand:
    """A partition that was revoked while the user processed its records, whose results no longer count."""

    state: PartitionState
    group: GroupMetadata | None
    """The membership under which the records were handed out."""
    reason: str


@attrs.frozen
class Revocation:
    """A partition's revocation.

    ``processed_until`` is when the user last processed records of the partition; the time of the revocation if some
    were unfinished then.
    """

    processed_until: float
    reason: str


class SubscriptionState:
    """The assigned partitions of one consumer, with their positions.

    Args:
        default: where to begin reading a partition without a position; None lets the partition wait for a seek.
        in_group: whether the group's committed offset, if there is one, is used instead of the default.
    """

    def __init__(self, default: Start | None, *, in_group: bool = False) -> None:
        self._default, self._in_group = default, in_group
        self._states: dict[TopicPartition, PartitionState] = {}
        self._epoch = 0
        self.iterator_state: IteratorState = IteratorState()
        """The state of record iterators, in which every change of the assignment, seek and pause is counted."""
        self.changes: int = 0
        """The number of changes of the assignment, seeks and pauses."""
        self.lent: Lends | None = None
        """The records lent to another thread, which must be settled before positions are used."""
        self.lost_in_hand: dict[TopicPartition, LostInHand] = {}
        """The partitions that were revoked while the user processed their records, until the next poll. A partition may
        be assigned again meanwhile, with a new state."""
        self.revocations: dict[TopicPartition, Revocation] = {}
        """The revocation of each partition before which the user has last processed its records: later ones, of a
        partition that came back and was revoked before any of its records was handed out, repeat nothing."""
        self.read_whole: Container[str] = ()
        """The topics that are read from their first record where others begin at the default."""
        self.vanished: set[UUID] = set()
        """The ids of topics that were deleted and created again, under other ids."""

    def __iter__(self) -> Iterator[PartitionState]:
        self.settle()
        return iter(self._states.values())

    def unsettled(self) -> list[PartitionState]:
        """Return the assigned partitions, for any thread; positions may be before records that a thread has taken."""
        return list(self._states.values())

    def settle(self) -> None:
        """Move the positions past the records that another thread has taken."""
        if self.lent is not None:
            self.lent.settle()

    @property
    def assigned(self) -> tuple[TopicPartition, ...]:
        """The assigned partitions, in the order of their assignment."""
        return tuple(self._states)

    def assign(self, starts: Mapping[TopicPartition, int | OffsetSpec | None]) -> None:
        """Replace the assignment. Partitions that stay keep their state, unless a start is given for them."""
        self._changed()
        before, self._states = self._states, {}
        for partition, start in starts.items():
            kept = before.get(partition)
            self._states[partition] = kept if kept is not None and start is None else self._new_state(partition, start)

    def appeared(self, partitions: Iterable[TopicPartition]) -> None:
        """Add partitions that were just created: without a committed offset, they are read from their beginning."""
        self._changed()
        for partition in partitions:
            self._epoch += 1
            self._states[partition] = PartitionState(
                partition, None, OffsetSpec.EARLIEST, self._epoch, ask_group=self._in_group
            )

    def add(
        self,
        partitions: Iterable[TopicPartition],
        *,
        withheld: bool = False,
        ids: Mapping[str, UUID] = MappingProxyType({}),
    ) -> None:
        """Add partitions, to be read from their committed offset on, or from the default if there is none.

        With ``withheld``, none of their records are handed out until :meth:`withhold` releases them. ``ids`` are the
        ids of the topics, if the assignment has ids.
        """
        self._changed()
        for partition in partitions:
            state = self._states[partition] = self._new_state(partition, None)
            state.withheld, state.assigned_id, state.by_group = withheld, ids.get(partition.topic), True

    def changes_to(
        self, assigned: Collection[TopicPartition]
    ) -> tuple[tuple[TopicPartition, ...], tuple[TopicPartition, ...]]:
        """Return the partitions to revoke and the partitions to add, so that ``assigned`` becomes the assignment."""
        kept = frozenset(assigned)
        revoked = tuple(partition for partition in self._states if partition not in kept)
        return revoked, tuple(partition for partition in dict.fromkeys(assigned) if partition not in self._states)

    def revoke(
        self, partitions: Iterable[TopicPartition], group: GroupMetadata | None, reason: str, now: float
    ) -> tuple[LostInHand, ...]:
        """Remove revoked partitions; return those whose records the user is processing.

        ``group`` is the membership under which the records were handed out; ``now`` is in seconds.
        """
        self._changed()
        lost = []
        for partition in partitions:
            state = self._states.pop(partition, None)
            if state is None:
                continue
            if state.is_in_hand:
                lost.append(LostInHand(state, group, reason))
                self.lost_in_hand[partition] = lost[-1]
            revocation = Revocation(now if state.is_in_hand else state.returned_at, reason)
            before = self.revocations.get(partition, revocation)
            if revocation.processed_until >= before.processed_until:
                self.revocations[partition] = revocation
        return tuple(lost)

    def to_commit(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets after the last records handed out.

        For a partition that was revoked while the user processed its records, this is the offset after those records,
        even if the partition is assigned again: a commit of this offset has to be rejected.
        """
        states = {state.partition: state for state in self}
        states |= {partition: lost.state for partition, lost in self.lost_in_hand.items()}
        return {
            partition: OffsetAndMetadata(state.position, leader_epoch=state.leader_epoch)
            for partition, state in states.items()
            if state.position is not None
        }

    def require_not_revoked_since(self, began: float) -> None:
        """Raise CommitFailed if a partition was revoked, and records of it were processed, both after ``began``."""
        for partition, revocation in self.revocations.items():
            if revocation.processed_until >= began:
                raise CommitFailed(
                    f"cannot commit offsets of {partition}: its records were handed out in this transaction, and the "
                    f"partition was revoked since, because {revocation.reason}. The records are read again from the "
                    "last commit: abort the transaction"
                )

    def require_not_lost(self, partitions: Collection[TopicPartition] | None = None) -> None:
        """Raise CommitFailed if one of the partitions (by default any) was revoked while the user had its records."""
        lost = [partition for partition in self.lost_in_hand if partitions is None or partition in partitions]
        if lost:
            found = self.lost_in_hand[lost[0]]
            raise CommitFailed(
                f"cannot commit offsets of {format_partitions(lost)}: this consumer no longer owns the "
                f"partitions whose records it has in hand{_in_group(found)}, since {found.reason}. "
                "The records are read again from the last commit, by this consumer or another: discard their results, "
                "and poll again"
            )

    def pause(self, state: PartitionState, paused: bool) -> None:
        """Pause or resume a partition."""
        self._changed()
        state.paused = paused

    def withhold(self, state: PartitionState, withheld: bool) -> None:
        """Withhold a partition's records during a rebalance, or release them."""
        self._changed()
        state.withheld = withheld

    def finished(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offset after the last finished record of each partition."""
        found = {}
        for state in self:
            offset = state.position if state.held is None else state.held
            if offset is not None:
                found[state.partition] = OffsetAndMetadata(offset, leader_epoch=state.leader_epoch)
        return found

    def _changed(self) -> None:
        self.changes += 1
        self.iterator_state.changes += 1
        self.settle()  # after the count, since the other thread takes no more records once that has changed

    def _new_state(self, partition: TopicPartition, start: int | OffsetSpec | None) -> PartitionState:
        self._epoch += 1
        if isinstance(start, int):
            return PartitionState(partition, start, None, self._epoch)
        if start is not None:
            return PartitionState(partition, None, start, self._epoch)
        return PartitionState(partition, None, self._default_of(partition), self._epoch, ask_group=self._in_group)

    def _default_of(self, partition: TopicPartition) -> Start | None:
        return OffsetSpec.EARLIEST if partition.topic in self.read_whole else self._default

    def get(self, partition: TopicPartition) -> PartitionState | None:
        """Return the state of a partition, if it is assigned."""
        return self._states.get(partition)

    def assigned_ids(self, partitions: Iterable[TopicPartition]) -> dict[str, UUID]:
        """Return the ids of these partitions' topics, of those that are assigned by id."""
        states = [state for partition in partitions if (state := self._states.get(partition)) is not None]
        return {state.partition.topic: state.assigned_id for state in states if state.assigned_id is not None}

    def require(self, partition: TopicPartition) -> PartitionState:
        """Return the state of a partition.

        Raises:
            UsageError: the partition is not assigned.
        """
        self.settle()
        state = self._states.get(partition)
        if state is None:
            raise UsageError(
                f"{partition} is not assigned to this consumer; assigned are {format_partitions(self._states)}"
            )
        return state

    def seek(self, partition: TopicPartition, to: int | Start) -> None:
        """Continue from another offset; earlier fetches and lookups no longer count."""
        state = self.require(partition)
        self._changed()
        self._epoch += 1
        state.handed_out_to = max(state.handed_out_to, state.position or 0)
        state.sought_in_hand = state.is_in_hand
        state.epoch, state.looking_up, state.lost, state.held = self._epoch, False, False, None
        state.ask_group, state.leader_epoch, state.topic_id = False, None, None
        state.validated, state.validating = None, False
        state.position, state.spec = (to, None) if isinstance(to, int) else (None, to)

    def reset(self, state: PartitionState) -> bool:
        """Look up the default start, as the position is no longer valid; return False if there is no default start."""
        default = self._default_of(state.partition)
        if default is None:
            return False
        self.seek(state.partition, default)
        return True

    def read_new_topic(self, state: PartitionState, reason: str) -> PartitionState:
        """Give a partition a new state, since its topic is another one, and return it; it begins at the default start.

        Offsets of the records that the user has in hand can no longer be committed. Without a default start the
        partition waits for a seek.
        """
        self._changed()
        if state.is_in_hand:
            self.lost_in_hand[state.partition] = LostInHand(state, None, reason)
        new = self._states[state.partition] = self._new_state(state.partition, None)
        new.ask_group, new.lost = False, new.spec is None
        new.paused, new.withheld, new.until, new.by_group = state.paused, state.withheld, state.until, state.by_group
        return new

    def go_back(self, state: PartitionState, offset: int, leader_epoch: int, validated: int) -> bool:
        """Continue from ``offset``, the end of the truncated log; do nothing and return False without a default start.

        ``leader_epoch`` is that of the record before ``offset``; ``validated`` is the current leader's.
        """
        if self._default_of(state.partition) is None:
            return False
        self.seek(state.partition, offset)
        state.leader_epoch, state.validated = leader_epoch, validated
        return True

    def is_current(self, state: PartitionState, epoch: int) -> bool:
        """Return whether the partition is still assigned, without a seek since ``epoch``."""
        return state.epoch == epoch and self._states.get(state.partition) is state

    def to_look_up(self) -> list[PartitionState]:
        """Return the partitions that need a lookup."""
        return [state for state in self._states.values() if state.needs_lookup]


def known_ids(states: Iterable[PartitionState | None]) -> dict[str, UUID]:
    """Return the ids of the topics that are read, by name, as far as they are known; skip states that are None."""
    found = ((state.partition.topic, state.known_id) for state in states if state is not None)
    return {topic: topic_id for topic, topic_id in found if topic_id is not None}


def _in_group(lost: LostInHand) -> str:
    return f" in group {lost.group.group_id!r}" if lost.group is not None else ""


def format_partitions(partitions: Collection[TopicPartition]) -> str:
    """Return the names of the first five partitions, and the number of the others."""
    named = [str(partition) for partition in list(partitions)[:5]]
    return ", ".join(named) + (f" and {len(partitions) - 5} more" if len(partitions) > 5 else "") if named else "none"
