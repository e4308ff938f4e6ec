"""What is committed of one partition, whatever the order in which its records are finished."""

from itertools import count

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.examples import examples

from aiokafkawire.processing.commit_metadata import FinishedRecords, decode_metadata
from aiokafkawire.processing.offset_tracker import OffsetTracker, Progress
from aiokafkawire.types import OffsetAndMetadata


@attrs.frozen
class Record:
    """A record of the log; another one at the same offset, after a truncation, has another number."""

    offset: int
    epoch: int | None
    number: int


class Tracking(RuleBasedStateMachine):
    """A partition whose records are read in order, are finished in any order, and whose owners crash.

    New leaders truncate its log, and append other records at the same offsets.
    """

    def __init__(self) -> None:
        super().__init__()
        self.tracker = OffsetTracker()
        self.next_offset = 0
        self.leader_epoch: int | None = None
        self.log: dict[int, Record] = {}
        self.numbers = count()
        self.finished: set[Record] = set()
        self.known: set[Record] = set()
        """What the owner, or its commits, know to be finished."""
        self.in_hand: list[Record] = []
        self.committed = OffsetAndMetadata(0)
        self.in_flight: Progress | None = None
        self.is_truncated = False
        """Whether the log was truncated since the last commit, which is of other records then."""

    @initialize(epoch=st.sampled_from((None, 1)))
    def begin(self, epoch: int | None) -> None:
        self.leader_epoch = epoch

    @rule(gap=st.sampled_from((0, 0, 0, 1, 5)))
    def read(self, gap: int) -> None:
        known = sorted(offset for offset in self.log if offset >= self.next_offset)
        offset = known[0] if known else self.next_offset + gap
        record = self.log.setdefault(offset, Record(offset, self.leader_epoch, next(self.numbers)))
        self.next_offset = offset + 1
        if self.tracker.add(offset, record.epoch):
            self.in_hand.append(record)
        else:
            assert record in self.finished

    @precondition(lambda self: self.in_hand)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        record = data.draw(st.sampled_from(self.in_hand))
        self.in_hand.remove(record)
        self.tracker.finish(record.offset)
        self.finished.add(record)
        self.known.add(record)

    @rule(limit=st.sampled_from((4096, 4096, 20, 0)))
    def send_commit(self, limit: int) -> None:
        progress = self.tracker.progress(limit=limit)
        if progress is not None:
            self.in_flight = progress

    @precondition(lambda self: self.in_flight is not None)
    @rule()
    def answer_commit(self) -> None:
        assert self.in_flight is not None
        self.tracker.committed(self.in_flight)
        self.committed, self.in_flight = self.in_flight.commit, None
        self.is_truncated = False

    @precondition(lambda self: self.in_flight is None)
    @rule()
    def move_to_another_owner(self) -> None:
        """All is committed as well as it can be, and read again by another one."""
        self.send_commit(4096)
        if self.in_flight is not None:
            self.answer_commit()
        known = {record.offset for record in self.known}
        self.crash()
        if not self.is_truncated:
            covered = {offset for start, stop in self.tracker._finished_before for offset in range(start, stop)}
            assert {offset for offset in known if offset >= self.next_offset} <= covered

    @rule()
    def crash(self) -> None:
        at = self.committed
        self.tracker = OffsetTracker(decode_metadata(at.offset, at.metadata))
        self.next_offset, self.in_hand, self.in_flight = at.offset, [], None
        self.known = set() if self.is_truncated else self._covered()
        if self.is_truncated:  # the consumer finds it by the epoch of the commit, and begins where the log has changed
            kept = [record.offset for record in self.log.values() if (record.epoch or 0) <= (at.leader_epoch or 0)]
            self.next_offset = min(at.offset, max(kept, default=-1) + 1)

    @precondition(lambda self: self.leader_epoch is not None)
    @rule(data=st.data(), appended=st.integers(0, 8))
    def truncate(self, data: st.DataObject, appended: int) -> None:
        """Make another broker the leader, which has not got the last records; the owner reads what it has instead."""
        assert self.leader_epoch is not None
        end = max(self.log, default=-1) + 1
        cut = data.draw(st.integers(0, end))
        self.leader_epoch += 1
        self.log = {offset: record for offset, record in self.log.items() if offset < cut}
        for offset in range(cut, cut + appended):
            self.log[offset] = Record(offset, self.leader_epoch, next(self.numbers))
        self.is_truncated = True
        self.known = {record for record in self.known if record.offset < cut}
        if data.draw(st.booleans()):
            self.crash()
        elif cut < self.next_offset:
            self.next_offset = min(cut, self.tracker.first_unfinished(cut))
            self.tracker, self.in_hand, self.in_flight = OffsetTracker(), [], None
            self.known = {record for record in self.known if record.offset < self.next_offset}

    def _covered(self) -> set[Record]:
        at = self.committed
        after = decode_metadata(at.offset, at.metadata)
        newest = 1_000 if after.leader_epoch is None else after.leader_epoch
        return {
            record
            for offset, record in self.log.items()
            if offset < at.offset
            or ((record.epoch or 0) <= newest and any(start <= offset < stop for start, stop in after.ranges))
        }

    @invariant()
    def what_is_committed_is_finished(self) -> None:
        assert self.is_truncated or self._covered() <= self.finished

    @invariant()
    def everything_in_hand_is_counted(self) -> None:
        assert self.tracker.in_hand == len(self.in_hand) + self.tracker.uncommitted


