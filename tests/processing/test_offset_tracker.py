"""What is committed of one partition, whatever the order in which its records are finished."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from support.examples import examples

from aiokafkawire.processing.commit_metadata import decode_metadata
from aiokafkawire.processing.offset_tracker import OffsetTracker, Progress
from aiokafkawire.types import OffsetAndMetadata


class Tracking(RuleBasedStateMachine):
    """A partition whose records are read in order, are finished in any order, and whose owners crash."""

    def __init__(self) -> None:
        super().__init__()
        self.tracker = OffsetTracker()
        self.next_offset = 0
        self.records: set[int] = set()
        self.finished: set[int] = set()
        self.in_hand: list[int] = []
        self.committed = OffsetAndMetadata(0)
        self.in_flight: Progress | None = None
        self.known: set[int] = set()
        """What the owner, or its commits, know to be finished."""

    @rule(gap=st.sampled_from((0, 0, 0, 1, 5)), epoch=st.sampled_from((None, 1, 2)))
    def read(self, gap: int, epoch: int | None) -> None:
        known = sorted(offset for offset in self.records if offset >= self.next_offset)
        offset = known[0] if known else self.next_offset + gap
        self.next_offset = offset + 1
        self.records.add(offset)
        if self.tracker.add(offset, epoch):
            self.in_hand.append(offset)
        else:
            assert offset in self.known

    @precondition(lambda self: self.in_hand)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        offset = data.draw(st.sampled_from(self.in_hand))
        self.in_hand.remove(offset)
        self.tracker.finish(offset)
        self.finished.add(offset)
        self.known.add(offset)

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

    @precondition(lambda self: self.in_flight is None)
    @rule()
    def move_to_another_owner(self) -> None:
        """All is committed as well as it can be, and read again by another one."""
        self.send_commit(4096)
        if self.in_flight is not None:
            self.answer_commit()
        known = self.known
        self.crash()
        covered = {offset for start, stop in self.tracker._finished_before for offset in range(start, stop)}
        assert {offset for offset in known if offset >= self.next_offset} <= covered

    @rule()
    def crash(self) -> None:
        at = self.committed
        self.tracker = OffsetTracker(decode_metadata(at.offset, at.metadata))
        self.next_offset, self.in_hand, self.in_flight = at.offset, [], None
        self.known = self._covered()

    def _covered(self) -> set[int]:
        at = self.committed
        skipped = decode_metadata(at.offset, at.metadata)
        return {
            offset
            for offset in self.records
            if offset < at.offset or any(start <= offset < stop for start, stop in skipped)
        }

    @invariant()
    def what_is_committed_is_finished(self) -> None:
        assert self._covered() <= self.finished

    @invariant()
    def everything_in_hand_is_counted(self) -> None:
        assert self.tracker.in_hand == len(self.in_hand) + self.tracker.uncommitted


Tracking.TestCase.settings = settings(max_examples=examples(300), stateful_step_count=60, deadline=None)
test_commits_cover_finished_records_alone_and_owners_repeat_none_of_them = Tracking.TestCase


def test_a_position_after_all_records_is_committed_once_they_are_finished() -> None:
    tracker = OffsetTracker()
    assert tracker.progress(7) is None
    tracker.add(3, leader_epoch=2)
    early = tracker.progress(7)
    assert early is not None
    assert early.commit.offset == 3
    tracker.finish(3)
    progress = tracker.progress(7)
    assert progress is not None
    assert progress.commit == OffsetAndMetadata(7, "", 2)
    tracker.committed(progress)
    assert tracker.progress(7) is None


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
