"""What happens by itself as time passes, on a clock that jumps (trio's): no test waits for a second of it."""

from functools import partial
from typing import Any

import anyio
import pytest
from support.clusters import Net, metadata, opened, partition, topic
from support.scripted_broker import ScriptedBroker
from support.virtual_time import virtual_time

from aiokafkawire.cluster.cluster import any_broker
from aiokafkawire.errors import ConnectionLost, ErrorCode, NoBrokerReachable, RequestTimeout, broker_error
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.fetch import FetchRequest
from aiokafkawire.protocol.messages.group import Coordinator, FindCoordinatorResponse
from aiokafkawire.protocol.messages.metadata import MetadataRequest
from aiokafkawire.protocol.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse
from aiokafkawire.types import CoordinatorType

pytestmark = [pytest.mark.anyio, virtual_time]

DEFAULTS: dict[str, Any] = {
    "retry_backoff_ms": 100,
    "retry_backoff_max_ms": 1000,
    "reconnect_backoff_ms": 50,
    "reconnect_backoff_max_ms": 1000,
}
DELETE = DeleteTopicsRequest(topics=[], timeout_ms=1)


async def test_metadata_is_asked_for_again_when_it_has_grown_old() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: metadata()
        async with opened(broker.connect, metadata_max_age_ms=60_000, **DEFAULTS):
            await anyio.sleep(59)
            assert broker.count(MetadataRequest) == 1
            await anyio.sleep(2)
            assert broker.count(MetadataRequest) == 2
            # Each refresh is followed by a short wait, so the tenth comes a second late.
            await anyio.sleep(600)
            assert 11 <= broker.count(MetadataRequest) <= 12


async def test_a_topic_that_nobody_uses_is_no_longer_asked_for() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda asked: metadata(
            *(topic(one.name, partition(0)) for one in asked.request.topics)
        )
        options = {"metadata_max_age_ms": 60_000, "metadata_max_idle_ms": 150_000, **DEFAULTS}
        async with opened(broker.connect, **options) as cluster:
            await cluster.metadata.topic("left", cluster.deadline(1))
            await cluster.metadata.topic("used", cluster.deadline(1))
            for _ in range(5):
                await anyio.sleep(60)
                cluster.metadata.track_topics(["used"])
            assert [one.name for one in broker.seen[-1].topics] == ["used"]
            assert set(cluster.metadata.snapshot.topics) == {"used"}


async def test_idle_connections_are_closed_and_opened_when_needed() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: metadata()
        options = {"connections_max_idle_ms": 100_000, "metadata_max_age_ms": 2**31 - 1, **DEFAULTS}
        async with opened(broker.connect, **options) as cluster:
            await anyio.sleep(95)
            assert not broker.peers[0].gone
            await anyio.sleep(20)
            assert broker.peers[0].gone
            await cluster.metadata.refresh(cluster.metadata.snapshot, cluster.deadline(10))
            assert len(broker.peers) == 2


async def test_a_cluster_in_trouble_is_not_asked_in_a_tight_loop() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: metadata()
        async with opened(broker.connect, **DEFAULTS) as cluster:
            broker.on[ApiKey.METADATA] = lambda _: metadata(error=ErrorCode.UNKNOWN_SERVER_ERROR)
            with pytest.raises(RequestTimeout, match=r"^no metadata within 30 s: .*UNKNOWN_SERVER_ERROR"):
                await cluster.metadata.refresh(cluster.metadata.snapshot, cluster.deadline(30))
            assert 25 <= broker.count(MetadataRequest) <= 50


async def test_a_dead_cluster_is_not_dialled_in_a_tight_loop() -> None:
    async with ScriptedBroker() as broker:
        net = Net(b=broker)
        broker.on[ApiKey.METADATA] = lambda _: metadata()
        async with opened(net.connect, **DEFAULTS) as cluster:
            net.hosts.clear()
            await broker.peers[0].stream.aclose()
            with pytest.raises(
                RequestTimeout, match=r"^DeleteTopics did not succeed within 60 s; at last ConnectionLost"
            ):
                await cluster.ask(any_broker, DELETE, cluster.deadline(60))
            assert 30 <= len(net.dials) <= 130


