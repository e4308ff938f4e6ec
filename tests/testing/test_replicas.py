"""Partitions of several replicas: what is committed stays, whatever brokers do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from support.raw_client import batch_of

from aiokafkawire.errors import ErrorCode
from aiokafkawire.records.batch import RecordBatch, RecordReader
from aiokafkawire.testing.cluster.api_error import ApiError
from aiokafkawire.testing.cluster.leader_epochs import UNKNOWN, LeaderEpochs
from aiokafkawire.testing.cluster.reassignment import cancel, complete, reassign
from aiokafkawire.testing.cluster.replicas import NO_LEADER, HostedPartition
from aiokafkawire.testing.logs.log import PartitionLog
from aiokafkawire.testing.logs.log_cleaner import compact

NODES = [1, 2, 3, 4]
REPLICAS = [1, 2, 3]
nodes = st.sampled_from(NODES)


class Cluster:
    """One partition, and the brokers that hold it."""

    def __init__(self, min_insync: int = 1, unclean: bool = False) -> None:
        self.configs = {
            "min.insync.replicas": str(min_insync),
            "unclean.leader.election.enable": "true" if unclean else "false",
        }
        self.down: set[int] = set()
        self.partition = HostedPartition(PartitionLog("t", 0), list(REPLICAS), self.down, self.configs.__getitem__)

    def append(self, *values: bytes | None) -> None:
        partition = self.partition
        batch = RecordBatch.parse(memoryview(batch_of(*values or (b"x",))))
        partition.log.append(batch, partition.leader_epoch)
        partition.replicate()

    def stop(self, node: int) -> None:
        self.down.add(node)
        self.partition.node_stopped(node)
        complete(self.partition)

    def start(self, node: int) -> None:
        self.down.discard(node)
        self.partition.node_started(node)
        complete(self.partition)

    def ends(self) -> list[int]:
        return [self.partition.end_offset(node) for node in sorted(self.partition.replicas)]

    def values(self, end: int) -> list[bytes | None]:
        values: list[bytes | None] = []
        for batch in self.partition.log.batches():
            records: RecordReader[bytes, bytes] = batch.records("t", 0)
            values += [record.value for record in records if record.offset < end]
        return values


def refusal(call: Callable[[], None]) -> ErrorCode | None:
    """Why it was refused; None if it was not."""
    try:
        call()
    except ApiError as refused:
        return refused.code
    return None


# --- any sequence of what may happen -------------------------------------------------------------------------------


class AnySequence(RuleBasedStateMachine):
    """Brokers stop, start, lag and lead in any order; with ``min_insync`` replicas for what is committed."""

    min_insync = 1

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster(self.min_insync)
        self.partition = self.cluster.partition
        self.committed: list[bytes | None] = []
        self.epochs = (0, 0)
        self.count = 0

    @rule(size=st.integers(1, 3))
    def append(self, size: int) -> None:
        if self.partition.leader != NO_LEADER:
            self.cluster.append(*(b"%d" % (self.count + index) for index in range(size)))
            self.count += size

    @rule(node=nodes)
    def stop(self, node: int) -> None:
        if node not in self.cluster.down:
            self.cluster.stop(node)

    @rule(node=nodes)
    def start(self, node: int) -> None:
        if node in self.cluster.down:
            self.cluster.start(node)

    @rule(node=nodes)
    def hold(self, node: int) -> None:
        if node in self.partition.replicas and node != self.partition.leader:
            self.partition.hold(node)

    @rule(node=nodes)
    def release(self, node: int) -> None:
        self.partition.release(node)
        complete(self.partition)

    @rule(aim=st.lists(nodes, min_size=1, max_size=3, unique=True))
    def reassign(self, aim: list[int]) -> None:
        reassign(self.partition, aim)
        assert sorted(self.partition.replicas) == sorted({*aim, *self.partition.removing})

    @rule()
    def cancel(self) -> None:
        moving = bool(self.partition.adding or self.partition.removing)
        code = refusal(lambda: cancel(self.partition))
        if moving:
            assert code in (None, ErrorCode.INVALID_REPLICA_ASSIGNMENT)
        else:
            assert code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS

    @rule(node=nodes)
    def expel(self, node: int) -> None:
        if node in self.partition.replicas and node != self.partition.leader:
            self.partition.hold(node)
            self.partition.expel(node)

    @rule(node=nodes)
    def elect(self, node: int) -> None:
        code = refusal(lambda: self.partition.elect(node))
        assert code in (None, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
        assert (self.partition.leader == node) == (code is None)

    @rule(node=nodes)
    def elect_unclean(self, node: int) -> None:
        if node in self.cluster.down or node not in self.partition.replicas:
            return
        end = self.partition.end_offset(node)
        before = self.cluster.values(end)
        self.partition.elect(node, unclean=True)
        assert self.partition.log.log_end_offset == end
        assert self.cluster.values(end) == before
        self.committed = self.committed[:end]

    @invariant()
    def what_was_committed_is_there(self) -> None:
        high_watermark = self.partition.log.high_watermark
        assert high_watermark >= len(self.committed)
        values = self.cluster.values(high_watermark)
        assert values[: len(self.committed)] == self.committed
        self.committed = values

    @invariant()
    def nothing_is_committed_beyond_a_replica_that_may_lead(self) -> None:
        partition = self.partition
        for node in partition.in_sync_replicas + partition.eligible_leader_replicas:
            assert partition.log.high_watermark <= partition.end_offset(node)

    @invariant()
    def no_replica_is_beyond_the_log(self) -> None:
        assert all(end <= self.partition.log.log_end_offset for end in self.cluster.ends())
        for node in self.partition.replicas:
            assert self.partition.high_watermark(node) <= self.partition.log.high_watermark
            assert self.partition.high_watermark(node) <= self.partition.end_offset(node)

    @invariant()
    def the_sets_of_replicas_are_what_they_should(self) -> None:
        partition = self.partition
        in_sync, eligible = partition.in_sync_replicas, partition.eligible_leader_replicas
        assert len(set(in_sync + eligible)) == len(in_sync + eligible)
        assert set(in_sync + eligible) <= set(partition.replicas)
        assert not self.cluster.down & set(in_sync)
        if partition.leader == NO_LEADER:
            assert in_sync == []
            assert set(eligible) <= self.cluster.down
            assert eligible  # nobody has to be elected uncleanly
        else:
            assert partition.leader in in_sync
        if partition.leader != NO_LEADER and len(in_sync) >= partition.min_insync_replicas:
            assert eligible == []

    @invariant()
    def who_may_follow_is_in_sync(self) -> None:
        partition = self.partition
        for node in partition.replicas:
            if partition.leader != NO_LEADER and node not in self.cluster.down and node not in partition.held:
                assert node in partition.in_sync_replicas
                assert partition.end_offset(node) == partition.log.log_end_offset

    @invariant()
    def epochs_only_grow(self) -> None:
        epochs = self.partition.leader_epoch, self.partition.partition_epoch
        assert epochs[0] >= self.epochs[0]
        assert epochs[1] >= self.epochs[1]
        self.epochs = epochs

    @invariant()
    def epochs_say_where_the_log_parts(self) -> None:
        stored = [(b.header.leader_epoch, b.header.next_offset) for b in self.partition.log.batches()]
        assert stored == sorted(stored)
        for epoch, _ in stored:
            end = max(next_offset for known, next_offset in stored if known == epoch)
            if self.partition.leader != NO_LEADER:
                assert self.partition.epoch_end(epoch, self.partition.leader) == (epoch, end)


class AnySequenceWithTwoInSync(AnySequence):
    min_insync = 2


TestAnySequence: Any = AnySequence.TestCase
TestAnySequenceWithTwoInSync: Any = AnySequenceWithTwoInSync.TestCase


# --- one by one ------------------------------------------------------------------------------------------------------


def test_followers_copy_at_once_and_a_held_one_keeps_back_what_is_committed() -> None:
    cluster = Cluster()
    partition = cluster.partition
    cluster.append(b"a")
    assert (cluster.ends(), partition.log.high_watermark) == ([1, 1, 1], 1)
    partition.hold(3)
    cluster.append(b"b", b"c")
    assert (cluster.ends(), partition.log.high_watermark, partition.lagging) == ([3, 3, 1], 1, [3])
    assert partition.release(3)
    assert (cluster.ends(), partition.log.high_watermark, partition.lagging) == ([3, 3, 3], 3, [])


def test_the_high_watermark_goes_on_when_the_laggard_is_out() -> None:
    cluster = Cluster()
    partition = cluster.partition
    partition.hold(2)
    cluster.append()
    epoch = partition.partition_epoch
    assert partition.expel(2)
    assert not partition.expel(2)
    assert (partition.in_sync_replicas, partition.log.high_watermark) == ([1, 3], 1)
    assert partition.partition_epoch == epoch + 1
    assert partition.release(2)
    assert partition.in_sync_replicas == [1, 3, 2]
    assert not partition.expel(1)  # it leads


def test_nothing_is_committed_while_too_few_are_in_sync() -> None:
    cluster = Cluster(min_insync=2)
    partition = cluster.partition
    cluster.append()
    cluster.stop(2)
    cluster.stop(3)
    cluster.append()
    assert (partition.in_sync_replicas, partition.eligible_leader_replicas) == ([1], [3])
    assert partition.log.high_watermark == 1
    cluster.start(2)
    assert (partition.in_sync_replicas, partition.eligible_leader_replicas) == ([1, 2], [])
    assert partition.log.high_watermark == 2


def test_fewer_replicas_than_must_be_in_sync_are_enough_if_there_are_no_more() -> None:
    cluster = Cluster(min_insync=5)
    cluster.append()
    assert (cluster.partition.min_insync_replicas, cluster.partition.log.high_watermark) == (3, 1)


def test_who_was_in_sync_last_leads_when_it_is_back_and_the_others_follow() -> None:
    cluster = Cluster()
    partition = cluster.partition
    for node in (2, 3, 1):
        cluster.stop(node)
    assert (partition.leader, partition.in_sync_replicas) == (NO_LEADER, [])
    assert partition.eligible_leader_replicas == [1]
    cluster.start(2)
    assert partition.leader == NO_LEADER
    cluster.start(1)
    assert (partition.leader, partition.in_sync_replicas) == (1, [1, 2])
    assert partition.offline_replicas == [3]


def test_the_leader_that_stops_takes_along_what_nobody_copied() -> None:
    cluster = Cluster()
    partition = cluster.partition
    cluster.append(b"a")
    partition.hold(2)
    partition.hold(3)
    cluster.append(b"b")
    cluster.stop(1)
    assert (partition.leader, partition.leader_epoch, partition.log.log_end_offset) == (2, 1, 1)
    cluster.append(b"c")
    cluster.start(1)
    assert cluster.values(9) == [b"a", b"c"]
    assert cluster.ends() == [2, 2, 1]
    assert partition.epoch_end(0, 2) == (0, 1)
    assert partition.epoch_end(1, 2) == (1, 2)


def test_unclean_elections_are_a_setting() -> None:
    for unclean in (False, True):
        cluster = Cluster(unclean=unclean)
        partition = cluster.partition
        partition.hold(2)
        cluster.stop(3)
        cluster.append()
        partition.expel(2)
        assert partition.log.high_watermark == 1
        cluster.stop(1)
        assert partition.leader == (2 if unclean else NO_LEADER)
        assert partition.log.high_watermark == (0 if unclean else 1)


def test_a_held_follower_does_not_hear_that_what_it_has_is_committed() -> None:
    cluster = Cluster()
    partition = cluster.partition
    partition.hold(3)
    cluster.append()
    partition.hold(2)
    partition.release(3)
    assert [(partition.end_offset(node), partition.high_watermark(node)) for node in REPLICAS] == [
        (1, 1),
        (1, 0),
        (1, 1),
    ]
    partition.release(2)
    assert partition.high_watermark(2) == 1


def test_elections_by_hand() -> None:
    cluster = Cluster()
    partition = cluster.partition
    assert refusal(partition.elect_preferred) == ErrorCode.ELECTION_NOT_NEEDED
    assert refusal(partition.elect_any) == ErrorCode.ELECTION_NOT_NEEDED
    partition.elect(3)
    cluster.stop(1)
    assert refusal(partition.elect_preferred) == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    cluster.start(1)
    partition.elect_preferred()
    assert (partition.leader, partition.leader_epoch) == (1, 2)
    for node in (3, 2, 1):
        cluster.stop(node)
    assert refusal(partition.elect_any) == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    cluster.start(3)
    partition.elect_any()
    assert (partition.leader, partition.in_sync_replicas) == (3, [3])


def test_a_held_follower_knows_the_high_watermark_of_then() -> None:
    cluster = Cluster()
    partition = cluster.partition
    cluster.append()
    partition.hold(2)
    cluster.append()
    partition.expel(2)
    assert [partition.high_watermark(node) for node in REPLICAS] == [2, 1, 2]


# --- epochs ----------------------------------------------------------------------------------------------------------


def test_where_epochs_end() -> None:
    epochs = LeaderEpochs()
    for epoch, start in ((0, 0), (2, 10), (3, 10), (5, 20)):
        epochs.begin(epoch, start)
    ends = {0: (0, 10), 1: (0, 10), 2: (0, 10), 3: (3, 20), 4: (3, 20), 5: (5, 30), 6: UNKNOWN, -1: UNKNOWN}
    assert {epoch: epochs.end_of(epoch, 0, 30) for epoch in ends} == ends
    assert epochs.end_of(0, 15, 30) == (0, 15)
    assert epochs.end_of(5, 25, 30) == (5, 30)
    assert epochs.end_of(3, 25, 30) == (3, 25)
    assert epochs.end_of(1, 25, 30) == (1, 25)
    assert [epochs.at(offset) for offset in (-1, 0, 9, 10, 20)] == [-1, 0, 0, 3, 5]


def test_an_epoch_without_records_is_known_to_its_leader_alone() -> None:
    epochs = LeaderEpochs()
    epochs.begin(0, 0)
    epochs.begin(1, 3)
    assert epochs.end_of(1, 0, 3) == (1, 3)
    assert epochs.end_of(1, 0, 3, leads=False) == UNKNOWN
    assert epochs.end_of(0, 0, 3, leads=False) == (0, 3)
    assert epochs.end_of(0, 0, 0, leads=False) == UNKNOWN


def test_the_log_ends_where_the_new_leader_ended_though_what_was_there_is_compacted_away() -> None:
    cluster = Cluster()
    partition = cluster.partition
    cluster.append(b"a")
    cluster.append(None)
    compact(partition.log, keep_tombstones=False)
    assert [batch.header.count for batch in partition.log.batches()] == [0]
    partition.hold(2)
    cluster.append(b"lost")
    partition.elect(2)
    assert (partition.log.log_end_offset, partition.log.high_watermark) == (2, 2)
    cluster.append(b"b")
    assert [batch.header.base_offset for batch in partition.log.batches()] == [1, 2]


def test_a_log_is_cut_between_batches_only() -> None:
    log = PartitionLog("t", 0)
    for values in ((b"a",), (b"b", b"c"), (b"d",)):
        log.append(RecordBatch.parse(memoryview(batch_of(*values))))
    for offset, end in ((9, 4), (4, 4), (3, 3), (2, 1), (1, 1), (0, 0)):
        log.truncate(offset)
        assert log.log_end_offset == end
