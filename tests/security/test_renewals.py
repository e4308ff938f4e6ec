"""Logins that end: renewed on the same connection, behind what is in flight; and users that are no more."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
import trio
from support.bearer import unsecured
from support.connecting import ask, connected, echo, eventually, named
from support.scripted_broker import Asked, Peer, ScriptedBroker
from support.scripted_logins import handshake, let_in, scripted, tokens
from support.securing import MECHANISMS, USERS, alice

from aiokafkawire import Client
from aiokafkawire.errors import (
    ConnectionLost,
    ErrorCode,
    SaslAuthenticationFailed,
)
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.metadata import MetadataRequest
from aiokafkawire.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from aiokafkawire.runtime import Runtime
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.security.credentials import ScramAlgorithm
from aiokafkawire.testing.virtual.clock import VirtualClock
from aiokafkawire.types import OAuthBearerToken

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]


# --- logins that end -------------------------------------------------------------------------------------------------


async def next_of(peer: Peer, kind: type) -> Asked:
    asked = await peer.next()
    assert isinstance(asked.request, kind), asked.request
    return asked


async def test_a_login_is_renewed_behind_what_is_in_flight_and_before_what_comes_then() -> None:
    async with ScriptedBroker() as broker, anyio.create_task_group() as tasks:
        broker.on[ApiKey.SASL_HANDSHAKE] = handshake
        broker.on[ApiKey.SASL_AUTHENTICATE] = lambda _: let_in(lifetime_ms=1)
        async with connected(broker.connect, **alice("PLAIN")) as connection:
            # From now on the test itself answers.
            del broker.on[ApiKey.SASL_HANDSHAKE], broker.on[ApiKey.SASL_AUTHENTICATE]
            peer, heard = broker.peers[0], list[Any]()
            await tasks.start(ask, connection, "before", heard)
            before = await next_of(peer, MetadataRequest)
            await eventually(lambda: connection._held_back is not None)  # the time is up
            await tasks.start(ask, connection, "meanwhile", heard)
            await anyio.wait_all_tasks_blocked()
            assert broker.count(SaslHandshakeRequest) == 1
            await before.answer(echo(before.request))
            again = await next_of(peer, SaslHandshakeRequest)
            assert heard == ["before"]
            await again.answer(SaslHandshakeResponse(error_code=0, mechanisms=[]))
            token = await next_of(peer, SaslAuthenticateRequest)
            assert bytes(token.request.auth_bytes) == b"\0alice\0secret-of-alice"
            assert heard == ["before"]
            await token.answer(let_in())
            meanwhile = await next_of(peer, MetadataRequest)
            await meanwhile.answer(echo(meanwhile.request))
            await eventually(lambda: heard == ["before", "meanwhile"])
            assert connection.failure is None


async def test_a_login_that_is_not_renewed_ends_the_connection_and_all_hear_why() -> None:
    async with ScriptedBroker() as broker, anyio.create_task_group() as tasks:
        broker.on[ApiKey.SASL_HANDSHAKE] = handshake
        broker.on[ApiKey.SASL_AUTHENTICATE] = lambda _: let_in(lifetime_ms=1)
        async with connected(broker.connect, **alice("PLAIN")) as connection:
            del broker.on[ApiKey.SASL_AUTHENTICATE]
            peer, heard = broker.peers[0], list[Any]()
            token = await next_of(peer, SaslAuthenticateRequest)
            await tasks.start(ask, connection, "meanwhile", heard)
            code = ErrorCode.SASL_AUTHENTICATION_FAILED
            await token.answer(SaslAuthenticateResponse(error_code=code, error_message="gone", auth_bytes=b""))
            await eventually(lambda: bool(heard))
            assert type(heard[0]) is SaslAuthenticationFailed
            assert type(connection.failure) is SaslAuthenticationFailed
            assert broker.count(MetadataRequest) == 0
            await peer.hung_up()


async def test_a_renewal_that_comes_to_no_end_ends_the_connection() -> None:
    """What is held back meanwhile does not wait for a function of the user's that hangs."""
    asked = list[int]()

    async def provide() -> str:
        asked.append(1)
        if len(asked) > 1:
            await anyio.sleep_forever()
        return "token"

    options: dict[str, Any] = {"sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_token": provide}
    options |= {"security_protocol": "SASL_PLAINTEXT", "socket_connection_setup_timeout_ms": 200}
    async with (
        scripted(let_in(lifetime_ms=1)) as broker,
        anyio.create_task_group() as tasks,
        connected(broker.connect, **options) as connection,
    ):
        await eventually(lambda: len(asked) > 1)
        heard = list[Any]()
        await tasks.start(ask, connection, "meanwhile", heard)
        await eventually(lambda: bool(heard))
        assert type(heard[0]) is ConnectionLost
        told = "reauthentication timed out: the login by OAUTHBEARER on b:9092 was not done within 0.2 s"
        assert told in str(heard[0])
        await broker.peers[0].hung_up()


async def test_nothing_is_held_back_while_a_token_is_fetched() -> None:
    now, given, fetched = [1_000_000], list[int](), anyio.Event()

    async def provide() -> OAuthBearerToken:
        given.append(now[0])
        if len(given) > 1:
            await fetched.wait()
        return OAuthBearerToken(f"token-{len(given)}", now[0] + 100_000)

    options: dict[str, Any] = {"sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_token": provide}
    runtime = Runtime(wall_ms=lambda: now[0])
    async with (
        scripted(let_in(lifetime_ms=1)) as broker,
        connected(broker.connect, runtime=runtime, security_protocol="SASL_PLAINTEXT", **options) as connection,
    ):
        broker.on[ApiKey.METADATA] = lambda asked: echo(asked.request)
        now[0] += 90_000
        await eventually(lambda: len(given) > 1)
        answer = await connection.request(named("meanwhile"))
        assert answer.topics[0].name == "meanwhile"
        assert len(tokens(broker)) == 1
        fetched.set()
        await eventually(lambda: len(tokens(broker)) > 1)
        assert tokens(broker)[1] == b"n,,\x01auth=Bearer token-2\x01\x01"
        assert len(given) == 2


