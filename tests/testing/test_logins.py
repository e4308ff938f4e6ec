"""Logins on our broker alone: lifetimes in virtual time, delays, secrets kept."""

from __future__ import annotations

import base64
import logging
import random
import time
from collections.abc import AsyncIterator

import anyio
import pytest
from support.bearer import first, part, unsecured
from support.dialling import over_memory
from support.logging_in import handshake, in_scram, plain, token
from support.raw_client import RawClient

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.configs import (
    AlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterableConfig,
)
from aiokafkawire.protocol.messages.metadata import ApiVersionsRequest, MetadataRequest, MetadataResponse
from aiokafkawire.protocol.messages.sasl import SaslAuthenticateRequest
from aiokafkawire.protocol.messages.scram import ScramCredentialUpsertion
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.cluster.api_error import ApiError, Disconnect
from aiokafkawire.testing.handlers import sasl
from aiokafkawire.testing.security.authentication import LoginState
from aiokafkawire.testing.security.bearer_tokens import BearerToken, BearerTokens, UnsecuredTokens, bearer_tokens
from aiokafkawire.testing.security.credentials import Credentials, ScramAlgorithm, ScramCredential
from aiokafkawire.testing.security.mechanisms import LoginFailed, OAuthBearer, enabled_mechanisms

USERS = {"alice": "hunter2-hunter2"}
PASSWORD = USERS["alice"]


async def connected(broker: Broker) -> RawClient:
    return RawClient(await over_memory(broker))


# --- the machine -------------------------------------------------------------------------------------------


def logged_in(max_reauth_ms: int = 0, now: float = 100.0) -> LoginState:
    login = LoginState(["PLAIN"], Credentials(USERS, ["PLAIN"]), max_reauth_ms=max_reauth_ms, new_nonce=lambda: "nonce")
    login.admit(ApiKey.SASL_HANDSHAKE, now)
    assert login.handshake("PLAIN", 1)
    login.admit(ApiKey.SASL_AUTHENTICATE, now)
    assert login.answer(plain("alice", PASSWORD), now) == (b"", max_reauth_ms)
    assert login.complete
    return login


def test_a_login_holds_for_ever_unless_told() -> None:
    logged_in().admit(ApiKey.METADATA, 1e9)


def test_a_login_expires() -> None:
    login = logged_in(max_reauth_ms=5000)
    login.admit(ApiKey.METADATA, 105.0)
    for key in (ApiKey.METADATA, ApiKey.API_VERSIONS, ApiKey.SASL_AUTHENTICATE):
        with pytest.raises(Disconnect, match="expired"):
            login.admit(key, 105.001)


def test_an_expired_login_can_be_renewed() -> None:
    login = logged_in(max_reauth_ms=5000)
    login.admit(ApiKey.SASL_HANDSHAKE, 200.0)
    assert login.handshake("PLAIN", 1)
    assert not login.complete
    assert login.answer(plain("alice", PASSWORD), 200.0) == (b"", 5000)
    login.admit(ApiKey.METADATA, 205.0)
    with pytest.raises(Disconnect):
        login.admit(ApiKey.METADATA, 205.001)


@pytest.mark.parametrize(("later", "begins"), [(0.999, False), (1.0, True)])
def test_renewals_are_a_second_apart(later: float, begins: bool) -> None:
    login = logged_in(max_reauth_ms=5000)
    login.admit(ApiKey.SASL_HANDSHAKE, 101.0)
    assert login.handshake("PLAIN", 1)
    login.answer(plain("alice", PASSWORD), 101.0)
    login.admit(ApiKey.SASL_HANDSHAKE, 101.0 + later)
    assert login.expects_handshake == begins


