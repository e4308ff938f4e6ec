"""Records without a key: whose turn it is, for how long, and who is next."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby, pairwise
from random import Random
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokafkawire.config import ProducerConfig
from aiokafkawire.producer.partitioner import BrokerAvailability, Choose, make_partitioner
from aiokafkawire.records.batch import BatchBuilder, record_size_bound
from aiokafkawire.types import RandomSource, TopicPartition

BATCH = 16_384


@attrs.define
class QueueSizes:
    """An open batch for each partition, as the accumulator has them; ``lengths`` and ``held`` are what a test says."""

    lengths: Mapping[int, int] = attrs.field(factory=dict)
    held: Collection[int] = ()
    racks: Mapping[str, Collection[int]] = attrs.field(factory=dict)
    open: dict[TopicPartition, BatchBuilder] = attrs.field(factory=dict)
    full: list[int] = attrs.field(factory=list)
    """The sizes of those that were full."""
    asked: list[str] = attrs.field(factory=list)

    def has_room(self, partition: TopicPartition, size: int) -> bool:
        self.asked.append("has_room")
        return partition in self.open and self.open[partition].size + size <= BATCH

    def queue_lengths(self, topic: str) -> Mapping[int, int]:
        self.asked.append("queue_lengths")
        return self.lengths

    def unavailable(self, topic: str) -> Collection[int]:
        self.asked.append("unavailable")
        return self.held

    def leaders_in_rack(self, topic: str, rack: str) -> Collection[int]:
        self.asked.append("leaders_in_rack")
        return self.racks.get(rack, ())

    def append(self, partition: int, value: bytes) -> None:
        where = TopicPartition("t", partition)
        builder = self.open.get(where)
        if builder is not None and builder.append(1_000, None, value) >= 0:
            return
        if builder is not None:
            self.full.append(builder.size)
        self.open[where] = builder = BatchBuilder(limit=BATCH)
        builder.append(1_000, None, value)

    def drain(self) -> list[int]:
        """All are sent as they are; their sizes."""
        sizes = [builder.size for builder in self.open.values()]
        self.open.clear()
        return sizes


class Always:
    """Random that gives the same number, and remembers among how many."""

    def __init__(self, number: int) -> None:
        self.number, self.stops = number, list[int]()

    def randrange(self, stop: int, /) -> int:
        self.stops.append(stop)
        return self.number

    def uniform(self, low: float, high: float, /) -> float:
        raise NotImplementedError


def partitioner(queues: QueueSizes, chance: RandomSource | None = None, **settings: Any) -> Choose:
    return make_partitioner(ProducerConfig(batch_size=BATCH, **settings), chance or Random(3), queues).choose


def send(choose: Choose, queues: QueueSizes, value: bytes, available: Sequence[int], count: int) -> int:
    partition = choose("t", None, available, count, record_size_bound(None, value))
    queues.append(partition, value)
    return partition


def next_turns(choose: Choose, available: Sequence[int], count: int, times: int) -> Counter[int]:
    """Who has had how many turns, when each is one large record."""
    return Counter(choose("t", None, available, count, BATCH) for _ in range(times))


# --- how long a turn is --------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 10, 100, 1_000, 5_000])
def test_under_load_a_turn_is_one_full_batch(size: int) -> None:
    queues = QueueSizes()
    choose, value, partitions = partitioner(queues), b"x" * size, tuple(range(1_000))
    sent = [send(choose, queues, value, partitions, 1_000) for _ in range(40 * BATCH // (size + 12))]
    turns = [len(list(turn)) for _, turn in groupby(sent)]
    assert len(turns) > 25
    # No batch was ever closed because a record did not fit: the turn was over before.
    assert queues.full == []
    room = record_size_bound(None, value)
    sizes = sorted(queues.drain())
    assert all(BATCH - room < one <= BATCH for one in sizes[1:])  # all but the last, that still gathers


def test_what_was_sent_early_counts_and_the_next_batch_is_finished() -> None:
    """KIP-794's example: 12 KB come in each linger. No batch of 4 KB is left behind by a switch."""
    queues = QueueSizes()
    partitions = tuple(range(1_000))
    choose, value = partitioner(queues), b"x" * 1_000
    turns, drained = list[set[int]](), list[list[int]]()
    for _ in range(20):
        turns.append({send(choose, queues, value, partitions, 1_000) for _ in range(12)})
        drained.append(queues.drain())
    assert all(len(turn) == 1 for turn in turns)
    assert all(len(sizes) == 1 for sizes in drained)
    # Two of these make a turn: after one it is not over, for less than a batch went there.
    assert [len(list(turn)) for _, turn in groupby(turns)] == [2] * 10


