"""Clients of ill will: the broker stays up, answers the others, and takes a bounded amount of memory."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager
from random import Random

import anyio.lowlevel
import pytest
from anyio.abc import ByteReceiveStream
from support.dialling import Open, over_memory, over_tcp
from support.patience import SOON
from support.raw_client import RawClient, batch_of, fetch_request
from support.vectors import vectors

from aiokafkawire.protocol.api import ApiKey, RequestHeader, request_header_version
from aiokafkawire.protocol.compiler import encode
from aiokafkawire.protocol.messages.metadata import ApiVersionsRequest
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.cluster.api_error import Disconnect
from aiokafkawire.testing.cluster.releases import RELEASES
from aiokafkawire.testing.cluster.state import Settings
from aiokafkawire.testing.serving.apis import APIS as OF_EVERY_BROKER
from aiokafkawire.testing.serving.apis import TELEMETRY_APIS
from aiokafkawire.testing.serving.frames import Frames

APIS = {**OF_EVERY_BROKER, **TELEMETRY_APIS}

pytestmark = pytest.mark.anyio

MEGABYTE = 1 << 20

transports = pytest.mark.parametrize("transport", [over_memory, over_tcp])


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    """What its handlers cannot stand is raised at the end."""
    async with Broker(max_versions=list(RELEASES)[-1], client_telemetry=True) as broker:
        yield broker


async def is_up(broker: Broker) -> bool:
    async with RawClient(await over_tcp(broker)) as client:
        return (await client.ask(ApiVersionsRequest(), 0)).error_code == 0


class Pieces(ByteReceiveStream):
    """Bytes that come in pieces of a size."""

    def __init__(self, data: bytes, size: int) -> None:
        self._pieces = (data[at : at + size] for at in range(0, len(data), size))

    async def receive(self, max_bytes: int = 65536) -> bytes:
        piece = next(self._pieces, None)
        if piece is None:
            raise anyio.EndOfStream
        return piece

    async def aclose(self) -> None:
        pass


@contextmanager
def memory_at_most(limit: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


# --- frames ------------------------------------------------------------------------------------------------------


@transports
async def test_what_is_announced_takes_no_memory_before_it_comes(broker: Broker, transport: Open) -> None:
    async with RawClient(await transport(broker)) as hostile:
        with memory_at_most(MEGABYTE):
            await hostile.stream.send(struct.pack(">i", Settings().socket_request_max_bytes) + bytes(1000))
            await anyio.wait_all_tasks_blocked()
            assert await is_up(broker)


@pytest.mark.slow
async def test_a_frame_in_tiny_pieces_takes_little_more_than_its_size() -> None:
    data = struct.pack(">i", MEGABYTE) + bytes(MEGABYTE)
    with memory_at_most(4 * MEGABYTE):
        frame = await Frames(Pieces(data, 3), MEGABYTE).next()
    assert frame == bytes(MEGABYTE)


@pytest.mark.parametrize("size", [1, 3, 4096, 5000, 1 << 18])
async def test_frames_come_whole_out_of_any_pieces(size: int) -> None:
    chance = Random(size)
    sent = [chance.randbytes(length) for length in (0, 1, 10_000, 4096, 4095, 1, 70_000)]
    frames = Frames(Pieces(b"".join(struct.pack(">i", len(one)) + one for one in sent), size), MEGABYTE)
    assert [await frames.next() for _ in sent] == sent
    assert await frames.next() is None


async def test_the_largest_frame_is_a_setting() -> None:
    async with Broker(socket_request_max_bytes=100) as broker:
        for size, cut_off in ((100, False), (101, True)):
            async with RawClient(await over_memory(broker)) as client:
                await client.stream.send(struct.pack(">i", size))
                await anyio.wait_all_tasks_blocked()
                with anyio.move_on_after(0 if not cut_off else 10):
                    assert await client.is_cut_off() == cut_off
    with pytest.raises(Disconnect, match="invalid frame size 101; the maximum is 100 bytes"):
        await Frames(Pieces(struct.pack(">i", 101), 4), 100).next()


# --- garbage -----------------------------------------------------------------------------------------------------


@transports
async def test_noise(broker: Broker, transport: Open) -> None:
    for seed in range(40):
        chance = Random(seed)
        async with RawClient(await transport(broker)) as hostile:
            noise = chance.randbytes(chance.randrange(1, 300))
            if seed % 2:
                # A key and version that are served, so that decoders see it.
                noise = struct.pack(">hh", chance.choice(list(APIS)), chance.randrange(12)) + noise
                noise = struct.pack(">i", len(noise)) + noise
            await hostile.stream.send(noise)
            await hostile.stream.send_eof()
    assert await is_up(broker)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # no handler knows which
@pytest.mark.parametrize("key", sorted(APIS), ids=lambda key: key.name)
async def test_any_request_that_can_be_read_has_an_answer_or_an_end(broker: Broker, key: ApiKey) -> None:
    """What Kafka's own classes have written, with values that make no sense, and the same with bytes flipped."""
    request = APIS[key].request
    chance, as_written = Random(key), 0
    for vector in vectors("request"):
        version = vector["version"]
        if vector["name"] != request.__name__ or version not in APIS[key].served:
            continue
        body, as_written = bytearray.fromhex(vector["hex"]), as_written + 1
        for flips in range(3):
            for _ in range(flips if body else 0):
                body[chance.randrange(len(body))] = chance.randrange(256)
            header = RequestHeader(
                request_api_key=key, request_api_version=version, correlation_id=1, client_id="hostile"
            )
            hostile = await over_memory(broker)
            frame = encode(header, request_header_version(request, version)) + body
            await hostile.send(struct.pack(">i", len(frame)) + frame)
            await hostile.send_eof()
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            await hostile.aclose()
            assert broker.faults == [], f"v{version}: {bytes(body).hex()}"
    await broker.requests.wait_for(key, count=as_written)
    assert as_written
    assert await is_up(broker)


