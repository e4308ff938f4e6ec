"""Brokers from before ApiVersions: what they are is found out once, and again after an upgrade."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import pytest
from support.clusters import metadata, opened
from support.connecting import connected, eventually
from support.patience import SOON
from support.scripted_broker import SPOKEN, ScriptedBroker, api_versions

from aiokafkawire import Client, ConnectionLost, NoBrokerReachable
from aiokafkawire.cluster.cluster import Cluster
from aiokafkawire.cluster.connection_pool import CONTROL, ConnectionPool
from aiokafkawire.config import ClientConfig
from aiokafkawire.errors import ErrorCode, SecurityMismatch
from aiokafkawire.network.connection import Connection
from aiokafkawire.network.connection_protocol import ConnectionProtocol
from aiokafkawire.network.legacy_version_probe import negotiate_versions
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.group import HeartbeatResponse
from aiokafkawire.protocol.messages.group_admin import ListGroupsResponse
from aiokafkawire.protocol.messages.group_offsets import OffsetFetchResponse
from aiokafkawire.protocol.messages.metadata import ApiVersionsRequest
from aiokafkawire.protocol.messages.offsets import ListOffsetsResponse
from aiokafkawire.protocol.messages.sasl import SaslAuthenticateResponse, SaslHandshakeResponse
from aiokafkawire.protocol.pre_api_versions import SPOKEN_UNTOLD, BrokerVersion
from aiokafkawire.protocol.schema import Request, Versions
from aiokafkawire.runtime import Owner, Runtime
from aiokafkawire.testing.broker import Broker
from aiokafkawire.types import Address

pytestmark = pytest.mark.anyio

IMPATIENT: dict[str, Any] = {"api_version_request_timeout_ms": 20}
LOGIN: dict[str, Any] = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_username": "alice",
    "sasl_password": "a-secret",
}
OLD = pytest.mark.parametrize("release", ["0.8.0", "0.8.1", "0.8.2", "0.9.0"])


class Dials:
    """A connector that counts."""

    def __init__(self, broker: Broker) -> None:
        self.broker, self.count = broker, 0

    async def connect(self, host: str, port: int) -> Any:
        self.count += 1
        return await self.broker.connect(host, port)


@asynccontextmanager
async def old(release: str) -> AsyncIterator[tuple[Broker, Dials, Cluster]]:
    async with Broker(port=None, max_versions=release) as broker:
        broker.create_topic("t")
        dials = Dials(broker)
        async with opened(dials.connect, broker.bootstrap, **IMPATIENT) as cluster:
            yield broker, dials, cluster


def address(broker: Broker) -> Address:
    host, _, port = broker.bootstrap.rpartition(":")
    return Address(host, int(port))


@OLD
async def test_what_an_old_broker_is_shows_in_what_it_answers(release: str) -> None:
    async with old(release) as (broker, dials, cluster):
        connection = await cluster.brokers.connection(address(broker), CONTROL)
        assert connection.known is not None
        assert connection.known.release == release
        assert connection.versions == SPOKEN_UNTOLD[release]
        assert cluster.brokers.known(address(broker)) is connection.known
        assert dials.count == (3 if release == "0.9.0" else 5)


@OLD
async def test_it_is_found_out_once_for_all_lanes(release: str) -> None:
    async with old(release) as (broker, dials, cluster):
        before = dials.count
        for lane in ("a", "b", "c"):
            await cluster.brokers.connection(address(broker), lane)
        assert dials.count == before + 3


@OLD
async def test_after_a_break_it_is_found_out_again_and_once(release: str) -> None:
    async with old(release) as (broker, dials, cluster):
        lanes = [await cluster.brokers.connection(address(broker), lane) for lane in ("a", "b")]
        for one in lanes:
            await one.close(ConnectionLost("broken"))
        before = dials.count
        again = [await cluster.brokers.connection(address(broker), lane) for lane in ("a", "b")]
        assert again[0].known is again[1].known is not lanes[0].known
        assert dials.count == before + (3 if release == "0.9.0" else 5) + 1


async def test_a_broker_that_was_upgraded_is_asked_what_it_speaks_now() -> None:
    async with Broker(port=None, max_versions="0.9.0") as before, Broker(port=None) as after:
        dials = Dials(before)
        before.create_topic("t")
        async with opened(dials.connect, before.bootstrap, **IMPATIENT) as cluster:
            first = await cluster.brokers.connection(address(before), CONTROL)
            assert first.known is not None
            assert first.known.release == "0.9.0"
            dials.broker = after
            await first.close(ConnectionLost("upgraded"))
            second = await cluster.brokers.connection(address(before), CONTROL)
            assert second.known is not None
            assert not second.known.is_untold
            assert ApiKey.API_VERSIONS in second.versions


async def test_the_version_of_api_versions_is_agreed_on_once_for_each_broker_and_again_after_an_upgrade(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    newest, asked = ApiVersionsRequest.stable.last, list[int]()
    send = ConnectionProtocol.send_encoded

    def noting(self: ConnectionProtocol, request: type[Request[Any]], version: int, *rest: Any, **more: Any) -> Any:
        if request is ApiVersionsRequest:
            asked.append(version)
        return send(self, request, version, *rest, **more)

    monkeypatch.setattr(ConnectionProtocol, "send_encoded", noting)
    async with Broker(port=None, max_versions="4.3") as before, Broker(port=None, max_versions="4.4") as after:
        dials = Dials(before)
        async with opened(dials.connect, before.bootstrap, **IMPATIENT) as cluster:

            async def asked_on(lane: str) -> list[int]:
                asked.clear()
                await cluster.brokers.connection(address(before), lane)
                return list(asked)

            assert asked == [newest, newest - 1]
            assert await asked_on("another") == [newest - 1]
            await cluster.brokers.close_lanes(CONTROL)
            dials.broker = after
            assert await asked_on(CONTROL) == [newest - 1, newest]
            assert await asked_on("a third") == [newest]
            dials.broker = before
            await cluster.brokers.close_lanes("another")
            assert await asked_on("another") == [newest, newest - 1]
            assert await asked_on("a fourth") == [newest - 1]


def answer_as_0_8_2(broker: ScriptedBroker) -> None:
    """Answer what tells Kafka 0.8.2 from older brokers."""
    broker.on[ApiKey.LIST_OFFSETS] = lambda _: ListOffsetsResponse(topics=[])
    broker.on[ApiKey.OFFSET_FETCH] = lambda _: OffsetFetchResponse(topics=[])
    broker.on[ApiKey.HEARTBEAT] = lambda _: HeartbeatResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)


async def test_a_newer_broker_whose_connection_was_cut_is_not_taken_for_an_old_one() -> None:
    async with ScriptedBroker(spoken=None) as broker:
        answer_as_0_8_2(broker)
        broker.on[ApiKey.LIST_GROUPS] = lambda _: ListGroupsResponse(error_code=0, groups=[])

        async def cut_and_answer() -> None:
            await eventually(lambda: bool(broker.peers))
            await broker.peers[0].next()
            await broker.peers[0].stream.aclose()
            await eventually(lambda: len(broker.peers) >= 2)
            asked = await broker.peers[1].next()  # ApiVersions, once it has answered what old ones do
            await asked.answer(api_versions(SPOKEN))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cut_and_answer)
            async with connected(broker.connect) as connection:
                assert connection.known is not None
                assert not connection.known.is_untold
                assert ApiKey.API_VERSIONS in connection.versions


async def test_a_broker_that_is_only_slow_is_not_taken_for_an_old_one() -> None:
    async with ScriptedBroker(spoken=None) as broker:
        answer_as_0_8_2(broker)

        async def answer_late() -> None:
            await eventually(lambda: len(broker.peers) >= 2)
            asked = await broker.peers[0].next()
            await broker.peers[1].next()  # ListGroups, and with it he would pass for 0.9
            await asked.answer(api_versions(SPOKEN))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answer_late)
            async with connected(broker.connect, **IMPATIENT) as connection:
                assert connection.known is not None
                assert not connection.known.is_untold
                assert connection.versions == SPOKEN
        await broker.peers[1].hung_up()


class Talk:
    """A connection as far as versions are asked for: what becomes of the question, and whether it was closed."""

    def __init__(self, answer: Callable[[], Awaitable[None]]) -> None:
        self.agree_on_versions, self.known, self.closed = answer, None, False

    async def request(self, request: object, *, wanted: Versions) -> None:
        """It answers whatever old ones do."""

    async def close(self) -> None:
        self.closed = True


async def test_an_answer_that_comes_as_another_way_is_found_counts_and_the_other_is_closed() -> None:
    found = anyio.Event()

    async def answer_when_found() -> None:
        found.set()
        with anyio.CancelScope(shield=True):
            for _ in range(10):  # the first has its answer meanwhile
                await anyio.lowlevel.checkpoint()

    first, other = Talk(found.wait), Talk(answer_when_found)

    async def open_as(known: BrokerVersion) -> Any:
        return other

    with anyio.fail_after(SOON):
        chosen: Any = await negotiate_versions(cast("Connection", first), open_as, 0.01)
    assert chosen is first
    assert (first.closed, other.closed) == (False, True)


class Answers:
    """A connection of which the network lets so many answers through."""

    def __init__(self, count: int, known: BrokerVersion) -> None:
        self.left, self.known = count, known

    async def request(self, request: object, *, wanted: Versions) -> None:
        """It answers while it can."""
        if not self.left:
            raise ConnectionLost("cut")
        self.left -= 1

    async def agree_on_versions(self) -> None:
        """It hangs up, as Kafka 0.8 does."""
        raise ConnectionLost("closed")

    async def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(("first", "second"), [(3, 1), (1, 3)])
async def test_a_connection_that_is_cut_makes_an_old_broker_no_older(first: int, second: int) -> None:
    counts = iter([first, 0, second, 0])

    async def open_as(known: BrokerVersion) -> Any:
        return Answers(next(counts), known)

    with anyio.fail_after(SOON):
        found: Any = await negotiate_versions(cast("Connection", Answers(0, BrokerVersion())), open_as, 5)
    assert found.known.release == "0.8.2"


async def test_a_listener_inside_tls_that_is_only_slow_is_told_as_what_it_is() -> None:
    async with ScriptedBroker(spoken=None) as broker:

        async def refuse_late() -> None:
            await eventually(lambda: len(broker.peers) >= 2)
            await broker.peers[1].next()
            await broker.peers[1].stream.send(b"\x15\x03\x03\x00\x02\x02\x28")  # an alert

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(refuse_late)
            with pytest.raises(SecurityMismatch, match="this listener speaks TLS"):
                async with connected(broker.connect, **IMPATIENT):
                    raise AssertionError("opened")


async def test_who_is_logged_in_to_is_no_old_broker_however_slow() -> None:
    async with ScriptedBroker(spoken=None) as broker:
        spoken = {**SPOKEN, ApiKey.SASL_HANDSHAKE: Versions(0, 1), ApiKey.SASL_AUTHENTICATE: Versions(0, 2)}
        broker.on[ApiKey.SASL_HANDSHAKE] = lambda _: SaslHandshakeResponse(error_code=0, mechanisms=["PLAIN"])
        broker.on[ApiKey.SASL_AUTHENTICATE] = lambda _: SaslAuthenticateResponse(
            error_code=0, error_message=None, auth_bytes=b""
        )

        async def answer_late() -> None:
            await eventually(lambda: bool(broker.peers))
            asked = await broker.peers[0].next()
            await anyio.sleep(
                5 * IMPATIENT["api_version_request_timeout_ms"] / 1000
            )  # long enough to be asked something else
            await asked.answer(api_versions(spoken))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answer_late)
            async with connected(broker.connect, **IMPATIENT, **LOGIN) as connection:
                assert connection.known is not None
                assert not connection.known.is_untold
        assert len(broker.peers) == 1


async def test_who_hangs_up_on_a_client_that_would_log_in_is_asked_nothing_else() -> None:
    async with Broker(port=None, max_versions="0.8.2") as broker:
        dials = Dials(broker)
        told = r"closed the connection \(is it older than Kafka 0\.10, which SASL needs\?\)"
        with pytest.raises(ConnectionLost, match=told):
            async with connected(lambda *_: dials.connect(*address(broker)), **LOGIN):
                raise AssertionError("opened")
        assert dials.count == 1


async def test_who_has_answered_before_is_not_probed_when_it_hangs_up() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: metadata()
        async with opened(broker.connect, "b:9092") as cluster, anyio.create_task_group() as tasks:
            await (await cluster.brokers.connection(Address("b", 9092), CONTROL)).close(ConnectionLost("broken"))
            before = len(broker.peers)
            del broker.on[ApiKey.API_VERSIONS]
            tasks.start_soon(_hang_up, broker, before)
            with anyio.fail_after(SOON), pytest.raises(ConnectionLost):
                await cluster.brokers.connection(Address("b", 9092), "another")
            assert len(broker.peers) == before + 1


async def test_an_old_broker_where_a_newer_one_was_is_found_out_at_the_second_try() -> None:
    async with Broker(port=None) as before, Broker(port=None, max_versions="0.8.2") as after:
        dials = Dials(before)
        async with opened(dials.connect, before.bootstrap, **IMPATIENT) as cluster:
            first = await cluster.brokers.connection(address(before), CONTROL)
            dials.broker = after
            await first.close(ConnectionLost("replaced"))
            with pytest.raises(ConnectionLost):
                await cluster.brokers.connection(address(before), "one")
            second = await cluster.brokers.connection(address(before), "another")
            assert second.known is not None
            assert second.known.release == "0.8.2"


async def test_what_lanes_find_out_side_by_side_is_forgotten_with_any_of_them() -> None:
    async with Broker(port=None, max_versions="0.9.0") as broker:
        owner = Owner()
        await owner.open()
        brokers = ConnectionPool(ClientConfig(**IMPATIENT), broker.connect, owner, Runtime())
        async with anyio.create_task_group() as tasks:
            for lane in ("a", "b"):
                tasks.start_soon(brokers.connection, address(broker), lane)
        opened = [brokers.opened(address(broker), lane) for lane in ("a", "b")]
        assert opened[0] is not None
        assert opened[1] is not None
        assert opened[0].known is opened[1].known
        await brokers.close()
        await owner.close()


async def _hang_up(broker: ScriptedBroker, index: int) -> None:
    await eventually(lambda: len(broker.peers) > index)
    await broker.peers[index].next()
    await broker.peers[index].stream.aclose()


@OLD
async def test_a_client_opens_before_there_is_a_topic(release: str) -> None:
    async with (
        Broker(port=None, max_versions=release, auto_create_topics_enable=False) as broker,
        Client(broker.bootstrap, connector=broker.connect, **IMPATIENT) as client,
    ):
        assert await client.admin.list_topics() == ()
        broker.create_topic("t")
        assert await client.admin.list_topics() == ("t",)


@pytest.mark.parametrize("release", ["0.8.0", "0.8.1", "0.8.2", "0.9.0", "0.10.2"])
async def test_asking_makes_no_topic_unless_that_is_wanted(release: str) -> None:
    async with Broker(port=None, max_versions=release) as broker:
        async with Client(broker.bootstrap, connector=broker.connect, **IMPATIENT) as client:
            async with client.producer(max_block_ms=50) as producer:
                with pytest.raises(Exception, match="is not known"):
                    await producer.send("t", b"")
            assert await client.admin.list_topics() == ()
        async with (
            Client(broker.bootstrap, connector=broker.connect, allow_auto_create_topics=True, **IMPATIENT) as client,
            client.producer() as producer,
        ):
            await producer.send("t", b"")
            assert await client.admin.list_topics() == ("t",)


async def test_silence_to_everything_is_told_in_time() -> None:
    async with ScriptedBroker(spoken=None) as broker:
        with anyio.fail_after(SOON), pytest.raises(NoBrokerReachable, match="did not answer ApiVersions"):
            async with Client(
                "b:9092",
                connector=broker.connect,
                bootstrap_timeout_ms=600,
                socket_connection_setup_timeout_ms=300,
                **IMPATIENT,
            ):
                raise AssertionError("opened")
