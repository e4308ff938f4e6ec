"""TLS over a loop's transport, against a peer in memory: what comes in odd ways, and what ends it."""

import asyncio
import ssl
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from support.patience import SOON
from support.securing import Papers, make_papers

from aiokafkawire.config import ClientConfig, make_config
from aiokafkawire.errors import BrokerNotTrusted, ClientCertificateRefused, ConnectionLost, KafkaError, SecurityMismatch
from aiokafkawire.network.connection_protocol import ConnectionProtocol
from aiokafkawire.network.tls_connector import Tls
from aiokafkawire.network.tls_transport import TlsTransport
from aiokafkawire.protocol.messages.metadata import MetadataRequest
from aiokafkawire.runtime import Offload, Runtime
from aiokafkawire.types import Address

AT = Address("127.0.0.1", 9092)
SIZE = 3_000_000


@pytest.fixture(params=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return "asyncio", {"use_uvloop": request.param == "uvloop"}


pytestmark = [pytest.mark.anyio, pytest.mark.every_loop]


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    return make_papers(tmp_path_factory.mktemp("papers"))


class Slot:
    def __init__(self) -> None:
        self.frame = b""
        self.error: KafkaError | None = None

    def resolve(self, frame: bytes, position: int) -> None:
        self.frame = frame

    def fail(self, error: KafkaError) -> None:
        self.error = error


class Peer(asyncio.Transport):
    """The wire's transport, and who is at its other end."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__()
        self.coming, self.going = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.session = context.wrap_bio(self.coming, self.going, server_side=True)
        self.pipeline = ConnectionProtocol(client_id="c", broker=str(AT), max_frame=2 * SIZE)
        self.wire = TlsTransport(self.pipeline, str(AT), 30.0, self._fault)
        self.rooms: list[int] = []
        self.refused: ssl.SSLError | None = None
        self.is_over = False
        self.wire.connection_made(self)

    def _fault(self, fault: Exception) -> None:
        raise fault

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high == 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.is_over
        self.coming.write(data)
        asyncio.get_running_loop().call_soon(self.hear)

    def is_closing(self) -> bool:
        return self.is_over

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        if not self.is_over:
            self.is_over = True
            self.wire.connection_lost(None)

    def deliver(self, data: bytes) -> None:
        """Write this to the wire, as a socket would."""
        while data and not self.is_over:
            with self.wire.get_buffer(-1) as room:
                count = min(len(room), len(data))
                self.rooms.append(len(room))
                room[:count] = data[:count]
            self.wire.buffer_updated(count)
            data = data[count:]

    def hear(self) -> None:
        """Go on with the handshake, if that is possible; and say what there is to say."""
        try:
            self.session.do_handshake()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self.refused = error
        self.deliver(self.going.read())

    async def dial(self, kind: type[TlsTransport]) -> TlsTransport:
        return self.wire

    async def shaken(self, papers: Papers) -> TlsTransport:
        """The wire after a handshake."""
        return await Tls(make_config(ClientConfig, papers.client()), Runtime().offload).over_transport(
            AT, nobody, self.dial
        )

    def ask(self) -> Slot:
        """Have the wire send a request."""
        slot = Slot()
        self.wire.enqueue((self.pipeline.send(MetadataRequest(topics=[]), 1, slot),))
        self.wire.transmit_soon()
        return slot

    def answer(self, number: int, size: int) -> None:
        self.session.write((size + 4).to_bytes(4, "big") + number.to_bytes(4, "big") + bytes(size))


async def nobody(host: str, port: int) -> Any:
    raise OSError("nobody is there")


async def test_frames_come_whole_however_they_are_cut(papers: Papers) -> None:
    peer = Peer(papers.server())
    await peer.shaken(papers)
    small, large = peer.ask(), peer.ask()
    peer.answer(0, 5)
    peer.answer(1, SIZE)
    data = peer.going.read()
    for first in (1, 2, 3, 20_000):
        peer.deliver(data[:first])
        data = data[first:]
    assert small.frame == bytes(9)
    assert large.frame == b""
    peer.deliver(data)
    assert large.frame == b"\0\0\0\1" + bytes(SIZE)
    assert peer.session.read(4) == (len(peer.pipeline.send(MetadataRequest(topics=[]), 1, None)) - 4).to_bytes(4, "big")


async def test_room_grows_with_what_comes_and_no_further(papers: Papers) -> None:
    peer = Peer(papers.server())
    await peer.shaken(papers)
    peer.ask()
    peer.answer(0, SIZE)
    peer.rooms.clear()
    peer.deliver(peer.going.read())
    assert sorted(set(peer.rooms)) == [16 * 1024, 64 * 1024, 256 * 1024]


async def test_a_goodbye_is_a_hangup(papers: Papers) -> None:
    peer = Peer(papers.server())
    await peer.shaken(papers)
    slot = peer.ask()
    peer.session.read(1000)
    with pytest.raises(ssl.SSLWantReadError):
        peer.session.unwrap()
    peer.deliver(peer.going.read())
    assert isinstance(slot.error, ConnectionLost)
    assert f"{AT} closed the connection" in str(slot.error)
    assert peer.is_over


async def test_an_end_in_the_midst_of_a_frame_is_a_hangup(papers: Papers) -> None:
    peer = Peer(papers.server())
    await peer.shaken(papers)
    slot = peer.ask()
    peer.answer(0, 100_000)
    peer.deliver(peer.going.read()[:70_000])
    assert slot.error is None
    peer.wire.eof_received()
    assert isinstance(slot.error, ConnectionLost)
    assert f"{AT} closed the connection" in str(slot.error)


async def test_a_record_that_was_changed_ends_the_connection(papers: Papers) -> None:
    peer = Peer(papers.server())
    await peer.shaken(papers)
    slot = peer.ask()
    peer.answer(0, 100)
    data = bytearray(peer.going.read())
    data[-1] ^= 1
    peer.deliver(bytes(data))
    assert isinstance(slot.error, ConnectionLost)
    assert f"the connection to {AT} broke: " in str(slot.error)
    assert isinstance(slot.error.__cause__, ssl.SSLError)
    assert peer.is_over
    with pytest.raises(ssl.SSLError, match="BAD_RECORD_MAC"):  # which it is told
        while True:
            peer.session.read(1000)


async def test_who_is_refused_after_the_handshake_hears_why(papers: Papers) -> None:
    peer = Peer(papers.server(asks=ssl.CERT_REQUIRED))
    await peer.shaken(papers)  # with TLS 1.3 it ends before our certificate was looked at
    with anyio.fail_after(SOON):
        while not peer.is_over:
            await anyio.lowlevel.checkpoint()
    with pytest.raises(ClientCertificateRefused, match="requires a certificate of this client, and got none"):
        peer.ask()


async def test_a_broker_that_is_not_trusted_is_told_why(papers: Papers, tmp_path: Path) -> None:
    peer = Peer(papers.server())
    with pytest.raises(BrokerNotTrusted):
        await peer.shaken(make_papers(tmp_path))
    assert peer.is_over
    with anyio.fail_after(SOON):
        while peer.refused is None:
            await anyio.lowlevel.checkpoint()
    assert "UNKNOWN_CA" in str(peer.refused)


async def test_a_reset_in_the_midst_of_the_handshake(papers: Papers) -> None:
    peer = Peer(papers.server())
    reset = ConnectionResetError("reset")

    def hear() -> None:
        peer.deliver(b"\x16")
        peer.wire.connection_lost(reset)

    peer.hear = hear  # type: ignore[method-assign]
    with pytest.raises(anyio.BrokenResourceError) as caught:
        await peer.shaken(papers)
    assert caught.value.__cause__ is reset


async def test_whoever_was_closed_before_the_handshake_says_so(papers: Papers) -> None:
    peer = Peer(papers.server())
    peer.abort()
    with pytest.raises(ConnectionLost, match="closed the connection on the TLS handshake"):
        await peer.shaken(papers)


async def test_whoever_spoke_plainly_before_hanging_up_is_known_by_it(papers: Papers) -> None:
    peer = Peer(papers.server())
    peer.deliver(b"SSH-2.0-OpenSSH_9.6\r\n")
    peer.wire.eof_received()
    with pytest.raises(SecurityMismatch, match=r"it sent b['\"]SSH-2\.0"):
        await peer.shaken(papers)


async def test_a_cancelled_handshake_closes_the_transport(papers: Papers) -> None:
    peer = Peer(papers.server())
    peer.hear = lambda: None  # type: ignore[method-assign]
    tls = Tls(make_config(ClientConfig, papers.client()), Runtime().offload)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tls.over_transport, AT, nobody, peer.dial)
        with anyio.fail_after(SOON):
            while not peer.coming.pending:
                await anyio.lowlevel.checkpoint()
        assert not peer.is_over
        tasks.cancel_scope.cancel()
    assert peer.is_over


class Wanting:
    """A session that takes nothing until it has read something, as when the other side wants new keys."""

    def __init__(self, session: Any) -> None:
        self.session, self.wants = session, True

    def write(self, data: bytes) -> int:
        if self.wants:
            raise ssl.SSLWantReadError
        return int(self.session.write(data[:1000]))

    def read(self, size: int, room: memoryview) -> int:
        self.wants = False
        return int(self.session.read(size, room))


async def test_what_cannot_be_said_yet_is_said_first_later(papers: Papers) -> None:
    peer = Peer(papers.server())
    await peer.shaken(papers)
    wire: Any = peer.wire
    wire._session = Wanting(wire._session)
    sent = [bytes([number]) * 3000 for number in range(2)]
    for frame in sent:
        wire.enqueue((frame,))
        wire.transmit_soon()
    with pytest.raises(ssl.SSLWantReadError):
        peer.session.read(1)
    peer.session.write(b"\0")
    peer.deliver(peer.going.read())
    got = b""
    while len(got) < 6000:
        got += peer.session.read(6000)
    assert got == b"".join(sent)


async def test_a_context_of_another_kind_is_used_on_a_thread(papers: Papers) -> None:
    class Other(ssl.SSLContext):
        pass

    calls: list[Any] = []

    async def offload(function: Any, *args: Any) -> Any:
        calls.append(function)
        return function(*args)

    for kind, times in ((Other, 1), (ssl.SSLContext, 0)):
        calls.clear()
        context = kind(ssl.PROTOCOL_TLS_CLIENT)
        config = make_config(ClientConfig, {"security_protocol": "SSL", "ssl_context": context})
        tls = Tls(config, cast("Offload", offload))
        begin = partial(tls._begin, await tls.context(), AT.host)
        assert isinstance(await begin(ssl.MemoryBIO(), ssl.MemoryBIO()), ssl.SSLObject)
        assert len(calls) == times
