"""Fetch sessions: a broker hears of a partition once, and knows at any time just what is wanted (KIP-227)."""

from uuid import UUID

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.connecting import eventually
from support.examples import examples
from support.fetching import values
from support.virtual_time import virtual_time

from aiokafkawire import Client, Consumer, RequestTimeout
from aiokafkawire.config import ConsumerConfig
from aiokafkawire.consumer.completed_fetch import PartitionFetch
from aiokafkawire.consumer.fetch_messages import request
from aiokafkawire.consumer.fetch_session import FetchSession, FetchSessionRequest
from aiokafkawire.consumer.subscription_state import SubscriptionState
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.compiler import encode
from aiokafkawire.protocol.messages.fetch import FetchRequest, PartitionData
from aiokafkawire.testing.broker import ApiError, Broker
from aiokafkawire.testing.logs.sessions import FetchSessions
from aiokafkawire.types import TopicPartition

A, B = UUID(int=1), UUID(int=2)
IDS = {"a": A, "b": B}


def a(number: int) -> TopicPartition:
    return TopicPartition("a", number)


class Wanted:
    """A consumer's partitions, and its session with one broker."""

    def __init__(self, *partitions: TopicPartition) -> None:
        self.positions = SubscriptionState(None)
        self.positions.assign(dict.fromkeys(partitions, 0))
        self.session = FetchSession()
        self.ids = dict(IDS)

    def asks(self, *without: TopicPartition, leader_epoch: int = 0) -> list[PartitionFetch]:
        places = [place for place in self.positions if place.partition not in without]
        return [PartitionFetch(place, place.epoch, place.position or 0, leader_epoch, 100) for place in places]

    def next(self, asks: list[PartitionFetch] | None = None, *, by_id: bool = True) -> FetchSessionRequest:
        return self.session.next(self.asks() if asks is None else asks, self.ids, by_id=by_id)

    def opened(self) -> "Wanted":
        self.session.answered(self.next(), 7)
        return self


def named(turn: FetchSessionRequest) -> list[TopicPartition]:
    return [ask.state.partition for ask in turn.named]


# --- what is said --------------------------------------------------------------------------------------------


def test_the_first_request_names_all_and_the_next_nothing() -> None:
    wanted = Wanted(a(0), a(1))
    first = wanted.next()
    assert (first.is_full, first.session_id, first.epoch, named(first)) == (True, 0, 0, [a(0), a(1)])
    wanted.session.answered(first, 7)
    for epoch in (1, 2, 3):
        turn = wanted.next()
        assert (turn.is_full, turn.session_id, turn.epoch, turn.named, turn.forgotten) == (False, 7, epoch, [], [])
        assert list(turn.asks) == [a(0), a(1)]
        wanted.session.answered(turn, 7)


def test_what_changed_is_named_and_what_is_not_wanted_is_forgotten() -> None:
    wanted = Wanted(a(0), a(1), a(2), TopicPartition("b", 0)).opened()
    wanted.positions.require(a(1)).position = 5
    turn = wanted.next(wanted.asks(a(2), TopicPartition("b", 0)))
    assert (named(turn), turn.forgotten) == ([a(1)], [a(2), TopicPartition("b", 0)])
    wanted.session.answered(turn, 7)
    assert named(wanted.next()) == [a(2), TopicPartition("b", 0)]


def test_another_leader_epoch_limit_or_seek_is_told() -> None:
    wanted = Wanted(a(0), a(1)).opened()
    turn = wanted.next(wanted.asks(leader_epoch=1))
    assert named(turn) == [a(0), a(1)]
    wanted.session.answered(turn, 7)
    (one, two) = wanted.asks(leader_epoch=1)
    turn = wanted.next([one, PartitionFetch(two.state, two.epoch, two.offset, 1, 200)])
    assert named(turn) == [a(1)]
    wanted.session.answered(turn, 7)
    wanted.positions.seek(a(0), 0)
    assert a(0) in named(wanted.next())


def test_the_forgotten_are_named_by_id_or_by_name_as_the_version_says() -> None:
    for version, by_id in ((7, False), (12, False), (13, True), (18, True)):
        wanted = Wanted(a(0), TopicPartition("b", 3))
        wanted.session.answered(wanted.next(by_id=by_id), 7)
        turn = wanted.next(wanted.asks(TopicPartition("b", 3)), by_id=by_id)
        message = request(turn, ConsumerConfig(), 1_000)
        (forgotten,) = message.forgotten_topics_data
        assert (forgotten.topic, forgotten.topic_id, forgotten.partitions) == ("b", B, [3])
        assert encode(message, version)
    wanted = Wanted(a(0))
    assert encode(request(wanted.next(by_id=False), ConsumerConfig(), 1_000), 2)  # which knows no sessions


