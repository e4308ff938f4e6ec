"""Connections over real sockets, plain and inside TLS: on asyncio and uvloop over transports, on trio over a stream."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import ByteStream, SocketAttribute, SocketStream
from anyio.streams.tls import TLSStream
from support.connecting import ask, echo, eventually, named
from support.patience import SOON
from support.scripted_broker import ScriptedBroker
from support.securing import Papers, make_papers

from aiokafkawire.config import ClientConfig, make_config
from aiokafkawire.errors import ConnectionLost, KafkaError
from aiokafkawire.network import asyncio_transport
from aiokafkawire.network.asyncio_transport import AsyncioTransport
from aiokafkawire.network.connection import Connection
from aiokafkawire.network.connector import connect_tcp
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aiokafkawire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aiokafkawire.runtime import Owner, Runtime
from aiokafkawire.types import Address

pytestmark = [pytest.mark.anyio, pytest.mark.every_loop]

LARGE = 32 << 20
"""More than the sockets of both sides hold."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    return make_papers(tmp_path_factory.mktemp("papers"))


@pytest.fixture(params=["plain", "tls"])
def papers(request: pytest.FixtureRequest, made: Papers) -> Papers | None:
    """Those of both sides; None if they speak plainly."""
    return made if request.param == "tls" else None


class Front:
    """A TCP listener before a scripted broker. While ``reads`` is not set, nothing is read from its clients."""

    def __init__(self, broker: ScriptedBroker, papers: Papers | None) -> None:
        self.broker, self.reads = broker, anyio.Event()
        self.reads.set()
        self.port = 0
        self.context = papers.server("127.0.0.1", "inside") if papers is not None else None
        self.options = papers.client() if papers is not None else {}

    async def serve(self, stream: SocketStream) -> None:
        inner = await self.broker.connect("b", 9092)
        outer: ByteStream = stream
        try:
            async with stream, inner:
                if self.context is not None:
                    outer = await TLSStream.wrap(
                        stream, server_side=True, ssl_context=self.context, standard_compatible=False
                    )
                async with outer, anyio.create_task_group() as tasks:
                    tasks.start_soon(self._pump, outer, inner, tasks)
                    await self._pump(inner, outer, tasks)
        except* (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
            pass

    async def _pump(self, source: ByteStream, sink: ByteStream, tasks: anyio.abc.TaskGroup) -> None:
        try:
            while True:
                if isinstance(source, SocketStream | TLSStream):
                    await self.reads.wait()
                await sink.send(await source.receive())
        except anyio.EndOfStream:
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def fronted(broker: ScriptedBroker, papers: Papers | None) -> AsyncIterator[Front]:
    front = Front(broker, papers)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as server, anyio.create_task_group() as tasks:
        front.port = server.extra(SocketAttribute.local_port)
        tasks.start_soon(server.serve, front.serve)
        yield front
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def connected(front: Front, faults: list[Exception] | None = None, **options: Any) -> AsyncIterator[Connection]:
    heard: list[Exception] = [] if faults is None else faults
    owner = Owner(heard.append)
    await owner.open()
    config = make_config(ClientConfig, {**front.options, **options})
    try:
        yield await Connection.open(connect_tcp, "127.0.0.1", front.port, config=config, owner=owner, runtime=Runtime())
    finally:
        await owner.close()
    if faults is None:
        assert heard == []


def posted(size: int) -> ProduceRequest:
    data = [PartitionProduceData(index=0, records=bytes(size))]
    return ProduceRequest(acks=0, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=data)])


async def test_on_asyncio_no_task_stands_between(papers: Papers | None, anyio_backend_name: str) -> None:
    async with ScriptedBroker() as broker, fronted(broker, papers) as front, connected(front) as connection:
        assert isinstance(connection._transport, AsyncioTransport) == (anyio_backend_name == "asyncio")


