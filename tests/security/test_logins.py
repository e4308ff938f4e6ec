"""Logging in: on the in-process broker, and on scripted ones that refuse, lie, or want it again."""

from __future__ import annotations

import asyncio
import threading
import time
from itertools import count
from typing import Any

import anyio
import pytest
from support.bearer import unsecured
from support.connecting import connected, eventually
from support.login_settings import login
from support.patience import SOON
from support.scripted_broker import Peer, ScriptedBroker
from support.scripted_logins import handshake, let_in, scripted, tokens
from support.securing import MECHANISMS, USERS, Papers, alice, refusal
from support.token_endpoint import answering, endpoint, options_for

from aiokafkawire import Client
from aiokafkawire.errors import (
    AuthenticationFailed,
    ConnectionLost,
    ErrorCode,
    IllegalSaslState,
    NoBrokerReachable,
    SaslAuthenticationFailed,
    SecurityMismatch,
    UnsupportedSaslMechanism,
)
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.sasl import (
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.security.bearer_tokens import BearerToken, TokenRefused, UnsecuredTokens
from aiokafkawire.types import OAuthBearerToken

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]


def oauth(provider: Any, **more: Any) -> dict[str, Any]:
    more.setdefault("security_protocol", "SASL_PLAINTEXT")
    return {"sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_token": provider, **more}


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("user", USERS)
async def test_who_has_the_password_gets_in(mechanism: str, user: str) -> None:
    async with Broker(users=USERS, connection_failed_authentication_delay_ms=0) as broker:
        broker.create_topic("t")
        async with Client(broker.bootstrap, **login(mechanism, user, USERS[user])) as client:
            async with client.producer() as producer:
                await producer.send("t", b"v")
            async with client.consumer("t", auto_offset_reset="earliest") as consumer:
                async for record in consumer:
                    assert record.value == b"v"
                    break


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_wrong_password_is_told_at_once(mechanism: str) -> None:
    async with Broker(users=USERS, connection_failed_authentication_delay_ms=0) as broker:
        error = await refusal(broker.bootstrap, **alice(mechanism, sasl_password="wrong-secret"))
        assert type(error) is SaslAuthenticationFailed
        assert isinstance(error, AuthenticationFailed)
        assert f"{broker.bootstrap} refused the login by {mechanism}: " in str(error)
        assert "wrong-secret" not in str(error)
        assert type(await refusal(broker.bootstrap, **login(mechanism, "mallory", "none"))) is SaslAuthenticationFailed


async def test_inside_tls(papers: Papers) -> None:
    options = {**papers.client(), **alice("SCRAM-SHA-512"), "security_protocol": "SASL_SSL"}
    async with Broker(users=USERS, tls=papers.server()) as broker, Client(broker.bootstrap, **options) as client:
        await client.admin.create_topics({"t": 1})
        assert await client.admin.list_topics() == ("t",)


async def test_over_memory() -> None:
    async with (
        Broker(users=USERS, port=None) as broker,
        Client(broker.bootstrap, connector=broker.connect, **alice("PLAIN")) as client,
    ):
        await client.admin.create_topics({"t": 1})
        assert await client.admin.list_topics() == ("t",)


async def test_a_mechanism_that_the_broker_lacks() -> None:
    async with Broker(users=USERS, sasl_enabled_mechanisms=["SCRAM-SHA-512"]) as broker:
        error = await refusal(broker.bootstrap, **alice("PLAIN"))
        assert type(error) is UnsupportedSaslMechanism
        assert "does not support PLAIN; it supports SCRAM-SHA-512" in str(error)


async def test_a_login_where_none_is_wanted() -> None:
    async with Broker() as broker:
        error = await refusal(broker.bootstrap, **alice("PLAIN"))
        assert type(error) is IllegalSaslState
        assert "does not use SASL: set security_protocol to PLAINTEXT or SSL" in str(error)


async def test_no_login_where_one_is_wanted() -> None:
    async with Broker(users=USERS, connection_failed_authentication_delay_ms=0) as broker:
        error = await refusal(broker.bootstrap)
        assert type(error) is SecurityMismatch
        assert f"{broker.bootstrap} requires SASL authentication with PLAIN, " in str(error)
        assert "set security_protocol to SASL_SSL or SASL_PLAINTEXT" in str(error)


