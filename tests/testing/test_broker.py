"""The broker's life: opening, being reached, failing and closing."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest
from support.dialling import Open, over_memory, over_tcp
from support.patience import SOON
from support.raw_client import RawClient, batch_of, fetch_request, records_of

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.fetch import FetchRequest
from aiokafkawire.protocol.messages.group import FindCoordinatorRequest
from aiokafkawire.protocol.messages.metadata import (
    ApiVersionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.cluster.api_error import ApiError
from aiokafkawire.testing.serving import apis
from aiokafkawire.testing.serving.call import ServerCall

pytestmark = pytest.mark.anyio

transports = pytest.mark.parametrize("transport", [over_memory, over_tcp])


async def test_a_broker_is_reached_over_tcp_and_over_memory_at_once() -> None:
    async with Broker() as broker:
        broker.create_topic("t", partitions=2)
        async with RawClient(await over_tcp(broker)) as one, RawClient(await over_memory(broker)) as other:
            assert (await one.produce("t", batch_of(b"x"))).base_offset == 0
            assert (await other.produce("t", batch_of(b"y"))).base_offset == 1
            assert [r.value for r in records_of(await one.fetch("t", 0))] == [b"x", b"y"]
        assert (broker.log("t").log_end_offset, broker.log("t", 1).log_end_offset) == (2, 0)


async def test_a_broker_in_memory_has_a_name_of_its_own() -> None:
    async with Broker(port=None, node_id=4, cluster_id="mine") as broker:
        assert broker.bootstrap == "memory-4:9092"
        async with RawClient(await over_memory(broker)) as client:
            answer = await client.ask(MetadataRequest(topics=[]), 12)
        assert [(b.node_id, b.host, b.port) for b in answer.brokers] == [(4, "memory-4", 9092)]
        assert (answer.cluster_id, answer.controller_id) == ("mine", 4)


async def test_nobody_listens_elsewhere_before_or_after() -> None:
    broker = Broker(port=None)
    with pytest.raises(ConnectionRefusedError):
        await over_memory(broker)
    async with broker:
        for host, port in (("memory-2", 9092), ("memory-1", 9093)):
            with pytest.raises(ConnectionRefusedError):
                await broker.connect(host, port)
    with pytest.raises(ConnectionRefusedError):
        await over_memory(broker)


async def test_a_port_in_use_is_an_error() -> None:
    async with Broker() as broker:
        with pytest.raises(OSError, match=r"(?i)in use"):
            async with Broker(port=int(broker.bootstrap.split(":")[1])):
                pass


async def test_a_broker_is_opened_once() -> None:
    async with Broker(port=None) as broker:
        with pytest.raises(RuntimeError, match="open already"):
            await broker.__aenter__()


async def test_topics_outlive_a_restart() -> None:
    broker = Broker(port=None)
    broker.create_topic("t")
    for offset in range(2):
        async with broker, RawClient(await over_memory(broker)) as client:
            assert (await client.produce("t", batch_of(b"x"))).base_offset == offset


@transports
async def test_closing_drops_every_connection_and_every_wait(transport: Open) -> None:
    async with Broker() as broker:
        broker.create_topic("t")
        idle, waiting = RawClient(await transport(broker)), RawClient(await transport(broker))
        await idle.ask(ApiVersionsRequest(), 0)
        await waiting.send(fetch_request("t", 0, max_wait_ms=2**31 - 1), 12)
        await anyio.wait_all_tasks_blocked()
    for client in (idle, waiting):
        async with client:
            assert await client.is_cut_off()


@transports
async def test_closing_does_not_wait_for_a_client_that_reads_nothing(transport: Open) -> None:
    with anyio.fail_after(SOON):
        async with Broker() as broker:
            broker.create_topic("t")
            stuck = RawClient(await transport(broker))
            for _ in range(10):
                await stuck.produce("t", batch_of(bytes(1_000_000)))
            for _ in range(10):
                await stuck.send(fetch_request("t", 0, partition_max_bytes=1 << 30), 12)
            await anyio.wait_all_tasks_blocked()
    await stuck.stream.aclose()


async def test_what_the_body_raises_comes_out_as_it_is() -> None:
    with pytest.raises(KeyError, match="mine"):
        async with Broker():
            raise KeyError("mine")


async def test_a_cancelled_body_closes_the_broker() -> None:
    with anyio.CancelScope() as scope:
        async with Broker() as broker:
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    with pytest.raises(OSError):
        await over_tcp(broker)


# --- faults ------------------------------------------------------------------------------------------------------


@pytest.fixture
def broken_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(call: ServerCall, request: MetadataRequest) -> MetadataResponse:
        raise ZeroDivisionError("a bug")

    api = apis.APIS[ApiKey.METADATA]
    monkeypatch.setitem(apis.APIS, ApiKey.METADATA, apis.Api(api.request, broken, api.served))


async def meet_the_bug(broker: Broker) -> None:
    async with RawClient(await over_memory(broker)) as client, RawClient(await over_memory(broker)) as other:
        await client.send(MetadataRequest(topics=[]), 1)
        assert await client.is_cut_off()
        assert (await other.ask(ApiVersionsRequest(), 0)).error_code == 0


@pytest.mark.usefixtures("broken_metadata")
async def test_a_bug_cuts_its_connection_and_is_raised_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    broker = Broker(port=None)

    async def run() -> None:
        async with broker:
            await meet_the_bug(broker)

    with pytest.raises(ZeroDivisionError, match="a bug"):
        await run()
    assert [type(fault) for fault in broker.faults] == [ZeroDivisionError]
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info is not None
    async with broker:  # a new life, a clean record
        assert broker.faults == []


@pytest.mark.usefixtures("broken_metadata")
async def test_several_bugs_are_raised_together() -> None:
    async def run() -> None:
        async with Broker(port=None) as broker:
            await meet_the_bug(broker)
            await meet_the_bug(broker)

    with pytest.raises(ExceptionGroup) as raised:
        await run()
    assert [type(error) for error in raised.value.exceptions] == [ZeroDivisionError] * 2


@pytest.mark.usefixtures("broken_metadata")
async def test_a_bug_does_not_hide_what_the_body_raised() -> None:
    async def run() -> None:
        async with Broker(port=None) as broker:
            await meet_the_bug(broker)
            raise KeyError("mine")

    with pytest.raises(KeyError) as raised:
        await run()
    (note,) = raised.value.__notes__
    met = "node 1, memory connection 1 (connection 1): METADATA v1"
    assert note == f"the broker failed, too: ZeroDivisionError('a bug'); {met}"


# --- settings ----------------------------------------------------------------------------------------------------


async def test_auto_creation_may_be_off_or_make_more_partitions() -> None:
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    for settings, partitions in (({"auto_create_topics_enable": False}, None), ({"num_partitions": 3}, 3)):
        async with Broker(port=None, **settings) as broker, RawClient(await over_memory(broker)) as client:
            await client.ask(wanted, 12)
            (topic,) = (await client.ask(wanted, 12)).topics
            assert len(topic.partitions) == (partitions or 0)


async def test_a_name_that_collides_is_not_made() -> None:
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name="a_b")])
    async with Broker(port=None) as broker, RawClient(await over_memory(broker)) as client:
        broker.create_topic("a.b")
        for _ in range(2):
            (topic,) = (await client.ask(wanted, 12)).topics
            assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_the_largest_batch_is_a_setting() -> None:
    async with Broker(port=None, message_max_bytes=100) as broker, RawClient(await over_memory(broker)) as client:
        broker.create_topic("t")
        assert (await client.produce("t", batch_of(bytes(100)))).error_code == ErrorCode.MESSAGE_TOO_LARGE
        assert (await client.produce("t", batch_of(b"x"))).error_code == 0


async def test_the_clock_decides_what_is_the_future() -> None:
    now = 10_000_000
    async with Broker(port=None, clock=lambda: now) as broker, RawClient(await over_memory(broker)) as client:
        broker.create_topic("t")
        late = await client.produce("t", batch_of(b"x", timestamp=now + 3_600_001))
        assert late.error_code == ErrorCode.INVALID_TIMESTAMP
        assert (await client.produce("t", batch_of(b"x", timestamp=now + 3_600_000))).error_code == 0


# --- helpers -----------------------------------------------------------------------------------------------------


async def test_topics_are_made_and_deleted_by_hand() -> None:
    async with Broker(port=None) as broker, RawClient(await over_memory(broker)) as client:
        topic = broker.create_topic("t", partitions=2)
        assert len(topic.partitions) == 2
        with pytest.raises(ApiError, match="already exists"):
            broker.create_topic("t")
        waiting = await client.send(fetch_request("t", 0, max_wait_ms=30_000), 12)
        await anyio.wait_all_tasks_blocked()
        broker.delete_topic("t")
        answer = await client.answer(FetchRequest, 12, waiting)
        assert answer.responses[0].partitions[0].error_code == 3  # type: ignore[attr-defined]
        with pytest.raises(ApiError, match="no topic 't'; known: none"):
            broker.delete_topic("t")
        with pytest.raises(ApiError, match="no topic 't'"):
            broker.log("t")


async def test_a_topic_made_anew_in_one_go_wakes_those_who_read_the_old_one() -> None:
    async with Broker(port=None) as broker, RawClient(await over_memory(broker)) as client:
        broker.create_topic("t")
        waiting = await client.send(fetch_request("t", 0, max_wait_ms=30_000), 12)
        await anyio.wait_all_tasks_blocked()
        broker.delete_topic("t")
        broker.create_topic("t")
        with anyio.fail_after(SOON):
            answer: Any = await client.answer(FetchRequest, 12, waiting)
        assert answer.error_code == 0


async def test_records_are_gone_below_the_log_start() -> None:
    async with Broker(port=None) as broker, RawClient(await over_memory(broker)) as client:
        broker.create_topic("t")
        for _ in range(3):
            await client.produce("t", batch_of(b"x"))
        broker.log("t").delete_before(2)
        data = await client.fetch("t", 1)
        assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        data = await client.fetch("t", 2)
        assert (data.log_start_offset, data.high_watermark) == (2, 3)
        assert (await client.produce("t", batch_of(b"x"))).log_start_offset == 2


# --- what is not there yet -----------------------------------------------------------------------------------------


async def test_every_group_and_transactional_id_is_coordinated_here() -> None:
    async with Broker(port=None, node_id=3) as broker, RawClient(await over_memory(broker)) as client:
        for key_type in (0, 1):
            one = await client.ask(FindCoordinatorRequest(key="k", key_type=key_type), 3)
            assert (one.error_code, one.node_id, one.host, one.port) == (0, 3, "memory-3", 9092)
            many = await client.ask(FindCoordinatorRequest(coordinator_keys=["k", "l"], key_type=key_type), 6)
            assert [(c.key, c.error_code, c.node_id) for c in many.coordinators] == [("k", 0, 3), ("l", 0, 3)]
        share = await client.ask(FindCoordinatorRequest(coordinator_keys=["k"], key_type=2), 6)
        assert share.coordinators[0].error_code == ErrorCode.INVALID_REQUEST  # not the key of a partition


async def test_nothing_starts_at_a_broker_that_is_not_open() -> None:
    broker = Broker(port=None)
    with pytest.raises(RuntimeError, match="this broker is not open"):
        await broker.start_node(1)
    with pytest.raises(ConnectionRefusedError, match="it is not open"):
        await over_memory(broker)
    async with broker:
        await broker.stop_node(1)
        await broker.start_node(1)
    with pytest.raises(RuntimeError, match="this broker is not open"):
        await broker.start_node(1)


async def test_brokers_that_were_stopped_are_back_when_it_is_opened_again() -> None:
    broker = Broker(2, port=None)
    broker.create_topic("t", partitions=2)
    async with broker:
        await broker.stop_node(1)
        broker.fence_node(2)
    async with broker, RawClient(await broker.connect("memory-1", 9092)) as client:
        answer = await client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
        assert [node.node_id for node in answer.brokers] == [1, 2]
        assert all(partition.leader_id > 0 for partition in answer.topics[0].partitions)
