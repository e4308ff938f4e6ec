"""Logging in by OAUTHBEARER with unsecured tokens, as Apache Kafka has it (KIP-255, KIP-342, KIP-368)."""

from __future__ import annotations

import base64
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from itertools import count

import attrs
import pytest
from support.apache_kafka import ApacheKafka, missing
from support.bearer import first, jws, part, unsecured
from support.dialling import WAYS, Dial, over_tcp
from support.logging_in import LIFETIME_MS, Guarded, handshake, is_in, send_token, token
from support.needing import require
from support.raw_client import RawClient

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.sasl import SaslAuthenticateRequest
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.security.bearer_tokens import UnsecuredTokens

pytestmark = pytest.mark.anyio

MECHANISM = "OAUTHBEARER"
LISTENERS = ("GUARDED", "RENEWED", "SCOPED")
FAILED = ErrorCode.SASL_AUTHENTICATION_FAILED
INVALID = b'{"status":"invalid_token"}'
HIDDEN = f"Authentication failed during authentication due to invalid credentials with SASL mechanism {MECHANISM}"
NOW = time.time()


@attrs.frozen
class BesideScoped(Guarded):
    """One that has a listener for tokens of the scopes "kafka" and "tests" alone, as well."""

    scoped: Dial


def _properties() -> dict[str, str]:
    found = {"connection.failed.authentication.delay.ms": "0"}
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    for name in ("guarded", "renewed", "scoped"):
        listener = f"listener.name.{name}"
        scope = ' unsecuredValidatorRequiredScope="kafka tests"' if name == "scoped" else ""
        found[f"{listener}.sasl.enabled.mechanisms"] = MECHANISM
        found[f"{listener}.oauthbearer.sasl.jaas.config"] = f'{module} unsecuredLoginStringClaim_sub="broker"{scope};'
    found["listener.name.renewed.oauthbearer.connections.max.reauth.ms"] = str(LIFETIME_MS)
    return found


@pytest.fixture(scope="module")
def guarded_apache() -> Iterator[ApacheKafka]:
    require(missing())
    listeners = dict.fromkeys(LISTENERS, "SASL_PLAINTEXT")
    with ApacheKafka(properties=_properties(), listeners=listeners) as kafka:
        yield kafka


@pytest.fixture
async def guarded(where: str | ApacheKafka) -> AsyncIterator[BesideScoped]:
    if isinstance(where, ApacheKafka):
        yield BesideScoped(*(partial(over_tcp, where.addresses[name]) for name in LISTENERS))
        return
    port, scope = None if where == "memory" else 0, UnsecuredTokens(["kafka", "tests"])
    asking = partial(Broker, port=port, oauthbearer=True, connection_failed_authentication_delay_ms=0)
    async with (
        asking() as one,
        asking(connections_max_reauth_ms=LIFETIME_MS) as other,
        asking(oauthbearer=scope) as third,
    ):
        yield BesideScoped(*(partial(WAYS[where], broker) for broker in (one, other, third)))


# --- getting in --------------------------------------------------------------------------------------------


async def test_a_token_that_holds(client: RawClient) -> None:
    offered = await handshake(client, MECHANISM)
    assert (offered.error_code, offered.mechanisms) == (0, [MECHANISM])
    done = await token(client, first(unsecured(time.time())))
    assert (done.error_code, done.error_message, done.auth_bytes) == (0, "", b"")
    assert 3_500_000 < done.session_lifetime_ms <= 3_600_001
    assert await is_in(client)


@pytest.mark.parametrize(
    "said",
    [
        first(unsecured(NOW), for_user="alice"),
        first(unsecured(NOW), extensions="logicalCluster=lkc-1\x01traceId=a b\tc\x01"),
        first(unsecured(NOW), scheme="bEARER  "),
        first("refused", extensions=f"auth=Bearer {unsecured(NOW)}\x01"),
        first(jws({"sub": "alice", "exp": NOW + 3600.5})),
        first(jws({"sub": True, "exp": NOW + 3600, "nbf": "whenever"})),
        first(unsecured(NOW, scope="a b")),
        first(unsecured(NOW, scope=[])),
    ],
    ids=map(str, count()),  # tokens have the time in them; all processes must give the same names
)
async def test_what_is_taken(client: RawClient, said: bytes) -> None:
    await handshake(client, MECHANISM)
    assert (await token(client, said)).error_code == 0
    assert await is_in(client)