async def test_a_broker_that_hangs_up_on_whoever_asks_may_be_back_soon() -> None:
    """It says of itself that it wants no login: then it was something else."""
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.SASL_HANDSHAKE] = lambda _: SaslHandshakeResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[]
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hang_up_on_metadata, broker)
            error = await refusal("b:9092", connector=broker.connect, bootstrap_timeout_ms=1_000)
            tasks.cancel_scope.cancel()
        assert type(error) is NoBrokerReachable
        assert "does this listener require SASL?" in str(error)
        assert broker.count(SaslHandshakeRequest) > 1


async def hang_up_on_metadata(broker: ScriptedBroker) -> None:
    async def hang_up(peer: Peer) -> None:
        await peer.next()
        await peer.stream.aclose()

    async with anyio.create_task_group() as tasks:
        for number in count():
            await eventually(lambda least=number: len(broker.peers) > least)  # type: ignore[misc]
            tasks.start_soon(hang_up, broker.peers[number])


async def test_a_broker_from_before_saslauthenticate() -> None:
    async with Broker(users=USERS, max_versions="0.11.0", connection_failed_authentication_delay_ms=0) as broker:
        for mechanism in MECHANISMS:
            async with Client(broker.bootstrap, **alice(mechanism)):
                pass
        error = await refusal(
            broker.bootstrap, bootstrap_timeout_ms=1_000, **alice("PLAIN", sasl_password="wrong-secret")
        )
        assert type(error) is NoBrokerReachable
        assert "brokers before 1.0 do so if they refuse the login" in str(error)


# --- tokens, on the in-process broker --------------------------------------------------------------------------------


def of_alice() -> str:
    return unsecured(time.time())


async def test_who_has_a_token_gets_in() -> None:
    async with Broker(oauthbearer=True) as broker:
        broker.create_topic("t")
        provided = oauth(of_alice, sasl_oauthbearer_extensions={"logicalCluster": "lkc-1"})
        async with Client(broker.bootstrap, **provided) as client, client.producer() as producer:
            await producer.send("t", b"v")
        said = [bytes(one.request.auth_bytes) for one in broker.requests.of(ApiKey.SASL_AUTHENTICATE)]
        assert said
        assert all(one.endswith(b"\x01logicalCluster=lkc-1\x01\x01") for one in said)


async def test_tokens_inside_tls_and_beside_passwords(papers: Papers) -> None:
    provided = {**papers.client(), **oauth(of_alice), "security_protocol": "SASL_SSL"}
    async with Broker(users=USERS, oauthbearer=True, tls=papers.server()) as broker:
        for options in (provided, {**papers.client(), **alice("PLAIN"), "security_protocol": "SASL_SSL"}):
            async with Client(broker.bootstrap, **options) as client:
                assert await client.admin.list_topics() == ()


@pytest.mark.parametrize(
    ("token", "status"),
    [
        (lambda: "opaque", '{"status":"invalid_token"}'),
        # The client does not look at what it has been told the end of.
        (lambda: OAuthBearerToken(unsecured(time.time(), ends_in=-1), 2**52), '{"status":"invalid_token"}'),
        (lambda: unsecured(time.time(), scope="other"), '{"status":"insufficient_scope", "scope":"[kafka]"}'),
    ],
)
async def test_a_token_that_the_broker_refuses_is_told_at_once(token: Any, status: str) -> None:
    scope = UnsecuredTokens(["kafka"])
    async with Broker(oauthbearer=scope, connection_failed_authentication_delay_ms=0) as broker:
        error = await refusal(broker.bootstrap, **oauth(token))
        assert type(error) is SaslAuthenticationFailed
        assert f"{broker.bootstrap} refused the login by OAUTHBEARER: {status}" in str(error)


async def test_tokens_of_a_function_of_the_test() -> None:
    def known(token: str, now_ms: int) -> BearerToken:
        if token != "alice-1":
            raise TokenRefused("nobody has this one", status="unknown", openid_configuration="https://o.example.org")
        return BearerToken("alice", now_ms + 60_000)

    async with Broker(oauthbearer=known, connection_failed_authentication_delay_ms=0) as broker:
        async with Client(broker.bootstrap, **oauth(lambda: "alice-1")):
            pass
        answers = [one.response for one in broker.requests.of(ApiKey.SASL_AUTHENTICATE)]
        assert {one.session_lifetime_ms for one in answers if isinstance(one, SaslAuthenticateResponse)} == {60_000}
        assert "unknown" in str(await refusal(broker.bootstrap, **oauth(lambda: "bob-1")))


