"""Requests to coordinators: asked where they are, followed where they go, and given up at the deadline."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from random import Random
from typing import Any

import anyio
import pytest
from support.clusters import Net, metadata, opened
from support.connecting import eventually
from support.patience import SOON
from support.scripted_broker import Asked, ScriptedBroker

from aiokafkawire.cluster.cluster import Cluster
from aiokafkawire.cluster.retry import Backoff
from aiokafkawire.errors import (
    ErrorCode,
    GroupAuthorizationFailed,
    NotCoordinator,
    RequestTimeout,
    UnknownMemberId,
    UnsupportedVersion,
    UsageError,
    broker_error,
)
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.group import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
)
from aiokafkawire.protocol.schema import Response, Versions
from aiokafkawire.testing.broker import Broker
from aiokafkawire.types import Address, CoordinatorType

pytestmark = pytest.mark.anyio

GROUP, TRANSACTION = CoordinatorType.GROUP, CoordinatorType.TRANSACTION
BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def named(key: str, node_id: int, host: str, error: int = 0) -> FindCoordinatorResponse:
    """Who coordinates the key."""
    one = Coordinator(key=key, node_id=node_id, host=host, port=9092, error_code=error, error_message=None)
    return FindCoordinatorResponse(coordinators=[one])


def beating(broker: ScriptedBroker, *codes: int) -> None:
    """Answer Heartbeat with these errors in turn, and well from then on."""
    left = iter(codes)
    broker.on[ApiKey.HEARTBEAT] = lambda _: HeartbeatResponse(error_code=next(left, 0))


def check(answer: HeartbeatResponse) -> None:
    if answer.error_code:
        raise broker_error(answer.error_code, "Heartbeat of 'g'")


async def beat(cluster: Cluster, seconds: float = 10, **more: Any) -> HeartbeatResponse:
    return await cluster.ask_coordinator(GROUP, "g", BEAT, cluster.deadline(seconds), check=check, **more)


class Two:
    """Broker 1 answers Metadata; each says that ``at`` coordinates whatever is asked for."""

    def __init__(self, net: Net, first: ScriptedBroker, second: ScriptedBroker, cluster: Cluster) -> None:
        self.net, self.first, self.second, self.cluster = net, first, second, cluster
        self.at = "first"
        for broker in (first, second):
            broker.on[ApiKey.FIND_COORDINATOR] = self.found

    def found(self, asked: Asked) -> Response:
        node_id = {"first": 1, "second": 2}[self.at]
        return named(asked.request.coordinator_keys[0], node_id, self.at)

    def looked_up(self) -> int:
        return self.first.count(FindCoordinatorRequest) + self.second.count(FindCoordinatorRequest)


@asynccontextmanager
async def two() -> AsyncIterator[Two]:
    async with AsyncExitStack() as stack:
        first, second = [await stack.enter_async_context(ScriptedBroker()) for _ in range(2)]
        net = Net(first=first, second=second)
        for broker in (first, second):
            broker.on[ApiKey.METADATA] = lambda _: metadata(hosts=("first", "second"))
        cluster = await stack.enter_async_context(opened(net.connect, "first:9092"))
        yield Two(net, first, second, cluster)


async def test_the_coordinator_is_asked_wherever_it_is() -> None:
    async with two() as both:
        both.at = "second"
        beating(both.second)
        for _ in range(3):
            assert (await beat(both.cluster, lane="group-1")).error_code == 0
        assert (both.first.count(HeartbeatRequest), both.second.count(HeartbeatRequest)) == (0, 3)
        assert both.looked_up() == 1
        assert both.cluster.brokers.opened(Address("second", 9092), "group-1") is not None


@pytest.mark.parametrize(
    ("code", "looked_up"),
    [
        (ErrorCode.NOT_COORDINATOR, 2),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, 2),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 1),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 1),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 1),
    ],
)
async def test_what_may_be_mended_is_tried_again_where_the_error_says(code: ErrorCode, looked_up: int) -> None:
    async with two() as both:
        beating(both.first, code)
        beating(both.second, code)
        assert (await beat(both.cluster)).error_code == 0
        assert both.looked_up() == looked_up
        assert both.first.count(HeartbeatRequest) == 2


async def test_a_coordinator_that_moved_is_followed() -> None:
    async with two() as both:
        beating(both.first, *[ErrorCode.NOT_COORDINATOR] * 100)
        beating(both.second)
        await both.cluster.coordinator(GROUP, "g", both.cluster.deadline(10))
        both.at = "second"
        assert (await beat(both.cluster)).error_code == 0
        assert both.first.count(HeartbeatRequest) == 1
        assert both.second.count(HeartbeatRequest) == 1


async def test_a_coordinator_that_is_gone_is_looked_up_anew() -> None:
    async with two() as both, anyio.create_task_group() as tasks:
        beating(both.second)
        answers = list[HeartbeatResponse]()

        async def ask() -> None:
            answers.append(await beat(both.cluster))

        tasks.start_soon(ask)
        await eventually(lambda: both.first.count(HeartbeatRequest) == 1)
        both.at = "second"
        del both.net.hosts["first"]
        for peer in both.first.peers:
            await peer.stream.aclose()
        await eventually(lambda: bool(answers))
        assert both.looked_up() == 2


async def test_an_older_failure_does_not_forget_a_newer_coordinator() -> None:
    async with two() as both:
        cluster, asked = both.cluster, list[Asked]()
        both.first.on[ApiKey.HEARTBEAT] = asked.append
        beating(both.second)
        async with anyio.create_task_group() as tasks:
            for lane in ("group-1", "group-2"):
                tasks.start_soon(partial(beat, cluster, lane=lane))
            await eventually(lambda: len(asked) == 2)
            both.at = "second"
            await asked[0].answer(HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR))
            await eventually(lambda: both.second.count(HeartbeatRequest) == 1)
            await asked[1].answer(HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR))
        assert both.second.count(HeartbeatRequest) == 2
        assert both.looked_up() == 2


async def test_an_error_that_no_retry_mends_is_raised_at_once() -> None:
    async with two() as both:
        beating(both.first, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        with pytest.raises(GroupAuthorizationFailed, match=r"^Heartbeat of 'g': GROUP_AUTHORIZATION_FAILED"):
            await beat(both.cluster, 60)
        assert both.first.count(HeartbeatRequest) == 1


async def test_versions_that_the_coordinator_lacks_are_told_at_once() -> None:
    async with two() as both:
        with pytest.raises(UnsupportedVersion, match=r"Heartbeat .*99"):
            await beat(both.cluster, 60, wanted=Versions.parse("99+"))


async def test_in_the_end_the_error_says_what_was_asked_where_and_why_it_failed() -> None:
    async with two() as both:
        beating(both.first, *[ErrorCode.NOT_COORDINATOR] * 1000)
        told = (
            r"^Heartbeat of group 'g' did not succeed within 0\.5 s at first:9092; at last NotCoordinator: "
            r"Heartbeat of 'g': NOT_COORDINATOR"
        )
        with anyio.fail_after(SOON), pytest.raises(RequestTimeout, match=told) as caught:
            await beat(both.cluster, 0.5)
        assert isinstance(caught.value.__cause__, NotCoordinator)


async def test_without_a_coordinator_the_error_says_so() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: metadata()
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        broker.on[ApiKey.FIND_COORDINATOR] = lambda _: named("g", -1, "", code)
        async with opened(broker.connect) as cluster:
            told = r"^Heartbeat of group 'g' did not succeed within 0\.1 s; at last .*COORDINATOR_NOT_AVAILABLE"
            with anyio.fail_after(SOON), pytest.raises(RequestTimeout, match=told):
                await beat(cluster, 0.1)


async def test_the_waits_between_tries_may_be_the_callers() -> None:
    waits = list[int]()

    class Noted(Backoff):
        def next(self) -> float:
            waits.append(1)
            return 0.0

    async with two() as both:
        beating(both.first, *[ErrorCode.CONCURRENT_TRANSACTIONS] * 3)
        await beat(both.cluster, backoff=Noted(1, 1, Random(1)))
        assert len(waits) == 3


async def test_a_coordinator_that_takes_over_is_not_waited_for_as_the_one_before() -> None:
    waits = list[float]()

    class Noted(Backoff):
        def next(self) -> float:
            waits.append(round(super().next()))
            return 0.0

    class Middle(Random):
        def uniform(self, a: float, b: float) -> float:
            return (a + b) / 2

    async with two() as both:

        def found(asked: Asked) -> Response:
            # Back and forth: those who were asked before are asked at ever longer intervals.
            both.at = "second" if both.looked_up() in (4, 5, 7) else "first"
            return both.found(asked)

        for broker in (both.first, both.second):
            broker.on[ApiKey.FIND_COORDINATOR] = found
        beating(both.first, *[ErrorCode.NOT_COORDINATOR] * 4)
        beating(both.second, *[ErrorCode.NOT_COORDINATOR] * 3)
        await beat(both.cluster, backoff=Noted(1, 64, Middle(1)))
        assert waits == [1, 2, 4, 1, 2, 4, 8]


async def test_a_closed_client_finds_and_asks_no_coordinator() -> None:
    calls: list[Callable[[Cluster], Awaitable[object]]] = [
        lambda cluster: cluster.coordinator(GROUP, "g", cluster.deadline(60)),
        lambda cluster: beat(cluster, 60),
    ]
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: metadata()
        heard = list[Exception]()
        async with opened(broker.connect) as cluster, anyio.create_task_group() as tasks:

            async def wait(call: Callable[[Cluster], Awaitable[object]]) -> None:
                try:
                    await call(cluster)
                except UsageError as error:
                    heard.append(error)

            for call in calls * 2:
                tasks.start_soon(wait, call)
            await anyio.wait_all_tasks_blocked()
            with anyio.fail_after(SOON):
                await cluster.close()
                await eventually(lambda: len(heard) == 4)
        for call in calls:
            with pytest.raises(UsageError, match="the client is not open"):
                await call(cluster)


async def test_a_broker_that_is_down_does_not_keep_us_from_asking_another() -> None:
    async with two() as both:
        del both.net.hosts["first"]
        await both.first.peers[0].stream.aclose()
        both.at = "second"
        node = await both.cluster.coordinator(GROUP, "g", both.cluster.deadline(10))
        assert node.address == Address("second", 9092)


@pytest.mark.parametrize(("release", "level"), [(None, 2), ("3.0", None), ("2.4", None), ("0.11.0", None)])
async def test_a_whole_broker_tells_its_coordinators_and_features(release: str | None, level: int | None) -> None:
    broker = Broker(nodes=3, port=None, max_versions=release)
    async with broker, opened(broker.connect, broker.bootstrap) as cluster:
        assert cluster.metadata.features.get("transaction.version") == level
        for key in ("g", "h", "i"):
            await cluster.coordinator(TRANSACTION, key, cluster.deadline(10))
            alive = HeartbeatRequest(group_id=key, generation_id=1, member_id="m")
            with pytest.raises(UnknownMemberId):
                await cluster.ask_coordinator(GROUP, key, alive, cluster.deadline(10), check=check)
            node = await cluster.coordinator(GROUP, key, cluster.deadline(10))
            assert node.node_id == broker.coordinator(key)
