"""Lanes: opened when needed, shared, opened again after a failure, and closed when idle."""

import logging
from typing import Any

import anyio
import pytest
from support.clusters import Net, hang
from support.connecting import echo, eventually, named
from support.lanes import A, B, C, Clock, brokers_on
from support.scripted_broker import ScriptedBroker, api_versions

from aiokafkawire.cluster.connection_pool import CONTROL
from aiokafkawire.errors import ConnectionLost, ErrorCode, RequestTimeout, UsageError
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.types import Address

pytestmark = pytest.mark.anyio


async def test_callers_that_come_together_share_one_connection() -> None:
    async with ScriptedBroker() as broker:
        net = Net(a=broker)
        async with brokers_on(net) as brokers:
            found = []

            async def connect() -> None:
                found.append(await brokers.connection(A))

            async with anyio.create_task_group() as tasks:
                for _ in range(20):
                    tasks.start_soon(connect)
            assert net.dials == ["a"]
            assert len(set(map(id, found))) == 1
            assert await brokers.connection(A) is found[0]


async def test_each_lane_and_each_address_has_a_connection_of_its_own() -> None:
    async with ScriptedBroker() as broker:
        net = Net(a=broker, b=broker)
        async with brokers_on(net) as brokers:
            connections = [
                await brokers.connection(A),
                await brokers.connection(A, "fetch-1"),
                await brokers.connection(B),
                await brokers.connection(A, CONTROL),
            ]
            assert net.dials == ["a", "a", "b"]
            assert connections[0] is connections[3]
            await brokers.close_lanes("fetch-1")
            assert [one.failure is None for one in connections] == [True, False, True, True]


async def test_a_connection_that_failed_is_opened_again() -> None:
    async with ScriptedBroker() as broker:
        net = Net(a=broker)
        async with brokers_on(net) as brokers:
            first = await brokers.connection(A)
            await broker.peers[0].stream.aclose()
            await eventually(lambda: first.failure is not None)
            second = await brokers.connection(A)
            assert second is not first
            assert second.failure is None


async def test_an_address_that_failed_is_dialled_again_after_its_backoff_only() -> None:
    net, clock = Net(), Clock()
    options = {"reconnect_backoff_ms": 100, "reconnect_backoff_max_ms": 1000}
    async with ScriptedBroker() as broker, brokers_on(net, clock, **options) as brokers:
        refused = r"^cannot connect to a:9092: \[Errno 111\] Connection refused$"
        dials = []
        for moment in (0, 0.07, 0.13, 0.2, 0.4, 5):
            clock.at = 1000 + moment
            with pytest.raises(ConnectionLost, match=refused):
                await brokers.connection(A)
            dials.append(len(net.dials))
        # The first wait is 0.08 to 0.12 s, the second twice as long.
        assert dials == [1, 1, 2, 2, 3, 4]
        net.hosts["a"] = broker.connect
        with pytest.raises(ConnectionLost, match=refused):
            await brokers.connection(A)
        clock.at += 5
        connection = await brokers.connection(A)
        await connection.close()
        # What was open at last is dialled at once.
        assert (await brokers.connection(A)).failure is None


