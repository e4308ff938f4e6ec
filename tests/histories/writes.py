"""What must be true of the records that producers have sent, and of the logs."""

from collections.abc import Iterator, Mapping, Sequence

from .anomalies import Anomaly, Kind
from .events import Event, LogFound, Partition, RecordSent, SendAcknowledged, Value, shown
from .index import Index, Place

__all__ = ("check_writes",)


def check_writes(index: Index) -> Iterator[Anomaly]:
    """Check that what was acknowledged is in the logs, once and in order as far as producers guarantee it."""
    if not index.logs:
        return
    places = index.places(index.logs.values())
    yield from _origins(index, places)
    for producer, sent in index.sent.items():
        guarantees = index.guarantees(producer)
        plain = [record for record in sent if record.transaction is None]
        if guarantees.is_idempotent:
            yield from _once(plain, places)
            yield from _in_order(index, plain)
        if guarantees.is_durable:
            # Those of an idempotent producer are in order, acknowledged or not.
            is_ordered = guarantees.is_ordered and not guarantees.is_idempotent
            yield from _acknowledged(index, plain, places, is_ordered=is_ordered)


def _origins(index: Index, places: Mapping[Value, Sequence[Place]]) -> Iterator[Anomaly]:
    """Find records that nobody has sent, that were refused, and that are in another partition, or in two."""
    sent = {record.value: record for record in index.all_sent()}
    for value, found in places.items():
        record = sent.get(value)
        if record is None:
            told = f"{shown(value)} is in the log, and was never sent"
            yield Anomaly(Kind.PHANTOM, told, tuple(index.shown_in(found[:1])))
            continue
        if value in index.failed:
            told = f"{shown(value)} is in the log, and was refused"
            yield Anomaly(Kind.ABORTED_READ, told, (record, index.failed[value], *index.shown_in(found[:1])))
        if record.partition not in (None, found[0][0].partition):
            told = f"{shown(value)} is in {found[0][0].partition}, and was sent to {record.partition}"
            yield Anomaly(Kind.MISPLACED, told, (record, *index.shown_in(found[:1])))
        if (other := next((place for place in found if place[0] is not found[0][0]), None)) is not None:
            told = f"{shown(value)} is in {found[0][0].partition} and in {other[0].partition}"
            yield Anomaly(Kind.DUPLICATE, told, (record, *index.shown_in((found[0], other))))


def _once(sent: Sequence[RecordSent], places: Mapping[Value, Sequence[Place]]) -> Iterator[Anomaly]:
    for record in sent:
        found = places.get(record.value, ())
        for log, offset in found[1:]:
            if log is found[0][0]:
                first = found[0][1]
                told = f"{shown(record.value)} is in {log.partition} at {first} and at {offset}"
                yield Anomaly(Kind.DUPLICATE, told, (record, log.only((first, offset))))


def _in_order(index: Index, sent: Sequence[RecordSent]) -> Iterator[Anomaly]:
    """Find records of one producer that are in a log behind a later one; each counts once."""
    numbers = {record.value: number for number, record in enumerate(sent)}
    for log in index.logs.values():
        last, at, met = -1, -1, set[int]()
        for offset, value in log.records:
            number = numbers.get(value, -1)
            if number < 0 or number in met:
                continue
            met.add(number)
            if number < last:
                told = f"{shown(value)} is in {log.partition} at {offset}, behind {shown(sent[last].value)}, sent later"
                yield Anomaly(Kind.REORDER, told, (sent[number], sent[last], log.only((at, offset))))
            else:
                last, at = number, offset


def _acknowledged(
    index: Index, sent: Sequence[RecordSent], places: Mapping[Value, Sequence[Place]], *, is_ordered: bool
) -> Iterator[Anomaly]:
    last: dict[Partition, tuple[RecordSent, SendAcknowledged]] = {}
    for record in sent:
        acknowledged = index.acknowledged.get(record.value)
        if acknowledged is None:
            continue
        found = places.get(record.value, ())
        if not _is_there(acknowledged, found):
            yield _missing(index, record, acknowledged, found)
        elif is_ordered and acknowledged.offset >= 0:
            before = last.get(acknowledged.partition)
            if before is not None and acknowledged.offset < before[1].offset:
                told = f"{shown(record.value)} is before {shown(before[0].value)}, which was sent before it"
                yield Anomaly(Kind.REORDER, told, (*before, record, acknowledged))
            else:
                last[acknowledged.partition] = record, acknowledged


def _is_there(acknowledged: SendAcknowledged, found: Sequence[Place]) -> bool:
    return any(log.partition == acknowledged.partition and acknowledged.offset in (-1, offset) for log, offset in found)


def _missing(index: Index, record: RecordSent, acknowledged: SendAcknowledged, found: Sequence[Place]) -> Anomaly:
    log = index.logs.get(acknowledged.partition) or LogFound(acknowledged.partition, ())
    there = _around(log, acknowledged.offset) if acknowledged.offset >= 0 else log.without()
    events: tuple[Event, ...] = (record, acknowledged, there)
    if found:
        told = f"{acknowledged}, and is at {found[0][0].partition}:{found[0][1]}"
        return Anomaly(Kind.MISPLACED, told, (record, acknowledged, *index.shown_in(found[:1])))
    return Anomaly(Kind.LOST_WRITE, f"{acknowledged}, and is not there", events)


def _around(log: LogFound, offset: int) -> LogFound:
    """Return the part of the log that lacks a record, from the record before it to the one after it."""
    before = max((at for at, _ in log.records if at < offset), default=offset)
    after = min((at for at, _ in log.records if at > offset), default=offset)
    return log.only((before, offset, after))
