"""What is asked of each broker, and what its answers mean."""

from collections.abc import Sequence
from uuid import UUID

import pytest
from support.clusters import partition
from support.message_sets import message, wrapper

from aiokafkawire.cluster.metadata import Node, Snapshot, Topic
from aiokafkawire.config import ConsumerConfig
from aiokafkawire.consumer.completed_fetch import CompletedFetch, PartitionFetch
from aiokafkawire.consumer.fetch_messages import answers, request
from aiokafkawire.consumer.fetch_planner import plan
from aiokafkawire.consumer.fetch_session import FetchSession
from aiokafkawire.consumer.subscription_state import SubscriptionState
from aiokafkawire.errors import CorruptBatch, KafkaError, NotLeaderOrFollower, WireError
from aiokafkawire.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from aiokafkawire.records.batch import AnyReader, BatchBuilder, set_base_offset
from aiokafkawire.types import Address, OffsetSpec, TopicPartition

ID = UUID(int=7)
LEADERS = (1, 2, None)


def snapshot() -> Snapshot:
    partitions = tuple(partition(index, -1 if leader is None else leader, 3) for index, leader in enumerate(LEADERS))
    nodes = {number: Node(number, Address("host", 9090 + number)) for number in (1, 2)}
    return Snapshot(1, "cluster", 1, nodes, {"a": Topic("a", ID, 0, partitions)}, {ID: "a"})


def place(number: int) -> TopicPartition:
    return TopicPartition("a", number)


def positions(*numbers: int) -> SubscriptionState:
    made = SubscriptionState(OffsetSpec.LATEST)
    made.assign({place(number): 10 * number for number in numbers})
    return made


def planned(
    known: Snapshot,
    wanted: SubscriptionState,
    unread: Sequence[TopicPartition] = (),
    busy: Sequence[int] = (),
    *,
    max_bytes: int = 1_000,
) -> tuple[dict[int, list[PartitionFetch]], TopicPartition | None]:
    little = {where: fetched(b"") for where in unread}
    return plan(known, wanted, little, (), busy, max_bytes=max_bytes, now=0.0)


def batch(
    offset: int, values: Sequence[bytes], *, producer: int = -1, transactional: bool = False, control: bool = False
) -> bytes:
    builder = BatchBuilder(limit=100_000)
    for value in values:
        builder.append(0, b"\0\0\0\0" if control else None, value)
    made = builder.build(
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        base_sequence=-1,
        transactional=transactional,
        control=control,
    )
    return set_base_offset(made, offset, 3)


def fetched(data: bytes, offset: int = 0, aborted: Sequence[tuple[int, int]] = ()) -> CompletedFetch:
    made = positions(0)
    where = made.require(place(0))
    where.position = offset
    transactions = [AbortedTransaction(producer_id=producer, first_offset=first) for producer, first in aborted]
    answer = PartitionData(
        partition_index=0, error_code=0, high_watermark=99, aborted_transactions=transactions, records=data
    )
    return CompletedFetch(PartitionFetch(where, where.epoch, offset), answer, committed_only=True)


def offsets(one: CompletedFetch) -> list[int]:
    readers: list[AnyReader[bytes, bytes]] = [each.records("a", 0) for each in one]
    return [record.offset for reader in readers for record in reader]


def test_each_leader_is_asked_for_what_it_leads() -> None:
    asks, unled = planned(snapshot(), positions(0, 1), (), ())
    assert {node: [(ask.state.partition, ask.offset) for ask in wanted] for node, wanted in asks.items()} == {
        1: [(place(0), 0)],
        2: [(place(1), 10)],
    }
    assert unled is None


def test_a_partition_stays_out_while_it_is_unread_paused_unled_or_nowhere() -> None:
    made = positions(0, 1, 2)
    assert list(planned(snapshot(), made, [place(0)], ())[0]) == [2]
    assert list(planned(snapshot(), made, (), [2])[0]) == [1]
    assert planned(snapshot(), made, (), ())[1] == place(2)
    made.require(place(0)).paused = True
    made.seek(place(1), OffsetSpec.LATEST)
    assert planned(snapshot(), made, (), ())[0] == {}


def test_the_request_carries_the_position_the_leaders_epoch_and_the_limits() -> None:
    asks, _ = planned(snapshot(), positions(0), max_bytes=77)
    config = ConsumerConfig(isolation_level="read_committed", client_rack="here")
    asked = request(FetchSession().next(asks[1], {"a": ID}, by_id=True), config, 1_234)
    assert asked.rack_id == "here"
    assert (asked.max_bytes, asked.isolation_level, asked.max_wait_ms) == (1_234, 1, 500)
    (topic,) = asked.topics
    (partition,) = topic.partitions
    assert (topic.topic, topic.topic_id) == ("a", ID)
    assert (partition.fetch_offset, partition.current_leader_epoch, partition.partition_max_bytes) == (0, 3, 77)


def one_answer(response: FetchResponse) -> CompletedFetch | KafkaError:
    made = positions(0)
    where = made.require(place(0))
    turn = FetchSession().next([PartitionFetch(where, where.epoch, 0)], {"a": ID}, by_id=True)
    (pair,) = answers(turn, response, committed_only=False, broker="node 1")
    return pair[1]


