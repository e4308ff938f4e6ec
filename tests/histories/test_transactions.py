"""The checker finds what is wrong with transactions in a history, and nothing in the nearest one that is right."""

import pytest

from histories.anomalies import Kind
from histories.checking import check
from histories.events import (
    Event,
    LogFound,
    OffsetsAdded,
    ReaderOpened,
    RecordRead,
    RecordSent,
    TransactionAborted,
    TransactionBegan,
    TransactionCommitRequested,
    TransactionCommitted,
)
from histories.group_events import OffsetFetched
from histories.transactions import End, ends_of, ends_told

History = tuple[Event, ...]


def wrote(name: str, *values: str, end: str = "committed", epoch: int = 0, offset: int | None = None) -> History:
    """One transaction of the writer, with these records, and an offset of its group."""
    events: list[Event] = [TransactionBegan(name, "w", epoch), *(RecordSent("w", value, name) for value in values)]
    if offset is not None:
        events.append(OffsetsAdded(name, "g", {"a": offset}))
    if end != "began":
        events.append(TransactionCommitRequested(name))
    if end == "committed":
        events.append(TransactionCommitted(name))
    elif end == "aborted":
        events.append(TransactionAborted(name))
    return tuple(events)


def logs(*values: str, committed: str | None = None) -> History:
    """The log with these records, of which the ones in ``committed`` are."""
    kept = values if committed is None else tuple(committed)
    records = tuple(enumerate(values))
    chosen = tuple(record for record in records if record[1] in kept)
    return LogFound("a", records), LogFound("a", chosen, is_committed=True)


def fetched(offset: int) -> OffsetFetched:
    return OffsetFetched("g", "a", offset)


READER = ReaderOpened("r", ("a",), is_committed=True)
DOUBT = "in doubt"
CASES: dict[str, tuple[list[Kind], History, History]] = {
    "part of a commit is not there": (
        [Kind.LOST_WRITE],
        (*wrote("1", "x", "y"), *logs("x")),
        (*wrote("1", "x", "y"), *logs("x", "y")),
    ),
    "part of a commit in doubt is not there": (
        [Kind.TORN_TRANSACTION],
        (*wrote("1", "x", "y", end=DOUBT), *logs("x")),
        (*wrote("1", "x", "y", end=DOUBT), *logs()),
    ),
    "an aborted record is there": (
        [Kind.ABORTED_READ],
        (*wrote("1", "x", end="aborted"), *logs("x")),
        (*wrote("1", "x", end="aborted"), *logs("x", committed="")),
    ),
    "a record is there whose commit was never requested": (
        [Kind.ABORTED_READ],
        (*wrote("1", "x", end="began"), *logs("x")),
        (*wrote("1", "x", end=DOUBT), *logs("x")),
    ),
    "twice": (
        [Kind.DUPLICATE],
        (*wrote("1", "x"), *logs("x", "x")),
        (*wrote("1", "x"), *logs("x")),
    ),
    "committed twice, in a log that was read by a reader of committed records": (
        [Kind.DUPLICATE],
        (*wrote("1", "x"), logs("x", "x")[1]),
        (*wrote("1", "x"), logs("x")[1]),
    ),
    "committed, never sent": (
        [Kind.PHANTOM],
        (*wrote("1", "x"), logs("x", "z")[1]),
        (*wrote("1", "x", "z"), logs("x", "z")[1]),
    ),
    "behind a later one of its transaction": (
        [Kind.REORDER],
        (*wrote("1", "x", "y"), *logs("y", "x")),
        (*wrote("1", "x", "y"), *logs("x", "y")),
    ),
    "behind one of a later epoch": (
        [Kind.REORDER],
        (*wrote("2", "y", epoch=2), *wrote("1", "x", epoch=1), *logs("y", "x")),
        (*wrote("2", "y", epoch=2), *wrote("1", "x", epoch=1), *logs("x", "y")),
    ),
    "never sent": (
        [Kind.PHANTOM],
        (*wrote("1", "x"), *logs("x", "z")),
        (*wrote("1", "x", "z"), *logs("x", "z")),
    ),
    "an aborted record is read": (
        [Kind.ABORTED_READ],
        (READER, RecordRead("r", "a", 0, "x"), *wrote("1", "x", end="aborted"), *logs("x", committed="")),
        (READER, RecordRead("r", "a", 0, "x"), *wrote("1", "x"), *logs("x")),
    ),
    "the offset of an earlier commit": (
        [Kind.OFFSET_REGRESSION],
        (*wrote("1", offset=3), *wrote("2", offset=4), *logs(), fetched(3)),
        (*wrote("1", offset=3), *wrote("2", offset=4, end=DOUBT), *logs(), fetched(3)),
    ),
    "no offset": (
        [Kind.OFFSET_REGRESSION],
        (*wrote("1", offset=3), *logs(), fetched(-1)),
        (*wrote("1", offset=3, end=DOUBT), *logs(), fetched(-1)),
    ),
    "the offset of an aborted transaction": (
        [Kind.ABORTED_READ],
        (*wrote("1", offset=3, end="aborted"), *logs(), fetched(3)),
        (*wrote("1", offset=3), *logs(), fetched(3)),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_anomaly_is_found_and_its_nearest_neighbour_is_right(case: str) -> None:
    kinds, wrong, right = CASES[case]
    assert [anomaly.kind for anomaly in check(wrong)] == kinds
    assert check(right) == []


def test_the_counterexample_of_a_torn_transaction_has_a_record_of_each_kind() -> None:
    history = (*wrote("1", "u", "x", "y", "z", end=DOUBT), *logs("u", "x"))
    (torn,) = check(history)
    assert torn.events == (
        RecordSent("w", "u", "1"),
        RecordSent("w", "y", "1"),
        TransactionCommitRequested("1"),
        LogFound("a", ((0, "u"),), 0, 0, is_committed=True),
    )
    assert str(torn).splitlines()[0] == "torn transaction: of transaction 1 2 of 4 records are there"


def test_what_became_of_a_transaction_in_doubt_is_seen_in_the_log() -> None:
    history = (
        *wrote("1", "x", end=DOUBT),
        *wrote("2", "y", end=DOUBT),
        *wrote("3", end=DOUBT),
        *wrote("4", "z"),
        *wrote("5", "u", end="aborted"),
        *logs("x", "z"),
    )
    told = [End.UNKNOWN, End.UNKNOWN, End.UNKNOWN, End.COMMITTED, End.ABORTED]
    assert [*ends_told(history).values()] == told
    assert [*ends_of(history).values()] == [End.COMMITTED, End.ABORTED, End.UNKNOWN, End.COMMITTED, End.ABORTED]