async def test_bare_tokens(client: RawClient) -> None:
    await handshake(client, MECHANISM, 0)
    assert await send_token(client, first("refused")) == INVALID
    assert await send_token(client, first(unsecured(time.time()))) == b""
    assert await is_in(client)


async def test_a_refused_bare_token(client: RawClient) -> None:
    await handshake(client, MECHANISM, 0)
    assert await send_token(client, first("refused")) == INVALID
    await client.send_frame(b"\x01")
    assert await client.is_cut_off()


# --- not getting in ----------------------------------------------------------------------------------------


def raw(header: bytes, claims: bytes) -> str:
    return ".".join(base64.urlsafe_b64encode(one).decode().rstrip("=") for one in (header, claims)) + "."


NONE = b'{"alg":"none"}'
CLAIMS = {"sub": "alice", "exp": NOW + 3600}


@pytest.mark.parametrize(
    "refused",
    [
        pytest.param(one, id=f"{number}")
        for number, one in enumerate(
            (
                "garbage",
                "a.b",
                "..",
                f"{part({'alg': 'none'})}..",
                f"{jws(CLAIMS)}.",
                jws(CLAIMS, signature="c2ln"),
                jws(CLAIMS, {"alg": "RS256"}, "c2ln"),
                jws(CLAIMS, {"alg": "HS256"}),
                jws(CLAIMS, {"alg": None}),
                jws(CLAIMS, {"alg": ["none"]}),
                jws([CLAIMS]),
                jws({"exp": NOW + 3600}),
                jws({"sub": "", "exp": NOW + 3600}),
                jws({"sub": " \t", "exp": NOW + 3600}),
                jws({"sub": 7, "exp": NOW + 3600}),
                jws({"sub": ["alice"], "exp": NOW + 3600}),
                jws({"sub": {"name": "alice"}, "exp": NOW + 3600}),
                jws({"sub": "alice"}),
                jws({"sub": "alice", "exp": str(NOW + 3600)}),
                jws({"sub": "alice", "exp": None}),
                jws({"sub": "alice", "exp": True}),
                jws({"sub": "alice", "exp": -1e300}),
                unsecured(NOW, ends_in=-1),
                unsecured(NOW, iat=NOW + 1800),
                unsecured(NOW, iat=NOW + 7200),
                unsecured(NOW, iat="yesterday"),
                unsecured(NOW, scope=7),
                raw(NONE, b'{"sub":"alice","exp":NaN}'),
                raw(NONE, b'{"sub":"alice","exp":Infinity}'),
                raw(NONE, b"\xff\xfe\xfd"),
                raw(NONE, b"[" * 100_000),
                raw(NONE, b'{"sub":"alice","exp":' + b"9" * 10_000 + b"x}"),
                "~~~~." + part(CLAIMS) + ".",
                "a." + part(CLAIMS) + ".",
            )
        )
    ],
)
async def test_a_token_that_is_refused(client: RawClient, refused: str) -> None:
    await handshake(client, MECHANISM)
    answer = await token(client, first(refused))
    assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, INVALID, 0)
    understood = await token(client, b"\x01")
    assert (understood.error_code, understood.error_message) == (FAILED, INVALID.decode())
    assert understood.auth_bytes == b""
    assert await client.is_cut_off()


