"""TLS between client and broker: what gets through, and for what does not, who refused and why, at once."""

from __future__ import annotations

import datetime as dt
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio import ResourceGuard
from anyio.abc import ByteStream, SocketAttribute, SocketStream
from anyio.streams.stapled import StapledByteStream
from anyio.streams.tls import TLSStream
from cryptography import x509
from cryptography.x509.oid import NameOID
from support.patience import SOON
from support.securing import Papers, make_papers, refusal, server_named, there_and_back

from aiokafkawire import Client
from aiokafkawire.config import ClientConfig, make_config
from aiokafkawire.errors import (
    BrokerNotTrusted,
    ClientCertificateRefused,
    ConfigError,
    KafkaError,
    NoBrokerReachable,
    SecurityMismatch,
    TlsFailed,
)
from aiokafkawire.network.tls_connector import Tls, _Transport
from aiokafkawire.runtime import Runtime
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.serving.memory import memory_connection

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]

PAST = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


async def test_records_inside_tls(papers: Papers) -> None:
    async with Broker(tls=papers.server()) as broker:
        await there_and_back(broker.bootstrap, **papers.client())


async def test_a_client_that_is_asked_for_a_certificate_shows_it(papers: Papers) -> None:
    async with Broker(tls=papers.server(asks=ssl.CERT_REQUIRED)) as broker:
        await there_and_back(broker.bootstrap, **papers.client(shows=True))


def replace(names: tuple[str, ...], others: tuple[str, ...]) -> None:
    """Put other texts into files, as whoever renews certificates does."""
    for name, other in zip(names, others, strict=True):
        Path(name).write_bytes(Path(other).read_bytes())
        os.utime(name, (1, 1))  # another moment than before, on any clock


async def test_texts_do_as_files_do(papers: Papers) -> None:
    texts = [Path(path).read_text() for path in (papers.ca, papers.certificate, papers.key)]  # noqa: ASYNC240
    options = dict(zip(("ssl_ca_pem", "ssl_certificate_pem", "ssl_key_pem"), texts, strict=True))
    options["security_protocol"] = "ssl"
    async with Broker(tls=papers.server(asks=ssl.CERT_REQUIRED)) as broker:
        await there_and_back(broker.bootstrap, **options)


async def test_a_context_of_the_users_own(papers: Papers) -> None:
    context = ssl.create_default_context(cafile=papers.ca)
    async with Broker(tls=papers.server()) as broker:
        await there_and_back(broker.bootstrap, security_protocol="SSL", ssl_context=context)


async def test_much_goes_both_ways_at_once(papers: Papers) -> None:
    async with Broker(tls=papers.server()) as broker, Client(broker.bootstrap, **papers.client()) as client:
        broker.create_topic("t", partitions=3)
        values = [bytes([number]) * (number * 1000) for number in range(200)]
        with anyio.fail_after(SOON):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_produce, client, values)
                async with client.consumer("t", auto_offset_reset="earliest") as consumer:
                    seen = list[bytes]()
                    async for record in consumer:
                        seen.append(record.value or b"")
                        if len(seen) == len(values):
                            break
    assert sorted(seen) == sorted(values)


async def _produce(client: Client, values: list[bytes]) -> None:
    async with client.producer(linger_ms=1) as producer:
        for value in values:
            await producer.enqueue("t", value)


async def test_over_memory_too(papers: Papers) -> None:
    """TLS goes around whatever a connector opens, and sends take turns on any stream."""
    context = papers.server("memory-1")
    async with Broker(port=None) as broker, anyio.create_task_group() as tasks:

        async def connect(host: str, port: int) -> ByteStream:
            ours, theirs = memory_connection()
            tasks.start_soon(terminate, theirs, context, await broker.connect(host, port))
            return ours

        await there_and_back(broker.bootstrap, connector=connect, **papers.client())
        tasks.cancel_scope.cancel()


