"""What is on its way at once: how much, in which order, and who waits for whom."""

import time
from collections.abc import Callable
from typing import Any, TypeVar, TypeVarTuple, Unpack

import anyio
import pytest
from anyio.abc import TaskGroup
from support.connecting import eventually
from support.faulty_cluster import FaultyCluster, a, produced, serving
from support.patience import SOON
from support.producing import numbers, producing, sent
from support.scripted_broker import Asked
from support.virtual_time import virtual_time

from aiokafkawire import KafkaError, RequestTimeout
from aiokafkawire.errors import ErrorCode, NotEnoughReplicas, OutOfOrderSequenceNumber
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from aiokafkawire.protocol.messages.produce import ProduceRequest, ProduceResponse
from aiokafkawire.runtime import Runtime

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def answer(cluster: FaultyCluster, *numbers: int, **options: Any) -> None:
    """Answer these of the requests that are held, each once it is there."""
    for number in numbers:
        await cluster.holds(number + 1)
        asked = cluster.held[number]
        await asked.answer(cluster.written(asked, **options))


async def blocked(cluster: FaultyCluster) -> int:
    """How many requests have come, once nothing moves any more."""
    await anyio.wait_all_tasks_blocked()
    return len(cluster.held)


# --- order ---------------------------------------------------------------------------------------------------


async def test_a_partitions_first_batch_goes_alone_and_five_follow_in_their_order() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client:
        cluster.on_produce = lambda node, asked: None
        async with producing(client, batch_size=1) as producer:
            with anyio.fail_after(10):
                deliveries = await sent(producer, a(0), *numbers(8))
                await cluster.holds(1)
                assert await blocked(cluster) == 1
                await answer(cluster, 0)
                await cluster.holds(6)
                assert await blocked(cluster) == 6
                await answer(cluster, 1)
                await cluster.holds(7)
                await answer(cluster, *range(2, 8))
                assert [(await delivery).offset for delivery in deliveries] == list(range(8))
        assert cluster.values(a(0)) == numbers(8)
        assert cluster.numbered(a(0)) == [(7, 0, number) for number in range(8)]


async def test_what_is_tried_again_waits_for_those_behind_it_and_goes_first() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client:
        cluster.on_produce = lambda node, asked: None
        async with producing(client, batch_size=1) as producer:
            with anyio.fail_after(10):
                deliveries = await sent(producer, a(0), *numbers(6))
                await answer(cluster, 0)
                await cluster.holds(6)
                await answer(cluster, 1, errors={a(0): ErrorCode.NOT_ENOUGH_REPLICAS})
                await answer(cluster, 2, 3, 4)  # out of order, says the leader
                assert await blocked(cluster) == 6
                await answer(cluster, 5)
                await cluster.holds(7)
                assert await blocked(cluster) == 7
                await answer(cluster, *range(6, 11))
                assert [(await delivery).offset for delivery in deliveries] == list(range(6))
        assert cluster.values(a(0)) == numbers(6)
        assert cluster.numbered(a(0)) == [(7, 0, number) for number in range(6)]


@pytest.mark.parametrize("written", range(6))
async def test_many_that_are_lost_together_are_written_once_and_in_order(written: int) -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client:
        cluster.on_produce = lambda node, asked: None
        async with producing(client, batch_size=1) as producer:
            with anyio.fail_after(10):
                deliveries = await sent(producer, a(0), *numbers(8))
                await answer(cluster, 0)
                await cluster.holds(6)
                for asked in cluster.held[1 : 1 + written]:
                    cluster.written(asked)
                cluster.on_produce = lambda node, asked: cluster.written(asked)
                await cluster.held[0].peer.stream.aclose()
                assert [(await delivery).offset for delivery in deliveries] == list(range(8))
        assert cluster.values(a(0)) == numbers(8)