def test_a_batch_that_others_keep_open_holds_a_turn_for_twice_its_size() -> None:
    class Open(QueueSizes):
        def has_room(self, partition: TopicPartition, size: int) -> bool:
            return True

    choose = partitioner(Open())
    partitions = tuple(range(1_000))
    sent = [choose("t", None, partitions, 1_000, 1_024) for _ in range(320)]
    lengths = [len(list(turn)) for _, turn in groupby(sent)]
    assert set(lengths[:-1]) == {32}


def test_the_queues_are_asked_when_a_turn_may_be_over_and_not_before() -> None:
    queues = QueueSizes()
    choose = partitioner(queues)
    for _ in range(16):
        send(choose, queues, b"x" * 1_000, (0, 1), 2)
    assert queues.asked == ["queue_lengths"]
    send(choose, queues, b"x" * 1_000, (0, 1), 2)
    assert queues.asked == ["queue_lengths", "has_room", "queue_lengths"]


def test_what_is_available_is_looked_through_when_it_is_another_object() -> None:
    class Counted(list[int]):
        looks = 0

        def __contains__(self, one: object) -> bool:
            self.looks += 1
            return super().__contains__(one)

    choose, same, equal = partitioner(QueueSizes()), Counted(range(4)), Counted(range(4))
    for _ in range(10):
        choose("t", None, same, 4, 50)
    assert same.looks == 0
    for _ in range(10):
        choose("t", None, equal, 4, 50)
    assert equal.looks == 1


def test_each_topic_has_its_own_turn() -> None:
    choose = partitioner(QueueSizes(), Random(3))
    partitions = tuple(range(1_000))
    ones, others = [{choose(topic, None, partitions, 1_000, 50) for _ in range(20)} for topic in ("a", "b")]
    assert len(ones) == len(others) == 1
    assert ones != others


def test_a_record_with_a_key_takes_nothing_of_the_turn() -> None:
    choose = partitioner(QueueSizes())
    partitions = tuple(range(1_000))
    first = choose("t", None, partitions, 1_000, 50)
    for _ in range(100):
        choose("t", b"k", partitions, 1_000, 1_024)
    assert choose("t", None, partitions, 1_000, 50) == first


def test_a_turn_ends_with_its_partitions_leader_and_no_others() -> None:
    choose = partitioner(QueueSizes())
    count = 1_000
    first = choose("t", None, tuple(range(count)), count, 50)
    rest = [one for one in range(count) if one != first]
    assert choose("t", None, [first], count, 50) == first
    second = choose("t", None, rest, count, 50)
    assert second != first
    assert choose("t", None, range(count), count, 50) == second


def test_without_any_leader_a_turn_goes_on_while_its_partition_is_there() -> None:
    choose = partitioner(QueueSizes(), Always(3))
    assert [choose("t", None, (), 4, 50) for _ in range(5)] == [3] * 5
    # The topic was made again with fewer.
    choose = partitioner(QueueSizes())
    assert choose("t", None, (), 1_000, 50) >= 2
    assert choose("t", None, (), 2, 50) < 2


# --- who is next ---------------------------------------------------------------------------------------


