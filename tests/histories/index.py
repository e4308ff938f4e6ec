"""A history, by subject: what was sent, how it ended, and what logs have."""

from collections.abc import Iterable, Iterator, Sequence

import attrs

from .events import (
    Event,
    LogFound,
    OffsetsAdded,
    Partition,
    ProducerOpened,
    ReaderOpened,
    RecordRead,
    RecordSent,
    SendAcknowledged,
    SendFailed,
    SourceFound,
    TransactionAborted,
    TransactionBegan,
    TransactionCommitRequested,
    TransactionCommitted,
    Value,
)
from .group_events import OffsetFetched

__all__ = ("Index", "Place", "WrittenTransaction")

Place = tuple[LogFound, int]
"""A log, and an offset of it."""


@attrs.define(eq=False)
class WrittenTransaction:
    """One transaction of a history."""

    began: TransactionBegan
    requested: TransactionCommitRequested | None = None
    ended: TransactionCommitted | TransactionAborted | None = None
    sent: list[RecordSent] = attrs.field(factory=list)
    offsets: list[OffsetsAdded] = attrs.field(factory=list)

    def note(self, event: object) -> None:
        """Take notice of one of its events."""
        if isinstance(event, TransactionCommitRequested):
            self.requested = event
        elif isinstance(event, TransactionCommitted | TransactionAborted):
            self.ended = event
        elif isinstance(event, OffsetsAdded):
            self.offsets.append(event)

    @property
    def fate(self) -> tuple[Event, ...]:
        """The event that says how it ended, as far as its writer knows; else those that show that it has begun."""
        return (self.ended or self.requested or self.began,)


@attrs.define(eq=False)
class Index:
    """The events of a history by what they are about."""

    producers: dict[str, ProducerOpened] = attrs.field(factory=dict)
    sent: dict[str, list[RecordSent]] = attrs.field(factory=dict)
    """The records of each producer, in the order of the calls."""
    acknowledged: dict[Value, SendAcknowledged] = attrs.field(factory=dict)
    failed: dict[Value, SendFailed] = attrs.field(factory=dict)
    transactions: dict[str, WrittenTransaction] = attrs.field(factory=dict)
    fetched: list[OffsetFetched] = attrs.field(factory=list)
    logs: dict[Partition, LogFound] = attrs.field(factory=dict)
    committed_logs: dict[Partition, LogFound] = attrs.field(factory=dict)
    sources: list[SourceFound] = attrs.field(factory=list)
    readers: dict[str, ReaderOpened] = attrs.field(factory=dict)
    reads: dict[str, dict[Partition, list[RecordRead]]] = attrs.field(factory=dict)
    """What each of the ``readers`` has read."""

    @classmethod
    def of(cls, history: Iterable[Event]) -> "Index":
        """Sort the events of a history."""
        index = cls()
        for event in history:
            index._add(event)
        return index

    def _add(self, event: Event) -> None:
        match event:
            case RecordRead():
                if event.reader in self.readers:
                    self.reads.setdefault(event.reader, {}).setdefault(event.partition, []).append(event)
            case RecordSent():
                self.sent.setdefault(event.producer, []).append(event)
                if event.transaction is not None:
                    self.transactions[event.transaction].sent.append(event)
            case SendAcknowledged():
                self.acknowledged[event.value] = event
            case SendFailed():
                self.failed[event.value] = event
            case LogFound():
                (self.committed_logs if event.is_committed else self.logs)[event.partition] = event
            case ProducerOpened():
                self.producers[event.producer] = event
            case ReaderOpened():
                self.readers[event.reader] = event
            case TransactionBegan():
                self.transactions[event.transaction] = WrittenTransaction(event)
            case TransactionCommitRequested() | TransactionCommitted() | TransactionAborted() | OffsetsAdded():
                self.transactions[event.transaction].note(event)
            case OffsetFetched():
                self.fetched.append(event)
            case SourceFound():
                self.sources.append(event)

    def guarantees(self, producer: str) -> ProducerOpened:
        """Return what a producer guarantees."""
        return self.producers.get(producer) or ProducerOpened(producer)

    def all_sent(self) -> Iterator[RecordSent]:
        """Return all records that were sent."""
        return (record for records in self.sent.values() for record in records)

    @staticmethod
    def places(logs: Iterable[LogFound]) -> dict[Value, list[Place]]:
        """Return where each value is in these logs."""
        found: dict[Value, list[Place]] = {}
        for log in logs:
            for offset, value in log.records:
                found.setdefault(value, []).append((log, offset))
        return found

    @staticmethod
    def shown_in(places: Sequence[Place]) -> list[LogFound]:
        """Return the parts of logs with these places alone."""
        offsets: dict[int, tuple[LogFound, list[int]]] = {}
        for log, offset in places:
            offsets.setdefault(id(log), (log, []))[1].append(offset)
        return [log.only(wanted) for log, wanted in offsets.values()]
