"""A client waits out the throttle time of a response where the broker has not waited (KIP-219)."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from support.connecting import connected, echo, eventually, named
from support.scripted_broker import SPOKEN, Asked, ScriptedBroker
from support.scripted_logins import handshake, let_in
from support.securing import alice
from support.virtual_time import virtual_time

from aiokafkawire import Client
from aiokafkawire.errors import ConnectionLost, RequestTimeout
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.metadata import MetadataResponse
from aiokafkawire.protocol.messages.sasl import SaslHandshakeResponse
from aiokafkawire.protocol.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse
from aiokafkawire.protocol.schema import Versions
from aiokafkawire.protocol.throttling import client_waits
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.cluster.releases import versions_of

pytestmark = pytest.mark.anyio


class Throttling(ScriptedBroker):
    """Answers at once, announces the next of ``pauses``, and reads on all the same."""

    def __init__(self, *pauses: int, versions: str = "0-13") -> None:
        super().__init__({**SPOKEN, ApiKey.METADATA: Versions.parse(versions)})
        self.came: list[float] = []
        """The times at which requests came."""
        self._pauses = list(pauses)
        self.on[ApiKey.METADATA] = self._answer

    def _answer(self, asked: Asked) -> MetadataResponse:
        self.came.append(anyio.current_time())
        answer = echo(asked.request)
        answer.throttle_time_ms = self._pauses.pop(0) if self._pauses else 0
        return answer


@virtual_time
async def test_the_next_request_waits_and_the_throttled_response_does_not() -> None:
    async with Throttling(3000, 0, 500) as broker, connected(broker.connect) as connection:
        began = anyio.current_time()
        await connection.request(named("a"))
        assert anyio.current_time() == began
        for name in ("b", "c", "d"):
            await connection.request(named(name))
        assert [round(at - began, 3) for at in broker.came] == [0, 3, 3, 3.5]


@virtual_time
async def test_a_pause_that_passes_while_nobody_asks_delays_nobody() -> None:
    async with Throttling(3000) as broker, connected(broker.connect) as connection:
        await connection.request(named("a"))
        await anyio.sleep(10)
        began = anyio.current_time()
        await connection.request(named("b"))
        assert anyio.current_time() == began


@virtual_time
@pytest.mark.parametrize(("throttle_ms", "seconds"), [(2**31 - 1, 3600), (3_600_001, 3600), (-1, 0), (-(2**31), 0)])
async def test_no_broker_stops_a_client_for_more_than_an_hour(throttle_ms: int, seconds: int) -> None:
    async with Throttling(throttle_ms) as broker, connected(broker.connect) as connection:
        began = anyio.current_time()
        await connection.request(named("a"))
        await connection.request(named("b"), timeout=5_000)
        assert anyio.current_time() - began == seconds


@virtual_time
async def test_a_login_is_renewed_when_the_broker_reads_again() -> None:
    """Apache Kafka reads no SaslHandshake of a throttled connection, and accepts it even after the session's end."""
    logins: list[float] = []

    def log_in(asked: Asked) -> SaslHandshakeResponse:
        logins.append(anyio.current_time())
        return handshake(asked)

    async with Throttling(100_000) as broker:
        broker.on[ApiKey.SASL_HANDSHAKE] = log_in
        broker.on[ApiKey.SASL_AUTHENTICATE] = lambda _: let_in(lifetime_ms=40_000 if len(logins) == 1 else 0)
        async with connected(broker.connect, **alice("PLAIN")) as connection:
            began = anyio.current_time()
            await connection.request(named("a"))
            await anyio.sleep(150)
            assert [round(at - began, 3) for at in logins] == [0, 100]
            assert connection.failure is None


@virtual_time
async def test_a_broker_that_has_waited_itself_is_not_waited_for_again() -> None:
    """Before version 6, Metadata's broker sends the response late."""
    async with Throttling(3000, versions="0-5") as broker, connected(broker.connect) as connection:
        began = anyio.current_time()
        await connection.request(named("a"))
        await connection.request(named("b"))
        assert anyio.current_time() == began