async def test_a_token_on_a_broker_from_before_saslauthenticate() -> None:
    broker = Broker(oauthbearer=True, max_versions="0.11.0")
    async with broker, Client(broker.bootstrap, **oauth(of_alice)) as client:
        assert await client.admin.list_topics() == ()


# --- scripted brokers ------------------------------------------------------------------------------------------------


async def test_tokens_of_an_async_function_and_of_a_plain_one() -> None:
    async def later() -> str:
        await anyio.lowlevel.checkpoint()
        return "of-async"

    async with scripted(let_in()) as broker:
        for provider in (
            later,
            lambda: "of-plain",
            lambda: later(),
            lambda: OAuthBearerToken("told", None, {"a": "b"}),
        ):
            async with connected(broker.connect, **oauth(provider, sasl_oauthbearer_extensions={"c": "d"})):
                pass
        assert tokens(broker) == [
            f"n,,\x01auth=Bearer {token}\x01c=d{more}\x01\x01".encode()
            for token, more in [("of-async", ""), ("of-plain", ""), ("of-async", ""), ("told", "\x01a=b")]
        ]


async def test_tokens_of_an_endpoint() -> None:
    async with scripted(let_in()) as broker:
        with endpoint(answering(200, b'{"access_token":"of-endpoint","expires_in":60}')) as (url, seen):
            for _ in range(2):
                async with connected(broker.connect, **options_for(url)):
                    pass
        assert tokens(broker) == [b"n,,\x01auth=Bearer of-endpoint\x01\x01"] * 2
        assert len(seen) == 2  # each of these connections has a login of its own


async def test_an_endpoint_that_refuses_is_told_at_once_and_one_in_trouble_tried_again() -> None:
    async with scripted(let_in()) as broker:
        with endpoint(answering(401, b'{"error":"invalid_client"}')) as (url, seen):
            error = await refusal("b:9092", connector=broker.connect, **options_for(url))
            assert type(error) is AuthenticationFailed
            assert len(seen) == 1
        with endpoint(answering(503, b"")) as (url, seen):
            options = {"bootstrap_timeout_ms": 500, "reconnect_backoff_ms": 1, "retry_backoff_ms": 1}
            error = await refusal("b:9092", connector=broker.connect, **options_for(url), **options)
            assert type(error) is NoBrokerReachable
            assert "answered 503" in str(error)
            assert len(seen) > 1


async def test_a_login_that_is_cancelled_closes_its_stream() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.SASL_HANDSHAKE] = handshake
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_open_and_leave, broker)
            await eventually(lambda: bool(broker.peers))
            await broker.peers[0].next()
            tasks.cancel_scope.cancel()
        await broker.peers[0].hung_up()


async def _open_and_leave(broker: ScriptedBroker) -> None:
    async with connected(broker.connect, **alice("PLAIN")):
        raise AssertionError("opened")


async def test_a_function_that_fails_is_told_without_its_words() -> None:
    def fail() -> str:
        raise ValueError("secret-in-the-text")

    async with scripted(let_in()) as broker:
        with pytest.raises(AuthenticationFailed, match="sasl_oauthbearer_token failed with ValueError") as caught:
            async with connected(broker.connect, **oauth(fail)):
                raise AssertionError("opened")
        assert "secret-in-the-text" not in str(caught.value)
        assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": False})], ids=["asyncio"])
async def test_a_function_that_raises_a_cancellation_of_its_own_is_told() -> None:
    """As one that awaits a task of the application that was cancelled."""

    def plain() -> str:
        raise asyncio.CancelledError

    async def later() -> str:
        raise asyncio.CancelledError

    told = "sasl_oauthbearer_token failed with CancelledError, and nobody has cancelled it"
    async with scripted(let_in()) as broker:
        for provider in (plain, later):
            with pytest.raises(AuthenticationFailed, match=told):
                async with connected(broker.connect, **oauth(provider)):
                    raise AssertionError("opened")


