"""A connection against a peer that does what the test says, over memory, on every event loop."""

from collections.abc import Callable
from typing import Any, TypeVar, TypeVarTuple, Unpack

import anyio
import pytest
from support.connecting import ask, connected, echo, eventually, named, running_tasks
from support.scripted_broker import ScriptedBroker

from aiokafkawire.errors import (
    ConnectionLost,
    InvalidMessage,
    RequestTimeout,
    UnsupportedVersion,
    WireError,
)
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aiokafkawire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aiokafkawire.protocol.schema import Versions
from aiokafkawire.runtime import Runtime

pytestmark = [pytest.mark.anyio, pytest.mark.every_loop]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def produce(size: int) -> ProduceRequest:
    data = [PartitionProduceData(index=0, records=bytes(size))]
    return ProduceRequest(acks=0, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=data)])


# --- answers to those who asked ------------------------------------------------------------------------------


async def test_many_requests_are_in_flight_and_each_gets_its_own_answer() -> None:
    heard: list[Any] = []
    async with ScriptedBroker() as broker, connected(broker.connect) as connection:
        async with anyio.create_task_group() as tasks:
            for number in range(50):
                await tasks.start(ask, connection, str(number), heard)
            asked = [await broker.peers[0].next() for _ in range(50)]
            assert connection.in_flight == 50
            assert heard == []
            for one in asked:
                await one.answer(echo(one.request))
        assert heard == [str(number) for number in range(50)]
        assert [one.correlation_id for one in asked] == list(range(1, 51))
        assert connection.in_flight == 0


async def test_a_cancelled_caller_keeps_its_place_in_line() -> None:
    heard: list[Any] = []
    async with ScriptedBroker() as broker, connected(broker.connect) as connection:
        peer = broker.peers[0]
        async with anyio.create_task_group() as tasks:
            left = await tasks.start(ask, connection, "left", heard)
            first = await peer.next()
            left.cancel()
            await tasks.start(ask, connection, "stayed", heard)
            second = await peer.next()
            assert connection.in_flight == 2
            await first.answer(echo(first.request))
            await second.answer(echo(second.request))
        assert heard == ["stayed"]


async def test_a_caller_out_of_time_keeps_its_place_in_line() -> None:
    async with ScriptedBroker() as broker, connected(broker.connect) as connection:
        peer = broker.peers[0]
        with pytest.raises(RequestTimeout, match=r"^no answer from b:9092 to Metadata within 0\.01 s$"):
            await connection.request(named("late"), timeout=0.01)
        late = await peer.next()
        assert connection.failure is None
        broker.on[ApiKey.METADATA] = lambda asked: echo(asked.request)
        await late.answer(echo(late.request))
        answer = await connection.request(named("in time"))
        assert answer.topics[0].name == "in time"


async def test_requests_that_cannot_be_sent_harm_nobody() -> None:
    async with ScriptedBroker() as broker, connected(broker.connect) as connection:
        broker.on[ApiKey.METADATA] = lambda asked: echo(asked.request)
        with pytest.raises(InvalidMessage):
            await connection.request(named(5))  # type: ignore[arg-type]
        with pytest.raises(UnsupportedVersion, match=r"^b:9092 speaks Metadata"):
            await connection.request(named("a"), wanted=Versions.parse("99+"))
        assert (await connection.request(named("a"))).topics[0].name == "a"


async def test_an_answer_that_cannot_be_decoded_is_told_and_the_next_is_read() -> None:
    async with ScriptedBroker() as broker, connected(broker.connect) as connection:
        async with anyio.create_task_group() as tasks:
            heard: list[Any] = []
            await tasks.start(ask, connection, "a", heard)
            asked = await broker.peers[0].next()
            await asked.answer(echo(asked.request), version=10)  # has a field fewer than the newest version
        assert isinstance(heard[0], WireError)
        assert str(heard[0]).startswith("b:9092 answered MetadataResponse v13")
        broker.on[ApiKey.METADATA] = lambda asked: echo(asked.request)
        assert (await connection.request(named("b"))).topics[0].name == "b"


