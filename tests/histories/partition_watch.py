"""What a group has done with one partition: who reads it, what is finished, and what is committed."""

from collections.abc import Iterator

import attrs

from .anomalies import Anomaly, Kind
from .events import RecordRead
from .group_events import (
    CommitAcknowledged,
    CommitRequested,
    OffsetCommitted,
    OffsetFetched,
    PartitionAssigned,
    PartitionRevoked,
    RecordFinished,
    SeekBack,
)

__all__ = ("PartitionWatch",)


@attrs.define
class _Reading:
    """One member's reading of the partition, from its assignment to its end."""

    assigned: PartitionAssigned
    starts: list[OffsetCommitted | None]
    """The commits where it may begin: the last one when it was assigned, and those since then; None for offset 0."""
    since: RecordRead | SeekBack | OffsetFetched | None = None
    """The event after which `next` has to come; None before the first."""
    next: int | None = None
    end: int = 0
    """The offset after the highest record that was read."""

    def start_offsets(self) -> list[int]:
        return [0 if commit is None else commit.offset for commit in self.starts]


@attrs.define
class PartitionWatch:
    """Takes the events of one partition, and finds what is wrong. The log begins at 0, and has no gaps."""

    done: int = 0
    """The offset below which every record is finished."""
    late: int = 0
    """The number of commits that arrived behind later ones, since their connection hung: Kafka takes them."""
    reads: dict[int, RecordRead] = attrs.field(factory=dict)
    """The last read of each offset."""
    _finished: set[int] = attrs.field(factory=set)
    _readers: dict[str, _Reading] = attrs.field(factory=dict)
    _committed: OffsetCommitted | None = None
    _highest: OffsetCommitted | None = None
    """The highest commit of the last committer's membership."""
    _sought: dict[str, int] = attrs.field(factory=dict)
    """The lowest offset that each member has gone back to."""
    _stored: set[tuple[str, int]] = attrs.field(factory=set)
    _requested: list[tuple[str, int]] = attrs.field(factory=list)

    # --- who reads it ----------------------------------------------------------------------------------------------

    def other_readers(self, client: str, members: frozenset[str]) -> Iterator[PartitionAssigned]:
        """Return the assignments of other members that still read the partition."""
        for name, reading in self._readers.items():
            if name != client and name in members:
                yield reading.assigned

    def assign(self, event: PartitionAssigned) -> Iterator[Anomaly]:
        """A member reads the partition from now on."""
        before = self._readers.get(event.member)
        if before is not None:
            told = f"{event.member} gets {event.partition}, and has it already"
            yield Anomaly(Kind.NOT_OWNED, told, (before.assigned, event))
        self._readers[event.member] = _Reading(event, [self._committed])

    def revoke(self, event: PartitionRevoked) -> Iterator[Anomaly]:
        """A member was told that it reads the partition no more."""
        reading, commit = self._readers.pop(event.member, None), self._committed
        if reading is None:
            told = f"{event.member} gives up {event.partition}, and does not have it"
            yield Anomaly(Kind.NOT_OWNED, told, (event,))
        elif event.commits and reading.next is not None:
            finished = reading.next if event.in_hand is None else event.in_hand
            if finished > (0 if commit is None else commit.offset):
                told = f"{event}, {finished - 1} is finished, and {commit.offset if commit else 'nothing'} is committed"
                shows = (reading.assigned, reading.since, commit, event)
                yield Anomaly(Kind.UNCOMMITTED, told, tuple(one for one in shows if one is not None))

    def end(self, member: str) -> None:
        """A member is no more."""
        self._readers.pop(member, None)

    # --- records ---------------------------------------------------------------------------------------------------

    def read(self, event: RecordRead) -> Iterator[Anomaly]:
        """A member was given a record."""
        self.reads[event.offset] = event
        reading = self._readers.get(event.reader)
        if reading is None:
            told = f"{event.reader} has read {event.partition}:{event.offset}, and does not have the partition"
            yield Anomaly(Kind.NOT_OWNED, told, (event,))
            return
        yield from self._follows(reading, event)
        reading.since, reading.next = event, event.offset + 1
        reading.end = max(event.offset + 1, reading.end)

    def _follows(self, reading: _Reading, event: RecordRead | OffsetFetched) -> Iterator[Anomaly]:
        """Check that a record, or the place where a member begins, is the one that has to come."""
        if reading.next is not None:
            if event.offset != reading.next:
                assert reading.since is not None
                kind = Kind.DUPLICATE if event.offset < reading.next else Kind.UNSEEN_RECORD
                told = f"{event.partition}:{event.offset} comes, and not {reading.next}"
                yield Anomaly(kind, told, (reading.since, event))
            return
        starts = reading.start_offsets()
        if max(event.offset, 0) not in starts:
            kind = Kind.STALE_READ if event.offset < max(starts) else Kind.SKIPPED_RECORDS
            told = f"{reading.assigned.member} begins at {event.partition}:{event.offset}, and not at {_either(starts)}"
            commits = tuple(commit for commit in reading.starts if commit is not None)
            yield Anomaly(kind, told, (*commits, reading.assigned, event))

    def fetch(self, event: OffsetFetched) -> Iterator[Anomaly]:
        """The coordinator has told an offset: to a member, which begins there, or to someone else."""
        reading = self._readers.get(event.member)
        if reading is not None:
            yield from self._follows(reading, event)
            if reading.next is None:
                reading.since, reading.next = event, max(event.offset, 0)
        elif not event.member and self._committed is not None and event.offset != self._committed.offset:
            kind = Kind.OFFSET_REGRESSION if event.offset < self._committed.offset else Kind.COMMIT_BEYOND_FINISHED
            told = f"{event.group} is at {event.offset} in {event.partition}, and not at {self._committed.offset}"
            yield Anomaly(kind, told, (self._committed, event))

    def finish(self, event: RecordFinished) -> None:
        """Some user is done with a record."""
        self._finished.add(event.offset)
        while self.done in self._finished:
            self.done += 1

    def seek(self, event: SeekBack) -> None:
        """A user goes back, and may commit that."""
        reading = self._readers[event.member]
        reading.since, reading.next, reading.end = event, event.offset, max(event.offset, reading.end)
        self._sought[event.member] = min(event.offset, self._sought.get(event.member, event.offset))

    # --- commits ---------------------------------------------------------------------------------------------------

    def request_commit(self, event: CommitRequested) -> None:
        """A user asks to commit an offset."""
        self._requested.append((event.member, event.offset))

    def commit(self, event: OffsetCommitted) -> Iterator[Anomaly]:
        """The coordinator has stored an offset."""
        if event.offset > self.done:
            told = f"{event}, and {self.done} is not finished"
            unfinished = self.reads.get(self.done)
            shows = (event,) if unfinished is None else (unfinished, event)
            yield Anomaly(Kind.COMMIT_BEYOND_FINISHED, told, shows)
        self._stored.add((event.member, event.offset))
        reading = self._readers.get(event.member)
        if reading is not None and event.offset > reading.end and event.offset not in reading.start_offsets():
            told = f"{event}, and was not given the records below it since it has got the partition"
            yield Anomaly(Kind.NOT_OWNED, told, (reading.assigned, event))
        before, self._committed = self._committed, event
        highest = self._highest
        if highest is None or highest.membership != event.membership or highest.offset <= event.offset:
            self._highest = event
        if before is not None and event.offset < before.offset:
            yield from self._goes_back(before, event)
        for other in self._readers.values():
            if other.next is None:
                other.starts.append(event)

    def _goes_back(self, before: OffsetCommitted, event: OffsetCommitted) -> Iterator[Anomaly]:
        if self._sought.get(event.member, event.offset + 1) <= event.offset:
            return
        highest = self._highest
        if (
            highest is not None
            and highest.membership == event.membership
            and (event.connection < highest.connection or self._was_requested_before(event, highest))
        ):
            self.late += 1
            return
        yield Anomaly(Kind.OFFSET_REGRESSION, f"{event}, and {before.offset} was committed", (before, event))

    def _was_requested_before(self, event: OffsetCommitted, other: OffsetCommitted) -> bool:
        """Return whether a user has asked for this commit before the other, on a connection of its own."""
        asked = self._requested
        if event.connection == other.connection or (other.member, other.offset) not in asked:
            return False
        last = len(asked) - asked[::-1].index((other.member, other.offset))
        return (event.member, event.offset) in asked[:last]

    def acknowledge(self, event: CommitAcknowledged) -> Iterator[Anomaly]:
        """A user was told that an offset is committed."""
        if (event.member, event.offset) not in self._stored:
            yield Anomaly(Kind.LOST_COMMIT, f"{event}, which no coordinator has stored", (event,))


def _either(offsets: list[int]) -> str:
    return " or ".join(map(str, dict.fromkeys(offsets)))
