"""Lanes that are closed while they are opened, and those that nobody tries to open any more."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from support.clusters import Net
from support.connecting import eventually
from support.lanes import A, B, Clock, brokers_on
from support.scripted_broker import ScriptedBroker

from aiokafkawire.cluster.connection_pool import ConnectionPool
from aiokafkawire.errors import ConnectionLost, KafkaError, UsageError

pytestmark = pytest.mark.anyio

LANE = "commit-1"


class SlowNet(Net):
    """A network in which connections to a open when the gate does."""

    def __init__(self, broker: ScriptedBroker) -> None:
        super().__init__(a=broker)
        self.gate = anyio.Event()

    async def connect(self, host: str, port: int) -> Any:
        stream = await super().connect(host, port)
        await self.gate.wait()
        return stream


async def outcome(brokers: ConnectionPool, outcomes: list[object]) -> None:
    try:
        outcomes.append(await brokers.connection(A, LANE))
    except KafkaError as error:
        outcomes.append(error)


@pytest.mark.parametrize("way", ["close_lanes", "abandon"])
async def test_a_lane_that_is_closed_while_it_is_opened_leaves_no_connection(way: str) -> None:
    async with ScriptedBroker() as broker:
        net, outcomes = SlowNet(broker), list[object]()
        async with brokers_on(net) as brokers:
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(outcome, brokers, outcomes)
                await eventually(lambda: net.dials == ["a"])
                await (brokers.close_lanes(LANE) if way == "close_lanes" else brokers.abandon())
                net.gate.set()
            told = "this client has closed its connections to a:9092 meanwhile"
            assert [(type(one), str(one)) for one in outcomes] == [(ConnectionLost, told)] * 3
            assert net.dials == ["a"]
            await broker.peers[0].hung_up()
            assert brokers.in_use() == []
            assert (await brokers.connection(A, LANE)).failure is None


async def test_a_client_that_is_closed_while_it_connects_leaves_no_connection() -> None:
    async with ScriptedBroker() as broker:
        net, outcomes = SlowNet(broker), list[object]()
        async with brokers_on(net) as brokers:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(outcome, brokers, outcomes)
                await eventually(lambda: net.dials == ["a"])
                await brokers.close()
                net.gate.set()
            assert [type(one) for one in outcomes] == [UsageError]
            await broker.peers[0].hung_up()


async def test_a_broker_that_nobody_tries_any_more_is_forgotten() -> None:
    async with ScriptedBroker() as broker:
        net, clock = Net(b=broker), Clock()
        async with brokers_on(net, clock, connections_max_idle_ms=9000) as brokers:
            brokers.keep_open(LANE)
            await (await brokers.connection(B, LANE)).close()
            del net.hosts["b"]
            for address in (A, B):
                with pytest.raises(ConnectionLost):
                    await brokers.connection(address, LANE)
            clock.at += 8
            await brokers.close_idle(clock())
            assert brokers.failures().keys() == {A, B}
            clock.at += 3
            await brokers.close_idle(clock())
            assert brokers.failures() == {}


async def test_a_broker_that_is_tried_again_and_again_has_failed_since_the_first_time() -> None:
    async with ScriptedBroker() as broker:
        net, clock = Net(a=broker), Clock()
        async with brokers_on(net, clock, connections_max_idle_ms=9000) as brokers:
            await (await brokers.connection(A)).close()
            del net.hosts["a"]
            began = clock()
            for _ in range(20):
                with pytest.raises(ConnectionLost):
                    await brokers.connection(A)
                await brokers.close_idle(clock())
                clock.at += 2
            since, _ = brokers.failures()[A]
            assert since == began