async def test_a_large_answer_is_decoded_where_it_blocks_nobody() -> None:
    offloaded: list[object] = []

    async def offload(function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        offloaded.append(function)
        return await anyio.to_thread.run_sync(function, *args)

    async with (
        ScriptedBroker() as broker,
        connected(broker.connect, runtime=Runtime(offload=offload)) as connection,
    ):
        broker.on[ApiKey.METADATA] = lambda asked: echo(asked.request)
        await connection.request(named("small"))
        assert offloaded == []
        many = MetadataRequest(topics=[MetadataRequestTopic(name=f"{number:0200}") for number in range(2000)])
        answer = await connection.request(many)
        assert len(answer.topics) == 2000
        assert len(offloaded) == 1


# --- writing -------------------------------------------------------------------------------------------------


async def test_a_caller_cancelled_while_its_write_stalls_does_not_tear_the_frame() -> None:
    heard: list[Any] = []
    async with ScriptedBroker() as broker, connected(broker.connect) as connection:
        peer, stream = broker.peers[0], broker.peers[0].client
        stream.hold()
        stream.step = 5
        async with anyio.create_task_group() as tasks:
            left = await tasks.start(ask, connection, "left", heard)
            await stream.sending.wait()
            left.cancel()
            await tasks.start(ask, connection, "stayed", heard)
            stream.released.set()
            first, second = await peer.next(), await peer.next()
            assert (first.request, second.request) == (named("left"), named("stayed"))
            await first.answer(echo(first.request))
            await second.answer(echo(second.request))
        assert heard == ["stayed"]
        assert connection.failure is None


async def test_frames_of_many_callers_do_not_mix() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda asked: echo(asked.request)
        # Small ones are written by their callers or joined, large ones by the writer.
        requests = [
            MetadataRequest(topics=[MetadataRequestTopic(name=str(number) * 50)] * (1 + number % 7 * 300))
            for number in range(40)
        ]
        answers: dict[int, int] = {}

        async def request(number: int) -> None:
            answer = await connection.request(requests[number])
            assert {topic.name for topic in answer.topics} == {str(number) * 50}
            answers[number] = len(answer.topics)

        async with connected(broker.connect) as connection, anyio.create_task_group() as tasks:
            broker.peers[0].client.step = 1000
            for number in range(40):
                tasks.start_soon(request, number)
        assert answers == {number: len(requests[number].topics or ()) for number in range(40)}
        assert sorted(map(repr, broker.seen)) == sorted(map(repr, requests))


async def test_a_request_without_an_answer_leaves_the_next_its_own() -> None:
    async with ScriptedBroker() as broker, connected(broker.connect) as connection:
        broker.on[ApiKey.METADATA] = lambda asked: echo(asked.request)
        connection.submit(produce(10), None)
        await connection.transmit()
        assert connection.in_flight == 0
        assert (await connection.request(named("a"))).topics[0].name == "a"
        assert (await broker.peers[0].next()).correlation_id == 1


async def test_requests_without_answers_wait_for_the_wire() -> None:
    async with ScriptedBroker() as broker:
        posted: list[int] = []

        async def post(number: int) -> None:
            connection.submit(produce(100_000), None)
            await connection.transmit()
            await connection.written()
            posted.append(number)

        async with connected(broker.connect) as connection:
            stream = broker.peers[0].client
            stream.hold()
            async with anyio.create_task_group() as tasks:
                for number in range(3):
                    tasks.start_soon(post, number)
                await stream.sending.wait()
                await anyio.wait_all_tasks_blocked()
                assert len(posted) < 2
                stream.released.set()
            assert sorted(posted) == [0, 1, 2]
            for number in range(3):
                assert (await broker.peers[0].next()).correlation_id == 1 + number


async def test_a_request_without_an_answer_counts_as_use() -> None:
    now = 0.0
    async with (
        ScriptedBroker() as broker,
        connected(broker.connect, runtime=Runtime(now=lambda: now)) as connection,
    ):
        now = 5.0
        connection.submit(produce(10), None)
        assert connection.used_at == 5.0


@pytest.mark.parametrize("fault", [anyio.BrokenResourceError(), OSError("cable"), RuntimeError("a bug")], ids=repr)
async def test_a_write_that_fails_ends_the_connection(fault: Exception) -> None:
    heard: list[Any] = []
    async with ScriptedBroker() as broker:
        async with connected(broker.connect) as connection, anyio.create_task_group() as tasks:
            await tasks.start(ask, connection, "waiting", heard)
            await broker.peers[0].next()
            broker.peers[0].client.fault = fault
            with pytest.raises((ConnectionLost, RuntimeError)):
                await connection.request(named("torn"))
        assert isinstance(connection.failure, ConnectionLost)
        assert [str(error) for error in heard] == [str(connection.failure)]
        assert str(connection.failure).startswith("the connection to b:9092 broke: ")


# --- the end -------------------------------------------------------------------------------------------------


async def test_when_the_broker_hangs_up_all_who_wait_hear_why() -> None:
    heard: list[Any] = []
    async with ScriptedBroker() as broker, connected(broker.connect) as connection:
        async with anyio.create_task_group() as tasks:
            for number in range(10):
                await tasks.start(ask, connection, str(number), heard)
            for _ in range(10):
                await broker.peers[0].next()
            await broker.peers[0].stream.aclose()
        assert {(type(error), str(error)) for error in heard} == {(ConnectionLost, "b:9092 closed the connection")}
        assert len({id(error) for error in heard}) == 10
        with pytest.raises(ConnectionLost, match=r"^b:9092 closed the connection$"):
            await connection.request(named("later"))


async def test_when_garbage_comes_all_who_wait_hear_of_it() -> None:
    heard: list[Any] = []
    async with ScriptedBroker() as broker, connected(broker.connect) as connection:
        async with anyio.create_task_group() as tasks:
            for number in range(3):
                await tasks.start(ask, connection, str(number), heard)
            await broker.peers[0].stream.send(b"\xff\xff\xff\xff")
        assert [type(error) for error in heard] == [WireError] * 3
        await broker.peers[0].hung_up()
        assert isinstance(connection.failure, WireError)


async def test_closing_may_be_done_twice_and_is_told_to_who_waits() -> None:
    heard: list[Any] = []
    async with ScriptedBroker() as broker, connected(broker.connect) as connection:
        async with anyio.create_task_group() as tasks:
            await tasks.start(ask, connection, "a", heard)
            await broker.peers[0].next()
            await connection.close()
            await connection.close(WireError("too late"))
        assert str(heard[0]) == "the connection to b:9092 was closed by this client"
        with pytest.raises(ConnectionLost, match="closed by this client"):
            connection.submit(produce(1), None)
        await broker.peers[0].hung_up()


async def test_bytes_that_come_while_it_closes_are_no_fault() -> None:
    async with ScriptedBroker() as broker, connected(broker.connect) as connection:
        stream = broker.peers[0].client
        stream.lingering = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connection.close)
            await eventually(lambda: connection.failure is not None)
            await broker.peers[0].stream.send(b"late")
            await anyio.wait_all_tasks_blocked()
            stream.lingering.set()
        assert str(connection.failure) == "the connection to b:9092 was closed by this client"


