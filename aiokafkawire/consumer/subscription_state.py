"""Where a consumer is in each of its partitions, and what it wants of them."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Protocol

import attrs

from ..errors import CommitFailed, UsageError
from ..types import GroupMetadata, OffsetAndMetadata, OffsetSpec, TopicPartition
from ._implementation import IteratorState
from .offset_reset import Start

__all__ = ("LostInHand", "PartitionState", "SubscriptionState", "some_of")


@attrs.define(eq=False)
class PartitionState:
    """One assigned partition.

    ``position`` is the offset of the next record to hand out; None until it was looked up: with ``ask_group`` what the
    group has committed, otherwise, and where that is nothing, ``spec``. ``epoch`` changes with every seek, so that an
    answer to a question asked before can be told apart and dropped. A ``lost`` place has nothing to go on from, and no
    default to look up: it waits for a seek.
    """

    where: TopicPartition
    position: int | None
    spec: Start | None
    epoch: int = 0
    ask_group: bool = False
    leader_epoch: int | None = None
    """Under which leader the record before the position was written (KIP-320); None where nobody has said."""
    held: int | None = None
    """From where on the user has records in hand; None if it has none. What is before is finished."""
    sought_in_hand: bool = False
    """Whether a seek came while the user had records in hand: ``held`` is none then, and it has them all the same."""
    returned_at: float = -math.inf
    """When the user last came back from records of it, in seconds of the runtime's clock."""
    handed_out_from: int | None = None
    """The lowest offset that was handed out since the partition was assigned; None before the first."""
    handed_out_to: int = 0
    """The highest position that a seek has left; what is before it, or before the position, was handed out."""
    paused: bool = False
    begun: OffsetAndMetadata | None = None
    """Where it began: what the group had committed then, or where that was nothing, the default. None while nobody has
    said, and for ever where the user sought before."""
    sought: bool = False
    """Whether somebody sought in it, so that what is looked up is not where it begins."""
    withheld: bool = False
    """Another consumer is about to get it, or this one is: no record is handed out."""
    looking_up: bool = False
    lost: bool = False
    served: int = 0
    """When it brought data last, as a number that grows with each answer; 0 is never."""
    high_watermark: int | None = None
    """The end of the log when it was last fetched: the offset after the last record that all replicas have."""
    validated: int | None = None
    """The leader's epoch under which the log was last known to hold what is before the position."""
    validating: bool = False
    replica: int | None = None
    """The broker to read from rather than from the leader (KIP-392)."""
    replica_until: float = 0.0
    """When to ask the leader again, in seconds of the runtime's clock."""
    until: int | None = None
    """From where on nothing is fetched; None for no end."""
    fetch_bytes: int | None = None
    """How much the next fetch must be able to bring, where that is more than the setting."""

    def begin(self, at: OffsetAndMetadata) -> None:
        """This is where the group has come to: go on from there."""
        self.begun = at
        self.position, self.spec, self.ask_group = at.offset, None, False
        self.leader_epoch = at.leader_epoch

    def hold(self) -> None:
        """Note that the user is about to get the records from the position on."""
        position = self.position
        self.held = position
        if position is not None and (self.handed_out_from is None or position < self.handed_out_from):
            self.handed_out_from = position

    @property
    def is_in_hand(self) -> bool:
        """Whether the user has records of it that it has not come back from."""
        return self.held is not None or self.sought_in_hand

    def finish(self, now: float) -> None:
        """Note that the user has come back from the records that it had of it."""
        if self.is_in_hand:
            self.returned_at = now
        self.held, self.sought_in_hand = None, False

    def has_handed_out(self, offset: int) -> bool:
        """Return whether the user got the record of this offset since the partition was assigned."""
        if self.handed_out_from is None:
            return False
        return self.handed_out_from <= offset < max(self.handed_out_to, self.position or 0)

    @property
    def rests(self) -> bool:
        """Whether nobody is to get records of it now, so that none are fetched."""
        return self.paused or self.withheld

    @property
    def has_reached_end(self) -> bool:
        """Whether it is read up to ``until``."""
        return self.until is not None and self.position is not None and self.position >= self.until

    @property
    def wants_lookup(self) -> bool:
        """Whether it has no position, and nobody looks it up yet."""
        return self.position is None and not self.looking_up and not self.lost

    def needs_validation(self, leader_epoch: int) -> bool:
        """Whether the log may have been cut off before the position, since another leader came (KIP-320).

        Without the epoch of the record before it, or of the leader (-1), nobody can tell.
        """
        return self.leader_epoch is not None and leader_epoch >= 0 and self.validated != leader_epoch


