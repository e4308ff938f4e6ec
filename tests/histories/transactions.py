"""What must be true of transactions: all of each or nothing, once, in order, with the offsets that they commit."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum

from .anomalies import Anomaly, Kind
from .events import Event, LogFound, OffsetsAdded, RecordSent, TransactionAborted, TransactionCommitted, Value, shown
from .group_events import OffsetFetched
from .index import Index, Place, WrittenTransaction

__all__ = ("End", "check_transactions", "ends_of", "ends_told")


class End(Enum):
    """How a transaction has ended."""

    ABORTED = "aborted"
    COMMITTED = "committed"
    UNKNOWN = "not known"


def ends_told(history: Iterable[Event]) -> dict[str, End]:
    """Return how each transaction has ended, as far as its writer knows."""
    return {name: _told(one) for name, one in Index.of(history).transactions.items()}


def ends_of(history: Iterable[Event]) -> dict[str, End]:
    """Return how each transaction has ended, as its writer knows it or else as its records show."""
    index = Index.of(history)
    places = index.places(index.committed_logs.values())
    return {name: _resolved(one, places) for name, one in index.transactions.items()}


def _told(transaction: WrittenTransaction) -> End:
    if isinstance(transaction.ended, TransactionCommitted):
        return End.COMMITTED
    if isinstance(transaction.ended, TransactionAborted) or transaction.requested is None:
        return End.ABORTED
    return End.UNKNOWN


def _resolved(transaction: WrittenTransaction, places: Mapping[Value, Sequence[Place]]) -> End:
    told = _told(transaction)
    if told is not End.UNKNOWN or not transaction.sent:
        return told
    return End.COMMITTED if any(record.value in places for record in transaction.sent) else End.ABORTED


def check_transactions(index: Index) -> Iterator[Anomaly]:
    """Check all transactions of a history."""
    if not index.transactions:
        return
    places = index.places(index.committed_logs.values())
    for transaction in index.transactions.values():
        yield from _all_or_nothing(index, transaction, places)
    if not index.logs:  # otherwise those are found in the logs
        yield from _phantoms(index, places)
    yield from _order(index)
    yield from _offsets(index, {name: _resolved(one, places) for name, one in index.transactions.items()})


def _all_or_nothing(
    index: Index, transaction: WrittenTransaction, places: Mapping[Value, Sequence[Place]]
) -> Iterator[Anomaly]:
    end, fate = _told(transaction), transaction.fate
    there = [record for record in transaction.sent if record.value in places]
    missing = [record for record in transaction.sent if record.value not in places]
    for record in there:
        found = places[record.value]
        if len(found) > 1 and not index.logs:
            told = f"{shown(record.value)} is committed {len(found)} times"
            yield Anomaly(Kind.DUPLICATE, told, (record, *index.shown_in(found[:2])))
        if end is End.ABORTED:
            told = f"{shown(record.value)} is committed, and its transaction is aborted"
            yield Anomaly(Kind.ABORTED_READ, told, (record, *fate, *index.shown_in(found[:1])))
    if end is End.COMMITTED:
        for record in missing:
            told = f"{shown(record.value)} is not there, and its transaction is committed"
            yield Anomaly(Kind.LOST_WRITE, told, (record, *fate, *_lacking(index)))
    elif end is End.UNKNOWN and there and missing:
        told = (
            f"of transaction {transaction.began.transaction} {len(there)} of {len(transaction.sent)} records are there"
        )
        shows = index.shown_in(places[there[0].value][:1])
        yield Anomaly(Kind.TORN_TRANSACTION, told, (there[0], missing[0], *fate, *shows))


def _lacking(index: Index) -> list[LogFound]:
    return [log.without() for log in index.committed_logs.values()]


def _phantoms(index: Index, places: Mapping[Value, Sequence[Place]]) -> Iterator[Anomaly]:
    sent = {record.value for record in index.all_sent()}
    for value, found in places.items():
        if value not in sent:
            told = f"{shown(value)} is committed, and was never sent"
            yield Anomaly(Kind.PHANTOM, told, tuple(index.shown_in(found[:1])))


def _in_turn(transactions: Iterable[WrittenTransaction]) -> list[WrittenTransaction]:
    """Return transactions in the order of their epochs and, in an epoch, in the order of events."""
    return sorted(transactions, key=lambda one: one.began.epoch)


def _order(index: Index) -> Iterator[Anomaly]:
    """Check that the records of each writer are in a log once, and in the order of its transactions and calls."""
    turns: dict[Value, tuple[int, str, RecordSent]] = {}
    for transaction in _in_turn(index.transactions.values()):
        for record in transaction.sent:
            turns[record.value] = len(turns), transaction.began.writer, record
    for log in index.logs.values():
        met: dict[Value, int] = {}
        last: dict[str, tuple[int, int, RecordSent]] = {}
        for offset, value in log.records:
            if value not in turns:
                continue
            turn, writer, record = turns[value]
            first = met.setdefault(value, offset)
            before = last.get(writer)
            if first != offset:
                told = f"{shown(value)} is in {log.partition} at {first} and at {offset}"
                yield Anomaly(Kind.DUPLICATE, told, (record, log.only((first, offset))))
            elif before is not None and turn < before[0]:
                told = f"{shown(value)} of {writer} is in {log.partition} at {offset}, behind {shown(before[2].value)}"
                yield Anomaly(Kind.REORDER, told, (before[2], record, log.only((before[1], offset))))
            else:
                last[writer] = turn, offset, record


def _offsets(index: Index, ends: Mapping[str, End]) -> Iterator[Anomaly]:
    """Check that a group has the offsets of its last committed transaction, or of a later one that may have been."""
    groups: dict[str, list[tuple[OffsetsAdded, End, WrittenTransaction]]] = {}
    for transaction in _in_turn(index.transactions.values()):
        for added in transaction.offsets:
            groups.setdefault(added.group, []).append((added, ends[transaction.began.transaction], transaction))
    for fetched in index.fetched:
        if fetched.group in groups:
            yield from _offset(fetched, groups[fetched.group])


def _offset(
    fetched: OffsetFetched, additions: Sequence[tuple[OffsetsAdded, End, WrittenTransaction]]
) -> Iterator[Anomaly]:
    possible, last = {-1}, None
    for added, end, transaction in additions:
        if fetched.partition in added.offsets and end is not End.ABORTED:
            possible = {added.offsets[fetched.partition]} | (possible if end is End.UNKNOWN else set())
            last = (transaction.ended or added) if end is End.COMMITTED else last
    if fetched.offset in possible:
        return
    source = next(
        (
            (added, transaction)
            for added, end, transaction in additions
            if end is End.ABORTED and added.offsets.get(fetched.partition) == fetched.offset
        ),
        None,
    )
    told = f"{fetched.group} is at {fetched.offset} in {fetched.partition}, and not at {_either(possible)}"
    if source is not None:
        yield Anomaly(Kind.ABORTED_READ, told, (source[0], *source[1].fate, fetched))
    else:
        wanted = [added for added, _, _ in additions if added.offsets.get(fetched.partition) in possible][-1:]
        yield Anomaly(Kind.OFFSET_REGRESSION, told, (*wanted, *((last,) if last is not None else ()), fetched))


def _either(offsets: set[int]) -> str:
    return " or ".join(map(str, sorted(offsets)))
