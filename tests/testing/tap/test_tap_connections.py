"""Connections through a tap: bytes as they are, pipelined requests, brokers that go away, clients that do not read."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream
from support.dialling import over_tcp
from support.patience import SOON
from support.raw_client import RawClient, batch_of, fetch_request, produce_request
from support.securing import USERS, alice, make_papers, there_and_back
from support.tapping import known_nodes, tapped, through
from support.tcp_servers import tcp_server

from aiokafkawire import Client
from aiokafkawire.errors import KafkaError
from aiokafkawire.protocol.api import ApiKey, RequestHeader
from aiokafkawire.protocol.compiler import encode
from aiokafkawire.protocol.messages.fetch import FetchRequest
from aiokafkawire.protocol.messages.metadata import ApiVersionsRequest, MetadataRequest
from aiokafkawire.protocol.messages.produce import ProduceRequest
from aiokafkawire.protocol.messages.sasl import SaslHandshakeRequest
from aiokafkawire.testing import Broker, RequestOutcome, Tap, TapNotice, TappedRequest, TappedResponse
from aiokafkawire.testing.tap.tap_events import TapEvent

pytestmark = [pytest.mark.anyio, pytest.mark.every_loop]

GONE = (anyio.EndOfStream, anyio.BrokenResourceError)


@asynccontextmanager
async def tapping(
    serve: Callable[[SocketStream], Awaitable[None]], **options: Any
) -> AsyncIterator[tuple[Tap, SocketStream]]:
    """A tap of a server that a test makes, and a connection to it."""
    async with tcp_server(serve) as address, Tap(address, **options) as tap:
        host, _, port = tap.bootstrap.rpartition(":")
        async with await anyio.connect_tcp(host, int(port)) as stream:
            yield tap, stream


async def received(stream: SocketStream, size: int) -> bytes:
    found = b""
    with anyio.fail_after(SOON):
        while len(found) < size:
            found += await stream.receive()
    return found


def frame(api_key: int, version: int, correlation_id: int, body: bytes = b"") -> bytes:
    header = RequestHeader(
        request_api_key=api_key, request_api_version=version, correlation_id=correlation_id, client_id="raw"
    )
    data = encode(header, 1) + body
    return len(data).to_bytes(4) + data


# --- bytes as they are -------------------------------------------------------------------------------------------


async def test_frames_of_unknown_apis_and_versions_pass_byte_by_byte_with_a_note() -> None:
    asked = frame(999, 3, 7, b"any\0bytes") + frame(3, 99, 8, b"more")
    answers = b"\0\0\0\7\0\0\0\7abc" + b"\0\0\0\6\0\0\0\x08de"
    arrived = b""

    async def serve(stream: SocketStream) -> None:
        nonlocal arrived
        arrived = await received(stream, len(asked))
        await stream.send(answers)
        await stream.receive()

    events: list[TapEvent] = []
    async with tapping(serve, on_event=events.append) as (tap, stream):
        await stream.send(asked)
        assert await received(stream, len(answers)) == answers
        assert arrived == asked
        assert len(tap.requests) == 0  # fault rules and the log are for what is decoded
    notes = [(event.api, event.note) for event in events if isinstance(event, TappedRequest)]
    assert notes == [
        ("API 999", "unknown API key 999, passed on unread"),
        ("Metadata", "unknown version, passed on unread; known versions: 0-13"),
    ]
    ends = [(event.request.correlation_id, event.size) for event in events if isinstance(event, TappedResponse)]
    assert ends == [(7, 7), (8, 6)]


@pytest.mark.parametrize("hello", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03", b"\xff" * 9])
async def test_bytes_that_are_no_frames_pass_as_they_are(hello: bytes) -> None:
    async def serve(stream: SocketStream) -> None:
        assert await received(stream, len(hello)) == hello
        await stream.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        assert await received(stream, 4) == b"more"
        await stream.send(b"thanks")

    events: list[TapEvent] = []
    async with tapping(serve, on_event=events.append) as (_, stream):
        await stream.send(hello)
        assert await received(stream, 28) == b"HTTP/1.1 400 Bad Request\r\n\r\n"
        await stream.send(b"more")
        assert await received(stream, 6) == b"thanks"
        with pytest.raises(GONE):
            await stream.receive()  # the server has closed the connection
    texts = [event.text for event in events if isinstance(event, TapNotice)]
    assert len([text for text in texts if "all bytes are passed on unread" in text]) == 1


async def test_responses_that_nobody_asked_for_pass_with_a_notice() -> None:
    async def serve(stream: SocketStream) -> None:
        await stream.receive()
        await stream.send(b"\0\0\0\5\0\0\0\x09x")
        await stream.receive()

    events: list[TapEvent] = []
    async with tapping(serve, on_event=events.append) as (_, stream):
        await stream.send(frame(999, 0, 7))
        assert await received(stream, 9) == b"\0\0\0\5\0\0\0\x09x"
    assert "answer no request" in "".join(event.text for event in events if isinstance(event, TapNotice))


async def test_produce_without_acks_gets_no_response_and_the_next_request_gets_its_own() -> None:
    async with tapped() as (broker, tap), await through(tap) as client:
        broker.create_topic("t")
        await client.send(produce_request("t", batch_of(b"x"), acks=0), 12)
        assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0
        assert [asked.outcome for asked in tap.requests] == [RequestOutcome.UNANSWERED, RequestOutcome.ANSWERED]
        assert broker.log("t").log_end_offset == 1


async def test_what_is_sent_before_the_client_hangs_up_reaches_the_broker() -> None:
    async with tapped() as (broker, tap):
        broker.create_topic("t")
        async with await through(tap) as client:
            for _ in range(50):
                await client.send(produce_request("t", batch_of(b"x" * 5_000), acks=0), 12)
        with anyio.fail_after(SOON):
            await broker.requests.wait_for(ApiKey.PRODUCE, 50)


async def test_many_requests_are_in_flight_at_once_and_answered_in_order() -> None:
    async with tapped() as (broker, tap), await through(tap) as client:
        broker.create_topic("t")
        async with broker.hold(ApiKey.PRODUCE, times=1) as held:
            sent = [await client.send(produce_request("t", batch_of(b"%d" % number)), 12) for number in range(20)]
            await held.arrived()
            with anyio.fail_after(SOON):
                await tap.requests.wait_for(ApiKey.PRODUCE, 20)  # it reads on while the broker takes its time
        for number in sent:
            await client.answer(ProduceRequest, 12, number)
        assert broker.log("t").log_end_offset == 20


# --- ends --------------------------------------------------------------------------------------------------------


async def test_a_broker_that_goes_away_takes_its_connections_along_and_comes_back() -> None:
    async with tapped(2) as (broker, tap):
        broker.create_topic("t", partitions=2)
        await known_nodes(tap)
        async with await through(tap, 2) as client:
            assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0
            await broker.stop_node(2)
            assert await client.is_cut_off()
        async with await through(tap, 2) as client:  # the tap accepts, finds nobody, and hangs up
            assert await client.is_cut_off()
        await broker.start_node(2)
        async with await through(tap, 2) as client:
            assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0


async def test_a_client_gets_over_a_broker_that_goes_away() -> None:
    async with tapped(3) as (broker, tap), Client(tap.bootstrap) as kafka:
        broker.create_topic("t")
        async with kafka.producer() as producer:
            await producer.send("t", b"1")
            leader = broker.leader("t")
            await broker.stop_node(leader)
            with anyio.fail_after(SOON):
                assert (await producer.send("t", b"2")).offset == 1
        assert broker.leader("t") != leader


async def test_requests_that_a_lost_broker_had_are_told_as_failed() -> None:
    async def serve(stream: SocketStream) -> None:
        await received(stream, 4)

    events: list[TapEvent] = []
    async with tapping(serve, on_event=events.append) as (_, stream):
        await stream.send(frame(3, 1, 7, encode(MetadataRequest(topics=[]), 1)))
        with pytest.raises(GONE):
            await stream.receive()
    (end,) = [event for event in events if isinstance(event, TappedResponse)]
    assert (end.outcome, end.size, end.request.correlation_id) == (RequestOutcome.FAILED, 0, 7)


async def test_a_response_before_the_broker_hangs_up_still_arrives() -> None:
    large = b"\0\0\0\7" + b"x" * 3_000_000

    async def serve(stream: SocketStream) -> None:
        await stream.receive()
        await stream.send(len(large).to_bytes(4) + large)
        await stream.send_eof()
        await stream.receive()

    async with tapping(serve) as (_, stream):
        await stream.send(frame(999, 0, 7))
        assert await received(stream, len(large) + 4) == len(large).to_bytes(4) + large


async def test_leaving_the_tap_closes_all_connections_at_once() -> None:
    async with Broker() as broker:
        tap = Tap(broker.bootstrap)
        async with tap:
            client = await through(tap)
            order = tap.on(ApiKey.API_VERSIONS, delay=60)
            held = tap.hold(ApiKey.METADATA)
            async with held:
                waiting = await through(tap)
                await waiting.send(MetadataRequest(topics=[]), 12)
                await held.arrived()
                await client.send(ApiVersionsRequest(), 0)
                await tap.requests.wait_for(ApiKey.API_VERSIONS)
                with anyio.fail_after(SOON):
                    await tap.__aexit__(None, None, None)
            assert await client.is_cut_off()
            assert await waiting.is_cut_off()
        assert order.count == 0
        for each in (client, waiting):
            await each.stream.aclose()


# --- clients and brokers that do not read -----------------------------------------------------------------------


@pytest.mark.slow
async def test_a_client_that_stops_reading_stops_the_broker() -> None:
    chunk, sent, is_full = b"\0\0\xff\xfc" + b"\0" * 0xFFFC, 0, anyio.Event()

    async def serve(stream: SocketStream) -> None:
        nonlocal sent
        with suppress(*GONE):
            while True:
                with anyio.move_on_after(1) as scope:
                    await stream.send(chunk)
                if scope.cancelled_caught:
                    break
                sent += len(chunk)
                if sent > 256 * 1024 * 1024:
                    break
        is_full.set()
        await anyio.sleep_forever()

    async with tapping(serve) as (_, stream):
        await stream.send(frame(999, 0, 7))
        with anyio.fail_after(SOON):
            await is_full.wait()
    assert 0 < sent < 64 * 1024 * 1024  # what the system's buffers take


@pytest.mark.slow
async def test_a_broker_that_stops_reading_stops_the_client() -> None:
    sent, request = 0, frame(999, 0, 7, b"x" * 65_000)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it never accepts, so only the system reads
        async with Tap(f"127.0.0.1:{silent.getsockname()[1]}") as tap, await through(tap) as client:
            while sent < 256 * 1024 * 1024:
                with anyio.move_on_after(1) as scope:
                    await client.stream.send(request)
                if scope.cancelled_caught:
                    break
                sent += len(request)
    assert 0 < sent < 64 * 1024 * 1024


# --- SASL and TLS ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_logins_pass_through(mechanism: str) -> None:
    async with tapped(2, broker={"users": USERS}) as (_, tap):
        await there_and_back(tap.bootstrap, **alice(mechanism))
        assert tap.requests.of(ApiKey.SASL_AUTHENTICATE)
        with pytest.raises(KafkaError, match=r"(?i)authentication"):
            async with Client(tap.bootstrap, **{**alice(mechanism), "sasl_password": "wrong"}):
                pass


async def test_tokens_after_sasl_handshake_0_pass_unread() -> None:
    events: list[TapEvent] = []
    async with tapped(broker={"users": USERS}, on_event=events.append) as (_, tap), await through(tap) as client:
        assert (await client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0)).error_code == 0
        await client.send_frame(b"\0alice\0" + USERS["alice"].encode())
        assert await client.frame() == b""
        assert (await client.ask(MetadataRequest(topics=[]), 12)).brokers
    apis = [event.api for event in events if isinstance(event, TappedRequest)]
    assert apis == ["SaslHandshake", "SASL token", "Metadata"]
    assert USERS["alice"] not in repr(events)


async def test_brokers_may_speak_tls(tmp_path: Path) -> None:
    papers = make_papers(tmp_path)
    async with Broker(2, tls=papers.server()) as broker:
        context = ssl.create_default_context(cafile=papers.ca)
        async with Tap(broker.bootstrap.partition(",")[0], tls=context) as tap:
            await there_and_back(tap.bootstrap)
            assert set(tap.nodes) == {1, 2}


async def test_a_certificate_that_is_not_trusted_is_told(tmp_path: Path) -> None:
    events: list[TapEvent] = []
    async with (
        Broker(tls=make_papers(tmp_path).server()) as broker,
        Tap(broker.bootstrap, tls=ssl.create_default_context(), on_event=events.append) as tap,
        RawClient(await over_tcp(tap.bootstrap)) as client,
    ):
        assert await client.is_cut_off()
    assert "certificate" in "".join(event.text for event in events if isinstance(event, TapNotice)).lower()


async def test_tls_from_end_to_end_passes_unread(tmp_path: Path) -> None:
    papers = make_papers(tmp_path)
    async with Broker(tls=papers.server()) as broker, Tap(broker.bootstrap) as tap:
        await there_and_back(tap.bootstrap, **papers.client())
        assert len(tap.requests) == 0


async def test_long_fetches_do_not_hold_up_other_connections() -> None:
    async with tapped() as (broker, tap), await through(tap) as waiting, await through(tap) as other:
        broker.create_topic("t")
        sent = await waiting.send(fetch_request("t", 0, max_wait_ms=60_000), 12)
        await broker.requests.wait_for(ApiKey.FETCH)
        assert (await other.produce("t", batch_of(b"x"))).error_code == 0
        answer: Any = await waiting.answer(FetchRequest, 12, sent)
        assert answer.responses[0].partitions[0].records
