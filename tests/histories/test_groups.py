"""The checker finds what is wrong with a group in a history, and nothing in the nearest one that is right."""

from collections.abc import Sequence

import pytest

from histories.anomalies import Anomaly, Kind
from histories.checking import History, check
from histories.events import Event, LogFound, RecordRead, RecordSent
from histories.group_events import (
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

Events = tuple[Event, ...]
LOG: Events = (*(RecordSent("p", value) for value in "xyz"), LogFound("a", ((0, "x"), (1, "y"), (2, "z"))))


def assigned(generation: int, owner: str, *, members: Sequence[str] | None = None) -> AssignmentSent:
    return AssignmentSent("a", generation, owner, owner, None if members is None else frozenset(members))


def begins(member: str) -> PartitionAssigned:
    return PartitionAssigned(member, "a")


def gives_up(member: str, *, commits: bool = False, in_hand: int | None = None) -> PartitionRevoked:
    return PartitionRevoked(member, "a", commits, in_hand)


def reads(member: str, *offsets: int, generation: int = 1, finished: bool = True) -> Events:
    events: list[Event] = []
    for offset in offsets:
        events.append(RecordRead(member, "a", offset, "xyz"[offset], generation, member))
        if finished:
            events.append(RecordFinished("a", offset))
    return tuple(events)


def commits(offset: int, member: str = "m", generation: int = 1, connection: int = 1) -> OffsetCommitted:
    return OffsetCommitted(member, "a", offset, generation, f"id of {member}", member, connection)


def fetches(offset: int, member: str = "") -> OffsetFetched:
    return OffsetFetched("g", "a", offset, member)


BEGUN: Events = (assigned(1, "m"), begins("m"), *reads("m", 0, 1), commits(2))
"""A member has got the partition, and has finished and committed two records."""
NEXT: Events = (gives_up("m"), assigned(2, "n"), begins("n"))
"""Another member gets the partition."""
CASES: dict[str, tuple[Kind, Events, Events]] = {
    "assigned to two": (Kind.TWO_OWNERS, (*BEGUN, assigned(1, "n")), (*BEGUN, assigned(2, "n"))),
    "read in the generation of another": (
        Kind.TWO_OWNERS,
        (*BEGUN, *NEXT, *reads("n", 2, generation=1)),
        (*BEGUN, *NEXT, *reads("n", 2, generation=2)),
    ),
    "committed in the generation of another": (
        Kind.TWO_OWNERS,
        (*BEGUN, commits(2, "n")),
        (*BEGUN, commits(2, "n", generation=2)),
    ),
    "assigned while another member reads": (
        Kind.TWO_OWNERS,
        (*BEGUN, assigned(2, "n", members=("m", "n"))),
        (*BEGUN, assigned(2, "n", members=("n",))),
    ),
    "got twice": (Kind.NOT_OWNED, (*BEGUN, begins("m")), (*BEGUN, gives_up("m"), begins("m"))),
    "given up twice": (Kind.NOT_OWNED, (*BEGUN, gives_up("m"), gives_up("m")), (*BEGUN, gives_up("m"))),
    "read after the revocation": (
        Kind.NOT_OWNED,
        (*BEGUN, gives_up("m"), *reads("m", 2)),
        (*BEGUN, *reads("m", 2), gives_up("m")),
    ),
    "read after the end": (
        Kind.NOT_OWNED,
        (*BEGUN, MemberEnded("m"), *reads("m", 2)),
        (*BEGUN, *reads("m", 2), MemberEnded("m")),
    ),
    "committed as nobody's member": (
        Kind.NOT_OWNED,
        (*BEGUN, commits(2, generation=-1)),
        (*BEGUN, commits(2, generation=1)),
    ),
    "committed what came under an earlier assignment": (
        Kind.NOT_OWNED,
        (*BEGUN, *reads("m", 2), gives_up("m"), begins("m"), commits(3)),
        (*BEGUN, *reads("m", 2), gives_up("m"), begins("m"), commits(2)),
    ),
    "read again": (Kind.DUPLICATE, (*BEGUN, *reads("m", 1)), (*BEGUN, SeekBack("m", "a", 1), *reads("m", 1))),
    "left out": (Kind.UNSEEN_RECORD, (assigned(1, "m"), begins("m"), *reads("m", 0, 2)), (*BEGUN, *reads("m", 2))),
    "begins before the commit": (
        Kind.STALE_READ,
        (*BEGUN, *NEXT, *reads("n", 1, generation=2)),
        (*BEGUN, *NEXT, *reads("n", 2, generation=2)),
    ),
    "begins after the commit": (
        Kind.SKIPPED_RECORDS,
        (*BEGUN[:-1], commits(1), *NEXT, *reads("n", 2, generation=2)),
        (*BEGUN[:-1], commits(1), *NEXT, commits(2, generation=1), *reads("n", 2, generation=2)),
    ),
    "is told an older offset": (
        Kind.STALE_READ,
        (*BEGUN, *NEXT, fetches(1, "n")),
        (*BEGUN, *NEXT, fetches(2, "n")),
    ),
    "reads elsewhere than it was told": (
        Kind.UNSEEN_RECORD,
        (*BEGUN[:-1], commits(1), *NEXT, fetches(1, "n"), *reads("n", 2, generation=2)),
        (*BEGUN[:-1], commits(1), *NEXT, fetches(1, "n"), *reads("n", 1, 2, generation=2)),
    ),
    "commits what is not finished": (
        Kind.COMMIT_BEYOND_FINISHED,
        (*BEGUN, *reads("m", 2, finished=False), commits(3)),
        (*BEGUN, *reads("m", 2), commits(3)),
    ),
    "an older offset is committed": (
        Kind.OFFSET_REGRESSION,
        (*BEGUN, commits(1)),
        (*BEGUN, SeekBack("m", "a", 1), commits(1)),
    ),
    "an older offset is committed on a newer connection": (
        Kind.OFFSET_REGRESSION,
        (*BEGUN, commits(1, connection=2)),
        (*BEGUN, commits(1, connection=0)),
    ),
    "an older offset is committed that was requested later": (
        Kind.OFFSET_REGRESSION,
        (CommitRequested("m", "a", 2), CommitRequested("m", "a", 1), *BEGUN, commits(1, connection=2)),
        (CommitRequested("m", "a", 1), CommitRequested("m", "a", 2), *BEGUN, commits(1, connection=2)),
    ),
    "the commit is not there in the end": (Kind.OFFSET_REGRESSION, (*BEGUN, fetches(-1)), (*BEGUN, fetches(2))),
    "told of a commit that nobody has stored": (
        Kind.LOST_COMMIT,
        (*BEGUN, CommitAcknowledged("m", "a", 1)),
        (*BEGUN, CommitAcknowledged("m", "a", 2)),
    ),
    "given up without a commit": (
        Kind.UNCOMMITTED,
        (*BEGUN, *reads("m", 2), gives_up("m", commits=True)),
        (*BEGUN, *reads("m", 2), commits(3), gives_up("m", commits=True)),
    ),
    "given up without a commit of what is not in hand": (
        Kind.UNCOMMITTED,
        (*BEGUN[:-1], commits(1), *reads("m", 2), gives_up("m", commits=True, in_hand=2)),
        (*BEGUN, *reads("m", 2), gives_up("m", commits=True, in_hand=2)),
    ),
    "not finished in the end": (
        Kind.UNFINISHED_RECORD,
        (*BEGUN, *reads("m", 2, finished=False), *LOG),
        (*BEGUN, *reads("m", 2), *LOG),
    ),
    "not read in the end": (Kind.UNSEEN_RECORD, (*BEGUN, *LOG), (*BEGUN, *reads("m", 2), *LOG)),
    "read as another": (
        Kind.PHANTOM,
        (*BEGUN, RecordRead("m", "a", 2, "w", 1, "m"), RecordFinished("a", 2), *LOG),
        (*BEGUN, RecordRead("m", "a", 2, "z", 1, "m"), RecordFinished("a", 2), *LOG),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_anomaly_is_found_and_its_nearest_neighbour_is_right(case: str) -> None:
    kind, wrong, right = CASES[case]
    assert [anomaly.kind for anomaly in check(wrong)] == [kind]
    assert check(right) == []


def test_what_was_not_committed_is_read_again() -> None:
    again = (MemberEnded("m"), assigned(2, "n"), begins("n"), *reads("n", 2, generation=2))
    assert check((*BEGUN, *reads("m", 2), *again, *LOG)) == []


def test_what_is_wrong_is_told_at_once_with_its_counterexample() -> None:
    told = list[Anomaly]()
    history = History(told.append)
    history.extend((*BEGUN, *reads("m", 2, finished=False), commits(3)))
    (anomaly,) = told
    assert anomaly.events == (RecordRead("m", "a", 2, "z", 1, "m"), commits(3))
    assert str(anomaly).splitlines() == [
        "commit beyond finished: m commits 3 of a in generation 1, and 2 is not finished",
        "    m reads a:2 'z' in generation 1",
        "    m commits 3 of a in generation 1",
    ]
    assert history.check() == told


def test_late_commits_and_generations_are_counted() -> None:
    history = History()
    history.extend((*BEGUN, commits(1, connection=0), *NEXT, *reads("n", 1, 2, generation=2)))
    assert (history.group.late, history.group.generations, history.anomalies) == (1, {1, 2}, [])