@pytest.mark.slow
async def test_answers_of_all_sizes_come_whole(papers: Papers | None) -> None:
    counts = [0, 1, 3, 200, 5_000, 70_000, 1]
    requests = [
        MetadataRequest(topics=[MetadataRequestTopic(name=f"{number}-{one}") for one in range(count)])
        for number, count in enumerate(counts)
    ]
    heard: dict[int, int] = {}

    async def get(number: int) -> None:
        answer = await connection.request(requests[number])
        assert {str(topic.name).split("-")[0] for topic in answer.topics} <= {str(number)}
        heard[number] = len(answer.topics)

    async with ScriptedBroker() as broker, fronted(broker, papers) as front, connected(front) as connection:
        broker.on[ApiKey.METADATA] = lambda asked: echo(asked.request)
        async with anyio.create_task_group() as tasks:
            for number in range(len(requests)):
                tasks.start_soon(get, number)
        assert heard == dict(enumerate(counts))


@pytest.mark.slow
async def test_who_posts_waits_for_a_socket_that_is_full(papers: Papers | None) -> None:
    done: list[int] = []

    async def post(number: int) -> None:
        connection.submit(posted(LARGE), None)
        await connection.transmit()
        await connection.written()
        done.append(number)

    async with ScriptedBroker() as broker, fronted(broker, papers) as front, connected(front) as connection:
        front.reads = anyio.Event()
        async with anyio.create_task_group() as tasks:
            for number in range(2):
                tasks.start_soon(post, number)
            await anyio.wait_all_tasks_blocked()
            assert done == []
            front.reads.set()
        for number in range(2):
            asked = await broker.peers[0].next()
            assert len(asked.request.topic_data[0].partition_data[0].records) == LARGE
            assert asked.correlation_id == 1 + number


@pytest.mark.slow
async def test_a_socket_that_takes_nothing_loses_the_connection(papers: Papers | None) -> None:
    async with (
        ScriptedBroker() as broker,
        fronted(broker, papers) as front,
        connected(front, request_timeout_ms=500) as connection,
    ):
        front.reads = anyio.Event()
        connection.submit(posted(LARGE), None)
        connection.submit(posted(LARGE), None)
        await connection.transmit()
        with anyio.fail_after(SOON), pytest.raises(ConnectionLost, match=r"did not take \d+ bytes within 0\.5 s"):
            await connection.written()
        with pytest.raises(ConnectionLost, match="did not take"):
            await connection.request(named("later"))
        front.reads.set()


async def test_who_waits_hears_that_the_broker_hung_up(papers: Papers | None) -> None:
    heard: list[Any] = []
    async with ScriptedBroker() as broker, fronted(broker, papers) as front, connected(front) as connection:
        async with anyio.create_task_group() as tasks:
            await tasks.start(ask, connection, "a", heard)
            await broker.peers[0].next()
            await broker.peers[0].stream.aclose()
        told = f"127.0.0.1:{front.port} closed the connection (does this listener require SASL?"
        assert [str(error)[: len(told)] for error in heard] == [told]  # it has answered nothing but ApiVersions


async def test_closing_and_the_owners_end_hang_up(papers: Papers | None) -> None:
    async with ScriptedBroker() as broker, fronted(broker, papers) as front:
        async with connected(front) as connection:
            await connection.close()
            await broker.peers[0].hung_up()
        assert str(connection.failure) == f"the connection to 127.0.0.1:{front.port} was closed by this client"
        async with connected(front) as connection:
            pass
        await broker.peers[1].hung_up()
        assert isinstance(connection.failure, ConnectionLost)


async def test_what_was_held_back_is_not_written_to_a_connection_that_is_closed(papers: Papers | None) -> None:
    heard: list[Any] = []
    async with ScriptedBroker() as broker, fronted(broker, papers) as front, connected(front) as connection:
        await connection.hold()
        async with anyio.create_task_group() as tasks:
            await tasks.start(ask, connection, "a", heard)
            # As a login that is not renewed does; uvloop raises an error if a closed transport is written to.
            await connection.close(ConnectionLost("the login was refused"))
            connection.release()
        assert [str(error) for error in heard] == ["the login was refused"]


class Faulty:
    """A slot with a bug in it."""

    def __init__(self) -> None:
        self.error: KafkaError | None = None

    def resolve(self, frame: bytes, position: int) -> None:
        raise RuntimeError("a bug")

    def fail(self, error: KafkaError) -> None:
        self.error = error