def within(found: Counter[int], expected: Mapping[int, float], times: int) -> None:
    """Each count is where 5 standard deviations leave it: chance alone strays once in 10**6."""
    assert found.keys() <= expected.keys()
    for partition, share in expected.items():
        deviation = (times * share * (1 - share)) ** 0.5
        assert abs(found[partition] - times * share) <= 5 * deviation, (partition, found)


@pytest.mark.parametrize("lengths", [{}, dict.fromkeys(range(8), 4)], ids=["nothing waits", "as much waits for all"])
@pytest.mark.parametrize("adaptive", [True, False])
def test_equal_queues_have_equal_shares(adaptive: bool, lengths: dict[int, int]) -> None:
    choose = partitioner(QueueSizes(lengths), Random(11), partitioner_adaptive_partitioning_enable=adaptive)
    found = next_turns(choose, tuple(range(8)), 8, 20_000)
    within(found, dict.fromkeys(range(8), 1 / 8), 20_000)


def test_the_same_partition_may_be_next() -> None:
    choose = partitioner(QueueSizes())
    sent = [choose("t", None, (0, 1), 2, BATCH) for _ in range(50)]
    assert any(one == other for one, other in pairwise(sent))


def test_shorter_queues_have_larger_shares() -> None:
    choose = partitioner(QueueSizes({0: 9, 1: 4, 2: 0, 3: 9}), Random(11))
    found = next_turns(choose, (0, 1, 2, 3, 5), 6, 20_000)
    weights = {0: 1, 1: 6, 2: 10, 3: 1, 5: 10}  # 9 + 1, less what waits; nothing is said of 5
    within(found, {partition: weight / 28 for partition, weight in weights.items()}, 20_000)


@pytest.mark.parametrize(("number", "partition"), list(enumerate([0, 0, 0, 0, 1, 2, 2, 2])))
def test_the_table_is_javas(number: int, partition: int) -> None:
    """The example in BuiltInPartitioner: queues of 0, 3 and 1 weigh 4, 1 and 3."""
    chance = Always(number)
    choose = partitioner(QueueSizes({1: 3, 2: 1}), chance)
    assert choose("t", None, (0, 1, 2), 3, 50) == partition
    assert chance.stops == [8]


def test_queues_do_not_count_where_that_is_switched_off() -> None:
    queues = QueueSizes({0: 9}, held={1})
    settings = {"partitioner_adaptive_partitioning_enable": False, "partitioner_availability_timeout_ms": 100}
    found = next_turns(partitioner(queues, Random(11), **settings), (0, 1), 2, 10_000)
    within(found, {0: 1 / 2, 1: 1 / 2}, 10_000)
    assert set(queues.asked) <= {"has_room"}


def test_a_stalled_brokers_partitions_are_left_out_while_something_waits_there() -> None:
    queues = QueueSizes({0: 2, 1: 2}, held={0, 2})
    choose = partitioner(queues, Random(11), partitioner_availability_timeout_ms=100)
    assert next_turns(choose, (0, 1, 2, 3), 4, 500).keys() == {1, 2, 3}
    queues.lengths = {1: 2}
    assert next_turns(choose, (0, 1, 2, 3), 4, 500).keys() == {0, 1, 2, 3}


def test_all_are_eligible_when_every_broker_has_stalled() -> None:
    choose = partitioner(QueueSizes({0: 2, 1: 2}, held={0, 1}), Random(11), partitioner_availability_timeout_ms=100)
    assert next_turns(choose, (0, 1), 2, 100).keys() == {0, 1}


def test_without_a_timeout_nobody_asks_who_has_stalled() -> None:
    queues = QueueSizes({0: 2, 1: 2}, held={0})
    assert next_turns(partitioner(queues, Random(11)), (0, 1), 2, 100).keys() == {0, 1}
    assert "unavailable" not in queues.asked


@given(st.data())
def test_whatever_waits_one_of_the_available_is_next(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 12))
    some = st.integers(0, count - 1)
    available = sorted(data.draw(st.sets(some, min_size=1)))
    queues = QueueSizes(data.draw(st.dictionaries(some, st.integers(0, 50))), data.draw(st.sets(some)))
    timeout = data.draw(st.sampled_from([0, 100]))
    choose = partitioner(queues, Random(data.draw(st.integers())), partitioner_availability_timeout_ms=timeout)
    assert next_turns(choose, available, count, 20).keys() <= set(available)


