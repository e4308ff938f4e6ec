"""The client of one 0.7 broker, against the tests' own and against streams that lie."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import attrs
import pytest
from anyio.abc import ByteStream
from anyio.lowlevel import checkpoint
from support.apache_kafka import ApacheKafka
from support.lines import nowhere, spoken_for
from support.patience import SOON

from aiokafkawire import Client
from aiokafkawire.errors import (
    ConfigError,
    ConnectionLost,
    CorruptBatch,
    NoBrokerReachable,
    OffsetOutOfRange,
    RecordTooLarge,
    RequestTimeout,
    UnknownBrokerError,
    UnknownServerError,
    UnknownTopicOrPartition,
    UnsupportedVersion,
    UsageError,
    WireError,
)
from aiokafkawire.legacy.client import LegacyClient
from aiokafkawire.legacy.errors import MisalignedOffset
from aiokafkawire.legacy.messages import LegacyMessageSet, encode_messages
from aiokafkawire.legacy.requests import EARLIEST, LATEST, Fetch, FetchAnswer, OffsetsAnswer, encode_answer
from aiokafkawire.legacy.settings import LegacyConfig, LegacyOptions
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.legacy.logs import LegacySettings
from aiokafkawire.testing.legacy.server import LegacyServer

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server() -> AsyncIterator[LegacyServer]:
    async with LegacyServer(num_partitions=4, max_message_size=4000) as server:
        yield server


@pytest.fixture
async def client(server: LegacyServer) -> AsyncIterator[LegacyClient]:
    async with LegacyClient("legacy", connector=server.connect) as client:
        yield client


def values(found: object) -> list[bytes]:
    assert isinstance(found, LegacyMessageSet)
    return [one.value for one in found.messages()]


# --- producing and reading ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression_type", ["none", "gzip", "snappy"])
async def test_what_is_produced_is_read(server: LegacyServer, compression_type: Any) -> None:
    async with LegacyClient("legacy", connector=server.connect, compression_type=compression_type) as client:
        await client.produce("t", [b"one", b"two"], partition=2)
        await client.produce("t", [b"three"], partition=2)
        found = await client.fetch("t", 2, 0)
        assert values(found) == [b"one", b"two", b"three"]
        assert found.next_offset == await client.latest("t", 2)
        assert await client.earliest("t", 2) == 0
        assert values(await client.fetch("t", 2, found.next_offset)) == []


async def test_a_partition_is_left_to_the_broker(server: LegacyServer, client: LegacyClient) -> None:
    server.logs.choose = lambda request, count: count - 1
    await client.produce("t", [b"anywhere"])
    assert values(await client.fetch("t", 3, 0)) == [b"anywhere"]


async def test_several_partitions_in_one_request(server: LegacyServer, client: LegacyClient) -> None:
    await client.multi_produce({("t", 0): [b"a"], ("t", 1): [b"b", b"c"], ("u", 0): [b"d"]})
    found = await client.multi_fetch({("t", 0): 0, ("t", 1): 11, ("u", 0): 5, ("t", 9): 0, ("v", 0): 77, ("t", 2): 0})
    assert values(found["t", 0]) == [b"a"]
    assert values(found["t", 1]) == [b"c"]
    with pytest.raises(MisalignedOffset):
        raise as_error(found["u", 0])
    with pytest.raises(UnknownTopicOrPartition, match="t-9 at legacy:9092, fetch from offset 0"):
        raise as_error(found["t", 9])
    assert values(found["v", 0]) == []
    assert len(server.requests) == 2
    assert await client.multi_fetch({}) == {}
    await client.multi_produce({})
    assert len(server.requests) == 2


def as_error(found: object) -> Exception:
    assert isinstance(found, Exception)
    return found


async def test_requests_of_several_tasks_travel_on_one_connection(server: LegacyServer, client: LegacyClient) -> None:
    await client.multi_produce({("t", number): [b"%d" % number] for number in range(4)})
    server.held = lambda request: isinstance(request, Fetch)
    found: dict[int, list[bytes]] = {}

    async def read(number: int) -> None:
        found[number] = values(await client.fetch("t", number, 0))

    async with anyio.create_task_group() as tasks:
        for number in range(4):
            tasks.start_soon(read, number)
        while len(server.requests) < 2:
            await checkpoint()
        server.release()
    assert found == {number: [b"%d" % number] for number in range(4)}
    assert server.connections == 1


async def test_a_server_that_holds_two_connections_releases_both(server: LegacyServer, client: LegacyClient) -> None:
    await client.produce("t", [b"x"], partition=0)
    server.held = lambda request: isinstance(request, Fetch)
    other = LegacyClient("legacy", connector=server.connect)
    found: list[list[bytes]] = []

    async def read(reader: LegacyClient) -> None:
        found.append(values(await reader.fetch("t", 0, 0)))

    async with other, anyio.create_task_group() as tasks:
        for reader in (client, other):
            tasks.start_soon(read, reader)
        while len(server.requests) < 3:
            await checkpoint()
        server.release()
    assert found == [[b"x"], [b"x"]]


async def test_a_caller_that_is_cancelled_leaves_its_place_in_line(server: LegacyServer, client: LegacyClient) -> None:
    await client.produce("t", [b"x"], partition=0)
    server.held = lambda request: isinstance(request, Fetch)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.fetch, "t", 0, 0)
        while len(server.requests) < 2:
            await checkpoint()
        tasks.cancel_scope.cancel()
    server.release()
    assert await client.latest("t", 0) == 11
    assert server.connections == 1


# --- refusals --------------------------------------------------------------------------------------------------------


async def test_a_refusal_is_a_hang_up_that_the_next_call_tells_once(server: LegacyServer, client: LegacyClient) -> None:
    await client.produce("t", [b"fine"], partition=0)
    await client.produce("t", [b"nowhere"], partition=4)
    with pytest.raises(ConnectionLost, match="legacy:9092 hung up after one of 2 produce requests"):
        await client.confirm()
    await client.confirm()  # nothing is open any more
    await client.produce("t", [b"fine again"], partition=0)
    assert values(await client.fetch("t", 0, 0)) == [b"fine", b"fine again"]


async def test_a_refusal_before_the_next_call_says_what_it_may_be(server: LegacyServer, client: LegacyClient) -> None:
    await client.produce("t", [b"nowhere"], partition=4)
    while client._connection._connection is not None and client._connection._connection.failure is None:
        await checkpoint()
    with pytest.raises(ConnectionLost, match="hung up after a produce request: it was refused, or the broker ended"):
        await client.produce("t", [b"one"], partition=0)
    assert server.logs.content("t", 0) == []


async def test_what_is_confirmed_is_not_in_doubt_any_more(server: LegacyServer, client: LegacyClient) -> None:
    await client.produce("t", [b"one"], partition=0)
    await client.confirm()
    await server.hang_up()
    await client.produce("t", [b"two"], partition=0)
    await client.confirm()
    assert server.logs.content("t", 0) == [b"one", b"two"]


async def test_too_large_is_silence(server: LegacyServer, client: LegacyClient) -> None:
    await client.produce("t", [b"small", b"x" * 4001], partition=0)
    await client.confirm()
    assert server.logs.content("t", 0) == []


async def test_what_is_produced_is_invisible_until_it_is_flushed() -> None:
    async with (
        LegacyServer(log_flush_interval=3) as server,
        LegacyClient("legacy", connector=server.connect) as client,
    ):
        await client.produce("t", [b"a", b"b"], partition=0)
        await client.confirm()
        assert values(await client.fetch("t", 0, 0)) == []
        assert await client.latest("t", 0) == 0
        with pytest.raises(OffsetOutOfRange):
            await client.fetch("t", 0, 11)
        await client.produce("t", [b"c"], partition=0)
        await client.confirm()
        assert values(await client.fetch("t", 0, 0)) == [b"a", b"b", b"c"]
        assert await client.latest("t", 0) == 33


async def test_an_idle_connection_that_went_is_replaced(server: LegacyServer, client: LegacyClient) -> None:
    assert await client.latest("t", 0) == 0
    await server.hang_up()
    connection = client._connection._connection
    while connection is not None and connection.failure is None:
        await checkpoint()
    assert await client.latest("t", 0) == 0
    assert server.connections == 2


async def test_offsets_of_a_partition_that_is_not_there_is_a_hang_up(client: LegacyClient) -> None:
    with pytest.raises(ConnectionLost, match="instead of answering offsets of t-4"):
        await client.latest("t", 4)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda client: client.produce("a/b", [b"x"]), "not a topic's name"),
        (lambda client: client.produce("t", b"x"), "given as several values"),
        (lambda client: client.produce("t", [b"x"], partition=-2), "the partition is a whole number from -1"),
        (lambda client: client.fetch("t", -1, 0), "the partition is a whole number from 0"),
        (lambda client: client.fetch("t", 0, -1), "the offset is a whole number from 0"),
        (lambda client: client.fetch("t", 0, 0, fetch_size=0), "fetch_size is a whole number from 1"),
        (lambda client: client.offsets("t", 0, -3), "the time is a whole number from -2"),
        (lambda client: client.offsets("t", 0, -1, -1), "max_offsets is a whole number from 0"),
    ],
)
async def test_what_a_broker_would_hang_up_on_is_not_sent(
    server: LegacyServer, client: LegacyClient, call: Callable[[LegacyClient], Any], told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        await call(client)
    assert server.connections == 0


async def test_a_client_is_used_inside_its_context(server: LegacyServer) -> None:
    client = LegacyClient("legacy", connector=server.connect)
    with pytest.raises(UsageError, match="not open"):
        await client.latest("t", 0)


def test_options_and_settings_are_alike() -> None:
    assert list(LegacyOptions.__annotations__) == [one.name for one in attrs.fields(LegacyConfig)]


def test_settings_are_checked() -> None:
    with pytest.raises(ConfigError, match="fetch_size must be a whole number from 1"):
        LegacyClient("legacy", fetch_size=0)
    with pytest.raises(ConfigError, match="compression_type must be one of none, gzip, snappy, got 'lz4'"):
        LegacyClient("legacy", compression_type="lz4")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="the port must be a number from 1 to 65535, got 65536"):
        LegacyClient("legacy", 65536)
    with pytest.raises(ConfigError, match=r"fetch_size_max \(10\) is less than fetch_size"):
        LegacyClient("legacy", fetch_size_max=10)


# --- reading ---------------------------------------------------------------------------------------------------------


async def test_an_offset_that_the_log_does_not_have(server: LegacyServer, client: LegacyClient) -> None:
    await client.produce("t", [b"one"], partition=0)
    with pytest.raises(OffsetOutOfRange, match="t-0 at legacy:9092, fetch from offset 99"):
        await client.fetch("t", 0, 99)
    with pytest.raises(UnknownTopicOrPartition):
        await client.fetch("t", 4, 0)


async def test_an_offset_inside_a_message_is_told(server: LegacyServer, client: LegacyClient) -> None:
    await client.produce("t", [b"first", b"second!"], partition=0)
    for offset in range(1, 15):
        with pytest.raises(MisalignedOffset, match=f"no message begins at offset {offset} "):
            list((await client.fetch("t", 0, offset)).messages())


async def test_a_fetch_grows_for_a_message_that_does_not_fit(server: LegacyServer, client: LegacyClient) -> None:
    await client.produce("t", [b"x" * 3000, b"after"], partition=0)
    assert values(await client.fetch("t", 0, 0, fetch_size=1)) == [b"x" * 3000]
    sizes = [one.max_bytes for one in server.requests if isinstance(one, Fetch)]
    assert sizes == [1, 64, 3010]


async def test_a_fetch_grows_to_a_bound(server: LegacyServer) -> None:
    async with LegacyClient("legacy", connector=server.connect, fetch_size=100, fetch_size_max=3009) as client:
        await client.produce("t", [b"x" * 3000], partition=0)
        with pytest.raises(RecordTooLarge, match=r"offset 0 has 3010 bytes, more than fetch_size_max \(3009\)"):
            await client.fetch("t", 0, 0)


async def test_times_give_segments(server: LegacyServer, client: LegacyClient) -> None:
    server.logs.settings = LegacySettings(num_partitions=4, log_file_size=10)
    for number in range(3):
        await client.produce("t", [b"%d" % number * 20], partition=0)
    assert await client.offsets("t", 0, LATEST, 9) == (90, 60, 30, 0)
    assert await client.offsets("t", 0, EARLIEST, 9) == (0,)
    assert await client.offsets("t", 0, 0, 9) == ()


async def test_a_reader_goes_over_segments_and_waits_at_the_end() -> None:
    async with LegacyServer(log_file_size=30) as server:
        options: dict[str, Any] = {"backoff_ms": 1, "backoff_max_ms": 2}
        async with LegacyClient("legacy", connector=server.connect, **options) as client:
            sent = [b"%02d" % number for number in range(40)]
            for value in sent[:30]:
                await client.produce("t", [value], partition=0)
            reader = client.read("t", 0, 0)
            found = [(await anext(reader)) for _ in range(30)]
            assert [one.value for one in found] == sent[:30]
            assert not await reader.fill()

            async def produce_later() -> None:
                asked = len(server.requests)
                while len(server.requests) < asked + 3:  # the reader asks again and again
                    await checkpoint()
                for value in sent[30:]:
                    await client.produce("t", [value], partition=0)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(produce_later)
                with anyio.fail_after(SOON):
                    found += [(await anext(reader)) for _ in range(10)]
            assert [one.value for one in found] == sent
            assert reader.position == await client.latest("t", 0)


async def test_a_reader_begins_at_a_wrapper_again(server: LegacyServer) -> None:
    async with LegacyClient("legacy", connector=server.connect, compression_type="gzip") as client:
        await client.produce("t", [b"a", b"b"], partition=0)
        await client.produce("t", [b"c", b"d"], partition=0)
        reader = client.read("t", 0, 0)
        for _ in range(3):
            await anext(reader)
        again = client.read("t", 0, reader.position)
        assert [(await anext(again)).value for _ in range(2)] == [b"c", b"d"]


async def test_a_reader_may_be_entered_again_after_an_error(server: LegacyServer, client: LegacyClient) -> None:
    await client.produce("t", [b"a", b"b", b"c"], partition=0)
    await client.confirm()
    log = server.logs.logs["t", 0].segments[0].data
    reader = client.read("t", 0, 0)
    assert (await anext(reader)).value == b"a"
    reader.seek(0)
    log[-1] ^= 1
    assert [(await anext(reader)).value for _ in range(2)] == [b"a", b"b"]
    for _ in range(2):
        with pytest.raises(CorruptBatch):
            await anext(reader)
        assert reader.position == 22
    log[-1] ^= 1
    assert (await anext(reader)).value == b"c"


# --- brokers that are none ------------------------------------------------------------------------------------------


async def test_a_modern_broker_asked_as_one_of_07_is_told() -> None:
    async with Broker(port=None) as broker:
        host, port = next(iter(broker.addresses))
        async with LegacyClient(host, port, connector=broker.connect) as client:
            for _ in range(2):
                with pytest.raises(UnsupportedVersion, match=r"is a broker of Kafka 0\.10 or later"):
                    await client.latest("t", 0)
            await client.produce("t", [b"x"])
            with pytest.raises(UnsupportedVersion, match=r"use aiokafkawire\.Client"):
                await client.confirm()


@pytest.mark.slow
@pytest.mark.parametrize("release", ["0.8.0", "0.8.1", "0.8.2", "0.9.0"])
async def test_a_broker_of_the_releases_between_is_told_as_what_it_is(release: str) -> None:
    async with Broker(port=None, max_versions=release) as broker:
        host, port = next(iter(broker.addresses))
        async with LegacyClient(host, port, connector=broker.connect, request_timeout_ms=200) as client:
            with pytest.raises(
                UnsupportedVersion, match=f"is a broker of Kafka {release}, and was asked as one of 0.7"
            ):
                await client.latest("t", 0)


async def test_apache_kafka_of_today_asked_as_one_of_07_is_told(apache_kafka: ApacheKafka) -> None:
    host, _, port = apache_kafka.bootstrap.rpartition(":")
    async with LegacyClient(host, int(port)) as client:
        for ask in (client.latest("t", 0), client.fetch("t", 0, 0), client.multi_fetch({("t", 0): 0})):
            with pytest.raises(UnsupportedVersion, match=r"is a broker of Kafka 0\.10 or later"):
                await ask
        with pytest.raises(UnsupportedVersion):  # by whichever comes after the hang-up
            await client.produce("t", [b"x"])
            await client.confirm()


async def test_a_07_broker_asked_as_a_modern_one_is_one_error(server: LegacyServer) -> None:
    """At once, and not at the end of bootstrap_timeout_ms: a broker of 0.7 stays one."""
    told = r"legacy:9092 sent a frame of 2 bytes.*older than Kafka 0\.8.*use aiokafkawire\.legacy"
    with anyio.fail_after(SOON), pytest.raises(WireError, match=told):
        async with Client("legacy:9092", connector=server.connect, bootstrap_timeout_ms=60_000):
            pass
    told = r"no broker reachable.*legacy:9092 sent a frame of 2 bytes.*use aiokafkawire\.legacy"
    with pytest.raises(NoBrokerReachable, match=told):
        async with Client("elsewhere:9092,legacy:9092", connector=server.connect, bootstrap_timeout_ms=200):
            pass


Answering = Callable[[ByteStream], Any]


async def fetch(client: LegacyClient) -> LegacyMessageSet:
    return await client.fetch("t", 0, 0)


async def ask_one_that(
    answers: Answering, ask: Callable[[LegacyClient], Awaitable[Any]] = fetch, **options: Any
) -> Any:
    """What becomes of a fetch, or another question, that this answers."""

    async def serve(stream: ByteStream) -> None:
        await stream.receive()
        await answers(stream)

    async with spoken_for(serve) as connect:
        try:
            with anyio.fail_after(SOON):
                async with LegacyClient("legacy", connector=connect, **options) as client:
                    return await ask(client)
        except Exception as error:
            return error


@pytest.mark.parametrize(
    ("data", "error", "told"),
    [
        (b"\0\0\0\0", WireError, "a frame of 0 bytes, where 2 to 307202 can be"),
        (b"\xff\xff\xff\xff", WireError, "a frame of -1 bytes"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", WireError, "is it a broker of Kafka 0.7"),
        (b"\0\0\0\2\xff\xff", UnknownServerError, "t-0 at legacy:9092"),
        (b"\0\0\0\2\0\x4d", UnknownBrokerError, "error code 77"),
        (b"\0\0\0\x08\0\0\0\0\0\0\0\0", WireError, "no message begins at offset 0"),
        (b"\0\0\0\x0d\0\0\0\0\0\x64\1\0", ConnectionLost, "hung up"),
    ],
)
async def test_answers_that_are_none(data: bytes, error: type[Exception], told: str) -> None:
    async def answers(stream: ByteStream) -> None:
        await stream.send(data)
        await stream.aclose()

    found = await ask_one_that(answers)
    assert isinstance(found, error), found
    assert told in str(found)


@pytest.mark.parametrize(
    "ask",
    [lambda client: client.latest("t", 0), lambda client: client.offsets("t", 0, 5, 9)],
    ids=["latest", "offsets"],
)
async def test_an_offset_that_no_log_has_is_no_answer(ask: Callable[[LegacyClient], Awaitable[Any]]) -> None:
    async def answers(stream: ByteStream) -> None:
        await stream.send(encode_answer(OffsetsAnswer(0, (-7,))))

    found = await ask_one_that(answers, ask)
    assert isinstance(found, WireError)
    assert "t-0 at legacy:9092: offset -7, which no log has" in str(found)


async def test_a_wrapper_of_very_many_messages_leaves_others_their_turns(server: LegacyServer) -> None:
    async with LegacyClient("legacy", connector=server.connect, compression_type="gzip") as client:
        server.logs.settings = LegacySettings(num_partitions=1)
        await client.produce("t", [b""] * 20_000, partition=0)
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                await checkpoint()
                turns += 1

        reader = client.read("t", 0, 0)
        assert (await anext(reader)).value == b""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(count)
            for _ in range(19_999):
                await anext(reader)
            tasks.cancel_scope.cancel()
        assert turns >= 10


async def test_a_broker_that_is_silent_is_given_up() -> None:
    async def answers(stream: ByteStream) -> None:
        await anyio.sleep_forever()

    found = await ask_one_that(answers, request_timeout_ms=20, socket_connection_setup_timeout_ms=20)
    assert isinstance(found, RequestTimeout)
    assert "no answer from legacy:9092 to fetch of t-0 within 0.02 s" in str(found)


async def test_a_stream_that_fails_in_its_own_way_is_a_connection_that_was_lost(server: LegacyServer) -> None:
    async def connect(host: str, port: int) -> ByteStream:
        stream = await server.connect(host, port)

        async def receive(max_bytes: int = 65536) -> bytes:
            await checkpoint()
            raise RuntimeError("a way of its own")

        stream.receive = receive  # type: ignore[method-assign]
        return stream

    async with LegacyClient("legacy", connector=connect) as client:
        with anyio.fail_after(SOON), pytest.raises(ConnectionLost, match="broke: a way of its own"):
            await client.latest("t", 0)


async def test_an_answer_that_nothing_asked_for_ends_the_connection() -> None:
    async def answers(stream: ByteStream) -> None:
        await stream.send(encode_answer(FetchAnswer(0, encode_messages([b"x"]))) * 2)
        await anyio.sleep_forever()

    assert values(await ask_one_that(answers)) == [b"x"]


async def test_nothing_listens() -> None:
    async with LegacyClient("nowhere", 1, connector=nowhere) as client:
        with pytest.raises(ConnectionLost, match="cannot connect to nowhere:1: refused"):
            await client.latest("t", 0)
