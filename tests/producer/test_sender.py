"""What becomes of batches when brokers fail, move, lie or say nothing."""

from typing import Any

import anyio
import pytest
from support.connecting import eventually
from support.faulty_cluster import a, produced, serving
from support.producing import numbers, outcome, producing, sent
from support.scripted_broker import Asked
from support.virtual_time import virtual_time

from aiokafkawire import (
    ConnectionLost,
    RecordMetadata,
    RequestTimeout,
    TopicNotReady,
    TopicPartition,
    WireError,
)
from aiokafkawire.errors import MessageTooLarge, NotLeaderOrFollower
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.metadata import MetadataRequest
from aiokafkawire.protocol.messages.produce import ProduceRequest, ProduceResponse
from aiokafkawire.testing.simulation import Simulation, simulate

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]

# --- retries -------------------------------------------------------------------------------------------------


async def test_a_leader_that_moved_is_followed_and_the_order_is_kept() -> None:
    async with serving({a(0): 1, a(1): 1}) as cluster, cluster.client() as client:
        refused = 0

        def on_produce(node: int, asked: Asked) -> ProduceResponse:
            nonlocal refused
            if node == 1 and refused < 3:
                refused += 1
                if refused == 3:
                    cluster.move(a(0), 2)
                return cluster.written(asked, {a(0): 6})
            asked_for = [TopicPartition(name, index) for name, index, _ in produced(asked)]
            return cluster.written(asked, {where: 6 for where in asked_for if cluster.leaders[where] != node})

        cluster.on_produce = on_produce
        async with producing(client, batch_size=200) as producer:
            with anyio.fail_after(10):
                deliveries = await sent(producer, a(0), *numbers(100))
                others = await sent(producer, a(1), *numbers(100))
                places = [await delivery for delivery in deliveries]
                assert [(await delivery).offset for delivery in others] == list(range(100))
        assert [place.offset for place in places] == list(range(100))
        assert cluster.values(a(0)) == cluster.values(a(1)) == numbers(100)
        assert cluster.nodes[2].count(ProduceRequest) > 0


@pytest.mark.parametrize("written", [False, True])
async def test_a_cut_connection_is_retried_and_doubles_nothing_whether_the_request_was_written_or_not(
    written: bool,
) -> None:
    async with serving({a(0): 1, a(1): 1}) as cluster, cluster.client() as client, producing(client) as producer:
        cluster.on_produce = lambda node, asked: None
        heard: list[Any] = []
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                for value in numbers(3):
                    tasks.start_soon(outcome, lambda value=value: producer.send("a", value, partition=0), heard)
                await cluster.holds(1)
                asked = cluster.held[0]
                if written:
                    cluster.written(asked)
                cluster.on_produce = lambda node, asked: cluster.written(asked)
                await asked.peer.stream.aclose()
        assert sorted(map(str, cluster.values(a(0)))) == sorted(map(str, numbers(3)))
        assert sorted(place.offset for place in heard) == [0, 1, 2]


async def test_without_idempotence_a_lost_answer_costs_a_duplicate_and_never_a_record() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client:
        cluster.on_produce = lambda node, asked: None
        async with producing(client, enable_idempotence=False) as producer:
            (delivery,) = await sent(producer, a(0), b"0")
            await cluster.holds(1)
            cluster.written(cluster.held[0])
            cluster.on_produce = lambda node, asked: cluster.written(asked)
            await cluster.held[0].peer.stream.aclose()
            with anyio.fail_after(5):
                assert (await delivery).offset == 1
        assert cluster.values(a(0)) == [b"0", b"0"]
        assert cluster.identities == 0


async def test_a_connection_that_is_cut_before_the_request_is_opened_again() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, producing(client) as producer:
        await producer.send("a", b"0")
        for peer in cluster.nodes[1].peers:
            await peer.stream.aclose()
        with anyio.fail_after(10):
            assert (await producer.send("a", b"1")).offset == 1


@virtual_time
async def test_whoever_waits_is_told_the_last_cause_when_time_is_up() -> None:
    async with serving({a(0): 1, a(1): 2}) as cluster, cluster.client() as client:
        cluster.on_produce = lambda node, asked: cluster.written(asked, {a(0): 6})
        async with producing(client, delivery_timeout_ms=1000) as producer:
            heard: list[Any] = []
            with anyio.fail_after(20):
                async with anyio.create_task_group() as tasks:
                    for value in numbers(5):
                        tasks.start_soon(outcome, lambda value=value: producer.send("a", value, partition=0), heard)
                    assert (await producer.send("a", b"elsewhere", partition=1)).offset == 0
        assert [type(error) for error in heard] == [RequestTimeout] * 5
        assert len(set(map(id, heard))) == 5
        for error in heard:
            assert str(error).startswith("a-0 took no records for 1 s (delivery_timeout_ms); t")
            assert "at last NotLeaderOrFollower: Produce to a-0" in str(error)
            assert isinstance(error.__cause__, NotLeaderOrFollower)


