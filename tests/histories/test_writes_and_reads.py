"""The checker finds what is wrong with writes and reads in a history, and nothing in the nearest one that is right."""

import pytest

from histories.anomalies import AnomaliesFound, Kind, require_none
from histories.checking import check
from histories.events import (
    Event,
    LogFound,
    ProducerOpened,
    ReaderOpened,
    RecordRead,
    RecordSent,
    SendAcknowledged,
    SendFailed,
)

X, Y, Z = (RecordSent("p", value) for value in "xyz")
CARELESS = ProducerOpened("p", is_idempotent=False, is_ordered=False)
READER = ReaderOpened("r", ("a",))


def log(*records: tuple[int, str], partition: str = "a") -> LogFound:
    return LogFound(partition, records)


def acknowledged(value: str, offset: int = -1, partition: str = "a") -> SendAcknowledged:
    return SendAcknowledged(value, partition, offset)


def read(offset: int, value: str) -> RecordRead:
    return RecordRead("r", "a", offset, value)


XY = (X, Y, log((0, "x"), (1, "y")))
WRITES: dict[str, tuple[Kind, tuple[Event, ...], tuple[Event, ...]]] = {
    "nothing is at the offset": (
        Kind.LOST_WRITE,
        (X, Y, acknowledged("x", 1), log((0, "y"), (2, "y2")), RecordSent("p", "y2")),
        (X, Y, acknowledged("x", 1), log((0, "y"), (1, "x"), (2, "y2")), RecordSent("p", "y2"), CARELESS),
    ),
    "another is at the offset": (
        Kind.LOST_WRITE,
        (X, Y, acknowledged("x", 0), log((0, "y"))),
        (X, Y, acknowledged("y", 0), log((0, "y"))),
    ),
    "it is nowhere": (Kind.LOST_WRITE, (X, acknowledged("x"), log()), (X, log())),
    "the leader alone has acknowledged it": (
        Kind.LOST_WRITE,
        (X, acknowledged("x", 0), log()),
        (ProducerOpened("p", is_durable=False), X, acknowledged("x", 0), log()),
    ),
    "it is at another offset": (
        Kind.MISPLACED,
        (X, acknowledged("x", 1), log((0, "x"))),
        (X, acknowledged("x", 0), log((0, "x"))),
    ),
    "it is in another partition": (
        Kind.MISPLACED,
        (X, acknowledged("x", 0, "b"), log((0, "x")), log(partition="b")),
        (X, acknowledged("x", 0, "b"), log(), log((0, "x"), partition="b")),
    ),
    "it is in another partition than it was sent to": (
        Kind.MISPLACED,
        (RecordSent("p", "x", partition="b"), log((0, "x"))),
        (RecordSent("p", "x", partition="a"), log((0, "x"))),
    ),
    "twice in a partition": (
        Kind.DUPLICATE,
        (X, log((0, "x"), (1, "x"))),
        (CARELESS, X, log((0, "x"), (1, "x"))),
    ),
    "in two partitions": (
        Kind.DUPLICATE,
        (CARELESS, X, log((0, "x")), log((0, "x"), partition="b")),
        (CARELESS, X, log((0, "x")), log(partition="b")),
    ),
    "not in the order of the calls": (Kind.REORDER, (X, Y, log((0, "y"), (1, "x"))), XY),
    "acknowledged in another order": (
        Kind.REORDER,
        (
            ProducerOpened("p", is_idempotent=False),
            *(X, Y, acknowledged("x", 1), acknowledged("y", 0), log((0, "y"), (1, "x"))),
        ),
        (CARELESS, X, Y, acknowledged("x", 1), acknowledged("y", 0), log((0, "y"), (1, "x"))),
    ),
    "never sent": (Kind.PHANTOM, (X, log((0, "x"), (1, "y"))), XY),
    "refused": (Kind.ABORTED_READ, (X, SendFailed("x"), log((0, "x"))), (X, log((0, "x")))),
}
READS: dict[str, tuple[Kind, tuple[Event, ...], tuple[Event, ...]]] = {
    "not read": (Kind.UNSEEN_RECORD, (READER, read(0, "x"), *XY), (READER, read(0, "x"), read(1, "y"), *XY)),
    "nothing is read": (Kind.UNSEEN_RECORD, (READER, X, log((0, "x"))), (X, log((0, "x")))),
    "read twice": (
        Kind.DUPLICATE,
        (READER, read(0, "x"), read(1, "y"), read(1, "y"), *XY),
        (READER, read(0, "x"), read(1, "y"), *XY),
    ),
    "read in another order": (
        Kind.REORDER,
        (READER, read(1, "y"), read(0, "x"), *XY),
        (READER, read(0, "x"), read(1, "y"), *XY),
    ),
    "read, and not there": (
        Kind.PHANTOM,
        (READER, read(0, "x"), X, log()),
        (READER, read(0, "x"), X, log((0, "x"))),
    ),
    "read as another": (
        Kind.PHANTOM,
        (READER, read(0, "y"), X, log((0, "x"))),
        (READER, read(0, "x"), X, log((0, "x"))),
    ),
}


@pytest.mark.parametrize("case", [*WRITES, *READS])
def test_an_anomaly_is_found_and_its_nearest_neighbour_is_right(case: str) -> None:
    kind, wrong, right = (WRITES | READS)[case]
    assert [anomaly.kind for anomaly in check(wrong)] == [kind]
    assert check(right) == []


def test_a_record_that_is_behind_others_counts_once() -> None:
    found = check((X, Y, Z, log((0, "y"), (1, "z"), (2, "x"))))
    assert [anomaly.kind for anomaly in found] == [Kind.REORDER]


def test_the_counterexample_of_a_lost_write_has_the_log_around_its_place() -> None:
    others = tuple(RecordSent("q", number) for number in range(6))
    around = LogFound("a", tuple((number, number) for number in range(6) if number != 3))
    (lost,) = check((*others, X, acknowledged("x", 3), around))
    assert lost.events == (X, acknowledged("x", 3), around.only((2, 3, 4)))
    assert str(lost).splitlines() == [
        "lost write: 'x' is acknowledged at a:3, and is not there",
        "    p sends 'x'",
        "    'x' is acknowledged at a:3",
        "    log of a from 2 to 4: 2 2, 4 4",
    ]


def test_the_counterexample_of_a_duplicate_has_its_two_places_alone() -> None:
    (duplicate,) = check((X, Y, log((0, "x"), (1, "y"), (2, "x"))))
    assert duplicate.events == (X, log((0, "x"), (2, "x")).only((0, 2)))


def test_anomalies_are_raised_with_their_names_and_the_first_of_them() -> None:
    require_none([])
    with pytest.raises(AnomaliesFound, match="7 x phantom record, 1 x lost write") as raised:
        require_none(check((X, acknowledged("x", 1), log(*((number, str(number)) for number in range(7))))))
    assert raised.value.names == ("phantom record", "lost write")
    assert str(raised.value).endswith("and 3 more")


def test_values_are_shown_without_their_padding() -> None:
    assert str(RecordSent("p", b"7/3/" + bytes(2_000))) == "p sends b'7/3/'"
