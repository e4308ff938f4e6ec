"""What a connection does with frames that no client of good will sends."""

from __future__ import annotations

import logging
import struct
from typing import TYPE_CHECKING

import anyio
import pytest
from support.patience import SOON
from support.raw_client import RawClient, batch_of, produce_request

from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.compiler import encode
from aiokafkawire.protocol.messages.metadata import ApiVersionsRequest, MetadataRequest
from aiokafkawire.testing.cluster.state import Settings

if TYPE_CHECKING:
    from .conftest import Kafka

pytestmark = pytest.mark.anyio


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def header(key: int, version: int) -> bytes:
    return struct.pack(">hhih", key, version, 7, -1)


HOSTILE = {
    "empty frame": framed(b""),
    "frame of a byte": framed(b"\0"),
    "negative size": struct.pack(">i", -1),
    "oversize": struct.pack(">i", 2**31 - 1),
    "another protocol": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "unknown API key": framed(header(999, 0)),
    "negative API key": framed(header(-1, 0)),
    "API that 4.x has no more": framed(header(ApiKey.LEADER_AND_ISR, 0)),
    "unknown version": framed(header(ApiKey.METADATA, 99) + b"\0"),
    "version of the past": framed(header(ApiKey.FETCH, 3)),
    "header alone": framed(header(ApiKey.METADATA, 1)),
    "header cut": framed(header(ApiKey.METADATA, 1)[:-3]),
    "body cut": framed(header(ApiKey.METADATA, 1) + b"\0\0\0"),
    "count that lies": framed(header(ApiKey.METADATA, 1) + b"\x7f\xff\xff\xff"),
    "string that lies": framed(header(ApiKey.METADATA, 1) + b"\0\0\0\1\x7f\xff"),
}


@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in HOSTILE.items()])
async def test_the_connection_is_cut_and_others_live_on(kafka: Kafka, client: RawClient, data: bytes) -> None:
    async with await kafka.client() as hostile:
        await hostile.stream.send(data)
        with anyio.fail_after(SOON):
            assert await hostile.is_cut_off()
    assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0


@pytest.mark.parametrize("data", [b"\0\0", struct.pack(">i", 100), struct.pack(">i", 100) + bytes(50)])
async def test_a_client_that_leaves_in_mid_frame(kafka: Kafka, client: RawClient, data: bytes) -> None:
    async with await kafka.client() as leaving:
        await leaving.stream.send(data)
        await leaving.stream.send_eof()
        with anyio.fail_after(SOON):
            assert await leaving.is_cut_off()
    assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0


async def test_a_client_that_leaves_in_mid_answer(kafka: Kafka, client: RawClient, name: str) -> None:
    await client.produce(name, batch_of(b"x" * 900_000))
    async with await kafka.client() as leaving:
        await leaving.send(MetadataRequest(topics=None), 1)
    assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0


async def test_frames_come_in_any_pieces(client: RawClient) -> None:
    request = framed(header(ApiKey.METADATA, 1) + encode(MetadataRequest(topics=[]), 1))
    for byte in request:
        await client.stream.send(bytes([byte]))
    assert (await client.frame())[:4] == struct.pack(">i", 7)
    await client.stream.send(request * 3 + request[:5])
    for _ in range(3):
        assert (await client.frame())[:4] == struct.pack(">i", 7)
    await client.stream.send(request[5:])
    assert (await client.frame())[:4] == struct.pack(">i", 7)


async def test_large_frames(client: RawClient, name: str) -> None:
    too_large = batch_of(bytes(5_000_000))
    assert (await client.produce(name, too_large)).error_code == 10
    assert (await client.produce(name, batch_of(b"x"))).base_offset == 0


async def test_requests_in_flight_keep_their_order(client: RawClient, name: str) -> None:
    request = produce_request(name, batch_of(b"x"))
    sent = [await client.send(request, 12) for _ in range(20)]
    for offset, correlation_id in enumerate(sent):
        answer = await client.answer(type(request), 12, correlation_id)
        assert answer.responses[0].partition_responses[0].base_offset == offset  # type: ignore[attr-defined]


@pytest.mark.parametrize("address", ["memory", "tcp"], indirect=False)
async def test_the_log_says_why(kafka: Kafka, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "aiokafkawire.testing")
    async with await kafka.client() as hostile:
        most = Settings().socket_request_max_bytes
        await hostile.stream.send(struct.pack(">i", most + 1))
        assert await hostile.is_cut_off()
    (line,) = caplog.messages
    assert f"invalid frame size {most + 1}" in line