async def test_a_connection_that_ends_has_no_login_to_renew() -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.SASL_HANDSHAKE] = handshake
        broker.on[ApiKey.SASL_AUTHENTICATE] = lambda _: let_in(lifetime_ms=3_600_000)
        async with connected(broker.connect, **alice("PLAIN")) as connection:
            await connection.close()
            assert str(connection.failure).endswith("was closed by this client")
        # `connected` has looked for tasks that are left.


async def test_renewing_is_no_use_of_a_connection() -> None:
    async with scripted(let_in(lifetime_ms=1)) as broker, connected(broker.connect, **alice("PLAIN")) as connection:
        used_at = connection.used_at
        await eventually(lambda: len(tokens(broker)) >= 2)
        assert connection.used_at == used_at


async def inline(function: Callable[..., Any], *args: Any) -> Any:
    """In place of a thread, for which virtual time does not wait."""
    return function(*args)


async def go_on_until(done: Callable[[], bool], broker: Broker, **options: Any) -> None:
    """Produce to a topic all the while, and look that nothing was lost and no connection was opened for it."""
    count = 0
    async with Client(broker.bootstrap, connector=broker.connect, **options) as client, client.producer() as producer:
        while not done():
            await producer.send("t", b"v")
            await anyio.sleep(0.1)
            count += 1
        dials = len({one.connection for one in broker.requests})
    assert broker.log("t").log_end_offset == count
    assert dials == 2


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_producer_goes_on_while_its_login_is_renewed(mechanism: str) -> None:
    async def main() -> None:
        async with Broker(port=None, users=USERS, connections_max_reauth_ms=10_000) as broker:
            broker.create_topic("t")
            offload: Any = inline
            handshakes = broker.requests.of
            await go_on_until(
                lambda: len(handshakes(ApiKey.SASL_HANDSHAKE)) >= 9,  # a connection more than once
                broker,
                runtime=Runtime(offload=offload),
                **alice(mechanism),
            )

    trio.run(main, clock=VirtualClock())


def test_a_producer_goes_on_while_tokens_end_and_others_take_their_place() -> None:
    given: list[str] = []

    def wall_ms() -> int:
        return 1_700_000_000_000 + int(trio.current_time() * 1000)

    def token() -> str:
        given.append(unsecured(wall_ms() / 1000, ends_in=10))
        return given[-1]

    async def main() -> None:
        async with Broker(port=None, oauthbearer=True, clock=wall_ms) as broker:
            broker.create_topic("t")
            offload: Any = inline
            runtime = Runtime(offload=offload, wall_ms=wall_ms)
            options = {"sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_token": token}
            provided: Any = {"security_protocol": "SASL_PLAINTEXT", **options}
            await go_on_until(lambda: len(given) >= 5, broker, runtime=runtime, **provided)
            answers = [one.response for one in broker.requests.of(ApiKey.SASL_AUTHENTICATE)]
            lifetimes = [one.session_lifetime_ms for one in answers if isinstance(one, SaslAuthenticateResponse)]
            assert 0 < min(lifetimes) <= max(lifetimes) <= 10_000

    trio.run(main, clock=VirtualClock())


# --- users that are no more ------------------------------------------------------------------------------------------


@asynccontextmanager
async def locked_out(**more: Any) -> AsyncIterator[tuple[Broker, Client]]:
    """A client that has logged in, and could not do so again."""
    mechanism = ScramAlgorithm.SHA_256
    async with Broker(users=USERS, connection_failed_authentication_delay_ms=0) as broker:
        broker.create_topic("t")
        async with Client(broker.bootstrap, **alice(mechanism.value), **more) as client:
            await client.admin.describe_topic("t")
            broker._cluster.credentials.remove(mechanism, "alice")
            with anyio.fail_after(10):
                yield broker, client


async def test_a_producer_hears_at_once_that_its_user_is_no_more() -> None:
    async with locked_out() as (_, client):
        with pytest.raises(SaslAuthenticationFailed):
            async with client.producer(enable_idempotence=False) as producer:
                await producer.send("t", b"v")
        with pytest.raises(SaslAuthenticationFailed):
            async with client.producer() as producer:
                await producer.send("t", b"v")


async def test_a_consumer_hears_at_once_that_its_user_is_no_more() -> None:
    async with locked_out() as (_, client):
        for group in (None, "g"):
            with pytest.raises(SaslAuthenticationFailed):
                async with client.consumer("t", auto_offset_reset="earliest", group_id=group) as consumer:
                    async for _record in consumer:
                        raise AssertionError("read")


async def test_who_waits_for_metadata_hears_at_once_that_the_user_is_no_more() -> None:
    async with locked_out() as (broker, client):
        await broker.stop_node(1)
        await broker.start_node(1)
        with pytest.raises(SaslAuthenticationFailed):
            await client._cluster.metadata.refresh(client._cluster.metadata.snapshot, client._cluster.deadline(60))
        with pytest.raises(SaslAuthenticationFailed):
            await client.admin.create_topics({"u": 1})