async def test_bootstrap_keeps_trying_until_its_time_is_over() -> None:
    net, started = Net(), anyio.current_time()
    with pytest.raises(NoBrokerReachable, match=r"^no broker reachable within 10 s: b:9092: cannot connect"):
        async with opened(net.connect, **DEFAULTS):
            raise AssertionError("opened")
    assert 10 <= anyio.current_time() - started < 10.1
    assert 7 <= len(net.dials) <= 20


async def test_with_default_times_a_silent_address_leaves_the_next_its_share() -> None:
    started = anyio.current_time()
    async with ScriptedBroker(spoken=None) as silent, ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: metadata(hosts=["good"])
        net = Net(silent=silent, good=broker)
        async with opened(net.connect, "silent:1,good:2", **DEFAULTS):
            assert anyio.current_time() - started == pytest.approx(5)


async def test_a_single_silent_address_is_told_what_it_failed_to_do() -> None:
    async with ScriptedBroker(spoken=None) as silent:
        told = (
            r"^no broker reachable within 10 s: b:9092: b:9092 did not answer ApiVersions \(is it a Kafka listener\?\)"
        )
        with pytest.raises(NoBrokerReachable, match=told):
            async with opened(silent.connect, **DEFAULTS):
                raise AssertionError("opened")


async def test_a_request_left_unanswered_is_given_up_after_the_request_timeout_and_tried_again() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: metadata()
        async with opened(broker.connect, **DEFAULTS) as cluster:
            started = anyio.current_time()
            with pytest.raises(RequestTimeout, match="at last RequestTimeout: no answer from b:9092 to DeleteTopics"):
                await cluster.ask(any_broker, DELETE, cluster.deadline(100))
            assert anyio.current_time() - started == pytest.approx(100)
            assert broker.count(DeleteTopicsRequest) == 4
            assert len(broker.peers) == 4


async def test_others_are_asked_for_metadata_while_a_broker_is_silent() -> None:
    async with ScriptedBroker() as frozen, ScriptedBroker() as other:
        other.on[ApiKey.METADATA] = lambda _: metadata(hosts=("b", "c"))
        frozen.on[ApiKey.METADATA] = lambda _: metadata(hosts=("b", "c"))
        async with opened(Net(b=frozen, c=other).connect, **DEFAULTS) as cluster:
            frozen.on[ApiKey.METADATA] = lambda _: None
            began, seen = anyio.current_time(), cluster.metadata.snapshot
            await cluster.metadata.refresh(seen, cluster.deadline(20))
            assert anyio.current_time() - began < 4
            connection = await cluster.connection(cluster.metadata.snapshot.nodes[1], "another lane")
            with anyio.move_on_after(9):
                await connection.request(DELETE)
            assert other.count(MetadataRequest) >= 5


async def test_a_frozen_coordinator_is_left_for_its_successor() -> None:
    async with ScriptedBroker() as frozen, ScriptedBroker() as other:
        coordinator = Coordinator(key="tx", node_id=1, host="b", port=9092, error_code=0, error_message=None)
        for broker in (frozen, other):
            broker.on[ApiKey.METADATA] = lambda _: metadata(hosts=("b", "c"))
            broker.on[ApiKey.FIND_COORDINATOR] = lambda _: FindCoordinatorResponse(coordinators=[coordinator])
        async with opened(Net(b=frozen, c=other).connect, **DEFAULTS) as cluster:
            deadline = cluster.deadline(60)
            await cluster.coordinator(CoordinatorType.TRANSACTION, "tx", deadline)
            frozen.on[ApiKey.METADATA] = frozen.on[ApiKey.FIND_COORDINATOR] = lambda _: None
            other.on[ApiKey.DELETE_TOPICS] = lambda _: DeleteTopicsResponse(responses=[])
            began = anyio.current_time()
            async with anyio.create_task_group() as tasks:
                ask = partial(cluster.ask_coordinator, lane="tx", check=lambda _: None)
                tasks.start_soon(ask, CoordinatorType.TRANSACTION, "tx", DELETE, deadline)
                await anyio.sleep(9)
                assert frozen.count(DeleteTopicsRequest) == 1, "nobody has taken over yet"
                coordinator.node_id, coordinator.host = 2, "c"
            assert anyio.current_time() - began < 12
            assert other.count(DeleteTopicsRequest) == 1


