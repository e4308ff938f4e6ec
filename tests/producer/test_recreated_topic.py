"""A topic that is deleted and created anew under a producer: what goes to the new topic, and what fails."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from support.faulty_cluster import FaultyCluster, a, serving
from support.patience import SOON
from support.producing import Bytes, numbers, producing, sent
from support.scripted_broker import Asked

from aiokafkawire import TopicPartition
from aiokafkawire.errors import ErrorCode, UnknownTopicId, UnknownTopicOrPartition
from aiokafkawire.protocol.messages.produce import ProduceResponse

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]


def answers(cluster: FaultyCluster) -> None:
    """From now on each produce is answered at once."""
    cluster.on_produce = lambda node, asked: cluster.written(asked)


def answers_once(cluster: FaultyCluster) -> None:
    """The next produce is answered, and those after it are held."""

    def on_produce(node: int, asked: Asked) -> ProduceResponse:
        cluster.on_produce = lambda node, asked: None
        return cluster.written(asked)

    cluster.on_produce = on_produce


async def answer_held(cluster: FaultyCluster) -> None:
    """Answer every produce that is held, and those that come from now on."""
    answers(cluster)
    held, cluster.held = cluster.held, []
    for asked in held:
        await asked.answer(cluster.written(asked))


async def refresh(producer: Bytes) -> None:
    """Have the producer's client ask for metadata."""
    known = producer._cluster
    await known.metadata.refresh(known.metadata.snapshot, known.deadline(5))


@asynccontextmanager
async def written_to_the_old_topic(**options: Any) -> AsyncIterator[tuple[FaultyCluster, Bytes]]:
    """A producer that has written a record to a-0, and is idle; the topic was created anew since."""
    async with serving({a(0): 1}) as cluster, cluster.client() as client, producing(client, **options) as producer:
        with anyio.fail_after(SOON):
            await producer.send("a", b"old")
            cluster.make_again("a")
            yield cluster, producer


# --- nothing was in flight -----------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"acks": 1}, {"enable_idempotence": False}])
async def test_an_idle_producer_sends_to_the_new_topic(options: dict[str, Any]) -> None:
    async with written_to_the_old_topic(**options) as (cluster, producer):
        assert (await producer.send("a", b"0")).offset == 0
        assert (await producer.send("a", b"1")).offset == 1
    assert cluster.values(a(0)) == [b"0", b"1"]


async def test_a_partition_begins_at_0_in_the_next_epoch() -> None:
    async with written_to_the_old_topic() as (cluster, producer):
        await producer.send("a", b"0")
        await producer.send("a", b"1")
    assert cluster.numbered(a(0)) == [(7, 1, 0), (7, 1, 1)]


async def test_many_batches_keep_their_order() -> None:
    async with written_to_the_old_topic(batch_size=1) as (cluster, producer):
        deliveries = await sent(producer, a(0), *numbers(20))
        assert [(await delivery).offset for delivery in deliveries] == list(range(20))
    assert cluster.values(a(0)) == numbers(20)


# --- requests were in flight ---------------------------------------------------------------------------------


async def test_a_batch_that_was_only_refused_goes_to_the_new_topic() -> None:
    async with written_to_the_old_topic() as (cluster, producer):
        cluster.on_produce = lambda node, asked: None
        (first,) = await sent(producer, a(0), b"1")
        await cluster.holds(1)
        await answer_held(cluster)
        assert (await first).offset == 0
        assert (await producer.send("a", b"2")).offset == 1
    assert cluster.values(a(0)) == [b"1", b"2"]


async def test_batches_overtake_none_that_is_in_flight_to_the_old_topic() -> None:
    other = TopicPartition("b", 0)
    async with serving({a(0): 1, other: 1}) as cluster, cluster.client() as client:
        async with producing(client, batch_size=1) as producer:
            with anyio.fail_after(SOON):
                answers_once(cluster)
                _, *deliveries = await sent(producer, a(0), b"old", b"0", b"1")
                await cluster.holds(2)
                cluster.make_again("a")
                await refresh(producer)
                deliveries += await sent(producer, a(0), b"2", b"3")
                await sent(producer, other, b"x")
                await cluster.holds(3)
                assert len(cluster.held) == 3  # neither "2" nor "3"
                await answer_held(cluster)
                assert [(await delivery).offset for delivery in deliveries] == [0, 1, 2, 3]
        assert cluster.values(a(0)) == numbers(4)


