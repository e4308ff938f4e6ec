"""Clients that reach their brokers through a tap, and what it tells of them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
import pytest
from support.patience import SOON
from support.raw_client import RawClient, batch_of
from support.tapping import known_nodes, tapped, through

from aiokafkawire import Client, ConfigResource
from aiokafkawire.cli.main import main
from aiokafkawire.errors import ConfigError, ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.metadata import ApiVersionsRequest, MetadataRequest
from aiokafkawire.testing import Broker, RequestOutcome, Tap, TapNotice, TappedRequest, TappedResponse
from aiokafkawire.testing.tap.tap_events import TapEvent

pytestmark = pytest.mark.anyio


@pytest.mark.every_loop
async def test_a_client_produces_and_consumes_through_the_tap_alone() -> None:
    async with tapped(3) as (broker, tap), Client(tap.bootstrap, client_id="mine") as kafka:
        await kafka.admin.create_topics({"t": 6})
        async with kafka.producer() as producer:
            for number in range(30):
                await producer.send("t", b"%d" % number, partition=number % 6)
        read = []
        async with kafka.consumer("t", group_id="g", auto_offset_reset="earliest") as consumer:
            with anyio.fail_after(SOON):
                async for record in consumer:
                    read.append(int(record.value or b"-1"))
                    if len(read) == 30:
                        break
            await consumer.commit()
        assert sorted(read) == list(range(30))
        assert set(tap.nodes) == {1, 2, 3}
        passed, received = tap.requests.of(ApiKey.PRODUCE), broker.requests.of(ApiKey.PRODUCE)
        assert {asked.node for asked in passed} == {1, 2, 3}
        assert len(passed) == len(received) > 0
        # Whoever has asked a broker has asked the tap before.
        assert {asked.api for asked in broker.requests} <= {asked.api for asked in tap.requests}
        assert {asked.client_id for asked in tap.requests} == {"mine"}


@pytest.mark.every_loop
async def test_transactions_and_share_groups_go_through_the_tap() -> None:
    async with tapped(2) as (broker, tap), Client(tap.bootstrap) as kafka:
        broker.create_topic("t")
        earliest = {"share.auto.offset.reset": "earliest"}
        await kafka.admin.incremental_alter_configs({ConfigResource.group("s"): earliest})
        async with kafka.producer(transactional_id="x") as producer, producer.transaction() as transaction:
            await transaction.send("t", b"committed")
        async with kafka.share_consumer("t", group_id="s") as consumer:
            with anyio.fail_after(SOON):
                async for record in consumer:
                    assert record.value == b"committed"
                    break
        assert [asked.outcome for asked in tap.requests.of(ApiKey.END_TXN)] == [RequestOutcome.ANSWERED]
        assert tap.requests.of(ApiKey.SHARE_FETCH, topic="t")


async def test_each_broker_has_a_port_of_its_own_which_stays() -> None:
    async with tapped(3) as (_, tap):
        await known_nodes(tap)
        ports = tap.nodes
        assert len(set(ports.values())) == 3
        assert tap.bootstrap == f"127.0.0.1:{ports[1]}"  # the address that it was given is that of broker 1
        async with await through(tap, 3) as client:
            answer = await client.ask(MetadataRequest(topics=[]), 12)
        assert {found.node_id: found.port for found in answer.brokers} == ports == tap.nodes
        assert tap.requests[-1].node == 3


async def test_a_broker_known_by_another_address_gets_a_port_beside_the_first() -> None:
    async with Broker(host="127.0.0.1", advertised_host="localhost") as broker:
        port = broker.bootstrap.rpartition(":")[2]
        async with Tap(f"127.0.0.1:{port}") as tap:
            assert tap.nodes == {}
            await known_nodes(tap)
            assert set(tap.nodes) == {1}
            assert not tap.bootstrap.endswith(f":{tap.nodes[1]}")
            async with await through(tap, 1) as client:
                assert (await client.produce("t", batch_of(b"x"))).error_code in (0, 3)


async def test_ports_follow_the_first_one_and_leave_out_those_in_use() -> None:
    async with Broker(3) as broker:
        for _ in range(20):  # until three ports in a row are free
            async with await anyio.create_tcp_listener(local_host="127.0.0.1") as taken:
                first = taken.extra(anyio.abc.SocketAttribute.local_port) - 1
                try:
                    async with Tap(broker.bootstrap.partition(",")[0], port=first) as tap:
                        await known_nodes(tap)
                        assert tap.nodes[1] == first
                        assert {first + 1} & set(tap.nodes.values()) == set()
                        assert all(port > first + 1 for node, port in tap.nodes.items() if node > 1)
                        return
                except OSError:
                    continue
        raise AssertionError("no free ports")


async def test_another_host_is_advertised_if_one_is_given() -> None:
    async with tapped(advertised_host="tap.example") as (_, tap):
        assert tap.bootstrap.startswith("tap.example:")
        port = tap.bootstrap.rpartition(":")[2]
        async with RawClient(await anyio.connect_tcp("127.0.0.1", int(port))) as client:
            answer = await client.ask(MetadataRequest(topics=[]), 12)
        assert [found.host for found in answer.brokers] == ["tap.example"]


async def test_who_listens_everywhere_advertises_what_the_client_has_reached() -> None:
    async with tapped(host="0.0.0.0") as (_, tap):
        assert tap.bootstrap.startswith("localhost:")
        port = int(tap.bootstrap.rpartition(":")[2])
        async with RawClient(await anyio.connect_tcp("127.0.0.1", port)) as client:
            answer = await client.ask(MetadataRequest(topics=[]), 12)
        assert [(found.host, found.port) for found in answer.brokers] == [("127.0.0.1", port)]


async def test_the_first_broker_that_can_be_reached_is_used() -> None:
    events: list[TapEvent] = []
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        closed = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with (
        Broker() as broker,
        Tap(f"127.0.0.1:{closed},{broker.bootstrap}", on_event=events.append) as tap,
        await through(tap) as client,
    ):
        assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0
    notices = [event.text for event in events if isinstance(event, TapNotice)]
    assert any(f"cannot connect to 127.0.0.1:{closed}" in text for text in notices)


async def test_events_tell_of_requests_and_of_their_ends() -> None:
    events: list[TapEvent] = []
    async with tapped(on_event=events.append) as (broker, tap):
        broker.create_topic("t")
        tap.on(ApiKey.PRODUCE, answer=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        async with await through(tap) as client:
            await client.produce("t", batch_of(b"x"))
            await client.produce("t", batch_of(b"x"))
    (first, refused, second, written) = [event for event in events if not isinstance(event, TapNotice)]
    assert isinstance(first, TappedRequest)
    assert isinstance(refused, TappedResponse)
    assert isinstance(second, TappedRequest)
    assert isinstance(written, TappedResponse)
    assert (first.api, first.version, first.correlation_id, first.client_id) == ("Produce", 12, 1, "raw")
    assert (first.connection, first.client.partition(":")[0], first.size > 50) == (1, "127.0.0.1", True)
    assert refused.request is first
    assert (refused.errors, refused.outcome) == ({"NOT_LEADER_OR_FOLLOWER": 1}, RequestOutcome.ANSWERED)
    assert refused.fault == "answer='NOT_LEADER_OR_FOLLOWER'"
    assert (written.request, written.errors, written.fault, written.rewritten) == (second, {}, "", False)
    assert written.seconds >= 0
    assert second.time <= written.time


async def test_a_tap_can_be_opened_again_and_only_once_at_a_time() -> None:
    async with Broker() as broker:
        tap = Tap(broker.bootstrap)
        with pytest.raises(RuntimeError, match="not open"):
            _ = tap.bootstrap
        for _ in range(2):
            async with tap:
                async with await through(tap) as client:
                    await client.ask(ApiVersionsRequest(), 0)
                assert len(tap.requests) == 1
                with pytest.raises(RuntimeError, match="open already"):
                    await tap.__aenter__()


async def test_a_function_of_events_that_fails_ends_no_connection() -> None:
    def fail(event: TapEvent) -> None:
        raise KeyError("mine")

    with pytest.raises(ExceptionGroup, match="the tap failed"):
        async with tapped(on_event=fail) as (_, tap), await through(tap) as client:
            assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0


# --- the journal -------------------------------------------------------------------------------------------------


@pytest.fixture
async def journal(tmp_path: Path) -> Path:
    """The journal of a client that has produced and consumed."""
    path = tmp_path / "day.pcap"
    async with tapped(2, journal=path) as (broker, tap), Client(tap.bootstrap) as kafka:
        broker.create_topic("t")
        async with kafka.producer() as producer:
            await producer.send("t", b"in the journal", partition=0)
        async with kafka.consumer("t", group_id="g", auto_offset_reset="earliest") as consumer:
            with anyio.fail_after(SOON):
                await anext(consumer)
    return path


async def test_wire_decodes_the_journal(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await anyio.to_thread.run_sync(main, ["wire", "--json", "--file", str(journal)]) == 0
    frames = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {frame["api"] for frame in frames} >= {"ApiVersions", "Metadata", "Produce", "Fetch", "JoinGroup"}
    kinds = [frame["kind"] for frame in frames if frame["api"] == "Produce"]
    assert sorted(kinds) == ["request", "response"]


async def test_only_its_owner_may_read_the_journal(journal: Path) -> None:
    if os.name == "posix":
        assert os.stat(journal).st_mode & 0o077 == 0


async def test_only_its_owner_may_read_a_journal_that_takes_the_place_of_another_file(tmp_path: Path) -> None:
    older = tmp_path / "day.pcap"
    older.write_bytes(b"older")
    older.chmod(0o666)
    async with tapped(journal=older):
        pass
    assert b"older" not in older.read_bytes()
    if os.name == "posix":
        assert os.stat(older).st_mode & 0o077 == 0


async def test_a_journal_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        async with Tap("127.0.0.1:9092", journal=tmp_path / "nowhere" / "day.pcap"):
            pass


async def test_a_journal_that_cannot_be_written_on_ends_and_the_traffic_does_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    async with tapped(journal=pipe) as (_, tap), await through(tap) as client:
        assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0
        os.close(reader)
        for _ in range(2):
            assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0
    assert caplog.text.count(f"cannot write the journal {pipe}, which ends here: ") == 1


async def test_on_a_full_disk_a_tap_with_a_journal_does_not_open() -> None:
    if sys.platform != "linux":
        pytest.skip("needs /dev/full")
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        async with tapped(journal="/dev/full"):
            pass


# --- arguments ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"to": ""}, "bootstrap servers are needed"),
        ({"to": 5}, "bootstrap servers are a string"),
        ({"to": "kafka:ports"}, "the port must be a number"),
        ({"host": ""}, "host is ''"),
        ({"port": None}, "port is None"),
        ({"port": 65536}, "port is 65536"),
        ({"advertised_host": 5}, "advertised_host is 5"),
        ({"tls": True}, "tls is True: an ssl.SSLContext"),
        ({"journal": 5}, "journal is 5: the path"),
        ({"on_event": "print"}, "on_event is 'print': a function"),
        ({"connect_timeout_ms": 0}, "connect_timeout_ms is 0"),
        ({"strict": "yes"}, "strict is 'yes'"),
    ],
)
def test_arguments_that_cannot_be(arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Tap(**{"to": "localhost:9092", **arguments})