async def test_every_kind_of_failure_waits_its_turn() -> None:
    async with ScriptedBroker() as broker:
        net, clock = Net(a=broker), Clock()
        broker.on[ApiKey.API_VERSIONS] = lambda _: api_versions({}, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        async with brokers_on(net, clock) as brokers:
            for _ in range(2):
                with pytest.raises(Exception, match="CLUSTER_AUTHORIZATION_FAILED"):
                    await brokers.connection(A)
            assert net.dials == ["a"]


async def test_a_connection_may_be_given_less_time_than_configured() -> None:
    net = Net()
    net.hosts["a"] = hang
    async with brokers_on(net) as brokers:
        with pytest.raises(ConnectionLost, match=r"^a:9092 did not accept a connection within 0\.02 s$"):
            await brokers.connection(A, within=0.02)


async def test_a_caller_that_gives_up_leaves_the_lane_to_the_next() -> None:
    async with ScriptedBroker() as broker:
        net = Net()
        net.hosts["a"] = hang
        async with brokers_on(net) as brokers, anyio.create_task_group() as tasks:
            tasks.start_soon(brokers.connection, A)
            await eventually(lambda: net.dials == ["a"])
            tasks.cancel_scope.cancel()
        net.hosts["a"] = broker.connect
        async with brokers_on(net) as brokers:
            with anyio.move_on_after(0.01):
                net.hosts["a"] = hang
                await brokers.connection(A)
            net.hosts["a"] = broker.connect
            assert (await brokers.connection(A)).failure is None


async def test_the_least_loaded_come_first_and_those_that_failed_last() -> None:
    async with ScriptedBroker() as broker:
        net = Net(a=broker, b=broker)
        async with brokers_on(net) as brokers:
            unknown = Address("d", 9092)
            assert brokers.least_loaded_first([C, A, B, A]) == [C, A, B]
            with pytest.raises(ConnectionLost):
                await brokers.connection(C)
            busy, idle = await brokers.connection(A), await brokers.connection(B)
            with anyio.move_on_after(0.01):
                await busy.request(named("unanswered"))
            assert (busy.in_flight, idle.in_flight) == (1, 0)
            assert brokers.least_loaded_first([unknown, C, A, B]) == [B, A, unknown, C]


async def test_a_broker_that_broke_another_lane_comes_last() -> None:
    async with ScriptedBroker() as broker:
        net = Net(a=broker, b=broker)
        async with brokers_on(net) as brokers:
            await brokers.connection(A)
            produce = await brokers.connection(A, "produce-1")
            assert brokers.least_loaded_first([B, A]) == [A, B]
            await produce.close()
            assert brokers.least_loaded_first([A, B]) == [B, A]
            await brokers.connection(A, "produce-1")
            assert brokers.least_loaded_first([B, A]) == [A, B]


async def test_a_broker_that_left_a_request_unanswered_comes_last_until_it_answers() -> None:
    async with ScriptedBroker() as broker:
        net = Net(a=broker, b=broker)
        async with brokers_on(net) as brokers:
            silent, _ = await brokers.connection(A), await brokers.connection(B)
            unknown = Address("d", 9092)
            with pytest.raises(RequestTimeout):
                await silent.request(named("unanswered"), timeout=0.01)
            assert silent.is_silent
            assert brokers.least_loaded_first([A, unknown, B]) == [B, unknown, A]
            asked = await broker.peers[0].next()
            await asked.answer(echo(asked.request))
            await eventually(lambda: not silent.is_silent)
            assert brokers.least_loaded_first([unknown, A]) == [A, unknown]


async def test_connections_that_nobody_used_for_long_are_closed() -> None:
    async with ScriptedBroker() as broker:
        net, clock = Net(a=broker, b=broker, c=broker), Clock()
        broker.on[ApiKey.METADATA] = lambda asked: echo(asked.request) if asked.peer is not broker.peers[2] else None
        async with brokers_on(net, clock, connections_max_idle_ms=9000) as brokers:
            idle, used, waiting = [await brokers.connection(address) for address in (A, B, C)]
            with anyio.move_on_after(0.01):
                await waiting.request(named("unanswered"))
            clock.at += 8
            await used.request(named("answered"))
            clock.at += 1
            await brokers.close_idle(clock())
            assert [one.failure is None for one in (idle, used, waiting)] == [False, True, True]
            await broker.peers[0].hung_up()
            assert (await brokers.connection(A)).failure is None
            assert net.dials == ["a", "b", "c", "a"]


async def test_a_lane_that_is_just_being_opened_again_is_not_idle() -> None:
    async with ScriptedBroker() as broker:
        net, clock, gate = Net(a=broker), Clock(), anyio.Event()
        async with brokers_on(net, clock, connections_max_idle_ms=9000) as brokers:
            first = await brokers.connection(A)
            await first.close()
            clock.at += 100

            async def slowly(host: str, port: int) -> Any:
                await gate.wait()
                return await broker.connect(host, port)

            net.hosts["a"] = slowly
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(brokers.connection, A)
                await eventually(lambda: len(net.dials) == 2)
                await brokers.close_idle(clock())
                gate.set()
            assert (await brokers.connection(A)).failure is None
            assert len(net.dials) == 2


@pytest.mark.parametrize("idle_first", [True, False])
async def test_lanes_that_are_idle_and_closed_at_once_are_closed(idle_first: bool) -> None:
    async with ScriptedBroker() as broker:
        net, clock = Net(a=broker, b=broker), Clock()
        async with brokers_on(net, clock, connections_max_idle_ms=9000) as brokers:
            connections = [await brokers.connection(address, "lane") for address in (A, B)]
            clock.at += 100

            async def close_idle() -> None:
                await brokers.close_idle(clock())

            async def close_lane() -> None:
                await brokers.close_lanes("lane")

            closes = [close_idle, close_lane] if idle_first else [close_lane, close_idle]
            async with anyio.create_task_group() as tasks:
                for close in closes:
                    tasks.start_soon(close)
            assert all(connection.failure is not None for connection in connections)
            assert brokers.opened(A, "lane") is brokers.opened(B, "lane") is None


async def test_after_closing_nothing_opens() -> None:
    async with ScriptedBroker() as broker:
        net = Net(a=broker)
        async with brokers_on(net) as brokers:
            connection = await brokers.connection(A)
            await brokers.close()
            await brokers.close()
            assert connection.failure is not None
            with pytest.raises(UsageError, match=r"^the client is closed$"):
                await brokers.connection(A)
            assert net.dials == ["a"]


# --- without waiting -----------------------------------------------------------------------------------------


async def test_a_lane_that_is_open_is_had_without_waiting() -> None:
    async with ScriptedBroker() as broker:
        net = Net(a=broker)
        async with brokers_on(net) as brokers:
            assert brokers.opened(A, CONTROL) is None
            connection = await brokers.connection(A)
            assert brokers.opened(A, CONTROL) is connection
            assert brokers.opened(A, "produce-1") is None
            assert brokers.opened(B, CONTROL) is None
            await connection.close()
            assert brokers.opened(A, CONTROL) is None
            assert net.dials == ["a"]


async def test_a_lane_that_failed_says_from_when_on_it_is_dialled_again() -> None:
    never, net, clock = float("-inf"), Net(), Clock()
    options = {"reconnect_backoff_ms": 100, "reconnect_backoff_max_ms": 100}
    async with ScriptedBroker() as broker, brokers_on(net, clock, **options) as brokers:
        assert brokers.retry_at(A, CONTROL) == never
        with pytest.raises(ConnectionLost):
            await brokers.connection(A)
        moment = brokers.retry_at(A, CONTROL)
        assert 1000.08 <= moment <= 1000.12
        assert brokers.retry_at(A, "produce-1") == never
        net.hosts["a"] = broker.connect
        clock.at = moment
        connection = await brokers.connection(A)
        assert brokers.retry_at(A, CONTROL) == never
        # One that broke after it was open is dialled at once.
        await connection.close()
        assert brokers.retry_at(A, CONTROL) == never


# --- what the log says ---------------------------------------------------------------------------------------


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(one.levelname, one.getMessage()) for one in caplog.records if one.name == "aiokafkawire.network"]