async def test_up_to_five_requests_are_on_their_way_to_a_broker() -> None:
    async with serving({a(number): 1 for number in range(7)}) as cluster, cluster.client() as client:
        cluster.on_produce = lambda node, asked: None
        async with producing(client, batch_size=1) as producer:
            await producer.partitions_for("a")
            for number in range(7):
                await sent(producer, a(number), b"first", b"second")
                await cluster.holds(min(number + 1, 5))
            assert [produced(asked)[0][1] for asked in cluster.held] == [0, 1, 2, 3, 4]
            cluster.on_produce = lambda node, asked: cluster.written(asked)
            for asked in cluster.held:
                await asked.answer(cluster.written(asked))
            with anyio.fail_after(5):
                await producer.flush()
        assert all(cluster.values(a(number)) == [b"first", b"second"] for number in range(7))


async def test_partitions_that_keep_the_lane_busy_starve_no_other() -> None:
    exact = Runtime(now=time.monotonic)  # a loop's own clock may stand still for a millisecond
    async with serving({a(number): 1 for number in range(3)}) as cluster, cluster.client(runtime=exact) as client:
        cluster.on_produce = lambda node, asked: None
        async with producing(client, batch_size=1_000) as producer:
            await producer.partitions_for("a")
            for number in (0, 1):
                await sent(producer, a(number), *[b"x" * 900] * 12)
                await cluster.holds(number + 1)
            (lonely,) = await sent(producer, a(2), b"lonely")
            with anyio.fail_after(5):
                for number in range(2):  # what was on its way before it
                    await answer(cluster, number)
                    await cluster.holds(number + 3)
                await blocked(cluster)
                assert 2 in [index for asked in cluster.held for _, index, _ in produced(asked)]
                answered = 2
                while not lonely.done:
                    await answer(cluster, answered)
                    await blocked(cluster)
                    answered += 1
                    assert len(cluster.held) > answered  # the lane is never idle
            cluster.on_produce = lambda node, asked: cluster.written(asked)
            for asked in cluster.held[answered:]:
                await asked.answer(cluster.written(asked))
            with anyio.fail_after(5):
                await producer.flush()


async def test_a_leader_that_is_named_is_followed_without_asking_for_metadata() -> None:
    async with serving({a(0): 1, a(1): 1}) as cluster, cluster.client() as client, producing(client) as producer:
        await producer.send("a", b"0", partition=0)
        await producer.send("a", b"1", partition=1)
        cluster.move(a(0), 2)

        def on_produce(node: int, asked: Asked) -> ProduceResponse:
            refused = {a(0): ErrorCode.NOT_LEADER_OR_FOLLOWER} if node == 1 else {}
            return cluster.written(asked, refused, tells=True)

        cluster.on_produce = on_produce
        asked = [node.count(MetadataRequest) for node in cluster.nodes.values()]
        with anyio.fail_after(5):
            assert (await producer.send("a", b"2", partition=0)).offset == 1
            assert (await producer.send("a", b"3", partition=1)).offset == 1
        assert [node.count(MetadataRequest) for node in cluster.nodes.values()] == asked
        assert cluster.nodes[2].count(ProduceRequest) == 1


# --- time ----------------------------------------------------------------------------------------------------


async def test_a_topic_that_was_forgotten_while_its_batch_was_on_its_way_is_asked_for_again() -> None:
    late = 0.0
    clock = Runtime(now=lambda: time.monotonic() + late)

    async with serving({a(0): 1}) as cluster, cluster.client(runtime=clock, metadata_max_idle_ms=60_000) as client:
        for broker in cluster.nodes.values():
            broker.on[ApiKey.METADATA] = lambda asked: only(cluster.metadata(), asked)
        cluster.on_produce = lambda node, asked: None
        refused = {a(0): ErrorCode.NOT_LEADER_OR_FOLLOWER}
        async with producing(client, delivery_timeout_ms=600_000, request_timeout_ms=300_000) as producer:
            with anyio.fail_after(SOON):
                (delivery,) = await sent(producer, a(0), b"v")
                await cluster.holds(1)
                cluster.move(a(0), 2)
                # The old leader may be asked once more before the metadata are there.
                cluster.on_produce = lambda node, asked: cluster.written(asked, {} if node == 2 else refused)
                late = 70.0
                await answer(cluster, 0, errors=refused)
                assert (await delivery).offset == 0
        assert cluster.values(a(0)) == [b"v"]