def response(*partitions: PartitionData, topic_id: UUID = ID) -> FetchResponse:
    return FetchResponse(responses=[FetchableTopicResponse(topic_id=topic_id, partitions=list(partitions))])


def data(index: int = 0, error: int = 0) -> PartitionData:
    return PartitionData(partition_index=index, error_code=error, high_watermark=9, records=batch(0, [b"x"]))


def test_answers_are_found_by_topic_id() -> None:
    answer = one_answer(response(data()))
    assert isinstance(answer, CompletedFetch)
    assert offsets(answer) == [0]


@pytest.mark.parametrize("lying", [response(data(index=5)), response(data(), topic_id=UUID(int=8)), response()])
def test_an_answer_that_lacks_a_partition_is_a_wire_error(lying: FetchResponse) -> None:
    answer = one_answer(lying)
    assert isinstance(answer, WireError)
    assert "without a-0" in str(answer)


def test_a_partitions_error_names_the_partition_and_the_offset() -> None:
    answer = one_answer(response(data(error=6)))
    assert isinstance(answer, NotLeaderOrFollower)
    assert "Fetch of a-0 at offset 0" in str(answer)


def test_batches_before_the_position_are_passed_over() -> None:
    assert offsets(fetched(batch(0, [b"a", b"b"]) + batch(2, [b"c"]), offset=2)) == [2]


def test_markers_are_not_shown_and_move_the_position() -> None:
    one = fetched(batch(0, [b"marker"], producer=5, transactional=True, control=True))
    assert offsets(one) == []
    assert one.ask.state.position == 1


def test_records_of_aborted_transactions_are_hidden_until_their_marker() -> None:
    log = b"".join(
        (
            batch(0, [b"aborted"], producer=5, transactional=True),
            batch(1, [b"other"], producer=6, transactional=True),
            batch(2, [b"plain"]),
            batch(3, [b"marker"], producer=5, transactional=True, control=True),
            batch(4, [b"committed"], producer=5, transactional=True),
        )
    )
    assert offsets(fetched(log, aborted=[(5, 0)])) == [1, 2, 4]


def test_a_marker_that_comes_first_ends_the_transaction_before_it() -> None:
    log = batch(8, [b"marker"], producer=5, transactional=True, control=True)
    log += batch(9, [b"committed"], producer=5, transactional=True)
    assert offsets(fetched(log, offset=8, aborted=[(5, 3)])) == [9]


def test_message_sets_of_old_topics_are_read_like_batches() -> None:
    log = message(0, magic=0) + message(1, magic=0) + wrapper(4, message(0), message(1), message(2))
    log += message(5) + batch(6, [b"new"]) + batch(7, [b"marker"], producer=5, transactional=True, control=True)
    assert offsets(fetched(log)) == [0, 1, 2, 3, 4, 5, 6]
    sizes = [one.header.size for one in fetched(log)]
    assert len(sizes) == 4  # a run of messages is one batch
    assert [one.header.next_offset for one in fetched(log, offset=3)] == [5, 6, 7]
    one = fetched(log, offset=3, aborted=[(5, 0)])
    readers: list[AnyReader[bytes, bytes]] = [each.records("a", 0, from_offset=3) for each in one]
    assert [record.offset for reader in readers for record in reader] == [3, 4, 5, 6]
    assert one.ask.state.position == 8


def test_a_damaged_message_set_is_told_with_partition_and_place() -> None:
    with pytest.raises(CorruptBatch, match=r"a-0, message set at byte 0 \(offset 3\): .* a null value"):
        offsets(fetched(message(3, None, attributes=1)))


def test_a_leader_of_which_something_is_unread_is_not_asked_for_the_rest() -> None:
    both = Snapshot(
        1,
        "cluster",
        1,
        snapshot().nodes,
        {"a": Topic("a", ID, 0, (partition(0, 1, 3), partition(1, 1, 3)))},
        {ID: "a"},
    )
    made = positions(0, 1)
    assert planned(both, made, [place(0)], ())[0] == {}
    made.require(place(0)).paused = True
    assert list(planned(both, made, [place(0)], ())[0]) == [1]


def test_unread_data_that_the_user_passes_over_delays_no_other_partition() -> None:
    known = Snapshot(
        1,
        "cluster",
        1,
        {1: snapshot().nodes[1]},
        {"a": Topic("a", ID, 0, tuple(partition(index, 1, 3) for index in range(2)))},
        {ID: "a"},
    )
    wanted = positions(0, 1)
    assert planned(known, wanted, [place(0)])[0] == {}
    wanted.require(place(0)).passed_over = True
    asks, _ = planned(known, wanted, [place(0)])
    assert [ask.state.partition for ask in asks[1]] == [place(1)]


def test_who_was_served_last_is_asked_for_last() -> None:
    one_leader = tuple(partition(index, 1, 3) for index in range(3))
    cluster = Snapshot(1, "cluster", 1, snapshot().nodes, {"a": Topic("a", ID, 0, one_leader)}, {ID: "a"})
    made = positions(0, 1, 2)
    made.require(place(0)).served = 2
    made.require(place(1)).served = 1
    assert [ask.state.partition for ask in planned(cluster, made, (), ())[0][1]] == [place(2), place(1), place(0)]