def test_a_request_amid_tokens_ends_the_login() -> None:
    login = LoginState(["PLAIN"], Credentials(USERS, ["PLAIN"]), new_nonce=str)
    login.handshake("PLAIN", 1)
    with pytest.raises(ApiError) as refused:
        login.admit(ApiKey.METADATA, 0)
    assert refused.value.code == ErrorCode.ILLEGAL_SASL_STATE
    assert login.failed == "Unexpected Kafka request of type METADATA during SASL authentication."


def with_token(token: str, max_reauth_ms: int = 0, now: float = 100.0) -> tuple[LoginState, int]:
    """A login, and for how long it holds, where the wall clock shows 1000 s."""
    tokens = BearerTokens(UnsecuredTokens(), lambda: 1_000_000)
    login = LoginState(["OAUTHBEARER"], Credentials(None, (), tokens), max_reauth_ms=max_reauth_ms, new_nonce=str)
    login.handshake("OAUTHBEARER", 1)
    said, lifetime = login.answer(first(token), now)
    assert said == b""
    return login, lifetime


@pytest.mark.parametrize(("max_reauth_ms", "holds_ms"), [(0, 5000), (60_000, 5000), (2000, 2000)])
def test_a_login_ends_with_its_token(max_reauth_ms: int, holds_ms: int) -> None:
    login, lifetime = with_token(unsecured(1000, ends_in=5), max_reauth_ms)
    assert lifetime == holds_ms
    login.admit(ApiKey.METADATA, 100 + holds_ms / 1000)
    with pytest.raises(Disconnect, match="expired"):
        login.admit(ApiKey.METADATA, 100 + holds_ms / 1000 + 0.001)


def test_a_token_holds_until_the_very_end() -> None:
    assert with_token(unsecured(1000, ends_in=0.001))[1] == 1
    with pytest.raises(AssertionError):
        with_token(unsecured(1000, ends_in=0))


def _spoiled(chance: random.Random, said: bytes) -> bytes:
    at, length = chance.randrange(len(said)), chance.randrange(4)
    return said[:at] + chance.randbytes(chance.randrange(4)) + said[at + length :]


def test_whatever_is_said_a_login_is_refused_at_most() -> None:
    chance = random.Random(7628)
    tokens = BearerTokens(UnsecuredTokens(["kafka"]), lambda: 1_000_000)
    claims = b'{"sub":"alice","exp":1005.5,"iat":1e2,"scope":["kafka",null,{"a":[true]}]}'
    taken = 0
    for number in range(3000):
        inside = _spoiled(chance, claims) if number % 2 else claims
        said = first(f"{part({'alg': 'none'})}.{base64.urlsafe_b64encode(inside).decode().rstrip('=')}.")
        exchange = OAuthBearer(tokens)
        try:
            answer = exchange.answer(said if number % 2 else _spoiled(chance, said))
        except (LoginFailed, Disconnect):
            assert exchange.user is None
            continue
        assert (answer == b"") == (exchange.user is not None)
        taken += answer == b""
    assert 0 < taken < 1500


# --- the broker --------------------------------------------------------------------------------------------


@pytest.fixture
async def guarded() -> AsyncIterator[Broker]:
    async with Broker(port=None, users=USERS, connection_failed_authentication_delay_ms=0) as broker:
        yield broker


@pytest.mark.anyio
async def test_the_broker_hangs_up_when_a_login_has_expired() -> None:
    async with (
        Broker(port=None, users=USERS, connections_max_reauth_ms=1) as broker,
        await connected(broker) as client,
    ):
        await handshake(client, "PLAIN")
        assert (await token(client, plain("alice", PASSWORD))).session_lifetime_ms == 1
        with anyio.fail_after(10):
            while not await _hung_up(client):
                pass


async def _hung_up(client: RawClient) -> bool:
    try:
        await client.ask(ApiVersionsRequest(), 0)
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return True
    return False