Tracking.TestCase.settings = settings(max_examples=examples(300), stateful_step_count=60, deadline=None)
test_commits_cover_finished_records_alone_and_owners_repeat_none_of_them = Tracking.TestCase


def test_a_position_after_all_records_is_committed_once_they_are_finished() -> None:
    tracker, seven = OffsetTracker(FinishedRecords(3)), OffsetAndMetadata(7)
    tracker.add(3, leader_epoch=2)
    early = tracker.progress(seven)
    assert early is not None
    assert early.commit.offset == 3
    tracker.finish(3)
    progress = tracker.progress(seven)
    assert progress is not None
    assert progress.commit == OffsetAndMetadata(7, "", 2)
    tracker.committed(progress)
    assert tracker.progress(seven) is None


def test_where_a_partition_without_a_commit_begins_is_committed_once() -> None:
    tracker, eight = OffsetTracker(), OffsetAndMetadata(8)
    assert tracker.progress() is None
    beginning = tracker.progress(OffsetAndMetadata(7))
    assert beginning is not None
    assert beginning.commit == OffsetAndMetadata(7)
    tracker.committed(beginning)
    assert tracker.progress(OffsetAndMetadata(7)) is None
    tracker.add(7)
    assert tracker.progress(eight) is None
    tracker.finish(7)
    progress = tracker.progress(eight)
    assert progress is not None
    assert progress.commit.offset == 8


@pytest.mark.parametrize(
    ("begins_at", "metadata"),
    [(10, None), (12, FinishedRecords(12, [(15, 20)], 3)), (17, FinishedRecords(17, [(17, 20)], 3)), (4, None)],
)
def test_a_partition_that_begins_elsewhere_than_at_its_commit_is_committed_there(
    begins_at: int, metadata: FinishedRecords | None
) -> None:
    tracker = OffsetTracker(FinishedRecords(10, [(15, 20)], leader_epoch=3))
    progress = tracker.progress(OffsetAndMetadata(begins_at, leader_epoch=5))
    if begins_at == 10:
        assert progress is None
        return
    assert progress is not None
    assert (progress.commit.offset, progress.commit.leader_epoch) == (begins_at, 5)
    assert decode_metadata(begins_at, progress.commit.metadata) == (metadata or FinishedRecords(begins_at))
    tracker.committed(progress)
    assert tracker.progress(OffsetAndMetadata(begins_at, leader_epoch=5)) is None


def test_the_epoch_is_that_of_the_record_before_the_committed_offset() -> None:
    tracker = OffsetTracker()
    for offset, epoch in ((0, 1), (1, 1), (2, 4), (3, 5)):
        tracker.add(offset, epoch)
    found = []
    for offset in range(4):
        tracker.finish(offset)
        progress = tracker.progress()
        assert progress is not None
        found.append(progress.commit.leader_epoch)
    assert found == [1, 1, 4, 5]


def test_what_finishes_while_a_commit_is_under_way_stays_uncommitted() -> None:
    tracker = OffsetTracker()
    for offset in range(3):
        tracker.add(offset)
    tracker.finish(0)
    progress = tracker.progress()
    assert progress is not None
    tracker.finish(1)
    tracker.committed(progress)
    assert (tracker.uncommitted, tracker.in_hand) == (1, 2)
    assert tracker.precedes(2)
    assert not tracker.precedes(3)


def test_what_was_finished_in_a_log_that_was_truncated_since_does_not_count() -> None:
    committed = FinishedRecords(100, [(105, 200)], leader_epoch=3)
    same, cut_after, cut_before = (OffsetTracker(committed) for _ in range(3))
    assert same.add(100, 3)
    assert not same.add(105, 3)
    assert cut_after.add(100, 3)
    assert cut_after.add(103, 4)
    assert cut_after.add(105, 4)
    assert cut_before.add(90, None)
    assert cut_before.add(105, None)


def test_what_one_owner_knows_to_be_finished_keeps_its_epoch_for_the_next() -> None:
    tracker = OffsetTracker(FinishedRecords(10, [(15, 20)], leader_epoch=3))
    tracker.add(10, 2)
    progress = tracker.progress()
    assert progress is not None
    assert decode_metadata(10, progress.commit.metadata).leader_epoch == 3
