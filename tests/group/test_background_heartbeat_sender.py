"""The heartbeats of a member whose loop is blocked, in virtual time, and the thread that sends them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest
from anyio.abc import ByteStream
from anyio.from_thread import start_blocking_portal
from support.apache_kafka import ApacheKafka
from support.clusters import Net
from support.group_members import GroupMember, new_group
from support.login_settings import login
from support.proxies import TestProxy, listening
from support.raw_client import RawClient
from support.scripted_broker import SPOKEN, Asked, ScriptedBroker
from support.securing import make_papers
from support.virtual_time import virtual_time

from aiokafkawire.config import ClientConfig, make_config, parse_servers
from aiokafkawire.errors import ErrorCode, ProxyRefused, SaslAuthenticationFailed, UnsupportedVersion
from aiokafkawire.group.background_heartbeat_schedule import LINGER, HeartbeatMember, HeartbeatReport
from aiokafkawire.group.background_heartbeat_sender import HeartbeatSender
from aiokafkawire.loop_thread import LoopThread
from aiokafkawire.network.connector import Connector
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.consumer_group import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from aiokafkawire.protocol.messages.group import HeartbeatRequest, HeartbeatResponse
from aiokafkawire.protocol.schema import Versions
from aiokafkawire.testing.broker import Broker
from aiokafkawire.types import Address

pytestmark = pytest.mark.anyio


def member_of(
    broker: Address,
    group_id: str,
    generation_id: int,
    member_id: str,
    *,
    interval: float,
    request_timeout: float = 10.0,
) -> HeartbeatMember:
    request = HeartbeatRequest(group_id=group_id, generation_id=generation_id, member_id=member_id)
    return HeartbeatMember(
        broker, request, group_id, generation_id, member_id, interval=interval, request_timeout=request_timeout
    )


MEMBER = member_of(Address("b", 9092), "g", 7, "m", interval=2.0, request_timeout=8.0)
NEXT = attrs.evolve(MEMBER, generation_id=8)
_STATIC_REQUEST = HeartbeatRequest(group_id="g", generation_id=7, member_id="m", group_instance_id="i")
STATIC = attrs.evolve(MEMBER, request=_STATIC_REQUEST, group_instance_id="i")
ANSWERED: tuple[int | None, bool] = (ErrorCode.NONE, False)
_CONSUMER_REQUEST = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=7, topic_partitions=[])
CONSUMER_MEMBER = attrs.evolve(MEMBER, request=_CONSUMER_REQUEST)
"""A member of a consumer group (KIP-848)."""


# --- in virtual time, on a broker whose every answer is decided here -------------------------------------------------


class Coordinator(ScriptedBroker):
    """Answers heartbeats with ``codes``, None being silence, and with NONE when these are used up."""

    def __init__(self, spoken: Mapping[int, Versions] | None = None) -> None:
        super().__init__({**SPOKEN, **(spoken or {})})
        self.codes: deque[int | None] = deque()
        self.versions: list[int] = []
        self.on[ApiKey.HEARTBEAT] = self._answer

    def _answer(self, asked: Asked) -> HeartbeatResponse | None:
        self.versions.append(asked.version)
        code = self.codes.popleft() if self.codes else 0
        return None if code is None else HeartbeatResponse(error_code=code)

    @property
    def heartbeats(self) -> list[HeartbeatRequest]:
        return [request for request in self.seen if isinstance(request, HeartbeatRequest)]


class Sending:
    """A sender at work, and its reports."""

    def __init__(self, connect: Connector, **options: Any) -> None:
        self.reports: list[HeartbeatReport] = []
        self.sender = HeartbeatSender(
            make_config(ClientConfig, options),
            lambda address: address,
            self.reports.append,
            max_poll_interval=20.0,
            connector=connect,
            backoff=0.5,
            backoff_max=1.0,
        )

    @property
    def outcomes(self) -> list[tuple[int | None, bool]]:
        return [(report.code, report.error is not None) for report in self.reports]


@asynccontextmanager
async def sending(
    *brokers: Coordinator, member: HeartbeatMember | None = MEMBER, **options: Any
) -> AsyncIterator[Sending]:
    net = Net(**dict(zip("bc", brokers, strict=False)))
    async with anyio.create_task_group() as tasks:
        made = Sending(net.connect, **options)
        tasks.start_soon(made.sender.run)
        made.sender.set_member(member)
        yield made
        tasks.cancel_scope.cancel()


@virtual_time
async def test_it_connects_for_no_member() -> None:
    async with Coordinator() as broker, sending(broker, member=None) as made:
        made.sender.record_poll()
        made.sender.record_heartbeat()
        await anyio.sleep(100)
        assert broker.peers == []


@virtual_time
async def test_it_sends_while_the_loop_is_blocked_and_over_one_connection() -> None:
    async with Coordinator() as broker, sending(broker, client_id="me") as made:
        await anyio.sleep(2.9)
        assert broker.heartbeats == []
        await anyio.sleep(6.2)
        assert made.outcomes == [ANSWERED] * 3
        assert len(broker.peers) == 1
        (request, *_) = broker.heartbeats
        assert (request.group_id, request.generation_id, request.member_id) == ("g", 7, "m")


@virtual_time
async def test_it_sends_nothing_while_the_loop_does() -> None:
    async with Coordinator() as broker, sending(broker) as made:
        for _ in range(9):
            await anyio.sleep(2)
            made.sender.record_heartbeat()
        assert broker.heartbeats == []


@virtual_time
async def test_a_static_member_is_named() -> None:
    async with Coordinator() as broker, sending(broker, member=STATIC):
        await anyio.sleep(3.1)
        assert [request.group_instance_id for request in broker.heartbeats] == ["i"]


@virtual_time
async def test_a_broker_that_knows_no_static_members_is_asked_no_more() -> None:
    spoken: dict[int, Versions] = {ApiKey.HEARTBEAT: Versions(0, 2)}
    async with Coordinator(spoken) as broker, sending(broker, member=STATIC) as made:
        await anyio.sleep(15)
        assert [type(report.error) for report in made.reports] == [UnsupportedVersion]
        assert broker.heartbeats == []


@virtual_time
async def test_a_broker_of_a_known_old_release_is_not_asked_for_its_versions() -> None:
    async with Coordinator() as broker:
        broker.on[ApiKey.API_VERSIONS] = lambda _: pytest.fail("asked for its versions")
        async with sending(broker, member=attrs.evolve(MEMBER, release="0.9.0")) as made:
            await anyio.sleep(3.1)
            assert (made.outcomes, broker.versions) == ([ANSWERED], [0])


@virtual_time
async def test_a_rebalance_is_reported_and_heartbeats_go_on() -> None:
    async with Coordinator() as broker, sending(broker) as made:
        broker.codes.append(ErrorCode.REBALANCE_IN_PROGRESS)
        await anyio.sleep(6.2)
        assert made.outcomes == [(ErrorCode.REBALANCE_IN_PROGRESS, False), ANSWERED]


@virtual_time
async def test_it_stops_when_the_membership_has_ended_until_there_is_another() -> None:
    async with Coordinator() as broker, sending(broker) as made:
        broker.codes.append(ErrorCode.UNKNOWN_MEMBER_ID)
        await anyio.sleep(15)
        assert made.outcomes == [(ErrorCode.UNKNOWN_MEMBER_ID, True)]
        made.sender.set_member(NEXT)
        await anyio.sleep(3.1)
        assert made.outcomes[1:] == [ANSWERED]


@virtual_time
async def test_heartbeats_end_without_polls_and_begin_again_with_one() -> None:
    async with Coordinator() as broker, sending(broker) as made:
        await anyio.sleep(60)
        sent = len(broker.heartbeats)
        assert sent == 6
        made.sender.record_poll()
        await anyio.sleep(0.1)
        assert len(broker.heartbeats) == sent + 1


@virtual_time
async def test_a_refused_connection_is_tried_again_and_reported_once() -> None:
    broker = Coordinator()
    async with sending(broker) as made:
        await anyio.sleep(6)
        assert made.outcomes == [(None, True)]
        async with broker:
            await anyio.sleep(1.1)
            assert made.outcomes == [(None, True), ANSWERED]


@virtual_time
async def test_a_connection_that_breaks_is_replaced() -> None:
    async with Coordinator() as broker, sending(broker) as made:
        await anyio.sleep(3.1)
        await broker.peers[0].stream.aclose()
        await anyio.sleep(3.1)
        assert made.outcomes[-1] == ANSWERED
        assert len(broker.peers) == 2


@virtual_time
async def test_a_broker_that_does_not_answer_in_time_is_left() -> None:
    async with Coordinator() as broker, sending(broker) as made:
        broker.codes.append(None)
        await anyio.sleep(3 + MEMBER.request_timeout + 0.6)
        assert made.outcomes == [(None, True), ANSWERED]
        assert len(broker.peers) == 2


@virtual_time
async def test_another_coordinator_is_not_kept_waiting_for_a_dead_one() -> None:
    async with Coordinator() as first, Coordinator() as second, sending(first, second) as made:
        first.codes.append(None)
        await anyio.sleep(3.1)
        made.sender.set_member(attrs.evolve(MEMBER, broker=Address("c", 9092)))
        await anyio.sleep(3.1)
        assert made.outcomes == [ANSWERED]
        assert (len(first.heartbeats), len(second.heartbeats)) == (1, 1)


@virtual_time
async def test_a_coordinator_that_has_moved_is_reported() -> None:
    async with Coordinator() as broker, sending(broker) as made:
        broker.codes.append(ErrorCode.NOT_COORDINATOR)
        await anyio.sleep(3.6)
        assert made.outcomes == [(None, True), ANSWERED]


@virtual_time
async def test_an_unused_connection_is_closed() -> None:
    async with Coordinator() as broker, sending(broker) as made:
        await anyio.sleep(3.1)
        made.sender.set_member(None)
        await anyio.sleep(LINGER - 0.2)
        assert not broker.peers[0].gone
        await anyio.sleep(0.2)
        assert broker.peers[0].gone


@virtual_time
async def test_an_address_map_that_fails_is_a_failure_like_others() -> None:
    async with Coordinator() as broker, sending(broker) as made:
        made.sender._address_of = lambda address: [][0]
        await anyio.sleep(3.1)
        assert made.outcomes == [(None, True)]


# --- a member of a consumer group ------------------------------------------------------------------------------------


class ConsumerCoordinator(Coordinator):
    """Answers the heartbeats of consumer groups with ``epochs``; with an error code, if that is negative."""

    def __init__(self, *epochs: int) -> None:
        super().__init__({ApiKey.CONSUMER_GROUP_HEARTBEAT: Versions(0, 1)})
        self.epochs = deque(epochs)
        self.on[ApiKey.CONSUMER_GROUP_HEARTBEAT] = self._confirm

    def _confirm(self, _: Asked) -> ConsumerGroupHeartbeatResponse:
        epoch = self.epochs.popleft()
        return ConsumerGroupHeartbeatResponse(
            error_code=max(0, -epoch), member_epoch=max(0, epoch), heartbeat_interval_ms=2_000
        )

    @property
    def sent_epochs(self) -> list[int]:
        return [request.member_epoch for request in self.seen if isinstance(request, ConsumerGroupHeartbeatRequest)]


@virtual_time
async def test_the_epoch_of_the_last_response_is_sent_next_and_reported() -> None:
    async with ConsumerCoordinator(7, 8, 9) as broker, sending(broker, member=CONSUMER_MEMBER) as made:
        await anyio.sleep(9.1)
        assert broker.sent_epochs == [7, 7, 8]
        assert [report.epoch for report in made.reports] == [7, 8, 9]
        assert made.outcomes == [ANSWERED] * 3
        assert _CONSUMER_REQUEST.member_epoch == 7


@virtual_time
async def test_the_epoch_of_a_response_is_for_its_member_alone() -> None:
    async with ConsumerCoordinator(9, 5) as broker, sending(broker, member=CONSUMER_MEMBER) as made:
        await anyio.sleep(3.1)
        request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=4)
        made.sender.set_member(attrs.evolve(CONSUMER_MEMBER, request=request, generation_id=4))
        await anyio.sleep(3.1)
        assert broker.sent_epochs == [7, 4]


@virtual_time
async def test_the_report_of_an_error_has_no_epoch() -> None:
    code = ErrorCode.FENCED_MEMBER_EPOCH
    async with ConsumerCoordinator(-code) as broker, sending(broker, member=CONSUMER_MEMBER) as made:
        await anyio.sleep(15)
        assert [(report.code, report.epoch) for report in made.reports] == [(code, None)]
        assert broker.sent_epochs == [7]


@virtual_time
async def test_heartbeats_of_classic_members_have_no_epoch() -> None:
    async with Coordinator() as broker, sending(broker) as made:
        await anyio.sleep(6.2)
        assert [report.epoch for report in made.reports] == [None, None]


# --- on the loop of another thread -----------------------------------------------------------------------------------


class InThread:
    """A sender on a thread's loop."""

    def __init__(self, config: ClientConfig, address_of: Callable[[Address], Address], reports: int = 1) -> None:
        self.reports: list[HeartbeatReport] = []
        self.enough = threading.Event()
        self._wanted = reports
        self.loop = LoopThread("aiokafkawire-heartbeat")
        self.loop.start()
        self.sender = self.loop.call_sync(
            lambda: HeartbeatSender(config, address_of, self._report, max_poll_interval=60.0)
        )
        self.loop.begin(self.sender.run)

    def _report(self, report: HeartbeatReport) -> None:
        self.reports.append(report)
        if len(self.reports) >= self._wanted:
            self.enough.set()

    def __enter__(self) -> InThread:
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.stop(within=5)
        assert not [thread for thread in threading.enumerate() if thread.name == "aiokafkawire-heartbeat"]