async def terminate(theirs: ByteStream, context: ssl.SSLContext, inner: ByteStream) -> None:
    """What a proxy does that takes TLS off."""
    async with (
        inner,
        await TLSStream.wrap(theirs, server_side=True, ssl_context=context, standard_compatible=False) as outer,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(pump, inner, outer)
        await pump(outer, inner)
        tasks.cancel_scope.cancel()


async def pump(source: ByteStream, target: ByteStream) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for data in source:
            await target.send(data)


async def test_an_authority_that_is_not_trusted(papers: Papers, tmp_path: Path) -> None:
    other = make_papers(tmp_path)
    async with Broker(tls=papers.server()) as broker:
        error = await refusal(broker.bootstrap, **other.client())
        assert type(error) is BrokerNotTrusted
        assert "refused by this client: an authority that is not trusted here signed it" in str(error)
        assert "ssl_ca_location" in str(error)
        assert broker.bootstrap in str(error)


async def test_the_systems_authorities_are_trusted_without_others(papers: Papers) -> None:
    async with Broker(tls=papers.server()) as broker:
        assert type(await refusal(broker.bootstrap, security_protocol="SSL")) is BrokerNotTrusted


async def test_a_certificate_for_other_hosts_is_told_with_their_names(papers: Papers) -> None:
    async with Broker(tls=papers.server("kafka-1.example.org", "*.example.net")) as broker:
        error = await refusal(broker.bootstrap, **papers.client())
        assert type(error) is BrokerNotTrusted
        assert "is not for the host '127.0.0.1'. It is for kafka-1.example.org, *.example.net." in str(error)


@pytest.mark.parametrize("around", [False, True])
async def test_a_name_that_is_not_ascii_is_in_the_certificate_as_resolvers_know_it(
    papers: Papers, around: bool
) -> None:
    """And not as Python's ``ssl`` would encode it, which is another host's name."""

    async def connect(host: str, port: int) -> ByteStream:
        return await anyio.connect_tcp(host, port)

    options: dict[str, Any] = {**papers.client(), **({"connector": connect} if around else {})}
    options["advertised_listeners_map"] = lambda host, port: ("127.0.0.1", port)
    here = x509.IPAddress(ip_address("127.0.0.1"))
    for name, is_trusted in (("xn--strae-oqa.test", True), ("strasse.test", False)):
        context = server_named(papers, [here, x509.DNSName(name)], "nobody")
        async with Broker(tls=context, advertised_host="straße.test") as broker:
            bootstrap = f"127.0.0.1:{broker.bootstrap.rpartition(':')[2]}"
            if is_trusted:
                await there_and_back(bootstrap, **options)
            else:
                async with Client(bootstrap, **options) as client:
                    with pytest.raises(BrokerNotTrusted, match=r"is not for the host 'straße\.test'"):
                        await client.admin.create_topics({"t": 1})


async def test_the_names_in_a_certificate_move_no_cursor(papers: Papers) -> None:
    names = (trouble := "evil\n\x1b[2J.example.org"), *(f"kafka-{number}.example.org" for number in range(500))
    context = server_named(papers, [*map(x509.DNSName, names), x509.DirectoryName(NOBODY)], "nobody")
    async with Broker(tls=context) as broker:
        error = await refusal(broker.bootstrap, **papers.client())
        assert type(error) is BrokerNotTrusted
        assert trouble not in str(error)
        assert str(error).isprintable()
        assert "It is for evil??[2J.example.org, kafka-0.example.org, " in str(error)
        assert len(str(error)) < 1000


NOBODY = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "nobody")])


async def test_whoever_does_not_care_for_names_says_so(papers: Papers, tmp_path: Path) -> None:
    options = {**papers.client(), "ssl_endpoint_identification_algorithm": "none"}
    async with Broker(tls=papers.server("kafka-1.example.org")) as broker:
        await there_and_back(broker.bootstrap, **options)
        # Who signed it still matters.
        options["ssl_ca_location"] = make_papers(tmp_path).ca
        assert type(await refusal(broker.bootstrap, **options)) is BrokerNotTrusted