@virtual_time
@pytest.mark.parametrize("request_timeout_ms", [50, 30_000])
async def test_a_silent_broker_costs_no_more_than_the_delivery_timeout(request_timeout_ms: int) -> None:
    async with (
        serving({a(0): 1, a(1): 2}) as cluster,
        cluster.client(request_timeout_ms=request_timeout_ms) as client,
        producing(client, delivery_timeout_ms=1000) as producer,
    ):
        cluster.on_produce = lambda node, asked: None if node == 1 else cluster.written(asked)
        with anyio.fail_after(20):
            silent = (await sent(producer, a(0), b"0"))[0]
            assert (await producer.send("a", b"1", partition=1)).offset == 0
            with pytest.raises(RequestTimeout, match=r"^a-0 took no records for 1 s \(delivery_timeout_ms\); ") as late:
                await silent
        if request_timeout_ms == 50:
            assert "n1:9092 left Produce unanswered for 0.05 s (request_timeout_ms)" in str(late.value)
            assert isinstance(late.value.__cause__, ConnectionLost)
        else:
            assert "sent, and not answered" in str(late.value)


@virtual_time
async def test_a_frozen_broker_is_left_when_others_lead_and_not_at_its_timeout() -> None:
    async with (
        serving({a(0): 1, a(1): 2}) as cluster,
        cluster.client() as client,
        producing(client, delivery_timeout_ms=120_000) as producer,
    ):
        cluster.on_produce = lambda node, asked: None if node == 1 else cluster.written(asked)
        began = anyio.current_time()
        waiting = (await sent(producer, a(0), b"0"))[0]
        cluster.nodes[1].on[ApiKey.METADATA] = lambda _: None  # it keeps its connections, and reads nothing
        await anyio.sleep(9)
        cluster.move(a(0), 2)
        with anyio.fail_after(20):
            assert (await waiting).offset == 0
        assert anyio.current_time() - began < 12
        assert cluster.values(a(0)) == [b"0"]


@virtual_time
async def test_a_slow_leader_is_waited_for_and_gets_its_request_once() -> None:
    async with (
        serving({a(0): 1, a(1): 2}) as cluster,
        cluster.client() as client,
        producing(client, delivery_timeout_ms=120_000) as producer,
    ):
        cluster.on_produce = lambda node, asked: None
        # A moment from which 3 s end a little early, by the precision of the clock: it moves on all the same.
        for _ in range(10_000):
            if (anyio.current_time() + 3.0) - anyio.current_time() < 3.0:
                break
            await anyio.sleep(0.01)
        waiting = (await sent(producer, a(0), b"0"))[0]
        await anyio.sleep(25)
        (asked,) = cluster.held
        await asked.answer(cluster.written(asked))
        assert (await waiting).offset == 0
        questions = sum(broker.count(MetadataRequest) for broker in cluster.nodes.values())
        assert questions < 30, "others are asked once a second at most whether they lead by now"


@virtual_time
async def test_an_answer_that_comes_too_late_changes_nothing() -> None:
    async with (
        serving({a(0): 1}) as cluster,
        cluster.client() as client,
        producing(client, delivery_timeout_ms=100) as producer,
    ):
        cluster.on_produce = lambda node, asked: None
        (late,) = await sent(producer, a(0), b"0")
        with anyio.fail_after(5):
            with pytest.raises(RequestTimeout):
                await late
            cluster.on_produce = lambda node, asked: cluster.written(asked)
            await cluster.held[0].answer(cluster.written(cluster.held[0]))
            assert (await producer.send("a", b"1")).offset == 1
        with pytest.raises(RequestTimeout):
            await late


@virtual_time
async def test_a_partition_without_a_leader_is_told_in_time_and_holds_up_no_other() -> None:
    async with (
        serving({a(0): -1, a(1): 1}) as cluster,
        cluster.client() as client,
        producing(client, delivery_timeout_ms=150, batch_size=100) as producer,
    ):
        deliveries = await sent(producer, a(0), *numbers(30))  # several batches, which expire together
        with anyio.fail_after(5):
            assert (await producer.send("a", b"led", partition=1)).offset == 0
            for delivery in deliveries:
                with pytest.raises(TopicNotReady, match=r"^a-0 had no leader for 0.15 s \(delivery_timeout_ms\)"):
                    await delivery
            cluster.move(a(0), 2)
            assert (await producer.send("a", b"found", partition=0)).offset == 0


async def test_a_partition_that_finds_a_leader_in_time_loses_nothing() -> None:
    async with serving({a(0): -1}) as cluster, cluster.client() as client, producing(client) as producer:
        deliveries = await sent(producer, a(0), *numbers(5))
        asked = cluster.nodes[1].count(MetadataRequest)
        await eventually(lambda: cluster.nodes[1].count(MetadataRequest) > asked + 1)
        cluster.move(a(0), 2)
        with anyio.fail_after(5):
            assert [(await delivery).offset for delivery in deliveries] == [0, 1, 2, 3, 4]


# --- refusals and lies ---------------------------------------------------------------------------------------