# --- what ends it --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "session_id"),
    [
        (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0),
        (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 7),
        (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, 7),
    ],
)
def test_after_an_error_all_is_told_anew_and_the_old_session_closed(code: ErrorCode, session_id: int) -> None:
    wanted = Wanted(a(0)).opened()
    wanted.next()
    wanted.session.refused(code)
    turn = wanted.next()
    assert (turn.session_id, turn.epoch, named(turn)) == (session_id, 0, [a(0)])


def test_a_lost_answer_leaves_nothing_to_build_on() -> None:
    wanted = Wanted(a(0)).opened()
    wanted.next()
    wanted.session.restart()
    turn = wanted.next()
    assert (turn.session_id, turn.epoch, named(turn)) == (7, 0, [a(0)])


def test_a_broker_without_room_for_sessions_is_told_all_each_time() -> None:
    wanted = Wanted(a(0))
    for _ in range(3):
        turn = wanted.next()
        assert (turn.session_id, turn.epoch, named(turn)) == (0, 0, [a(0)])
        wanted.session.answered(turn, 0)


def test_a_session_that_the_broker_has_ended_or_mistaken_begins_anew() -> None:
    for answered in (0, 8):
        wanted = Wanted(a(0)).opened()
        wanted.session.answered(wanted.next(), answered)
        assert wanted.next().is_full


def test_a_topic_that_was_made_again_or_ids_that_come_begin_anew() -> None:
    wanted = Wanted(a(0)).opened()
    wanted.ids["a"] = B
    assert wanted.next().is_full
    wanted = Wanted(a(0)).opened()
    assert wanted.next(by_id=False).is_full


def test_a_partition_that_was_assigned_anew_is_told_though_nothing_else_changed() -> None:
    wanted = Wanted(a(0), a(1)).opened()
    wanted.positions.assign({a(0): 0, a(1): None})
    assert wanted.next().is_full  # or its broker would keep quiet about what the place before had heard


def test_epochs_begin_again_at_one() -> None:
    wanted = Wanted(a(0)).opened()
    wanted.session.answered(FetchSessionRequest(7, 2**31 - 1, {}, [], [], {}), 7)
    assert wanted.next().epoch == 1


# --- held to the broker's sessions ---------------------------------------------------------------------------

_STEPS = st.lists(
    st.tuples(
        st.sets(st.integers(0, 5)),  # left out
        st.sets(st.integers(0, 5)),  # moved on
        st.sampled_from(["answered", "answered", "answered", "lost before", "lost after", "evicted", "by name"]),
    ),
    max_size=12,
)


@settings(max_examples=examples(300), deadline=None)
@given(steps=_STEPS)
def test_the_broker_always_reads_what_is_wanted_and_nothing_else(
    steps: list[tuple[set[int], set[int], str]],
) -> None:
    wanted, broker, by_id = Wanted(*map(a, range(6))), FetchSessions(), True
    for left_out, moved, fate in steps:
        for number in moved:
            place = wanted.positions.require(a(number))
            place.position = (place.position or 0) + 1
        if fate == "by name":
            by_id = not by_id
        asks = wanted.asks(*map(a, left_out))
        if not asks:
            continue
        turn = wanted.next(asks, by_id=by_id)
        if fate == "evicted":
            broker.clear()
        if fate == "lost before":
            wanted.session.restart()
            continue
        message = request(turn, ConsumerConfig(), 1_000)
        try:
            fetching = broker.begin(message, {A: "a"}.get, by_topic_id=by_id, now=0.0)
        except ApiError as refused:
            wanted.session.refused(refused.code)
            if (refused.code, fate) != (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "evicted"):
                raise
            continue
        read = {(one.topic, one.asked.partition): one.asked.fetch_offset for one in fetching.partitions}
        assert read == {ask.state.partition: ask.offset for ask in asks}
        results = [(one, _nothing(one.asked.partition)) for one in fetching.partitions]
        error, session_id, _ = fetching.answer(results, from_follower=False, now=0.0)
        assert not error
        if fate == "lost after":
            wanted.session.restart()
        else:
            wanted.session.answered(turn, session_id)
            assert set(broker.read_by(session_id)) == set(read)


def _nothing(partition: int) -> PartitionData:
    return PartitionData(partition_index=partition, error_code=0, high_watermark=0, records=b"")


# --- at work -------------------------------------------------------------------------------------------------


def fetches(broker: Broker) -> list[FetchRequest]:
    return [one.request for one in broker.requests if one.api == ApiKey.FETCH]