@virtual_time
async def test_who_cannot_wait_that_long_is_told_and_others_still_wait() -> None:
    async with Throttling(3000) as broker, connected(broker.connect) as connection:
        began = anyio.current_time()
        await connection.request(named("a"))
        told = r"^Metadata was not sent within 1 s: the client has used up a quota, .* throttles it for 2\.0 s more$"
        with pytest.raises(RequestTimeout, match=told):
            await connection.request(named("b"), timeout=1)
        assert (anyio.current_time() - began, connection.failure, connection.is_silent) == (1, None, False)
        await connection.request(named("c"), timeout=5)
        assert anyio.current_time() - began == pytest.approx(3)
        assert len(broker.came) == 2


@virtual_time
async def test_a_timeout_includes_the_wait() -> None:
    async with Throttling(3000) as broker, connected(broker.connect) as connection:
        await connection.request(named("a"))
        del broker.on[ApiKey.METADATA]
        began = anyio.current_time()
        with pytest.raises(RequestTimeout, match="no answer from b:9092 to Metadata"):
            await connection.request(named("b"), timeout=5)
        assert anyio.current_time() - began == pytest.approx(5)


@virtual_time
async def test_who_waits_learns_at_once_that_the_connection_is_lost() -> None:
    heard: list[Any] = []
    async with Throttling(60_000) as broker, connected(broker.connect) as connection:
        await connection.request(named("a"))
        began = anyio.current_time()

        async def ask() -> None:
            try:
                await connection.request(named("b"))
            except ConnectionLost as lost:
                heard.append((anyio.current_time() - began, lost))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await anyio.sleep(2)
            await broker.peers[0].stream.aclose()
        assert [round(at, 3) for at, _ in heard] == [2]


async def test_requests_of_other_connections_do_not_wait() -> None:
    async with (
        Throttling(60_000) as broker,
        connected(broker.connect) as one,
        connected(broker.connect) as other,
    ):
        await one.request(named("a"))
        with anyio.fail_after(5):
            await other.request(named("b"))
        await eventually(lambda: len(broker.came) == 2)


@virtual_time
async def test_an_admin_that_is_throttled_for_long_keeps_its_connection() -> None:
    """A request that waits in a muted connection would count as unanswered after request_timeout_ms."""
    async with Broker(port=None) as broker:
        broker.create_topic("t")
        async with Client(broker.bootstrap, connector=broker.connect, request_timeout_ms=30_000) as kafka:
            await kafka.admin.list_topics()
            broker.throttle(None, 40_000)
            await kafka.admin.list_topics()
            broker.throttle(None, 0)
            began = anyio.current_time()
            await kafka.admin.delete_topics("t", timeout=100)
            assert anyio.current_time() - began == pytest.approx(40)
            (request,) = broker.requests.of(ApiKey.DELETE_TOPICS)
            listing = broker.requests.of(ApiKey.METADATA)[-1]
            assert request.connection == listing.connection


@virtual_time
async def test_an_admin_whose_timeout_is_shorter_is_told_of_the_quota() -> None:
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        broker.throttle(None, 40_000)
        await kafka.admin.list_topics()
        with pytest.raises(RequestTimeout, match="the client has used up a quota, and memory-1:9092 throttles it"):
            await kafka.admin.list_topics(timeout=5)


def test_the_waiting_is_the_clients_since_the_versions_of_kafka_2_0() -> None:
    """Releases before 2.0 wait themselves, and every API that is newer leaves it to the client."""
    before, then = versions_of("1.1"), versions_of("2.0")
    waiting = {key: [version for version in range(20) if client_waits(key, version)] for key in range(100)}
    for key, versions in then.items():
        if key not in _WITHOUT:
            assert waiting[key][0] == versions.last == before[key].last + 1, ApiKey(key)
    for key in set(range(100)) - set(then):
        assert waiting[key][0] == 0


_WITHOUT = {4, 5, 6, 7, 17, 23, 27, 36}
"""APIs of 1.1 whose responses have no throttle time, or got it later."""


async def test_a_response_without_a_throttle_time_makes_nobody_wait() -> None:
    async with ScriptedBroker() as broker, connected(broker.connect) as connection:
        broker.on[ApiKey.DELETE_TOPICS] = lambda _: DeleteTopicsResponse(responses=[], throttle_time_ms=0)
        for _ in range(3):
            await connection.request(DeleteTopicsRequest(topics=[], timeout_ms=1))