async def test_a_fault_in_a_slot_ends_the_connection_and_is_told(papers: Papers | None) -> None:
    faults: list[Exception] = []
    behind = Faulty()
    async with ScriptedBroker() as broker, fronted(broker, papers) as front, connected(front, faults) as connection:
        for slot in (Faulty(), behind):
            connection.submit(named("a"), slot)
        await connection.transmit()
        asked = await broker.peers[0].next()
        await asked.answer(echo(asked.request))
        await eventually(lambda: connection.failure is not None)
        await broker.peers[0].hung_up()
        assert isinstance(connection.failure, ConnectionLost)
        assert behind.error is not None
    assert len(faults) == 1
    assert "a bug" in repr(faults[0])  # trio wraps it


def socket_under(connection: Connection) -> socket.socket:
    wire: Any = connection._transport
    over = isinstance(wire, AsyncioTransport)
    under: socket.socket = (
        wire._transport.get_extra_info("socket") if over else wire._stream.extra(SocketAttribute.raw_socket)
    )
    return under


async def test_the_buffers_of_the_system_have_the_sizes_in_the_settings(papers: Papers | None) -> None:
    options: dict[str, Any] = {"send_buffer_bytes": 30_000, "receive_buffer_bytes": 20_000}
    async with ScriptedBroker() as broker, fronted(broker, papers) as front, connected(front, **options) as connection:
        under = socket_under(connection)
        with socket.socket() as other:
            for option, size in ((socket.SO_SNDBUF, 30_000), (socket.SO_RCVBUF, 20_000)):
                other.setsockopt(socket.SOL_SOCKET, option, size)  # Linux doubles sizes
                assert under.getsockopt(socket.SOL_SOCKET, option) == other.getsockopt(socket.SOL_SOCKET, option)


@pytest.mark.parametrize("wanted", [True, False])
async def test_the_system_asks_whether_the_broker_is_there(papers: Papers | None, wanted: bool) -> None:
    options: dict[str, Any] = {"socket_keepalive_enable": wanted}
    async with ScriptedBroker() as broker, fronted(broker, papers) as front, connected(front, **options) as connection:
        under = socket_under(connection)
        assert bool(under.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)) == wanted


async def test_what_is_dialled_elsewhere_needs_no_stream_either(papers: Papers | None, anyio_backend_name: str) -> None:
    owner = Owner()
    await owner.open()
    async with ScriptedBroker() as broker, fronted(broker, papers) as front:
        config = make_config(ClientConfig, front.options)
        try:
            there = Address("127.0.0.1", front.port)
            connection = await Connection.open(
                connect_tcp, "inside", 9092, config=config, owner=owner, runtime=Runtime(), dialled=there
            )
            assert connection.broker == "inside:9092"
            assert isinstance(connection._transport, AsyncioTransport) == (anyio_backend_name == "asyncio")
        finally:
            await owner.close()


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": False})], ids=["asyncio"])
@pytest.mark.parametrize("is_cancelled", [False, True], ids=["connected", "under way"])
async def test_an_attempt_that_was_too_late_does_not_end_the_connection(
    papers: Papers | None, is_cancelled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two addresses of a host may accept at the same moment, if the event loop was busy meanwhile."""
    lost, begun = anyio.Event(), list[anyio.CancelScope]()
    really_made, really_lost = AsyncioTransport.connection_made, AsyncioTransport.connection_lost

    def made(self: AsyncioTransport, transport: Any) -> None:
        really_made(self, transport)
        for scope in begun:
            scope.cancel()

    def ended(self: AsyncioTransport, error: Exception | None) -> None:
        really_lost(self, error)
        lost.set()

    async def dial(addresses: Any, connect: Any, discard: Any, resolve: Any) -> Any:
        kept = await connect("127.0.0.1")
        if is_cancelled:
            with anyio.CancelScope() as scope:
                begun.append(scope)
                await connect("127.0.0.1")
            assert scope.cancelled_caught
            begun.clear()
        else:
            discard(await connect("127.0.0.1"))
        with anyio.fail_after(SOON):
            await lost.wait()
        return kept

    monkeypatch.setattr(AsyncioTransport, "connection_made", made)
    monkeypatch.setattr(AsyncioTransport, "connection_lost", ended)
    monkeypatch.setattr(asyncio_transport, "dial", dial)
    async with ScriptedBroker() as broker, fronted(broker, papers) as front, connected(front) as connection:
        broker.on[ApiKey.METADATA] = lambda asked: echo(asked.request)
        answer = await connection.request(named("a"))
        assert answer.topics[0].name == "a"
        assert connection.failure is None