def only(known: MetadataResponse, asked: Asked) -> MetadataResponse:
    """Of the topics that are asked for alone."""
    wanted = {one.name for one in asked.request.topics}
    known.topics = [one for one in known.topics if one.name in wanted]
    return known


async def test_a_producers_own_request_timeout_closes_the_connection() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client:
        cluster.on_produce = lambda node, asked: None
        async with producing(client, request_timeout_ms=30) as producer:
            (delivery,) = await sent(producer, a(0), b"0")
            await cluster.holds(1)
            assert cluster.held[0].request.timeout_ms == 30
            silent = cluster.held[0].peer
            cluster.on_produce = lambda node, asked: cluster.written(asked)
            await silent.hung_up()
            with anyio.fail_after(5):
                assert (await delivery).offset == 0


async def test_a_send_that_lingers_alone_goes_when_its_time_has_come() -> None:
    async with (
        serving({a(0): 1}) as cluster,
        cluster.client() as client,
        producing(client, linger_ms=5, delivery_timeout_ms=120_000) as producer,
    ):
        with anyio.fail_after(10):  # what else would wake the sender is far away
            for number in range(3):
                assert (await producer.send("a", b"x")).offset == number


async def test_without_retries_what_fails_is_told_and_a_later_one_finds_new_numbers() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, producing(client, retries=0) as producer:
        assert (await producer.send("a", b"0")).offset == 0
        cluster.on_produce = lambda node, asked: cluster.written(asked, {a(0): ErrorCode.NOT_ENOUGH_REPLICAS})
        with anyio.fail_after(5):
            with pytest.raises(NotEnoughReplicas):
                await producer.send("a", b"1")
            cluster.on_produce = lambda node, asked: cluster.written(asked)
            with pytest.raises(OutOfOrderSequenceNumber):
                await producer.send("a", b"2")
            assert (await producer.send("a", b"3")).offset == 1
        assert cluster.numbered(a(0)) == [(7, 0, 0), (7, 1, 0)]


@virtual_time
async def test_a_broker_that_is_down_costs_its_own_partitions_and_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async with serving({a(0): 1, a(1): 2}) as cluster, cluster.client() as client:
        del cluster.net.hosts["n2"]
        async with producing(client, delivery_timeout_ms=200) as producer:
            lost = await sent(producer, a(1), *numbers(3))
            with anyio.fail_after(5):
                for number in range(20):
                    assert (await producer.send("a", b"x", partition=0)).offset == number
                for delivery in lost:
                    with pytest.raises(RequestTimeout, match="cannot connect to n2:9092") as late:
                        await delivery
                    assert "those before it were tried, at last ConnectionLost" in str(late.value)
        begun = [record.message.partition(":")[0] for record in caplog.records]
        assert begun == ["broker n2", "failed to send 3 records to a-1"]
        assert cluster.net.dials.count("n2") > 1
        caplog.clear()


# --- steps, threads and the wire -----------------------------------------------------------------------------


async def test_a_send_on_an_idle_lane_needs_no_step_of_the_worker() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, producing(client) as producer:
        await producer.send("a", b"0")
        await anyio.wait_all_tasks_blocked()
        steps = 0
        worker = producer._sender._worker
        step = worker._step

        def counted(tasks: TaskGroup) -> float | None:
            nonlocal steps
            steps += 1
            return step(tasks)

        worker._step = counted
        for number in range(1, 4):
            assert (await producer.send("a", b"x")).offset == number
        assert steps == 0


