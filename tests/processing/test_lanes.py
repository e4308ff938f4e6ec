"""Which records a handler gets, and when: in order within a lane, and no lane waits for another one."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.examples import examples

from aiokafkawire.processing.lanes import Lanes, Ordering, Work
from aiokafkawire.types import TopicPartition

PARTITIONS = [TopicPartition("orders", index) for index in range(3)]
Record = tuple[TopicPartition, bytes | None, int]


class Handling(RuleBasedStateMachine):
    """Records that are added, handled, handled again, and dropped."""

    @initialize(
        ordering=st.sampled_from(("key", "partition", "none")), concurrency=st.integers(1, 4), batch=st.integers(1, 3)
    )
    def begin(self, ordering: Ordering, concurrency: int, batch: int) -> None:
        self.ordering, self.concurrency, self.batch = ordering, concurrency, batch
        self.lanes: Lanes[Record] = Lanes(ordering, concurrency, batch)
        self.now = 0.0
        self.count = 0
        self.waiting: list[Record] = []
        self.running: list[Work[Record]] = []
        self.delayed: list[tuple[float, Work[Record]]] = []

    def lane_of(self, record: Record) -> Any:
        partition, key, _ = record
        if self.ordering == "partition":
            return partition
        return (partition, key) if self.ordering == "key" and key is not None else None

    @rule(partition=st.sampled_from(PARTITIONS), key=st.sampled_from((None, b"a", b"b")))
    def add(self, partition: TopicPartition, key: bytes | None) -> None:
        self.count += 1
        record = (partition, key, self.count)
        self.waiting.append(record)
        self.lanes.add(partition, key, record)

    @rule()
    def take(self) -> None:
        work = self.lanes.take(self.now)
        if work is None:
            assert len(self.running) >= self.concurrency or not self._can_start()
            return
        assert len(self.running) < self.concurrency
        assert 1 <= len(work.records) <= self.batch
        due = [work_ for until, work_ in self.delayed if until <= self.now]
        if work in due:
            self.delayed = [entry for entry in self.delayed if entry[1] is not work]
        else:
            assert work.attempts == 1
            for record in work.records:
                lane = self.lane_of(record)
                if lane is not None:
                    first = next(other for other in self.waiting if self.lane_of(other) == lane)
                    assert first == record, "out of order"
                self.waiting.remove(record)
        lanes = {self.lane_of(record) for record in work.records}
        assert len(lanes) == 1
        assert lanes == {None} or not any(self.lane_of(other.records[0]) in lanes for other in self._busy())
        self.running.append(work)

    def _busy(self) -> list[Work[Record]]:
        return self.running + [work for _, work in self.delayed]

    def _can_start(self) -> bool:
        if any(until <= self.now for until, _ in self.delayed):
            return True
        busy = {self.lane_of(work.records[0]) for work in self._busy()} - {None}
        return any(self.lane_of(record) not in busy for record in self.waiting)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        work = data.draw(st.sampled_from(self.running))
        self.running.remove(work)
        self.lanes.finish(work)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), wait=st.floats(0, 5))
    def fail(self, data: st.DataObject, wait: float) -> None:
        work = data.draw(st.sampled_from(self.running))
        self.running.remove(work)
        self.delayed.append((self.now + wait, work))
        self.lanes.delay(work, self.now + wait)

    @rule(seconds=st.floats(0, 5))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(partition=st.sampled_from(PARTITIONS))
    def lose(self, partition: TopicPartition) -> None:
        lost = self.lanes.drop([partition], running=True)
        assert lost == [work for work in self.running if work.partition == partition]
        assert all(work.dropped for work in lost)
        for work in lost:
            self.running.remove(work)
            if work.attempts % 2:
                self.lanes.finish(work)
            else:
                self.lanes.delay(work, self.now)
        self.waiting = [record for record in self.waiting if record[0] != partition]
        self.delayed = [entry for entry in self.delayed if entry[1].partition != partition]

    @invariant()
    def the_next_attempt_is_known(self) -> None:
        if hasattr(self, "lanes"):
            assert self.lanes.next_due == min((until for until, _ in self.delayed), default=None)
            assert Counter(list(self.lanes.running)) == Counter(self.running)


Handling.TestCase.settings = settings(max_examples=examples(300), stateful_step_count=60, deadline=None)
test_records_are_handled_in_the_order_of_their_lanes = Handling.TestCase


def test_what_waits_for_another_attempt_holds_up_its_own_lane_alone() -> None:
    lanes: Lanes[str] = Lanes("key", 2)
    for key, record in ((b"a", "a1"), (b"a", "a2"), (b"b", "b1")):
        lanes.add(PARTITIONS[0], key, record)
    first = lanes.take(0.0)
    assert first is not None
    lanes.delay(first, 10.0)
    second = lanes.take(1.0)
    assert second is not None
    assert second.records == ["b1"]
    assert lanes.take(9.9) is None
    assert lanes.wake_at == 10.0
    again = lanes.take(10.0)
    assert again is first
    assert again.attempts == 2
    lanes.finish(first)
    after = lanes.take(10.0)
    assert after is not None
    assert after.records == ["a2"]


def test_running_works_of_revoked_partitions_still_count() -> None:
    lanes: Lanes[int] = Lanes("partition", 1)
    lanes.add(PARTITIONS[0], None, 1)
    lanes.add(PARTITIONS[0], None, 2)
    work = lanes.take(0.0)
    assert work is not None
    assert lanes.drop([PARTITIONS[0]], running=False) == [work]
    assert not work.dropped
    lanes.finish(work)
    assert lanes.take(0.0) is None


@pytest.mark.parametrize("ordering", ["key", "partition", "none"])
def test_a_record_may_be_alone_in_its_work(ordering: Ordering) -> None:
    lanes: Lanes[int] = Lanes(ordering, 9, 9)
    for number in range(5):
        lanes.add(PARTITIONS[0], b"k", number, alone=number == 2)
    found = []
    while (work := lanes.take(0.0)) is not None:
        found.append(work.records)
        lanes.finish(work)
    assert found == [[0, 1], [2], [3, 4]]


def test_after_the_end_nothing_begins() -> None:
    lanes: Lanes[int] = Lanes("none", 1)
    lanes.add(PARTITIONS[0], None, 1)
    lanes.close()
    assert lanes.take(0.0) is None


def test_a_delayed_work_needs_no_wake_up_while_enough_works_run_or_after_the_end() -> None:
    lanes: Lanes[int] = Lanes("none", 1)
    for number in range(2):
        lanes.add(PARTITIONS[0], None, number)
    first = lanes.take(0.0)
    assert first is not None
    lanes.delay(first, 1.0)
    assert lanes.wake_at == 1.0
    second = lanes.take(0.0)
    assert second is not None
    assert lanes.next_due == 1.0
    assert lanes.wake_at is None
    lanes.finish(second)
    assert lanes.wake_at == 1.0
    lanes.close()
    assert lanes.wake_at is None