HIDDEN = "kafka.internal"


async def reach(host: str, port: int) -> ByteStream:
    assert host == HIDDEN
    return await anyio.connect_tcp("127.0.0.1", port)


def first_report(port: int, host: str = HIDDEN, **options: Any) -> HeartbeatReport:
    """Return what becomes of a heartbeat for a member that the broker does not know."""
    direct = "proxy" not in options
    config = make_config(ClientConfig, options)
    with InThread(config, lambda at: Address("127.0.0.1", at.port) if direct else at) as thread:
        member = member_of(Address(host, port), "g", 1, "m", interval=0.01, request_timeout=10.0)
        thread.loop.post(thread.sender.set_member, member)
        assert thread.enough.wait(30)
        return thread.reports[0]


@pytest.fixture(scope="module")
def papers_at(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("papers")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize("kind", [None, "socks5", "http"])
def test_heartbeats_inside_tls_with_a_login(papers_at: Path, mechanism: str, kind: str | None) -> None:
    papers = make_papers(papers_at)
    broker = Broker(
        advertised_host=HIDDEN,
        tls=papers.server(HIDDEN),
        users={"alice": "secret"},
        connection_failed_authentication_delay_ms=0,
    )
    proxy = TestProxy(kind or "http", reach, user="me", password="s3cret")
    right: dict[str, Any] = {**papers.client(), **login(mechanism, "alice", "secret")}
    right["security_protocol"] = "SASL_SSL"
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(broker),
        portal.wrap_async_context_manager(listening(proxy)),
    ):
        port = int(broker.bootstrap.rpartition(":")[2])
        if kind is not None:
            right["proxy"] = proxy.url
        answered = first_report(port, **right)
        assert answered.code == ErrorCode.UNKNOWN_MEMBER_ID
        assert bool(proxy.asked) == (kind is not None)
        refused = first_report(port, **{**right, "sasl_password": "wrong"})
        assert type(refused.error) is SaslAuthenticationFailed
        if kind is not None:
            wrong = {**right, "proxy": proxy.url.replace("s3cret", "wrong")}
            assert type(first_report(port, **wrong).error) is ProxyRefused


