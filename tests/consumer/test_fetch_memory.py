"""What is unread stays within fetch_max_bytes, whatever is asked of whom (rule 4 of fetch.py)."""

from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st
from support.clusters import partition
from support.examples import examples

from aiokafkawire.cluster.metadata import Node, Snapshot, Topic
from aiokafkawire.consumer.completed_fetch import CompletedFetch, PartitionFetch
from aiokafkawire.consumer.fetch_planner import fetch_budgets, limit_bytes, plan
from aiokafkawire.consumer.read_replica import select_read_replica
from aiokafkawire.consumer.subscription_state import SubscriptionState
from aiokafkawire.protocol.messages.fetch import PartitionData
from aiokafkawire.types import Address, TopicPartition

LIMIT, PARTITION_LIMIT, BATCH = 1_000, 300, 150
PARTITIONS, NODES = 8, 3


def snapshot() -> Snapshot:
    parts = [partition(index, 1 + index % NODES) for index in range(PARTITIONS)]
    for part in parts:
        part.replica_nodes = list(range(1, NODES + 1))
    nodes = {number: Node(number, Address("host", 9090 + number)) for number in range(1, NODES + 1)}
    return Snapshot(1, "cluster", 1, nodes, {"a": Topic("a", UUID(int=1), 0, parts)}, {})


class Reading:
    """A fetcher without its tasks: what is asked, and what a broker that gives all it may makes of it."""

    def __init__(self, version: int, replicas: list[int | None]) -> None:
        self.snapshot, self.version = snapshot(), version
        self.positions = SubscriptionState(None)
        self.positions.assign({TopicPartition("a", index): 0 for index in range(PARTITIONS)})
        for place, replica in zip(self.positions, replicas, strict=True):
            place.replica, place.replica_until = replica, 1.0
        self.unread: dict[TopicPartition, CompletedFetch] = {}
        self.promised: dict[int, int] = {}
        self.asked: dict[int, list[PartitionFetch]] = {}

    def ask(self) -> None:
        asks, _ = plan(
            self.snapshot, self.positions, self.unread, (), self.promised, max_bytes=PARTITION_LIMIT, now=0.0
        )
        brokers = {select_read_replica(self.snapshot, one, 0.0) for one in self.positions}
        room = fetch_budgets(asks, len(brokers), self.unread.values(), self.promised.values(), LIMIT)
        for node, most in room.items():
            self.promised[node], self.asked[node] = most, limit_bytes(asks[node], self.version, most)

    def answer(self, node: int) -> None:
        """As much as is allowed: and of the first partition a whole batch, however large (KIP-74)."""
        room = self.promised.pop(node)
        for number, ask in enumerate(self.asked.pop(node)):
            size = ask.max_bytes if self.version < 3 else min(ask.max_bytes, max(0, room))
            if self.version >= 3 and number == 0:
                size = max(size, BATCH)
            room -= size
            if size:
                data = PartitionData(partition_index=0, error_code=0, high_watermark=9, records=bytes(size))
                self.unread[ask.state.partition] = CompletedFetch(ask, data, committed_only=False)

    @property
    def kept(self) -> int:
        return sum(len(one.records) for one in self.unread.values() if not one.ask.state.is_suspended)


_STEPS = st.lists(
    st.tuples(st.sampled_from(["ask", "answer", "use up", "pause", "move"]), st.integers(0, PARTITIONS - 1)),
    max_size=40,
)


@settings(max_examples=examples(300), deadline=None)
@given(
    steps=_STEPS,
    version=st.sampled_from([2, 18]),
    replicas=st.lists(st.sampled_from([None, 1, 2, 3]), min_size=PARTITIONS, max_size=PARTITIONS),
)
def test_the_bound_holds(steps: list[tuple[str, int]], version: int, replicas: list[int | None]) -> None:
    reading = Reading(version, replicas)
    for step, number in steps:
        if step == "ask":
            reading.ask()
            assert reading.kept + sum(reading.promised.values()) <= LIMIT + len(reading.unread) * BATCH
        elif step == "answer" and 1 + number % NODES in reading.asked:
            reading.answer(1 + number % NODES)
        elif step == "use up":
            reading.unread.pop(TopicPartition("a", number), None)
        elif step == "pause":
            reading.positions.require(TopicPartition("a", number)).paused = True
        elif step == "move":
            # Then fewer brokers share the room, and what is unread keeps none of them from being asked.
            for place in list(reading.positions)[number:]:
                place.replica, place.replica_until = 1 + number % NODES, 1.0
        assert reading.kept <= LIMIT + len(reading.unread) * BATCH


def test_what_is_unread_leaves_the_rest_to_those_who_are_asked() -> None:
    reading = Reading(18, [None] * PARTITIONS)
    reading.ask()
    for node in list(reading.asked):
        reading.answer(node)
    assert reading.kept == 999
    for place in reading.positions:
        place.replica, place.replica_until = 1 if place.partition in reading.unread else 2, 1.0
    reading.ask()
    assert reading.promised == {2: 1}
    reading.unread.clear()
    reading.promised.clear()
    reading.ask()
    assert reading.promised == {1: 500, 2: 500}


def test_no_broker_waits_for_the_room_that_another_has() -> None:
    reading = Reading(18, [None] * PARTITIONS)
    reading.ask()
    assert set(reading.promised) == {1, 2, 3}
    assert sum(reading.promised.values()) <= LIMIT
    one_source = Reading(18, [2] * PARTITIONS)
    one_source.ask()
    assert one_source.promised == {2: LIMIT}