class Lends(Protocol):
    """Records that were read ahead for another thread, which takes them by itself; see ``read_ahead.py``."""

    def settle(self) -> None:
        """Move the positions behind the records that the thread has taken."""

    def finish(self) -> None:
        """Count the records as finished that the thread has taken."""


@attrs.frozen
class LostInHand:
    """A partition that was taken away while the user held records of it: what is done with them no longer counts."""

    place: PartitionState
    group: GroupMetadata | None
    """The membership under which the records were handed out."""
    reason: str


@attrs.frozen
class TakenAway:
    """When a partition was taken away, why, and when the user last came back from its records (never: infinity)."""

    returned_at: float
    at: float
    reason: str


class SubscriptionState:
    """The assignment.

    Args:
        default: where partitions without a position begin; None if there is no such place.
        in_group: what a group has committed comes before the default.
    """

    def __init__(self, default: Start | None, *, in_group: bool = False) -> None:
        self._default, self._in_group = default, in_group
        self._places: dict[TopicPartition, PartitionState] = {}
        self._epoch = 0
        self.marks: IteratorState = IteratorState()
        """Changes with every place that comes, goes, is sought elsewhere, or rests."""
        self.changes: int = 0
        """How often that was."""
        self.lent: Lends | None = None
        """Who knows how many records another thread has taken; asked before the positions are looked at."""
        self.lost_in_hand: dict[TopicPartition, LostInHand] = {}
        """The partitions that were taken away while the user held records of them, until it comes back for more. The
        same partition may be assigned again meanwhile: that is another place."""
        self.taken_away: dict[TopicPartition, TakenAway] = {}
        """The last time that each partition was taken away."""

    def __iter__(self) -> Iterator[PartitionState]:
        self.settle()
        return iter(self._places.values())

    def settle(self) -> None:
        """Move the positions behind what another thread has taken of the records that were read ahead for it."""
        if self.lent is not None:
            self.lent.settle()

    @property
    def assigned(self) -> tuple[TopicPartition, ...]:
        """The partitions, in the order of their assignment."""
        return tuple(self._places)

    def assign(self, starts: Mapping[TopicPartition, int | OffsetSpec | None]) -> None:
        """Replace the assignment. Partitions that stay keep their place, unless a start is given for them."""
        self._changed()
        before, self._places = self._places, {}
        for where, start in starts.items():
            kept = before.get(where)
            self._places[where] = kept if kept is not None and start is None else self._place(where, start)

    def appeared(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these as well, which have just appeared: they have no record that was not to be seen."""
        self._changed()
        for where in partitions:
            self._epoch += 1
            self._places[where] = PartitionState(
                where, None, OffsetSpec.EARLIEST, self._epoch, ask_group=self._in_group
            )

    def add(self, partitions: Iterable[TopicPartition], *, withheld: bool = False) -> None:
        """Read these as well, from where the group has come to."""
        self._changed()
        for where in partitions:
            place = self._places[where] = self._place(where, None)
            place.withheld = withheld

    def resume(self, starts: Mapping[TopicPartition, OffsetAndMetadata | None]) -> None:
        """Read these again as :meth:`add` does, withheld; but where an offset is known, from there."""
        self.add(starts, withheld=True)
        for where, at in starts.items():
            if at is not None:
                self._places[where].begin(at)

    def take_away(
        self, partitions: Iterable[TopicPartition], group: GroupMetadata | None, reason: str, now: float
    ) -> tuple[LostInHand, ...]:
        """Read these no more, for this reason; return those of which the user holds records.

        ``group`` is the membership under which the records were handed out; ``now`` is in seconds.
        """
        self._changed()
        lost = []
        for partition in partitions:
            place = self._places.pop(partition, None)
            if place is None:
                continue
            if place.is_in_hand:
                lost.append(LostInHand(place, group, reason))
                self.lost_in_hand[partition] = lost[-1]
            self.taken_away[partition] = TakenAway(math.inf if place.is_in_hand else place.returned_at, now, reason)
        return tuple(lost)

    def to_commit(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return where to read on after the last record handed out.

        For a partition that was taken away while the user held records of it, this is the offset after those records,
        even if the partition is assigned again: such a commit has to be refused.
        """
        places = {place.where: place for place in self}
        places |= {partition: lost.place for partition, lost in self.lost_in_hand.items()}
        return {
            partition: OffsetAndMetadata(place.position, leader_epoch=place.leader_epoch)
            for partition, place in places.items()
            if place.position is not None
        }

    def require_taken_since(self, began: float) -> None:
        """Refuse what was begun then, if a partition of which the user got records since was taken away since.

        Raises:
            CommitFailed: one was.
        """
        for partition, taken in self.taken_away.items():
            if taken.at >= began and taken.returned_at >= began:
                raise CommitFailed(
                    f"cannot commit offsets of {partition}: its records were handed out in this transaction, and the "
                    f"partition was taken away since, because {taken.reason}. The records are read again from the last "
                    "commit: abort the transaction"
                )

    def require_in_hand(self, partitions: Collection[TopicPartition] | None = None) -> None:
        """Refuse to commit for partitions that were taken away while the user held records of them; for any, if None.

        Raises:
            CommitFailed: a partition was.
        """
        lost = [partition for partition in self.lost_in_hand if partitions is None or partition in partitions]
        if lost:
            found = self.lost_in_hand[lost[0]]
            raise CommitFailed(
                f"cannot commit offsets of {some_of(lost)}: this consumer no longer owns the partitions whose records "
                f"it has in hand{_in_group(found)}, since {found.reason}. The records are read again from the last "
                "commit, by this consumer or another: discard what was done with them, and ask for records again"
            )

    def pause(self, place: PartitionState, paused: bool) -> None:
        """The user wants no records of it for a while, or wants them again."""
        self._changed()
        place.paused = paused

    def withhold(self, place: PartitionState, withheld: bool) -> None:
        """Hand out no records of it while it changes hands, or again."""
        self._changed()
        place.withheld = withheld

    def finished(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Where to read on so that nothing is missed that the user has not finished, or has not got yet."""
        found = {}
        for place in self:
            offset = place.position if place.held is None else place.held
            if offset is not None:
                found[place.where] = OffsetAndMetadata(offset, leader_epoch=place.leader_epoch)
        return found

    def _changed(self) -> None:
        self.changes += 1
        self.marks.changes += 1
        self.settle()  # afterwards: from now on the other thread takes nothing more

    def _place(self, where: TopicPartition, start: int | OffsetSpec | None) -> PartitionState:
        self._epoch += 1
        if isinstance(start, int):
            return PartitionState(where, start, None, self._epoch)
        if start is not None:
            return PartitionState(where, None, start, self._epoch)
        return PartitionState(where, None, self._default, self._epoch, ask_group=self._in_group)

    def get(self, where: TopicPartition) -> PartitionState | None:
        """The place in a partition, if it is assigned."""
        return self._places.get(where)

    def require(self, where: TopicPartition) -> PartitionState:
        """The place in a partition.

        Raises:
            UsageError: it is not assigned.
        """
        self.settle()
        place = self._places.get(where)
        if place is None:
            raise UsageError(f"{where} is not assigned to this consumer; assigned are {some_of(self._places)}")
        return place

    def seek(self, where: TopicPartition, to: int | Start) -> None:
        """Go on from another offset; what was fetched or asked before counts no more."""
        place = self.require(where)
        self._changed()
        self._epoch += 1
        place.handed_out_to = max(place.handed_out_to, place.position or 0)
        place.sought_in_hand = place.is_in_hand
        place.epoch, place.looking_up, place.lost, place.held = self._epoch, False, False, None
        place.sought = True
        place.ask_group, place.leader_epoch = False, None
        place.validated, place.validating = None, False
        place.position, place.spec = (to, None) if isinstance(to, int) else (None, to)

    def reset(self, place: PartitionState) -> bool:
        """The position is out of the log's range: look the default up again. False if there is no default."""
        if self._default is None:
            return False
        self.seek(place.where, self._default)
        return True

    def go_back(self, place: PartitionState, offset: int, leader_epoch: int, validated: int) -> bool:
        """The log was cut off: go on from where it parts from what was read. False if there is no default.

        ``leader_epoch`` is that of the record before; ``validated`` the leader's who said so.
        """
        if self._default is None:
            return False
        self.seek(place.where, offset)
        place.leader_epoch, place.validated = leader_epoch, validated
        return True

    def is_current(self, place: PartitionState, epoch: int) -> bool:
        """Whether the place is still assigned, and nobody sought elsewhere since ``epoch``."""
        return place.epoch == epoch and self._places.get(place.where) is place

    def to_look_up(self) -> list[PartitionState]:
        """The places without a position that nobody looks up yet."""
        return [place for place in self._places.values() if place.wants_lookup]


def _in_group(lost: LostInHand) -> str:
    return f" in group {lost.group.group_id!r}" if lost.group is not None else ""


def some_of(partitions: Collection[TopicPartition]) -> str:
    """The names of the first few, and how many more there are."""
    named = [str(one) for one in list(partitions)[:5]]
    return ", ".join(named) + (f" and {len(partitions) - 5} more" if len(partitions) > 5 else "") if named else "none"