async def test_a_closed_owner_ends_its_connections() -> None:
    before = running_tasks()
    async with ScriptedBroker() as broker:
        async with connected(broker.connect) as connection:
            with anyio.move_on_after(0.01):
                await connection.request(named("unanswered"))
        await broker.peers[0].hung_up()
        assert isinstance(connection.failure, ConnectionLost)
        await eventually(lambda: not running_tasks() - before)


# --- silence -------------------------------------------------------------------------------------------------


async def test_a_broker_silent_for_the_request_timeout_loses_the_connection() -> None:
    async with ScriptedBroker() as broker, connected(broker.connect, request_timeout_ms=50) as connection:
        with pytest.raises(RequestTimeout, match=r"^no answer from b:9092 to Metadata within 0\.05 s$"):
            await connection.request(named("a"))
        told = r"^b:9092 left Metadata unanswered for 0\.05 s \(request_timeout_ms\)$"
        with pytest.raises(ConnectionLost, match=told):
            await connection.request(named("b"))
        await broker.peers[0].hung_up()


@pytest.mark.parametrize("how", ["out of time", "cancelled"])
async def test_a_broker_that_owes_an_answer_nobody_awaits_loses_the_connection_too(how: str) -> None:
    now, heard = 1000.0, list[Any]()
    runtime = Runtime(now=lambda: now)
    async with ScriptedBroker() as broker, connected(broker.connect, runtime=runtime) as connection:
        if how == "cancelled":
            with anyio.move_on_after(0.01):
                await connection.request(named("a"))
        else:
            with pytest.raises(RequestTimeout):
                await connection.request(named("a"), timeout=0.01)
        now += 29
        async with anyio.create_task_group() as tasks:
            await tasks.start(ask, connection, "b", heard)
            await eventually(lambda: len(broker.seen) == 2)
            assert connection.failure is None
            now += 1
            with pytest.raises(ConnectionLost, match=r"left Metadata unanswered for 30 s \(request_timeout_ms\)"):
                await connection.request(named("c"))
        assert isinstance(heard[0], ConnectionLost)
