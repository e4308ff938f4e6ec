"""What a share partition promises in any order of events."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from aiokafkawire.testing.share.acknowledgements import AcknowledgedRange
from aiokafkawire.testing.share.acquisition import Acquisition, BatchOffsets
from aiokafkawire.testing.share.in_flight import DeliveryState
from aiokafkawire.testing.share.share_partition import SharePartition

LIMIT = 4
LOCK = 10.0


class Sharing(RuleBasedStateMachine):
    """Members that acquire, acknowledge, and disappear; the model knows who owns what, and until when."""

    def __init__(self) -> None:
        super().__init__()
        self.partition = SharePartition(0)
        self.now = 0.0
        self.log: list[BatchOffsets] = []
        self.owners: dict[int, tuple[str, float]] = {}
        self.deliveries: dict[int, int] = {}
        self.stored: dict[int, int] = {}
        """The deliveries of each offset that have ended: all that a new leader knows."""
        self.done: set[int] = set()

    @property
    def end(self) -> int:
        return self.log[-1].last + 1 if self.log else 0

    @rule(size=st.integers(1, 6))
    def produce(self, size: int) -> None:
        self.log.append(BatchOffsets(self.end, self.end + size - 1))

    @rule(member=st.sampled_from("abc"), records=st.integers(1, 9), size=st.integers(1, 5), strict=st.booleans())
    def acquire(self, member: str, records: int, size: int, strict: bool) -> None:
        wanted = Acquisition(member, records, size, self.now + LOCK, LIMIT, strict)
        read = [batch for batch in self.log if batch.last >= self.partition.next_offset]
        found = self.partition.acquire(wanted, read, max_in_flight=20)
        assert not strict or sum(last - first + 1 for first, last, _ in found) <= records
        assert found or not read or self.partition.next_offset > self.partition.end_offset or self.full
        for first, last, count in found:
            for offset in range(first, last + 1):
                assert offset not in self.owners, "a record was handed out within another member's lock"
                assert offset not in self.done
                self.owners[offset] = member, self.now + LOCK
                self.deliveries[offset] = self.deliveries.get(offset, 0) + 1
                assert self.deliveries[offset] == count <= LIMIT

    @property
    def full(self) -> bool:
        return self.partition.end_offset - self.partition.start_offset >= 20

    @rule(data=st.data(), kind=st.sampled_from([1, 2, 3, 4]))
    def acknowledge(self, data: st.DataObject, kind: int) -> None:
        if not self.owners:
            return
        offset = data.draw(st.sampled_from(sorted(self.owners)))
        member = self.owners[offset][0]
        early = offset < self.partition.start_offset
        self.partition.acknowledge(member, [AcknowledgedRange(offset, offset, [kind])], LIMIT, self.now + LOCK)
        if early:
            return  # the record was deleted meanwhile: its lock ends by itself
        if kind == 4:
            self.owners[offset] = member, self.now + LOCK
            return
        del self.owners[offset]
        self.stored[offset] = self.deliveries[offset]
        if kind != 2 or self.deliveries[offset] == LIMIT:
            self.done.add(offset)

    @rule()
    def move(self) -> None:
        """Let another broker lead, which knows what was stored."""
        self.partition.led_anew(self.end)
        self.owners.clear()
        self.done |= set(range(self.partition.start_offset))
        self.deliveries = {offset: self.stored.get(offset, 0) for offset in self.deliveries}

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        """Let the log start later; what is acquired before stays acquired."""
        start = data.draw(st.integers(0, self.end))
        self.partition.log_started_at(start)
        self.done |= {offset for offset in range(start) if offset not in self.owners}

    @rule(member=st.sampled_from("abc"))
    def leave(self, member: str) -> None:
        self.partition.release_member(member, LIMIT)
        self.released([offset for offset, (owner, _) in self.owners.items() if owner == member])

    @rule(seconds=st.floats(0, 2 * LOCK))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.partition.expire(self.now, LIMIT)
        self.released([offset for offset, (_, deadline) in self.owners.items() if deadline <= self.now])

    def released(self, offsets: list[int]) -> None:
        for offset in offsets:
            del self.owners[offset]
            self.stored[offset] = self.deliveries[offset]
            if self.deliveries[offset] == LIMIT or offset < self.partition.start_offset:
                self.done.add(offset)

    @invariant()
    def states_agree(self) -> None:
        acquired = {record.offset for record in self.partition if record.state is DeliveryState.ACQUIRED}
        assert acquired == set(self.owners)
        assert all(offset in self.done or offset in self.owners for offset in range(self.partition.start_offset))
        assert self.partition.start_offset not in self.done

    def teardown(self) -> None:
        """In the end every offset is done, after at most so many deliveries."""
        for _ in range(LIMIT * (self.end + 1) + 1):
            self.leave("a"), self.leave("b"), self.leave("c")
            self.acquire("a", 9, 3, strict=False)
        self.leave("a")
        assert self.partition.start_offset == self.end == len(self.done)


TestSharing = Sharing.TestCase
