"""What must be true of a group at every moment: of who reads what, of what is read, and of what is committed."""

from collections.abc import Iterator

import attrs

from .anomalies import Anomaly, Kind
from .events import Event, LogFound, Partition, RecordRead, shown
from .group_events import (
    AssignmentSent,
    CommitAcknowledged,
    CommitRequested,
    MemberEnded,
    OffsetCommitted,
    OffsetFetched,
    PartitionAssigned,
    PartitionRevoked,
    RecordFinished,
    SeekBack,
)
from .partition_watch import PartitionWatch

__all__ = ("GroupWatch",)

_Claim = AssignmentSent | RecordRead


@attrs.define
class GroupWatch:
    """Takes the events of one group's history one by one, and returns the anomalies that each of them shows."""

    generations: set[int] = attrs.field(factory=set)
    _owners: dict[tuple[int, Partition], _Claim] = attrs.field(factory=dict)
    _partitions: dict[Partition, PartitionWatch] = attrs.field(factory=dict)

    def of(self, partition: Partition) -> PartitionWatch:
        """Return what is known of a partition."""
        return self._partitions.setdefault(partition, PartitionWatch())

    @property
    def late(self) -> int:
        """The number of commits that arrived behind later ones, and that Kafka takes."""
        return sum(partition.late for partition in self._partitions.values())

    def happened(self, event: Event) -> Iterator[Anomaly]:
        """Take the next event."""
        match event:
            case RecordRead():
                yield from self._read(event)
            case RecordFinished():
                self.of(event.partition).finish(event)
            case OffsetCommitted():
                yield from self._commit(event)
            case CommitRequested():
                self.of(event.partition).request_commit(event)
            case CommitAcknowledged():
                yield from self.of(event.partition).acknowledge(event)
            case OffsetFetched():
                yield from self.of(event.partition).fetch(event)
            case AssignmentSent():
                yield from self._assignment_sent(event)
            case PartitionAssigned():
                yield from self.of(event.partition).assign(event)
            case PartitionRevoked():
                yield from self.of(event.partition).revoke(event)
            case MemberEnded():
                for partition in self._partitions.values():
                    partition.end(event.member)
            case SeekBack():
                self.of(event.partition).seek(event)

    def _read(self, event: RecordRead) -> Iterator[Anomaly]:
        if event.generation is None:
            return
        yield from self.of(event.partition).read(event)
        yield from self._claim(event.generation, event)

    def _assignment_sent(self, event: AssignmentSent) -> Iterator[Anomaly]:
        yield from self._claim(event.generation, event)
        if event.members is not None:
            for assigned in self.of(event.partition).other_readers(event.client, event.members):
                told = f"{event.client} is assigned {event.partition}, and {assigned.member} still reads it"
                yield Anomaly(Kind.TWO_OWNERS, told, (assigned, event))

    def _claim(self, generation: int, event: _Claim) -> Iterator[Anomaly]:
        """In this generation the partition is this owner's, by the coordinator's assignment or by a record read."""
        self.generations.add(generation)
        known = self._owners.setdefault((generation, event.partition), event)
        if known.owner != event.owner:
            told = f"{event.partition} is {known.owner}'s and {event.owner}'s in generation {generation}"
            yield Anomaly(Kind.TWO_OWNERS, told, (known, event))

    def _commit(self, event: OffsetCommitted) -> Iterator[Anomaly]:
        if event.generation < 0:
            yield Anomaly(Kind.NOT_OWNED, f"{event}, as nobody's member", (event,))
        # A generation that was never complete is lost with its coordinator, and its number is another's then.
        known = self._owners.get((event.generation, event.partition))
        if known is not None and known.owner != event.owner:
            told = f"{event}, in which the partition is {known.owner}'s"
            yield Anomaly(Kind.TWO_OWNERS, told, (known, event))
        yield from self.of(event.partition).commit(event)

    def ended(self, log: LogFound) -> Iterator[Anomaly]:
        """Take the log of a partition in the end: all of its records must be read as they are, and finished."""
        watch = self.of(log.partition)
        for offset, value in log.records:
            read = watch.reads.get(offset)
            if read is not None and read.value != value:
                told = f"another record than {shown(value)} was read at {log.partition}:{offset}"
                yield Anomaly(Kind.PHANTOM, told, (read, log.only((offset,))))
            elif read is None:
                yield Anomaly(Kind.UNSEEN_RECORD, f"nobody has read {log.partition}:{offset}", (log.only((offset,)),))
            elif offset >= watch.done:
                told = f"{log.partition}:{offset} is not finished"
                yield Anomaly(Kind.UNFINISHED_RECORD, told, (read, log.only((offset,))))