async def test_an_expired_certificate_of_the_broker(papers: Papers) -> None:
    async with Broker(tls=papers.server(ends=PAST)) as broker:
        error = await refusal(broker.bootstrap, **papers.client())
        assert type(error) is BrokerNotTrusted
        assert "it, or one in its chain, has expired" in str(error)


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_broker_that_asks_for_a_certificate_and_gets_none(papers: Papers, newest: ssl.TLSVersion) -> None:
    context = papers.server(asks=ssl.CERT_REQUIRED)
    context.maximum_version = newest
    async with Broker(tls=context) as broker:
        error = await refusal(broker.bootstrap, **papers.client())
        assert isinstance(error, TlsFailed)
        assert f"{broker.bootstrap} refused the connection: " in str(error)
        assert "requires a certificate of this client and got none" in str(error).replace(", and", " and")


async def test_a_broker_that_does_not_trust_our_authority(papers: Papers, tmp_path: Path) -> None:
    other = make_papers(tmp_path)
    own = {"ssl_certificate_location": other.certificate, "ssl_key_location": other.key}
    async with Broker(tls=papers.server(asks=ssl.CERT_REQUIRED)) as broker:
        error = await refusal(broker.bootstrap, **papers.client(), **own)
        assert type(error) is ClientCertificateRefused
        assert "it does not trust the authority that signed this client's certificate" in str(error)


async def test_no_version_in_common(papers: Papers) -> None:
    context = papers.server()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    ours = ssl.create_default_context(cafile=papers.ca)
    ours.minimum_version = ssl.TLSVersion.TLSv1_3
    async with Broker(tls=context) as broker:
        error = await refusal(broker.bootstrap, security_protocol="SSL", ssl_context=ours)
        assert type(error) is TlsFailed
        assert "no version of TLS" in str(error)


async def test_tls_to_a_plain_listener(papers: Papers) -> None:
    async with Broker() as broker:
        error = await refusal(broker.bootstrap, **papers.client())
        assert type(error) is SecurityMismatch
        assert "does not speak TLS, and this client does" in str(error)


async def test_plain_to_a_tls_listener(papers: Papers) -> None:
    async with Broker(tls=papers.server()) as broker:
        error = await refusal(broker.bootstrap)
        assert type(error) is SecurityMismatch
        assert "this listener speaks TLS" in str(error)


async def test_all_addresses_are_told_apart_from_brokers_that_are_down(papers: Papers) -> None:
    """One of several bootstrap addresses that says it speaks otherwise is enough, whatever becomes of the others."""
    async with Broker(tls=papers.server()) as one, Broker(tls=papers.server()) as other, Broker() as plain:
        for servers in (f"{one.bootstrap},{other.bootstrap}", f"127.0.0.1:1,{one.bootstrap}"):
            assert type(await refusal(servers)) is SecurityMismatch
        assert type(await refusal(f"127.0.0.1:1,{plain.bootstrap}", **papers.client())) is SecurityMismatch
        async with Client(f"{one.bootstrap},{plain.bootstrap}"):  # where one is right, the cluster is reached
            pass