async def test_coordinators_without_a_successor_do_not_delay_those_that_have_one() -> None:
    moved = False

    def find(asked: Any) -> FindCoordinatorResponse:
        (key,) = asked.request.coordinator_keys
        node_id, host = (2, "c") if moved else (1, "b")
        error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE if moved and key != "last" else ErrorCode.NONE
        found = Coordinator(key=key, node_id=node_id, host=host, port=9092, error_code=error_code, error_message=None)
        return FindCoordinatorResponse(coordinators=[found])

    async with ScriptedBroker() as frozen, ScriptedBroker() as other:
        for broker in (frozen, other):
            broker.on[ApiKey.METADATA] = lambda _: metadata(hosts=("b", "c"))
            broker.on[ApiKey.FIND_COORDINATOR] = find
        async with opened(Net(b=frozen, c=other).connect, **DEFAULTS) as cluster:
            for key in (*map(str, range(20)), "last"):
                await cluster.coordinator(CoordinatorType.TRANSACTION, key, cluster.deadline(10))
            frozen.on[ApiKey.METADATA] = frozen.on[ApiKey.FIND_COORDINATOR] = lambda _: None
            other.on[ApiKey.DELETE_TOPICS] = lambda _: DeleteTopicsResponse(responses=[])
            began, moved = anyio.current_time(), True
            ask = partial(cluster.ask_coordinator, lane="tx", check=lambda _: None)
            await ask(CoordinatorType.TRANSACTION, "last", DELETE, cluster.deadline(60))
            assert anyio.current_time() - began < 6
            assert other.count(DeleteTopicsRequest) == 1


async def test_a_long_poll_is_not_overdue_while_it_may_last() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: metadata()
        async with opened(broker.connect, **DEFAULTS) as cluster:
            connection = await cluster.connection(cluster.metadata.snapshot.nodes[1])
            poll = FetchRequest(max_wait_ms=10_000, min_bytes=1, topics=[])
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(connection.request, poll)
                await anyio.sleep(12)
                assert not connection.is_overdue(cluster.runtime.now())
                await anyio.sleep(2)
                assert connection.is_overdue(cluster.runtime.now())
                tasks.cancel_scope.cancel()


async def test_the_last_of_many_tries_does_not_hide_what_came_before() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: metadata()
        broker.on[ApiKey.DELETE_TOPICS] = lambda _: DeleteTopicsResponse(responses=[])

        def refuse_and_fall_silent(_: object) -> None:
            del broker.on[ApiKey.DELETE_TOPICS]
            raise broker_error(ErrorCode.NOT_CONTROLLER)

        async with opened(broker.connect, **DEFAULTS) as cluster:
            with pytest.raises(RequestTimeout, match=r"^DeleteTopics did not .* within 20 s; at last NotController: "):
                await cluster.ask(any_broker, DELETE, cluster.deadline(20), check=refuse_and_fall_silent)
            assert broker.count(DeleteTopicsRequest) == 2


async def test_a_write_that_stalls_ends_the_connection_and_holds_its_caller_no_longer() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: metadata()
        async with opened(broker.connect, **DEFAULTS) as cluster:
            connection = await cluster.connection(cluster.metadata.snapshot.nodes[1])
            broker.peers[0].client.hold()
            started = anyio.current_time()
            with pytest.raises(ConnectionLost, match=r"^b:9092 did not take \d+ bytes within 5 s$"):
                await connection.request(DELETE)
            assert anyio.current_time() - started == pytest.approx(5)


async def test_a_caller_with_little_time_outlasts_it_by_the_stall_of_its_write_at_most() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: metadata()
        async with opened(broker.connect, **DEFAULTS) as cluster:
            connection = await cluster.connection(cluster.metadata.snapshot.nodes[1])
            broker.peers[0].client.hold()
            started = anyio.current_time()
            with anyio.move_on_after(1) as scope:
                await connection.request(DELETE)
            assert scope.cancelled_caught
            assert anyio.current_time() - started == pytest.approx(5)
            assert connection.failure is not None