@pytest.mark.anyio
async def test_who_has_logged_in_is_known(guarded: Broker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with await connected(guarded) as client:
        await in_scram(client, "SCRAM-SHA-256", "alice", PASSWORD)
    async with await connected(guarded) as client:
        await handshake(client, "PLAIN")
        await token(client, plain("alice", PASSWORD[:-1]))
        assert await client.is_cut_off()
    assert "Invalid username or password" in caplog.text
    assert PASSWORD[:-1] not in caplog.text
    assert PASSWORD[:-1] not in repr(list(guarded.requests))


@pytest.mark.anyio
async def test_a_failed_login_is_answered_late(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(sasl, "sleep", sleep)
    async with Broker(port=None, users=USERS, connection_failed_authentication_delay_ms=1500) as broker:
        async with await connected(broker) as client:
            await in_scram(client, "SCRAM-SHA-256", "alice", PASSWORD)
            await client.ask(ApiVersionsRequest(), 0)
        assert slept == []
        for mechanism, said in (("PLAIN", b"?"), ("SCRAM-SHA-256", b"?"), ("GSSAPI", None)):
            async with await connected(broker) as client:
                await handshake(client, mechanism)
                if said is not None:
                    await token(client, said)
                assert await client.is_cut_off()
    assert slept == [1.5, 1.5, 1.5]


@pytest.mark.anyio
async def test_only_mechanisms_that_are_enabled_are_offered() -> None:
    async with (
        Broker(
            port=None,
            users=USERS,
            sasl_enabled_mechanisms=["SCRAM-SHA-512"],
            connection_failed_authentication_delay_ms=0,
        ) as broker,
        await connected(broker) as client,
    ):
        answer = await handshake(client, "PLAIN")
        assert (answer.error_code, answer.mechanisms) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ["SCRAM-SHA-512"])
        assert await client.is_cut_off()


def test_a_mechanism_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="GSSAPI"):
        Broker(port=None, users=USERS, sasl_enabled_mechanisms=["GSSAPI"])


def test_secrets_have_no_repr() -> None:
    credential = ScramCredential.made_of(ScramAlgorithm.SHA_256, b"salted", b"pepper", 4096)
    upsertion = ScramCredentialUpsertion(
        name="alice", mechanism=1, iterations=4096, salt=b"pepper", salted_password=b"salted"
    )
    shown = repr([credential, upsertion, SaslAuthenticateRequest(auth_bytes=plain("alice", PASSWORD))])
    assert PASSWORD not in shown
    assert "salted'" not in shown
    assert repr(credential) == "ScramCredential(iterations=4096)"
    assert PASSWORD not in repr(Credentials(USERS, ["SCRAM-SHA-256"]))


