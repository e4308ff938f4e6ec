"""A broker whose port speaks TLS."""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress

import anyio
import pytest
import trustme
from anyio.streams.tls import TLSStream
from support.dialling import over_memory
from support.logging_in import in_scram
from support.made import made
from support.patience import SOON
from support.raw_client import RawClient

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.acls import DescribeAclsRequest
from aiokafkawire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.security.tls import handshake, name_in
from aiokafkawire.testing.serving import apis
from aiokafkawire.testing.serving.call import Peer, ServerCall
from aiokafkawire.testing.serving.memory import memory_connection

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA(key_type=trustme.KeyType.ECDSA)


def server_context(authority: trustme.CA, *, asks: ssl.VerifyMode = ssl.CERT_NONE) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = asks
    return context


def client_context(authority: trustme.CA, certificate: trustme.LeafCert | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(context)
    if certificate is not None:
        certificate.configure_cert(context)
    return context


def certificate_of_alice(authority: trustme.CA) -> trustme.LeafCert:
    return authority.issue_cert("alice@localhost", common_name="alice", organization_name="A, B", key_type=_KEY)


_KEY = trustme.KeyType.ECDSA


async def secured(broker: Broker, context: ssl.SSLContext) -> RawClient:
    host, port = broker.bootstrap.split(":")
    stream = await anyio.connect_tcp(host, int(port))
    try:
        return RawClient(await TLSStream.wrap(stream, hostname=host, ssl_context=context, standard_compatible=False))
    except BaseException:
        await anyio.aclose_forcefully(stream)
        raise


@pytest.fixture
def principals(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Who has asked for metadata."""
    seen: list[str] = []

    async def metadata(call: ServerCall, request: MetadataRequest) -> MetadataResponse:
        seen.append(call.peer.principal)
        return MetadataResponse(brokers=[], topics=[])

    api = apis.APIS[ApiKey.METADATA]
    monkeypatch.setitem(apis.APIS, ApiKey.METADATA, apis.Api(api.request, metadata, api.served))
    return seen


@pytest.fixture
async def broker(authority: trustme.CA) -> AsyncIterator[Broker]:
    async with Broker(tls=server_context(authority)) as broker:
        yield broker


async def ask(client: RawClient) -> None:
    assert isinstance(await client.ask(MetadataRequest(topics=[]), 12), MetadataResponse)


async def test_requests_inside_tls(broker: Broker, authority: trustme.CA, principals: list[str]) -> None:
    async with await secured(broker, client_context(authority)) as client:
        await ask(client)
        await ask(client)
    assert principals == ["User:ANONYMOUS", "User:ANONYMOUS"]


async def test_clients_that_do_not_get_through_do_no_harm(
    broker: Broker, authority: trustme.CA, caplog: pytest.LogCaptureFixture
) -> None:
    host, port = broker.bootstrap.split(":")
    caplog.set_level(logging.INFO, "aiokafkawire")
    async with RawClient(await anyio.connect_tcp(host, int(port))) as plain:
        await plain.send(MetadataRequest(topics=[]), 1)
        with anyio.fail_after(SOON), suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while True:  # perhaps there is an alert before the end
                await plain.stream.receive()
    with pytest.raises((ssl.SSLError, anyio.BrokenResourceError)):
        await secured(broker, client_context(trustme.CA(key_type=_KEY)))  # it does not trust the broker
    async with await anyio.connect_tcp(host, int(port)):
        pass  # and one leaves before it has said anything
    async with await secured(broker, client_context(authority)) as client:
        await ask(client)
    assert sum("TLS handshake" in message for message in caplog.messages) >= 2
    assert broker.faults == []


async def test_a_client_that_keeps_silent_holds_nobody_up(broker: Broker, authority: trustme.CA) -> None:
    host, port = broker.bootstrap.split(":")
    async with await anyio.connect_tcp(host, int(port)), await secured(broker, client_context(authority)) as client:
        await ask(client)


@pytest.mark.parametrize("asks", [ssl.CERT_REQUIRED, ssl.CERT_OPTIONAL])
async def test_a_certificate_says_who_it_is(authority: trustme.CA, principals: list[str], asks: ssl.VerifyMode) -> None:
    context = client_context(authority, certificate_of_alice(authority))
    async with (
        Broker(tls=server_context(authority, asks=asks)) as broker,
        await secured(broker, context) as client,
    ):
        await ask(client)
    (principal,) = principals
    assert principal.startswith("User:CN=alice,")
    assert principal.endswith(r",O=A\, B")


async def test_acls_are_about_the_names_in_certificates(authority: trustme.CA, principals: list[str]) -> None:
    context = client_context(authority, certificate_of_alice(authority))
    tls = server_context(authority, asks=ssl.CERT_REQUIRED)
    async with Broker(tls=tls) as broker, await secured(broker, context) as client:
        await ask(client)
    found = []
    for super_user in ("User:bob", *principals):
        async with (
            Broker(tls=tls, authorizer=True, super_users=[super_user]) as broker,
            await secured(broker, context) as client,
        ):
            request = made(DescribeAclsRequest, resource_type_filter=1, operation=1, permission_type=1)
            found.append((await client.ask(request, 3)).error_code)
    assert found == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.NONE]


async def test_a_certificate_may_be_left_out_where_it_is_not_required(
    authority: trustme.CA, principals: list[str]
) -> None:
    async with (
        Broker(tls=server_context(authority, asks=ssl.CERT_OPTIONAL)) as broker,
        await secured(broker, client_context(authority)) as client,
    ):
        await ask(client)
    assert principals == ["User:ANONYMOUS"]


async def test_no_certificate_where_one_is_required(authority: trustme.CA) -> None:
    async with Broker(tls=server_context(authority, asks=ssl.CERT_REQUIRED)) as broker:
        with pytest.raises((ssl.SSLError, anyio.BrokenResourceError, anyio.EndOfStream)):
            # With TLS 1.3 a client learns of it when it reads.
            async with await secured(broker, client_context(authority)) as client:
                await ask(client)
        async with await secured(broker, client_context(authority, certificate_of_alice(authority))) as client:
            await ask(client)


async def test_a_login_inside_tls(authority: trustme.CA, principals: list[str]) -> None:
    context = client_context(authority, certificate_of_alice(authority))
    async with (
        Broker(tls=server_context(authority, asks=ssl.CERT_REQUIRED), users={"bob": "secret"}) as broker,
        await secured(broker, context) as client,
    ):
        await in_scram(client, "SCRAM-SHA-256", "bob", "secret")
        await ask(client)
    assert principals == ["User:bob"]


async def test_memory_is_as_it_was(broker: Broker) -> None:
    async with RawClient(await over_memory(broker)) as client:
        await ask(client)


def test_names_of_certificates() -> None:
    subject = ((("countryName", "CH"),), (("organizationName", 'a, "b"'),), (("commonName", " x "), ("userId", "#1")))
    assert name_in({"subject": subject}) == r"CN=\ x\ +UID=\#1,O=a\, \"b\",C=CH"
    assert name_in({}) == ""


async def test_what_is_no_tls_after_the_handshake_is_no_fault(broker: Broker, authority: trustme.CA) -> None:
    async with await secured(broker, client_context(authority)) as client:
        await ask(client)
        assert isinstance(client.stream, TLSStream)
        below = client.stream.transport_stream
        await below.send(b"\x17\x03\x03\x00\x20" + bytes(32))  # a record that cannot be decrypted
        with anyio.fail_after(SOON), suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while True:
                await below.receive()
    assert broker.faults == []


async def test_a_handshake_that_is_cancelled_closes_its_stream(authority: trustme.CA) -> None:
    theirs, ours = memory_connection()
    async with anyio.create_task_group() as group:
        group.start_soon(handshake, ours, server_context(authority), Peer("a client"))
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    with anyio.fail_after(SOON), pytest.raises(anyio.EndOfStream):
        await theirs.receive()