@asynccontextmanager
async def listening(serve: Callable[[SocketStream], Awaitable[None]]) -> AsyncIterator[str]:
    """Somebody who is no broker, and does this with each connection; the address."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield f"127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("said", "kind", "told"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", SecurityMismatch, "HTTP/1.1 400"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", SecurityMismatch, "SSH-2.0"),
        (b"\x16\x03\x03\x00\x05garba", TlsFailed, "failed in this client: "),
        (b"\x15\x03\x03\x00\x02\x02\x46", TlsFailed, "it supports no version of TLS from 1.2 on"),
        (b"\x15\x03\x03\x00\x02\x02\x28", TlsFailed, "there is no common cipher"),
        (b"\x15\x03\x03\x00\x02\x02\x50", TlsFailed, "see its log (TLS alert INTERNAL_ERROR)"),
    ],
)
async def test_tls_to_something_else(papers: Papers, said: bytes, kind: type[KafkaError], told: str) -> None:
    async def serve(stream: SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(said)
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                while True:
                    await stream.receive()

    async with listening(serve) as at:
        error = await refusal(at, **papers.client())
        assert type(error) is kind
        assert told in str(error)


async def test_a_listener_that_hangs_up_may_be_back_soon(papers: Papers) -> None:
    async def serve(stream: SocketStream) -> None:
        await stream.aclose()

    async with listening(serve) as at:
        error = await refusal(at, **papers.client(), bootstrap_timeout_ms=300)
        assert type(error) is NoBrokerReachable
        assert "closed the connection on the TLS handshake" in str(error) or "reset by peer" in str(error)


async def test_a_listener_that_is_silent_is_given_up(papers: Papers) -> None:
    async def serve(stream: SocketStream) -> None:
        async with stream:
            await anyio.sleep_forever()

    async with listening(serve) as at:
        error = await refusal(at, **papers.client(), bootstrap_timeout_ms=200)
        assert type(error) is NoBrokerReachable
        assert "did not accept a TLS connection" in str(error)


async def test_a_handshake_that_is_cancelled_closes_its_stream(papers: Papers) -> None:
    ours, theirs = memory_connection()

    async def connect(host: str, port: int) -> ByteStream:
        return ours

    tls = Tls(make_config(ClientConfig, papers.client()), Runtime().offload)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tls.around(connect), "b", 9092)
        with anyio.fail_after(SOON):
            assert (await theirs.receive())[:1] == b"\x16"
        tasks.cancel_scope.cancel()
    with anyio.fail_after(SOON), pytest.raises(anyio.EndOfStream):
        while True:
            await theirs.receive()


async def test_sends_under_tls_take_turns() -> None:
    """Whoever reads may have to send, too: new keys, for one; and streams let one task send at a time."""

    class Guarded(StapledByteStream):
        guard = ResourceGuard("sending")

        async def send(self, item: bytes) -> None:
            with self.guard:
                await anyio.lowlevel.checkpoint()

    ours, theirs = memory_connection()
    transport = _Transport(Guarded(ours, ours))
    async with theirs, transport, anyio.create_task_group() as tasks:
        tasks.start_soon(transport.send, b"one")
        tasks.start_soon(transport.send, b"two")


async def test_certificates_that_were_renewed_are_used_by_the_next_connection(papers: Papers, tmp_path: Path) -> None:
    mine = make_papers(tmp_path)
    replace((mine.ca,), (papers.ca,))
    options = mine.client(shows=True)
    async with Broker(tls=papers.server(asks=ssl.CERT_REQUIRED)) as broker:
        assert type(await refusal(broker.bootstrap, **options)) is ClientCertificateRefused
        config = make_config(ClientConfig, options)
        tls = Tls(config, Runtime().offload)
        before = await tls.context()
        assert await tls.context() is before
        replace((mine.certificate, mine.key), (papers.certificate, papers.key))
        after = await tls.context()
        assert after is not before
        assert await tls.context() is after
        await there_and_back(broker.bootstrap, **options)


async def test_files_that_do_not_do_any_more_leave_what_was(
    papers: Papers, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mine = make_papers(tmp_path)
    async with Broker(tls=mine.server()) as broker, Client(broker.bootstrap, **mine.client(shows=True)) as client:
        broker.create_topic("t")
        replace((mine.certificate,), (mine.key,))  # half of the work
        async with client.producer() as producer:  # on a connection of its own
            await producer.send("t", b"v")
    (told,) = [
        record.getMessage() for record in caplog.records if "cannot reload changed certificates" in record.getMessage()
    ]
    assert "holds no certificate in PEM" in told


async def test_what_the_files_lack_is_told_before_anyone_is_dialled(papers: Papers, tmp_path: Path) -> None:
    error = await refusal("127.0.0.1:1", **{**papers.client(), "ssl_ca_location": str(tmp_path / "none.pem")})
    assert type(error) is ConfigError
    assert "none.pem' cannot be read: No such file or directory" in str(error)