def test_known_values_of_scram() -> None:
    """The example of RFC 7677."""
    mechanism = ScramAlgorithm.SHA_256
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    credential = ScramCredential.made_of(mechanism, mechanism.salted("pencil", salt, 4096), salt, 4096)
    said = (
        b"n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    signature = base64.b64encode(mechanism.hmac(credential.server_key, said))
    assert signature == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.mark.anyio
@pytest.mark.parametrize("version", range(3))
async def test_a_name_that_is_too_long_to_be_told(version: int) -> None:
    """Older versions of the answer have no room for it: no fault of the broker, which its end would show."""
    async with (
        Broker(port=None, oauthbearer=True, connection_failed_authentication_delay_ms=0) as broker,
        await connected(broker) as client,
    ):
        await handshake(client, "OAUTHBEARER")
        said = first(unsecured(time.time(), user="x" * 100_000), for_user="alice")
        await client.send(SaslAuthenticateRequest(auth_bytes=said), version)
        assert await client.is_cut_off()


@pytest.mark.anyio
async def test_why_a_token_is_refused_is_in_the_log_and_the_token_is_not(caplog: pytest.LogCaptureFixture) -> None:
    refused = unsecured(time.time(), ends_in=-1)
    async with (
        Broker(port=None, oauthbearer=True, connection_failed_authentication_delay_ms=0) as broker,
        await connected(broker) as client,
    ):
        await handshake(client, "OAUTHBEARER")
        await token(client, first(refused))
        await token(client, b"\x01")
        assert await client.is_cut_off()
        assert refused not in repr(list(broker.requests))
    assert "authentication failed: the token has expired" in caplog.text
    assert refused not in caplog.text


def test_tokens_are_taken_by_who_says_which() -> None:
    with pytest.raises(ValueError, match="set oauthbearer, which enables it"):
        Broker(port=None, users=USERS, sasl_enabled_mechanisms=["PLAIN", "OAUTHBEARER"])
    with pytest.raises(ValueError, match="oauthbearer is 'alice': True for unsecured tokens, or a function"):
        Broker(port=None, oauthbearer="alice")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'kafka': a list of values"):
        UnsecuredTokens("kafka")
    tokens = bearer_tokens(lambda token, now_ms: BearerToken(token, now_ms + 1), lambda: 0)
    assert tokens is not None
    assert tokens.check("alice") == ("alice", 1)
    assert enabled_mechanisms(None, ["PLAIN"], tokens) == ("OAUTHBEARER",)
    assert enabled_mechanisms(USERS, ["OAUTHBEARER", "PLAIN"], tokens) == ("PLAIN", "OAUTHBEARER")
    with pytest.raises(ValueError, match="users need at least one"):
        enabled_mechanisms(USERS, ["OAUTHBEARER"], tokens)


def test_users_need_a_mechanism_to_log_in_with() -> None:
    with pytest.raises(ValueError, match="users need at least one"):
        Broker(port=None, users=USERS, sasl_enabled_mechanisms=[])


@pytest.mark.parametrize("users", [None, USERS])
def test_mechanisms_are_a_list_of_what_there_is(users: dict[str, str] | None) -> None:
    with pytest.raises(ValueError, match="unknown SASL mechanism GSSAPI; known: PLAIN, SCRAM"):
        enabled_mechanisms(users, ["PLAIN", "GSSAPI"])
    with pytest.raises(ValueError, match="'PLAIN': a list of names"):
        enabled_mechanisms(users, "PLAIN")
    assert enabled_mechanisms(users, ["PLAIN"]) == (() if users is None else ("PLAIN",))


def test_users_are_never_let_in_without_a_mechanism() -> None:
    with pytest.raises(ValueError, match="users need at least one"):
        enabled_mechanisms(USERS, [])
    with pytest.raises(ValueError, match="users need at least one"):
        Credentials(USERS)


@pytest.mark.anyio
async def test_orders_do_not_open_the_gate(guarded: Broker) -> None:
    order = guarded.on(ApiKey.METADATA, answer=MetadataResponse(brokers=[], topics=[]))
    async with await connected(guarded) as client:
        await client.send(MetadataRequest(topics=[]), 12)
        assert await client.is_cut_off()
    assert order.count == 0
    async with await connected(guarded) as client:
        await in_scram(client, "SCRAM-SHA-256", "alice", PASSWORD)
        await client.ask(MetadataRequest(topics=[]), 12)
    assert order.count == 1


@pytest.mark.anyio
async def test_a_frozen_node_takes_no_bare_tokens(guarded: Broker) -> None:
    async with await connected(guarded) as client:
        await handshake(client, "PLAIN", 0)
        received: list[bytes] = []

        async def receive() -> None:
            received.append(await client.frame())

        guarded.freeze_node(1)
        await client.send_frame(plain("alice", PASSWORD))
        async with anyio.create_task_group() as group:
            group.start_soon(receive)
            await anyio.wait_all_tasks_blocked()
            assert received == []
            guarded.thaw_node(1)
        assert received == [b""]


def test_settings_that_may_be_secret_have_no_repr() -> None:
    changed = IncrementalAlterConfigsRequestAlterableConfig(name="n", config_operation=0, value=PASSWORD)
    replaced = AlterConfigsRequestAlterableConfig(name="n", value=PASSWORD)
    assert PASSWORD not in repr([changed, replaced])