async def test_a_function_that_does_not_come_back_is_left_behind() -> None:
    left = threading.Event()

    def hang() -> str:
        left.wait(30)
        return "late"

    async with scripted(let_in()) as broker:
        with anyio.fail_after(SOON), pytest.raises(ConnectionLost, match=r"did not complete the login within 0\.05 s"):
            async with connected(broker.connect, **oauth(hang), socket_connection_setup_timeout_ms=50):
                raise AssertionError("opened")
    assert not left.is_set()
    left.set()


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "OAUTHBEARER"])
async def test_an_answer_that_is_larger_than_any_login_s_is_not_read(mechanism: str) -> None:
    options = alice(mechanism) if mechanism != "OAUTHBEARER" else oauth(lambda: "token")
    async with scripted(let_in(b"[" * 256 * 1024 + b"]")) as broker:
        with pytest.raises(AuthenticationFailed, match=rf"^b:9092: {mechanism}: .* token has 262145 bytes, more"):
            async with connected(broker.connect, **options):
                raise AssertionError("opened")


async def test_a_refused_token_is_acknowledged() -> None:
    async with scripted(let_in(b'{"status":"invalid_token"}')) as broker:
        with pytest.raises(
            AuthenticationFailed, match=r"^b:9092: the broker refused the token: status 'invalid_token'$"
        ):
            async with connected(broker.connect, **oauth(lambda: "token")):
                raise AssertionError("opened")
        assert tokens(broker)[-1] == b"\x01"


@pytest.mark.parametrize("said", [b"", b"garbage", b"r=x,s=c2FsdA==,i=4096"])
async def test_a_broker_that_lies_is_not_believed(said: bytes) -> None:
    async with scripted(let_in(said)) as broker:
        with pytest.raises(AuthenticationFailed, match=r"^b:9092: SCRAM-SHA-256: "):
            async with connected(broker.connect, **alice("SCRAM-SHA-256")):
                raise AssertionError("opened")
        await broker.peers[0].hung_up()


async def test_a_broker_that_is_silent_in_the_midst_is_given_up() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.SASL_HANDSHAKE] = handshake
        with pytest.raises(ConnectionLost, match=r"did not complete the login within 0\.05 s"):
            async with connected(broker.connect, **alice("PLAIN"), socket_connection_setup_timeout_ms=50):
                raise AssertionError("opened")


async def test_a_broker_that_hangs_up_in_the_midst_may_be_back_soon() -> None:
    async with ScriptedBroker() as broker, anyio.create_task_group() as tasks:
        broker.on[ApiKey.SASL_HANDSHAKE] = handshake

        async def hang_up() -> None:
            await eventually(lambda: bool(broker.peers))
            await broker.peers[0].next()
            await broker.peers[0].stream.aclose()

        tasks.start_soon(hang_up)
        with pytest.raises(ConnectionLost, match="closed the connection"):
            async with connected(broker.connect, **alice("PLAIN")):
                raise AssertionError("opened")


async def test_what_a_broker_says_moves_no_cursor_in_a_log() -> None:
    said = "no\r\n\x1b[2Jroot logged in" + "x" * 10_000
    code = ErrorCode.SASL_AUTHENTICATION_FAILED
    async with scripted(SaslAuthenticateResponse(error_code=code, error_message=said, auth_bytes=b"")) as broker:
        with pytest.raises(SaslAuthenticationFailed) as caught:
            async with connected(broker.connect, **alice("PLAIN")):
                raise AssertionError("opened")
        assert "no???[2Jroot logged inxxx" in str(caught.value)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 1000
        other = SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=["\x1b[2J"] * 10_000)
        broker.on[ApiKey.SASL_HANDSHAKE] = lambda _: other
        with pytest.raises(UnsupportedSaslMechanism) as refused:
            async with connected(broker.connect, **alice("PLAIN")):
                raise AssertionError("opened")
        assert str(refused.value).isprintable()
        assert len(str(refused.value)) < 1000


async def test_an_unknown_error_of_a_broker_is_one_of_its_errors() -> None:
    answer = SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=None, auth_bytes=b""
    )
    async with scripted(answer) as broker:
        with pytest.raises(SaslAuthenticationFailed, match="it gives no reason"):
            async with connected(broker.connect, **alice("PLAIN")):
                raise AssertionError("opened")
