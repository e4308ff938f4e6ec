"""Logging in by SASL, as Apache Kafka has it."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import anyio
import attrs
import pytest
from support.apache_kafka import ApacheKafka, missing
from support.dialling import WAYS, Dial, over_tcp
from support.logging_in import (
    LIFETIME_MS,
    Guarded,
    ScramLogin,
    handshake,
    in_scram,
    is_in,
    plain,
    send_token,
    token,
)
from support.needing import require
from support.patience import PATIENCE
from support.raw_client import RawClient, batch_of

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.group import FindCoordinatorRequest
from aiokafkawire.protocol.messages.metadata import ApiVersionsRequest, MetadataRequest, MetadataRequestTopic
from aiokafkawire.protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from aiokafkawire.protocol.messages.scram import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.security.credentials import ScramAlgorithm

pytestmark = pytest.mark.anyio

USERS = {"alice": "secret", "b=b,": "Gruß = x,y"}
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
ILLEGAL = ErrorCode.ILLEGAL_SASL_STATE
FAILED = ErrorCode.SASL_AUTHENTICATION_FAILED


@attrs.frozen
class BesideOpen(Guarded):
    """One that has a listener which does not ask, as well."""

    open_: Dial


def _properties() -> dict[str, str]:
    users = " ".join(f'user_{user}="{password}"' for user, password in USERS.items() if user.isalpha())
    modules = "org.apache.kafka.common.security"
    found = {"connection.failed.authentication.delay.ms": "0"}
    for listener in ("listener.name.guarded", "listener.name.renewed"):
        found[f"{listener}.sasl.enabled.mechanisms"] = ",".join(MECHANISMS)
        found[f"{listener}.plain.sasl.jaas.config"] = f"{modules}.plain.PlainLoginModule required {users};"
        for mechanism in ScramAlgorithm:
            name = mechanism.value.lower()
            found[f"{listener}.{name}.sasl.jaas.config"] = f"{modules}.scram.ScramLoginModule required;"
    for mechanism_name in MECHANISMS:
        found[f"listener.name.renewed.{mechanism_name.lower()}.connections.max.reauth.ms"] = str(LIFETIME_MS)
    return found


@pytest.fixture(scope="module")
def guarded_apache() -> Iterator[ApacheKafka]:
    require(missing())
    listeners = {"GUARDED": "SASL_PLAINTEXT", "RENEWED": "SASL_PLAINTEXT"}
    with ApacheKafka(properties=_properties(), listeners=listeners) as kafka:
        with ThreadPoolExecutor(1) as thread:  # in this one a test's loop is at home
            thread.submit(anyio.run, _enroll_soon, kafka.bootstrap).result()
        yield kafka


async def _enroll_soon(bootstrap: str) -> None:
    """Enroll the users as soon as the broker forwards requests: just after it has started it may hang up instead."""
    with anyio.fail_after(PATIENCE):
        while True:
            try:
                return await _enroll(bootstrap)
            except anyio.EndOfStream:
                await anyio.sleep(0.05)


async def _enroll(bootstrap: str) -> None:
    """Give the users SCRAM credentials, and wait until those count."""
    async with RawClient(await over_tcp(bootstrap)) as client:
        for mechanism in ScramAlgorithm:
            salt = b"salt of alice"
            upsertions = [
                ScramCredentialUpsertion(
                    name=user,
                    mechanism=mechanism.code,
                    iterations=4096,
                    salt=salt,
                    salted_password=mechanism.salted(password, salt, 4096),
                )
                for user, password in USERS.items()
            ]
            answer = await client.ask(AlterUserScramCredentialsRequest(deletions=[], upsertions=upsertions), 0)
            assert [result.error_code for result in answer.results] == [0, 0]


@pytest.fixture
async def guarded(where: str | ApacheKafka) -> AsyncIterator[BesideOpen]:
    if isinstance(where, ApacheKafka):
        at = where.addresses
        yield BesideOpen(*(partial(over_tcp, one) for one in (at["GUARDED"], at["RENEWED"], where.bootstrap)))
        return
    port = None if where == "memory" else 0
    asking = partial(Broker, port=port, users=USERS, connection_failed_authentication_delay_ms=0)
    async with asking() as one, asking(connections_max_reauth_ms=LIFETIME_MS) as other, Broker(port=port) as third:
        yield BesideOpen(*(partial(WAYS[where], broker) for broker in (one, other, third)))


# --- logging in --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(3))
async def test_plain(client: RawClient, version: int) -> None:
    answer = await handshake(client, "PLAIN")
    assert (answer.error_code, sorted(answer.mechanisms)) == (0, MECHANISMS)
    done = await token(client, plain("alice", "secret"), version)
    assert (done.error_code, done.error_message, done.auth_bytes, done.session_lifetime_ms) == (0, "", b"", 0)
    assert await is_in(client)


@pytest.mark.parametrize("mechanism", MECHANISMS[1:])
@pytest.mark.parametrize("user", USERS)
async def test_scram(client: RawClient, mechanism: str, user: str) -> None:
    done = await in_scram(client, mechanism, user, USERS[user])
    assert (done.error_code, done.error_message) == (0, "")
    assert await is_in(client)


async def test_an_authorization_id_may_be_the_users_own(client: RawClient) -> None:
    await handshake(client, "PLAIN")
    assert (await token(client, plain("alice", "secret", "alice"))).error_code == 0


async def test_scram_with_extensions_and_an_authorization_id(client: RawClient) -> None:
    await handshake(client, "SCRAM-SHA-256")
    login = ScramLogin("SCRAM-SHA-256", "alice", "secret", header="n,a=alice,", extensions=",x=1")
    first = await token(client, login.first())
    assert first.error_code == 0
    assert login.is_signed(bytes((await token(client, login.final(bytes(first.auth_bytes)))).auth_bytes))


async def test_versions_may_be_asked_for_before(client: RawClient) -> None:
    request = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
    assert (await client.ask(request, 3)).error_code == 0
    await handshake(client, "PLAIN")
    await token(client, plain("alice", "secret"))
    assert (await client.ask(request, 3)).error_code == 0


async def test_versions_may_be_asked_for_again_if_they_were_not_told(client: RawClient) -> None:
    await client.send_frame(struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 7, -1) + b"\0")
    assert (await client.frame())[4:6] == struct.pack(">h", ErrorCode.UNSUPPORTED_VERSION)
    request = ApiVersionsRequest(client_software_name=" ", client_software_version="1")
    assert (await client.ask(request, 3)).error_code == ErrorCode.INVALID_REQUEST
    assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0
    assert (await handshake(client, "PLAIN")).error_code == 0


# --- bare tokens, as clients before 1.0 send them ----------------------------------------------------------


async def test_bare_tokens_of_plain(client: RawClient) -> None:
    assert (await handshake(client, "PLAIN", 0)).error_code == 0
    assert await send_token(client, plain("alice", "secret")) == b""
    assert await is_in(client)


async def test_bare_tokens_of_scram(client: RawClient) -> None:
    await handshake(client, "SCRAM-SHA-512", 0)
    login = ScramLogin("SCRAM-SHA-512", "alice", "secret")
    first = await send_token(client, login.first())
    assert login.is_signed(await send_token(client, login.final(first)))
    assert await is_in(client)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
async def test_a_bare_token_that_is_wrong_has_no_answer(client: RawClient, mechanism: str) -> None:
    await handshake(client, mechanism, 0)
    await client.send_frame(plain("alice", "wrong"))
    assert await client.is_cut_off()


# --- not getting in ----------------------------------------------------------------------------------------

INVALID = "Authentication failed: Invalid username or password"
TOKENS = "Invalid SASL/PLAIN response: expected 3 tokens, got "
OTHER_ID = "Authentication failed: Client requested an authorization id that is different from username"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (plain("alice", "wrong"), INVALID),
        (plain("nobody", "secret"), INVALID),
        (plain("", "secret"), "Authentication failed: username not specified"),
        (plain("alice", ""), "Authentication failed: password not specified"),
        (plain("alice", "secret", "bob"), OTHER_ID),
        (plain("alice", "wrong", "bob"), INVALID),
        (b"", TOKENS + "1"),
        (b"alice\0secret", TOKENS + "2"),
        (b"\0alice\0secret\0", TOKENS + "4"),
        (b"\0alice\0secret\0\0\0", TOKENS + "4"),
        (b"\0alice\0\xff\xfe", INVALID),
    ],
)
async def test_plain_says_why(client: RawClient, said: bytes, message: str) -> None:
    await handshake(client, "PLAIN")
    answer = await token(client, said)
    assert (answer.error_code, answer.error_message, answer.auth_bytes) == (FAILED, message, b"")
    assert await client.is_cut_off()


def hidden(mechanism: str, doing: str = "authentication") -> str:
    return f"Authentication failed during {doing} due to invalid credentials with SASL mechanism {mechanism}"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (ScramLogin("SCRAM-SHA-256", "nobody", "x").first(), None),
        (ScramLogin("SCRAM-SHA-256", "alice", "x", header="y,,").first(), None),
        (ScramLogin("SCRAM-SHA-256", "alice", "x", header="p=tls-unique,,").first(), None),
        (ScramLogin("SCRAM-SHA-256", "alice", "x", header="n,a=bob,").first(), OTHER_ID),
        (b"n,,n=alice", None),
        (b"n,,n=,r=x", None),
        (b"", None),
        (b"\xff\xfe", None),
    ],
)
async def test_scram_keeps_most_reasons_to_itself(client: RawClient, said: bytes, message: str | None) -> None:
    await handshake(client, "SCRAM-SHA-256")
    answer = await token(client, said)
    assert (answer.error_code, answer.error_message) == (FAILED, message or hidden("SCRAM-SHA-256"))
    assert answer.auth_bytes == b""
    assert await client.is_cut_off()


@pytest.mark.parametrize("change", ["password", "nonce", "no proof", "not base64", "again first"])
async def test_scram_with_a_final_message_that_is_wrong(client: RawClient, change: str) -> None:
    await handshake(client, "SCRAM-SHA-512")
    login = ScramLogin("SCRAM-SHA-512", "alice", "wrong" if change == "password" else "secret")
    said = bytes((await token(client, login.first())).auth_bytes)
    final = login.final(said, "another" if change == "nonce" else None)
    bare = final.partition(b",p=")[0]
    changed = {
        "no proof": bare,
        "not base64": bare + b",p=!",
        "again first": login.first(),
    }
    answer = await token(client, changed.get(change, final))
    assert (answer.error_code, answer.error_message) == (FAILED, hidden("SCRAM-SHA-512"))
    assert await client.is_cut_off()


async def test_scram_with_a_proof_of_another_length_has_no_answer(client: RawClient) -> None:
    await handshake(client, "SCRAM-SHA-512")
    login = ScramLogin("SCRAM-SHA-512", "alice", "secret")
    final = login.final(bytes((await token(client, login.first())).auth_bytes))
    short = final.partition(b",p=")[0] + b",p=QUJD"
    await client.send(SaslAuthenticateRequest(auth_bytes=short), 2)
    assert await client.is_cut_off()


@pytest.mark.parametrize("version", range(2))
@pytest.mark.parametrize("mechanism", ["GSSAPI", "plain", "", "OAUTHBEARER"])
async def test_a_mechanism_that_is_not_enabled(client: RawClient, version: int, mechanism: str) -> None:
    answer = await handshake(client, mechanism, version)
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert sorted(answer.mechanisms) == MECHANISMS
    assert await client.is_cut_off()


@pytest.mark.parametrize("asked_before", [False, True])
async def test_other_requests_have_to_wait(client: RawClient, asked_before: bool) -> None:
    if asked_before:
        await client.ask(ApiVersionsRequest(), 0)
    await client.send(MetadataRequest(topics=[]), 12)
    assert await client.is_cut_off()


async def test_a_token_has_to_wait(client: RawClient) -> None:
    await client.send(SaslAuthenticateRequest(auth_bytes=plain("alice", "secret")), 1)
    assert await client.is_cut_off()


async def test_versions_are_told_once(client: RawClient) -> None:
    await client.ask(ApiVersionsRequest(), 0)
    await client.send(ApiVersionsRequest(), 0)
    assert await client.is_cut_off()


async def test_something_else_in_place_of_a_token(client: RawClient) -> None:
    await handshake(client, "PLAIN")
    assert (await client.ask(ApiVersionsRequest(), 0)).error_code == ILLEGAL
    assert await client.is_cut_off()


async def test_other_requests_in_place_of_a_token(guarded: Guarded) -> None:
    """Each is refused in its own way."""
    async with RawClient(await guarded.connect()) as client:
        await handshake(client, "PLAIN")
        answer = await client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
        assert [(topic.name, topic.error_code) for topic in answer.topics] == [("t", ILLEGAL)]
        assert (answer.brokers, answer.cluster_id, answer.controller_id) == ([], None, -1)
        assert await client.is_cut_off()
    async with RawClient(await guarded.connect()) as client:
        await handshake(client, "PLAIN")
        partition = await client.produce("t", batch_of(b"x"), version=12)
        assert (partition.error_code, partition.base_offset) == (ILLEGAL, -1)
        assert await client.is_cut_off()
    async with RawClient(await guarded.connect()) as client:
        await handshake(client, "PLAIN")
        found = await client.ask(FindCoordinatorRequest(key="g"), 2)
        assert (found.error_code, found.node_id) == (ILLEGAL, -1)
        assert await client.is_cut_off()


async def test_a_handshake_in_place_of_a_token(client: RawClient) -> None:
    await handshake(client, "PLAIN")
    assert (await handshake(client, "PLAIN")).error_code == ILLEGAL
    assert await client.is_cut_off()


@pytest.mark.parametrize("data", [b"", b"\x60\x82\x01\x02 a ticket of Kerberos", b"\0\x11", b"\0\x11\0\x01\0\0\0\1"])
async def test_what_is_no_request(client: RawClient, data: bytes) -> None:
    await client.send_frame(data)
    assert await client.is_cut_off()


async def test_a_frame_that_is_too_large_for_a_stranger(client: RawClient) -> None:
    await client.stream.send(struct.pack(">i", 524_289) + bytes(100))
    assert await client.is_cut_off()


# --- afterwards --------------------------------------------------------------------------------------------

LATE = "SaslAuthenticate request received after successful authentication"


async def test_a_second_login_is_refused_and_the_first_holds(client: RawClient) -> None:
    await handshake(client, "PLAIN")
    await token(client, plain("alice", "secret"))
    await _check_refused(client)


async def test_a_login_where_none_is_asked_for(guarded: BesideOpen) -> None:
    async with RawClient(await guarded.open_()) as client:
        await _check_refused(client)


async def _check_refused(client: RawClient) -> None:
    answer = await handshake(client, "PLAIN")
    assert (answer.error_code, answer.mechanisms) == (ILLEGAL, [])
    late = await token(client, plain("alice", "secret"))
    assert (late.error_code, late.error_message) == (ILLEGAL, LATE)
    assert await is_in(client)


async def test_a_login_that_holds_for_a_while_is_renewed(renewed: RawClient) -> None:
    await handshake(renewed, "PLAIN")
    assert (await token(renewed, plain("alice", "secret"), 1)).session_lifetime_ms == LIFETIME_MS
    await handshake(renewed, "PLAIN")
    done = await token(renewed, plain("alice", "secret"))
    assert (done.error_code, done.session_lifetime_ms) == (0, LIFETIME_MS)
    assert await is_in(renewed)


async def test_a_login_is_renewed_once_a_second_at_most(renewed: RawClient) -> None:
    for _ in range(2):
        await handshake(renewed, "PLAIN")
        await token(renewed, plain("alice", "secret"))
    assert (await handshake(renewed, "PLAIN")).error_code == ILLEGAL
    assert await is_in(renewed)


async def test_a_login_is_renewed_by_scram(renewed: RawClient) -> None:
    for _ in range(2):
        done = await in_scram(renewed, "SCRAM-SHA-256", "alice", "secret")
        assert (done.error_code, done.session_lifetime_ms) == (0, LIFETIME_MS)
    assert await is_in(renewed)


async def test_a_renewed_login_is_the_same_users(renewed: RawClient) -> None:
    await in_scram(renewed, "SCRAM-SHA-256", "alice", "secret")
    other = "b=b,"
    answer = await in_scram(renewed, "SCRAM-SHA-256", other, USERS[other])
    message = f"Cannot change principals during re-authentication from User.alice: User.{other}"
    assert (answer.error_code, answer.error_message) == (FAILED, message)
    assert await renewed.is_cut_off()


async def test_a_renewal_that_fails(renewed: RawClient) -> None:
    await in_scram(renewed, "SCRAM-SHA-256", "alice", "secret")
    answer = await in_scram(renewed, "SCRAM-SHA-256", "alice", "wrong")
    assert (answer.error_code, answer.error_message) == (FAILED, hidden("SCRAM-SHA-256", "re-authentication"))
    assert await renewed.is_cut_off()


async def test_a_renewal_by_another_mechanism(renewed: RawClient) -> None:
    await in_scram(renewed, "SCRAM-SHA-256", "alice", "secret")
    assert (await handshake(renewed, "PLAIN")).error_code == 0
    await renewed.send_frame(b"\0\x24\0\1\0\0\0\1\xff\xff\0\0\0\0")
    assert await renewed.is_cut_off()


async def test_a_renewal_by_an_unknown_mechanism(renewed: RawClient) -> None:
    await in_scram(renewed, "SCRAM-SHA-256", "alice", "secret")
    await renewed.send(SaslHandshakeRequest(mechanism="none"), 1)
    assert await renewed.is_cut_off()


async def test_requests_wait_while_a_login_is_renewed(renewed: RawClient) -> None:
    await in_scram(renewed, "SCRAM-SHA-256", "alice", "secret")
    await handshake(renewed, "SCRAM-SHA-256")
    assert (await renewed.ask(ApiVersionsRequest(), 0)).error_code == ILLEGAL
    assert await renewed.is_cut_off()