# --- many, and slow ----------------------------------------------------------------------------------------------


async def test_requests_are_not_taken_in_faster_than_answers_are_taken_out(broker: Broker) -> None:
    broker.create_topic("t")
    async with RawClient(await over_memory(broker)) as greedy:
        await greedy.produce("t", batch_of(bytes(1_000_000)))
        with anyio.move_on_after(60) as patience:
            async with anyio.create_task_group() as group:

                async def ask_for_ever() -> None:
                    while True:
                        await greedy.send(fetch_request("t", 0, partition_max_bytes=MEGABYTE), 12)

                group.start_soon(ask_for_ever)
                await anyio.wait_all_tasks_blocked()
                assert len(broker.requests.of(client_id="raw")) < 6  # what the stream holds, and one more
                assert await is_up(broker)
                group.cancel_scope.cancel()
        assert not patience.cancelled_caught


@transports
async def test_slow_readers_do_not_hold_up_others(broker: Broker, transport: Open) -> None:
    broker.create_topic("t")
    async with AsyncExitStack() as stack:
        for _ in range(20):
            slow = await stack.enter_async_context(RawClient(await transport(broker)))
            for _ in range(3):
                await slow.produce("t", batch_of(bytes(100_000)))
            for _ in range(3):
                await slow.send(fetch_request("t", 0, partition_max_bytes=MEGABYTE), 12)
        with anyio.fail_after(SOON):
            assert await is_up(broker)


@pytest.mark.slow
@pytest.mark.parametrize(("transport", "number"), [(over_memory, 1000), (over_tcp, 300)])
async def test_idle_connections_take_little_and_leave_nothing(broker: Broker, transport: Open, number: int) -> None:
    node = broker._cluster.nodes[0]
    with memory_at_most(number * 64 * 1024):
        async with AsyncExitStack() as stack:
            for _ in range(number):
                await stack.enter_async_context(RawClient(await transport(broker)))
            await anyio.wait_all_tasks_blocked()
            assert sum(node.connections.values()) == number
            assert await is_up(broker)
    with anyio.fail_after(SOON):
        while node.connections:
            await anyio.wait_all_tasks_blocked()


async def test_connections_beyond_the_limit_are_closed_at_once(caplog: pytest.LogCaptureFixture) -> None:
    async with Broker(max_connections_per_ip=2) as broker:
        async with RawClient(await over_memory(broker)) as one, RawClient(await over_tcp(broker)) as two:
            for client in (one, two):
                assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0
            async with RawClient(await over_memory(broker)) as three:
                assert await three.is_cut_off()
            assert (await one.ask(ApiVersionsRequest(), 0)).error_code == 0
        await anyio.wait_all_tasks_blocked()
        assert await is_up(broker)
    assert "3 connections from 127.0.0.1" in caplog.text