def count(requests: list[FetchRequest]) -> int:
    return sum(len(topic.partitions) for one in requests for topic in one.topics)


@pytest.mark.anyio
async def test_idle_partitions_are_named_once() -> None:
    async with Broker(port=None) as broker:
        broker.create_topic("a", 1_000)
        async with (
            Client(broker.bootstrap, connector=broker.connect) as client,
            client.consumer(fetch_max_wait_ms=1) as consumer,
        ):
            consumer.assign({a(number): 0 for number in range(1_000)})
            await eventually(lambda: len(fetches(broker)) > 5)
            asked = [one for one in broker.requests if one.api == ApiKey.FETCH]
            assert count(fetches(broker)) == 1_000
            assert all(len(encode(one.request, one.version)) < 50 for one in asked[1:])
            async with client.producer() as producer:
                for value in (b"news", b"more"):
                    await producer.send("a", value, partition=700)
                    assert await values(consumer, 1) == [value]
            assert count(fetches(broker)) == 1_001


@pytest.mark.anyio
async def test_a_paused_partition_costs_its_own_name_alone() -> None:
    async with Broker(port=None) as broker:
        broker.create_topic("a", 50)
        async with (
            Client(broker.bootstrap, connector=broker.connect) as client,
            client.consumer(fetch_max_wait_ms=1) as consumer,
        ):
            consumer.assign({a(number): 0 for number in range(50)})
            await eventually(lambda: len(fetches(broker)) > 2)
            consumer.pause(a(3))
            await eventually(lambda: any(one.forgotten_topics_data for one in fetches(broker)))
            consumer.resume(a(3))
            await eventually(lambda: count(fetches(broker)) > 50)
            assert count(fetches(broker)) == 51
            (forgotten,) = [topic for one in fetches(broker) for topic in one.forgotten_topics_data]
            assert forgotten.partitions == [3]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    ],
)
async def test_a_session_that_is_refused_begins_anew_without_a_word(code: ErrorCode) -> None:
    async with Broker(port=None) as broker:
        broker.create_topic("a", 2)
        async with (
            Client(broker.bootstrap, connector=broker.connect) as client,
            client.consumer(fetch_max_wait_ms=1) as consumer,
        ):
            consumer.assign({a(0): 0, a(1): 0})
            await eventually(lambda: len(fetches(broker)) > 2)
            order = broker.on(ApiKey.FETCH, answer=code)
            with anyio.fail_after(5):
                await order.met()
            await eventually(lambda: count(fetches(broker)) == 4)
            async with client.producer() as producer:
                await producer.send("a", b"0", partition=0)
            assert await values(consumer, 1) == [b"0"]


@pytest.mark.anyio
@pytest.mark.parametrize("end", ["drop", "restart", "no room"])
async def test_records_come_once_whatever_becomes_of_a_session(end: str) -> None:
    slots = 0 if end == "no room" else 1_000
    async with Broker(port=None, max_incremental_fetch_session_cache_slots=slots) as broker:
        broker.create_topic("a", 2)
        async with (
            Client(broker.bootstrap, connector=broker.connect, retry_backoff_ms=1, reconnect_backoff_ms=1) as client,
            client.producer() as producer,
            client.consumer(fetch_max_wait_ms=1) as consumer,
        ):
            consumer.assign({a(0): 0, a(1): 0})
            for number in range(10):
                if end == "drop":
                    broker.on(ApiKey.FETCH, drop="before")
                elif end == "restart" and number == 5:
                    await broker.stop_node(1)
                    await broker.start_node(1)
                await producer.send("a", b"%d" % number, partition=number % 2)
                assert await values(consumer, 1) == [b"%d" % number]


@pytest.mark.anyio
@virtual_time
async def test_a_broker_that_refuses_every_session_is_not_asked_in_a_tight_loop_and_told() -> None:
    async with Broker(port=None) as broker:
        broker.create_topic("a")
        async with (
            Client(
                broker.bootstrap, connector=broker.connect, default_api_timeout_ms=200, retry_backoff_ms=20
            ) as client,
            client.consumer(fetch_max_wait_ms=1) as consumer,
        ):
            broker.on(ApiKey.FETCH, answer=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, times=None)
            consumer.assign({a(0): 0})
            await _told(consumer, "FETCH_SESSION_ID_NOT_FOUND")
            assert len(fetches(broker)) < 20


async def _told(consumer: Consumer[bytes, bytes], what: str) -> None:
    with anyio.fail_after(5), pytest.raises(RequestTimeout, match=what):
        await anext(consumer)