def test_a_certificate_for_another_host_gets_no_heartbeat(tmp_path: Path) -> None:
    papers = make_papers(tmp_path)
    broker = Broker(tls=papers.server("elsewhere.example.org"))
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(broker):
        port = int(broker.bootstrap.rpartition(":")[2])
        report = first_report(port, **papers.client())
        assert "is not for the host 'kafka.internal'" in str(report.error)


async def block_the_loop(bootstrap: str, *, session_timeout_ms: int, interval: float, reports: int) -> str:
    """Return the answer to the loop's own heartbeat, after it was blocked for so many of the thread's."""
    (broker,) = parse_servers(bootstrap)
    async with RawClient(await anyio.connect_tcp(broker.host, broker.port)) as client:
        member = GroupMember(client, await new_group(client), session_timeout_ms=session_timeout_ms)
        await member.settle()
        with InThread(make_config(ClientConfig, {}), lambda address: address, reports) as thread:
            kept = member_of(broker, member.group, member.generation, member.member_id, interval=interval)
            thread.loop.post(thread.sender.set_member, kept)
            assert thread.enough.wait(30)
            assert {(report.code, report.error) for report in thread.reports} == {(ErrorCode.NONE, None)}
        return await member.heartbeat()


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # the thread does not know which
async def test_a_blocked_loop_outlasts_its_session() -> None:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Broker(group_min_session_timeout_ms=1)) as broker,
    ):
        # Seven heartbeats are 0.375 s apart, at least: more than the session.
        assert await block_the_loop(broker.bootstrap, session_timeout_ms=2_000, interval=0.25, reports=7) == "NONE"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_apache_kafka_takes_the_heartbeats_of_a_blocked_loop(apache_kafka: ApacheKafka) -> None:
    bootstrap = apache_kafka.bootstrap
    assert await block_the_loop(bootstrap, session_timeout_ms=6_000, interval=0.25, reports=4) == "NONE"