# --- stalls --------------------------------------------------------------------------------------------


def stalls(timeout_ms: int = 100) -> BrokerAvailability:
    return BrokerAvailability(ProducerConfig(partitioner_availability_timeout_ms=timeout_ms))


def test_a_broker_has_stalled_when_it_took_nothing_for_too_long() -> None:
    seen = stalls()
    seen.record_attempt(1, 5.0, sent=False)
    seen.record_attempt(1, 5.0625, sent=False)
    assert not seen.is_unavailable(1)
    seen.record_attempt(1, 5.125, sent=False)
    assert seen.is_unavailable(1)
    assert not seen.is_unavailable(2)
    seen.record_attempt(1, 5.25, sent=True)
    assert not seen.is_unavailable(1)


def test_a_time_without_anything_to_send_is_no_stall() -> None:
    seen = stalls()
    seen.record_attempt(1, 5.0, sent=True)
    seen.record_attempt(1, 60.0, sent=False)
    assert not seen.is_unavailable(1)


def test_without_a_timeout_no_broker_stalls() -> None:
    seen = stalls(0)
    seen.record_attempt(1, 5.0, sent=False)
    seen.record_attempt(1, 500.0, sent=False)
    assert not seen.is_unavailable(1)


# --- racks ---------------------------------------------------------------------------------------------

NEARBY = {"r1": (1, 3), "r2": (0, 2)}


@pytest.mark.parametrize("adaptive", [True, False])
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"partitioner_rack_aware": True, "client_rack": "r1"}, {1, 3}),
        ({"partitioner_rack_aware": True, "client_rack": "r3"}, {0, 1, 2, 3}),  # no leader is there
        ({"partitioner_rack_aware": True}, {0, 1, 2, 3}),
        ({"client_rack": "r1"}, {0, 1, 2, 3}),
    ],
)
def test_leaders_in_the_clients_rack_are_preferred(
    settings: dict[str, Any], expected: set[int], adaptive: bool
) -> None:
    queues = QueueSizes(racks=NEARBY)
    choose = partitioner(queues, partitioner_adaptive_partitioning_enable=adaptive, **settings)
    assert set(next_turns(choose, (0, 1, 2, 3), 4, 200)) == expected


def test_without_an_available_leader_in_the_rack_others_are_chosen() -> None:
    choose = partitioner(QueueSizes(racks=NEARBY), partitioner_rack_aware=True, client_rack="r1")
    assert set(next_turns(choose, (0, 2), 4, 200)) == {0, 2}


def test_a_nearby_broker_that_takes_nothing_is_left() -> None:
    queues = QueueSizes({0: 1, 1: 1, 3: 1}, held=(1, 3), racks=NEARBY)
    options: dict[str, Any] = {"partitioner_rack_aware": True, "client_rack": "r1"}
    choose = partitioner(queues, partitioner_availability_timeout_ms=1, **options)
    assert set(next_turns(choose, (0, 1, 2, 3), 4, 200)) == {0, 2}


def test_the_queues_of_the_rack_decide_within_it() -> None:
    queues = QueueSizes({1: 9, 0: 0}, racks=NEARBY)
    choose = partitioner(queues, partitioner_rack_aware=True, client_rack="r1")
    turns = next_turns(choose, (0, 1, 2, 3), 4, 500)
    assert set(turns) == {1, 3}
    assert turns[3] > 5 * turns[1]


def test_keys_decide_before_racks() -> None:
    queues = QueueSizes(racks=NEARBY)
    choose = partitioner(queues, partitioner_rack_aware=True, client_rack="r1")
    chosen = {choose("t", b"%d" % key, (0, 1, 2, 3), 4, 100) for key in range(100)}
    assert chosen == {0, 1, 2, 3}