async def test_an_error_that_no_retry_mends_fails_its_batch_only() -> None:
    async with serving({a(0): 1, a(1): 1}) as cluster, cluster.client() as client:
        cluster.on_produce = lambda node, asked: None
        async with producing(client, batch_size=1) as producer:
            first, second = await sent(producer, a(0), b"refused", b"taken")
            (other,) = await sent(producer, a(1), b"other")
            await cluster.holds(1)
            cluster.on_produce = lambda node, asked: cluster.written(asked)
            for asked in cluster.held:
                await asked.answer(cluster.written(asked, {a(0): 10}))
            with anyio.fail_after(5):
                with pytest.raises(MessageTooLarge, match="Produce to a-0: MESSAGE_TOO_LARGE"):
                    await first
                assert (await second).offset == (await other).offset == 0


async def test_an_answer_that_lacks_a_partition_is_a_wire_error_of_that_partition() -> None:
    async with serving({a(0): 1, a(1): 1}) as cluster, cluster.client() as client, producing(client) as producer:
        await producer.partitions_for("a")
        cluster.on_produce = lambda node, asked: cluster.written(asked, without=[a(0)])
        unanswered = producer.send_nowait("a", b"0", partition=0)
        answered = producer.send_nowait("a", b"1", partition=1)
        with anyio.fail_after(5):
            with pytest.raises(WireError, match="the answer to Produce lacks a-0, which was sent"):
                await unanswered
            assert (await answered).offset == 0


async def test_an_answer_for_a_topic_id_that_nobody_knows_is_a_wire_error() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, producing(client) as producer:

        def lie(node: int, asked: Asked) -> ProduceResponse:
            assert asked.version >= 13
            answer = cluster.written(asked)
            answer.responses[0].topic_id = type(answer.responses[0].topic_id)(int=99)
            return answer

        cluster.on_produce = lie
        with anyio.fail_after(5), pytest.raises(WireError, match="lacks a-0"):
            await producer.send("a", b"0")


async def test_bytes_that_are_no_answer_fail_what_was_sent_and_the_next_goes_on() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, producing(client) as producer:
        cluster.on_produce = lambda node, asked: None
        (lost,) = await sent(producer, a(0), b"0")
        await cluster.holds(1)
        cluster.on_produce = lambda node, asked: cluster.written(asked)
        await cluster.held[0].peer.stream.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        with anyio.fail_after(5):
            with pytest.raises(WireError, match="n1:9092 sent an HTTP answer"):
                await lost
            assert (await producer.send("a", b"1")).offset == 0


async def test_a_stream_that_fails_in_its_own_way_is_left_and_what_was_on_it_tried_again() -> None:
    async with serving({a(0): 1, a(1): 2}) as cluster, cluster.client() as client, producing(client) as producer:
        await producer.send("a", b"0", partition=0)
        cluster.nodes[1].peers[-1].client.fault = RuntimeError("a stream's own")
        with anyio.fail_after(5):
            assert (await producer.send("a", b"1", partition=0)).offset == 1
            assert (await producer.send("a", b"2", partition=1)).offset == 0
        assert cluster.values(a(0)) == [b"0", b"1"]


# --- what is acknowledged ------------------------------------------------------------------------------------


async def test_without_acks_what_was_posted_counts_as_delivered() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, producing(client, acks=0) as producer:
        cluster.on_produce = lambda node, asked: None
        with anyio.fail_after(5):
            places = [await producer.send("a", value, timestamp_ms=7) for value in numbers(3)]
            await cluster.holds(3)
        assert places == [RecordMetadata("a", 0, -1, 7)] * 3
        assert [asked.request.acks for asked in cluster.held] == [0, 0, 0]


async def test_the_brokers_time_is_told_where_it_counts() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, producing(client) as producer:
        assert (await producer.send("a", b"0", timestamp_ms=7)).timestamp == 7
        cluster.on_produce = lambda node, asked: cluster.written(asked, time=1_234)
        assert await producer.send("a", b"1", timestamp_ms=7) == RecordMetadata("a", 0, 1, 1_234)


async def test_each_who_waits_gets_an_error_of_its_own() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, producing(client) as producer:
        cluster.on_produce = lambda node, asked: cluster.written(asked, {a(0): 10})
        (delivery,) = await sent(producer, a(0), b"0")
        heard: list[Any] = []

        async def wait() -> RecordMetadata:
            place: RecordMetadata = await delivery
            return place

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(outcome, wait, heard)
        assert [type(error) for error in heard] == [MessageTooLarge] * 5
        assert len(set(map(id, heard))) == 5
        assert len({str(error) for error in heard}) == 1


@pytest.mark.slow
def test_a_topic_that_is_sent_to_stays_known() -> None:
    async def main(sim: Simulation) -> int:
        sim.broker.create_topic("a", partitions=1)
        async with sim.client() as client, client.producer() as producer:
            await producer.partitions_for("a")
            for _ in range(3600):
                await producer.send_nowait("a", b"0")  # would raise TopicNotReady
                await anyio.sleep(1)
            return (await producer.send("a", b"last")).offset

    assert simulate(main, time_limit=4000).value == 3600