async def test_an_acknowledgement_of_the_old_topic_counts() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, producing(client) as producer:
        with anyio.fail_after(SOON):
            cluster.on_produce = lambda node, asked: None
            (first,) = await sent(producer, a(0), b"0")
            await cluster.holds(1)
            (asked,) = cluster.held
            answer = cluster.written(asked)
            cluster.make_again("a")
            await refresh(producer)
            answers(cluster)
            await asked.answer(answer)
            assert (await first).offset == 0
            assert (await producer.send("a", b"1")).offset == 0
        assert cluster.values(a(0)) == [b"1"]


async def test_a_batch_without_an_answer_does_not_go_to_the_new_topic() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, producing(client) as producer:
        with anyio.fail_after(SOON):
            cluster.on_produce = lambda node, asked: None
            (lost,) = await sent(producer, a(0), b"0")
            await cluster.holds(1)
            cluster.make_again("a")
            answers(cluster)
            await cluster.held[0].peer.stream.aclose()
            with pytest.raises(UnknownTopicId, match="topic 'a' was deleted and made again while records were on"):
                await lost
            assert (await producer.send("a", b"1")).offset == 0
        assert cluster.values(a(0)) == [b"1"]


async def test_an_error_after_the_append_leaves_a_doubt() -> None:
    """The answer has an offset: the broker wrote the batch, and the topic was deleted while its replicas were asked."""
    async with serving({a(0): 1}) as cluster, cluster.client() as client, producing(client) as producer:
        with anyio.fail_after(SOON):
            cluster.on_produce = lambda node, asked: None
            (lost,) = await sent(producer, a(0), b"0")
            await cluster.holds(1)
            (asked,) = cluster.held
            answer = cluster.written(asked)
            (topic,) = answer.responses
            topic.partition_responses[0].error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert topic.partition_responses[0].base_offset == 0
            cluster.make_again("a")
            answers(cluster)
            await asked.answer(answer)
            with pytest.raises(UnknownTopicId, match="may have written them to the old topic"):
                await lost
            assert (await producer.send("a", b"1")).offset == 0
        assert cluster.values(a(0)) == [b"1"]


async def test_a_refusal_does_not_settle_what_happened_to_an_earlier_request() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, producing(client) as producer:
        with anyio.fail_after(SOON):
            cluster.on_produce = lambda node, asked: None
            (lost,) = await sent(producer, a(0), b"0")
            await cluster.holds(1)
            await cluster.held[0].peer.stream.aclose()
            await cluster.holds(2)  # it is sent again, to the same topic
            cluster.make_again("a")
            answers(cluster)
            await cluster.held[1].answer(cluster.written(cluster.held[1]))
            with pytest.raises(UnknownTopicId, match="was deleted and made again"):
                await lost
        assert cluster.values(a(0)) == []


async def test_a_partition_that_the_new_topic_lacks_is_an_error_at_once() -> None:
    async with serving({a(0): 1, a(1): 1}) as cluster, cluster.client() as client, producing(client) as producer:
        with anyio.fail_after(SOON):  # well before delivery_timeout_ms
            await producer.send("a", b"old", partition=1)
            cluster.make_again("a")
            del cluster.leaders[a(1)]
            with pytest.raises(UnknownTopicOrPartition, match="made again with 1 partitions: there is no a-1"):
                await producer.send("a", b"0", partition=1)
            assert (await producer.send("a", b"1")).partition == 0


async def test_records_without_a_key_go_to_the_partitions_of_a_smaller_topic_before_it_has_leaders() -> None:
    many = 100
    async with (
        serving({a(number): -1 for number in range(many)}) as cluster,
        cluster.client() as client,
        producing(client) as producer,
    ):
        await refresh(producer)
        await producer.partitions_for("a")
        producer.send_nowait("a", b"to a partition of the old topic")
        for number in range(1, many):
            del cluster.leaders[a(number)]
        cluster.make_again("a")
        await refresh(producer)
        delivery = producer.send_nowait("a", b"new")
        cluster.move(a(0), 1)
        assert (await delivery).partition == 0
        producer.purge()