async def test_another_token_may_follow_one_that_is_refused(client: RawClient) -> None:
    await handshake(client, MECHANISM)
    assert (await token(client, first("refused"))).auth_bytes == INVALID
    assert (await token(client, first(unsecured(time.time())))).auth_bytes == b""
    assert await is_in(client)


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\x01",
        b"\xff\xfe",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Bearer a,b\x01\x01",
        b"n,,\x01auth=Bearer a=b\x01\x01",
        b"y" + first(unsecured(NOW))[1:],
        first(unsecured(NOW))[:-1],
        first(unsecured(NOW)) + b"\x01",
        first(unsecured(NOW), extensions="a1=b\x01"),
        first(unsecured(NOW), extensions="a=\x01"),
        first(unsecured(NOW), extensions="a=\u00fc\x01"),
        first(unsecured(NOW), extensions="a=b"),
        first(unsecured(NOW), for_user="a,b"),
    ],
    ids=map(str, count()),  # tokens have the time in them; all processes must give the same names
)
async def test_what_is_no_first_message(client: RawClient, said: bytes) -> None:
    await handshake(client, MECHANISM)
    answer = await token(client, said)
    assert (answer.error_code, answer.error_message, answer.auth_bytes) == (FAILED, HIDDEN, b"")
    assert await client.is_cut_off()


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(first("abc", scheme="Basic"), id="scheme"),
        pytest.param(first(jws(CLAIMS, {})), id="no algorithm"),
        pytest.param(first(jws(CLAIMS, [])), id="no header"),
        pytest.param(first("." + part(CLAIMS) + "."), id="empty header"),
        pytest.param(first(unsecured(NOW, exp=1e11)), id="for centuries"),
        pytest.param(first(unsecured(NOW, exp=1e300)), id="for ever"),
    ],
    ids=map(str, count()),  # tokens have the time in them; all processes must give the same names
)
async def test_what_has_no_answer(client: RawClient, said: bytes) -> None:
    await handshake(client, MECHANISM)
    await client.send(SaslAuthenticateRequest(auth_bytes=said), 2)
    assert await client.is_cut_off()


async def test_the_authorization_id_of_another(client: RawClient) -> None:
    await handshake(client, MECHANISM)
    answer = await token(client, first(unsecured(NOW), for_user="b=3Db"))
    told = "an authorization id (b=3Db) that is different from the token's principal name (alice)"
    assert (answer.error_code, answer.error_message) == (FAILED, f"Authentication failed: Client requested {told}")
    assert await client.is_cut_off()


@pytest.mark.parametrize("scope", [["tests", " kafka ", "more"], ["kafka", "tests"]])
async def test_a_scope_that_is_wanted(guarded: BesideScoped, scope: list[str]) -> None:
    async with RawClient(await guarded.scoped()) as client:
        await handshake(client, MECHANISM)
        assert (await token(client, first(unsecured(NOW, scope=scope)))).auth_bytes == b""
        assert await is_in(client)


@pytest.mark.parametrize("scope", ["kafka tests", ["kafka"], [], "", ["Kafka", "tests"]])
async def test_a_scope_that_is_too_small(guarded: BesideScoped, scope: object) -> None:
    async with RawClient(await guarded.scoped()) as client:
        await handshake(client, MECHANISM)
        said = b'{"status":"insufficient_scope", "scope":"[kafka, tests]"}'
        assert (await token(client, first(unsecured(NOW, scope=scope)))).auth_bytes == said
        assert (await token(client, b"\x01")).error_message == said.decode()
        assert await client.is_cut_off()


# --- renewing ----------------------------------------------------------------------------------------------


async def test_a_login_holds_no_longer_than_its_token(renewed: RawClient) -> None:
    await handshake(renewed, MECHANISM)
    assert (await token(renewed, first(unsecured(NOW, exp=1e300)))).session_lifetime_ms == LIFETIME_MS
    await handshake(renewed, MECHANISM)
    assert 0 < (await token(renewed, first(unsecured(time.time(), ends_in=30)))).session_lifetime_ms <= 30_001
    assert await is_in(renewed)


async def test_a_token_that_ends_is_renewed_without_a_setting(client: RawClient) -> None:
    for _ in range(2):
        assert (await handshake(client, MECHANISM)).error_code == 0
        assert (await token(client, first(unsecured(time.time())))).session_lifetime_ms > 0
    assert await is_in(client)


@pytest.mark.parametrize("user", ["bob", "\ud800"])
async def test_a_renewed_login_is_the_same_users(renewed: RawClient, user: str) -> None:
    await handshake(renewed, MECHANISM)
    await token(renewed, first(unsecured(NOW)))
    await handshake(renewed, MECHANISM)
    answer = await token(renewed, first(unsecured(NOW, user=user)))
    said = "Cannot change principals during re-authentication from User.alice: User."
    assert (answer.error_code, answer.error_message) == (FAILED, said + user.replace("\ud800", "?"))
    assert await renewed.is_cut_off()


async def test_a_renewal_that_fails(renewed: RawClient) -> None:
    await handshake(renewed, MECHANISM)
    await token(renewed, first(unsecured(NOW)))
    await handshake(renewed, MECHANISM)
    assert (await token(renewed, first("refused"))).auth_bytes == INVALID
    assert (await token(renewed, b"\x01")).error_message == INVALID.decode()
    assert await renewed.is_cut_off()