class Thread:
    """A thread that works when it is allowed to."""

    def __init__(self) -> None:
        self.jobs: list[Any] = []
        self.allowed = anyio.Event()
        self.fault: Exception | None = None

    async def offload(self, function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        self.jobs.append(function)
        await self.allowed.wait()
        if self.fault is not None:
            raise self.fault
        return await anyio.to_thread.run_sync(function, *args)


async def test_what_is_compressed_on_a_thread_keeps_its_place_and_holds_up_no_other_partition() -> None:
    thread = Thread()
    async with (
        serving({a(0): 1, a(1): 1}) as cluster,
        cluster.client(runtime=Runtime(offload=thread.offload)) as client,
    ):
        async with producing(client, compression_type="gzip", batch_size=200_000) as producer:
            with anyio.fail_after(10):
                (large,) = await sent(producer, a(0), b"x" * 100_000)
                await eventually(lambda: len(thread.jobs) == 1)
                (small,) = await sent(producer, a(0), b"small")
                assert (await producer.send("a", b"other", partition=1)).offset == 0
                await anyio.wait_all_tasks_blocked()
                assert cluster.end(a(0)) == 0
                thread.allowed.set()
                assert ((await large).offset, (await small).offset) == (0, 1)
        assert len(thread.jobs) == 1
        assert cluster.values(a(0)) == [b"x" * 100_000, b"small"]


async def test_a_thread_that_fails_costs_its_own_batch() -> None:
    thread = Thread()
    thread.fault = MemoryError()
    thread.allowed.set()
    async with serving({a(0): 1}) as cluster, cluster.client(runtime=Runtime(offload=thread.offload)) as client:
        producer = producing(client, compression_type="gzip", batch_size=200_000)
        with anyio.fail_after(5):
            async with producer:
                with pytest.raises(KafkaError, match="compressing records for a-0 failed in this client: MemoryError"):
                    await producer.send("a", b"x" * 100_000)
                assert (await producer.send("a", b"small")).offset == 0


@pytest.mark.parametrize(
    ("codec", "size", "offloaded"), [("gzip", 1_000, 0), ("gzip", 100_000, 1), ("none", 100_000, 0)]
)
async def test_large_compressed_batches_are_built_on_a_thread(codec: str, size: int, offloaded: int) -> None:
    thread = Thread()
    thread.allowed.set()
    async with serving({a(0): 1}) as cluster, cluster.client(runtime=Runtime(offload=thread.offload)) as client:
        async with producing(client, compression_type=codec, batch_size=200_000) as producer:
            await producer.send("a", b"x" * size)
        assert len(thread.jobs) == offloaded
        assert len(cluster.values(a(0))) == 1


async def test_without_acks_the_wire_slows_the_producer_down() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, producing(client, acks=0) as producer:
        cluster.on_produce = lambda node, asked: None
        await producer.send("a", b"0")
        stream = cluster.held[0].peer.client
        stream.hold()
        deliveries = await sent(producer, a(0), b"1")
        await stream.sending.wait()
        deliveries += await sent(producer, a(0), b"2")
        await anyio.wait_all_tasks_blocked()
        assert not any(delivery.done for delivery in deliveries)
        stream.released.set()
        with anyio.fail_after(5):
            assert [(await delivery).offset for delivery in deliveries] == [-1, -1]
            await cluster.holds(3)


async def test_without_acks_what_the_wire_did_not_take_is_tried_again() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, producing(client, acks=0) as producer:
        cluster.on_produce = lambda node, asked: None
        await producer.send("a", b"0")
        stream = cluster.held[0].peer.client
        stream.hold()
        (delivery,) = await sent(producer, a(0), b"1")
        await stream.sending.wait()
        stream.fault = anyio.BrokenResourceError()
        stream.released.set()
        with anyio.fail_after(5):
            assert (await delivery).offset == -1
            await cluster.holds(2)
        assert cluster.held[1].peer is not cluster.held[0].peer