async def test_a_broker_that_goes_down_is_one_line_and_one_when_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    net, clock = Net(), Clock()
    async with ScriptedBroker() as broker, brokers_on(net, clock) as brokers:
        refused = "cannot connect to a:9092: [Errno 111] Connection refused"
        down = f"broker a:9092 is unreachable, the client tries again: {refused}"
        told_of = [("WARNING", down)]
        lanes = (CONTROL, "produce-1", "fetch-1")
        for _ in range(10):
            for lane in lanes:
                with pytest.raises(ConnectionLost):
                    await brokers.connection(A, lane)
            clock.at += 5
        told_of.append(("WARNING", f"{down} (7 failures in 10 s)"))
        assert told(caplog) == told_of
        net.hosts["a"] = broker.connect
        for lane in lanes:
            await brokers.connection(A, lane)
        told_of.append(("INFO", "broker a:9092 is reachable again after 30 failures in 50 s"))
        assert told(caplog) == told_of
        del net.hosts["a"]
        for lane in lanes:
            await (await brokers.connection(A, lane)).close()
            with pytest.raises(ConnectionLost):
                await brokers.connection(A, lane)
        assert told(caplog) == told_of  # it has failed again within a minute
        clock.at += 61
        with pytest.raises(ConnectionLost):
            await brokers.connection(A, CONTROL)
        told_of.append(("WARNING", f"{down} (34 failures in 111 s)"))
        assert told(caplog) == told_of


async def test_each_broker_that_goes_down_has_its_line(caplog: pytest.LogCaptureFixture) -> None:
    async with brokers_on(Net()) as brokers:
        for address in (A, B):
            with pytest.raises(ConnectionLost):
                await brokers.connection(address)
    assert [message.split(":")[0] for _, message in told(caplog)] == ["broker a", "broker b"]


async def test_a_connection_that_the_broker_closed_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with ScriptedBroker() as broker:
        net = Net(a=broker)
        async with brokers_on(net) as brokers:
            for number in range(3):
                connection = await brokers.connection(A)
                await broker.peers[number].stream.aclose()
                await eventually(lambda one=connection: one.failure is not None)  # type: ignore[misc]
            await brokers.connection(A)
    assert told(caplog) == []


async def test_whoever_closes_the_client_hears_of_no_broker_that_is_down(caplog: pytest.LogCaptureFixture) -> None:
    gate = anyio.Event()

    async def refuse_late(host: str, port: int) -> Any:
        await gate.wait()
        raise ConnectionRefusedError(111, "Connection refused")

    net, heard = Net(), list[Exception]()
    net.hosts["a"] = refuse_late
    async with brokers_on(net) as brokers, anyio.create_task_group() as tasks:

        async def connect() -> None:
            try:
                await brokers.connection(A)
            except ConnectionLost as error:
                heard.append(error)

        tasks.start_soon(connect)
        await eventually(lambda: net.dials == ["a"])
        await brokers.close()
        gate.set()
        await eventually(lambda: len(heard) == 1)
    assert told(caplog) == []
