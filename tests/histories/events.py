"""The events of a history: what producers and readers have done, and the logs in the end; `group_events` has groups.

Values are unique: each names one record. Members, producers and transactions are named by strings.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, TypeAlias

import attrs

__all__ = (
    "Event",
    "LogFound",
    "OffsetsAdded",
    "Partition",
    "ProducerOpened",
    "ReaderOpened",
    "RecordRead",
    "RecordSent",
    "SendAcknowledged",
    "SendFailed",
    "SourceFound",
    "TransactionAborted",
    "TransactionBegan",
    "TransactionCommitRequested",
    "TransactionCommitted",
    "Value",
    "shown",
)

Value: TypeAlias = Hashable
"""What names a record: its value, or its number."""
Partition: TypeAlias = Hashable
"""What names a partition, such as a ``TopicPartition``."""

_LONGEST = 24


def shown(value: Value) -> str:
    """Return a value as text, without its padding."""
    return repr(value.rstrip(b"\0")[:_LONGEST]) if isinstance(value, bytes) else repr(value)


@attrs.frozen
class Event:
    """Something that has happened. A history has its events in the order in which they were noted."""


# --- producers ------------------------------------------------------------------------------------------------------


@attrs.frozen
class ProducerOpened(Event):
    """A producer, and what its settings guarantee. A producer without this event guarantees everything."""

    producer: str
    is_idempotent: bool = True
    """Its records are in the log once, and in the order of the calls, acknowledged or not."""
    is_durable: bool = True
    """What it acknowledges stays in the log."""
    is_ordered: bool = True
    """What it acknowledges of a partition is in the order of the calls."""

    def __str__(self) -> str:
        lacks = [
            name
            for name, holds in (
                ("idempotence", self.is_idempotent),
                ("durability", self.is_durable),
                ("order", self.is_ordered),
            )
            if not holds
        ]
        return f"{self.producer} opens" + (f", without {' and '.join(lacks)}" if lacks else "")


@attrs.frozen
class RecordSent(Event):
    """A producer was given a record. Unless another event says what became of it, that is not known."""

    producer: str
    value: Value
    transaction: str | None = None
    partition: Partition | None = None
    """The partition that it is for; None if the producer chooses it."""

    def __str__(self) -> str:
        to = f" to {self.partition}" if self.partition is not None else ""
        within = f" in transaction {self.transaction}" if self.transaction is not None else ""
        return f"{self.producer} sends {shown(self.value)}{to}{within}"


@attrs.frozen
class SendAcknowledged(Event):
    """A record was acknowledged, at an offset or, with -1, at an unknown one."""

    value: Value
    partition: Partition
    offset: int = -1

    def __str__(self) -> str:
        at = f"{self.partition}:{self.offset}" if self.offset >= 0 else f"{self.partition}"
        return f"{shown(self.value)} is acknowledged at {at}"


@attrs.frozen
class SendFailed(Event):
    """A record was refused, and is certainly in no log."""

    value: Value

    def __str__(self) -> str:
        return f"{shown(self.value)} is refused"


# --- transactions ---------------------------------------------------------------------------------------------------


@attrs.frozen
class TransactionBegan(Event):
    """A transaction has begun. Unless its commit is requested, it is aborted."""

    transaction: str
    writer: str
    """Its transactional id."""
    epoch: int = 0
    """The producer epoch, by which the transactions of a writer are ordered; then they are in the order of events."""

    def __str__(self) -> str:
        return f"{self.writer} begins transaction {self.transaction} in epoch {self.epoch}"


@attrs.frozen
class OffsetsAdded(Event):
    """Offsets were added to a transaction, for a group."""

    transaction: str
    group: str
    offsets: Mapping[Any, int]
    """Offsets by partition."""

    def __str__(self) -> str:
        return f"transaction {self.transaction} adds {_offsets(self.offsets)} of {self.group}"


@attrs.frozen
class TransactionCommitRequested(Event):
    """The commit was requested; until another event says so, its outcome is unknown."""

    transaction: str

    def __str__(self) -> str:
        return f"transaction {self.transaction} is to commit"


@attrs.frozen
class TransactionCommitted(Event):
    """The commit has succeeded."""

    transaction: str

    def __str__(self) -> str:
        return f"transaction {self.transaction} is committed"


@attrs.frozen
class TransactionAborted(Event):
    """The transaction is known to be aborted."""

    transaction: str

    def __str__(self) -> str:
        return f"transaction {self.transaction} is aborted"


# --- logs and readers -----------------------------------------------------------------------------------------------


@attrs.frozen
class LogFound(Event):
    """The records of a partition in the end, or those in a range of its offsets, both ends included."""

    partition: Partition
    records: tuple[tuple[int, Value], ...]
    """Offsets and values, in the order of the offsets."""
    first: int | None = None
    last: int | None = None
    is_committed: bool = False
    """Whether these are the records for readers of committed records alone."""

    def only(self, offsets: Iterable[int]) -> "LogFound":
        """Return the part with these offsets, of which some may have no record."""
        wanted = sorted(set(offsets))
        kept = tuple(record for record in self.records if record[0] in wanted)
        return attrs.evolve(self, records=kept, first=wanted[0], last=wanted[-1])

    def without(self) -> "LogFound":
        """Return the whole log as one that lacks a record: only its range is left."""
        first, last = (self.records[0][0], self.records[-1][0]) if self.records else (0, -1)
        return attrs.evolve(self, records=(), first=first, last=last)

    def __str__(self) -> str:
        which = "committed records" if self.is_committed else "log"
        there = ", ".join(f"{offset} {shown(value)}" for offset, value in self.records)
        if self.first is None:
            return f"{which} of {self.partition}: {there or 'empty'}"
        named = f"{which} of {self.partition} from {self.first} to {self.last}"
        return f"{named}: {there or 'not there'}"


@attrs.frozen
class SourceFound(Event):
    """A partition whose records are processed exactly once, in the end: what has to count once for each record."""

    partition: Partition
    results: tuple[tuple[int, Value], ...]
    """The offset of each record, and its result."""
    end: int = -1
    """The end of the log, which may be behind markers of transactions."""

    def only(self, offset: int) -> "SourceFound":
        """Return the part with this record alone."""
        kept = tuple(result for result in self.results if result[0] == offset)
        return attrs.evolve(self, results=kept)

    def __str__(self) -> str:
        due = ", ".join(f"{offset} as {shown(value)}" for offset, value in self.results)
        return f"records of {self.partition} that have to count once: {due or f'none, up to {self.end}'}"


@attrs.frozen
class ReaderOpened(Event):
    """A reader that reads its partitions from their beginnings, and must have seen all of them in the end."""

    reader: str
    partitions: tuple[Partition, ...]
    is_committed: bool = False
    """Whether it reads committed records alone."""

    def __str__(self) -> str:
        return f"{self.reader} reads {'committed records of ' if self.is_committed else ''}{_names(self.partitions)}"


@attrs.frozen
class RecordRead(Event):
    """A reader or a member of a group was given a record."""

    reader: str
    partition: Partition
    offset: int
    value: Value
    generation: int | None = None
    """That of the member's assignment."""
    owner: str = ""
    """Whose the partition is by that assignment: the member's, or a static member's id."""

    def __str__(self) -> str:
        since = f" in generation {self.generation}" if self.generation is not None else ""
        return f"{self.reader} reads {self.partition}:{self.offset} {shown(self.value)}{since}"


def _names(partitions: Iterable[Partition]) -> str:
    return ", ".join(map(str, partitions))


def _offsets(offsets: Mapping[Any, int]) -> str:
    return ", ".join(f"{partition}:{offset}" for partition, offset in offsets.items())
