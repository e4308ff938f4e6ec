"""Delegation tokens of the in-process broker, whose time the test decides, and in old versions of their requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar, TypeVarTuple, Unpack
from uuid import UUID

import anyio
import anyio.lowlevel
import pytest
from support.dialling import over_memory
from support.logging_in import ScramLogin, handshake, is_in, token
from support.login_settings import login
from support.raw_client import RawClient
from support.virtual_time import virtual_time

from aiokafkawire import Client, DelegationToken, KafkaPrincipal
from aiokafkawire.errors import (
    DelegationTokenAuthDisabled,
    DelegationTokenExpired,
    DelegationTokenNotFound,
    ErrorCode,
    UnsupportedVersion,
)
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from aiokafkawire.runtime import Runtime
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.security.delegation_tokens import DelegationTokens
from aiokafkawire.testing.simulation import Simulation, simulate

pytestmark = [pytest.mark.anyio]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

USERS = {"alice": "alice-secret"}
ALICE = login("SCRAM-SHA-256", "alice", USERS["alice"])
HOUR = 3_600_000
BEGAN = 1_700_000_000_000


def now_ms() -> int:
    return BEGAN + int(anyio.current_time() * 1000)


def made(**options: Any) -> Broker:
    given = {"users": USERS, "delegation_token_secret_key": "key", **options}
    return Broker(port=None, connection_failed_authentication_delay_ms=0, **given)


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with made(clock=now_ms) as broker:
        yield broker


@pytest.fixture
async def alice(broker: Broker) -> AsyncIterator[Client]:
    async with client_of(broker, ALICE) as client:
        yield client


async def inline(function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    """Run what a thread would: virtual time does not wait for threads."""
    await anyio.lowlevel.checkpoint()
    return function(*args)


def client_of(broker: Broker, options: dict[str, Any]) -> Client:
    return Client(broker.bootstrap, connector=broker.connect, runtime=Runtime(offload=inline), **options)


def by_token(token: DelegationToken) -> dict[str, Any]:
    return login("SCRAM-SHA-512", token.token_id, token.hmac_base64, sasl_tokenauth=True)


# --- time ----------------------------------------------------------------------------------------------------------


@virtual_time
async def test_a_token_expires_by_the_brokers_clock_and_is_removed_by_the_next_hourly_check(alice: Client) -> None:
    one = await alice.admin.create_delegation_token(max_lifetime_ms=60_000)
    assert one.issue_timestamp_ms == now_ms()
    await anyio.sleep(60)
    assert await alice.admin.renew_delegation_token(one) == one.max_timestamp_ms
    await anyio.sleep(1)
    with pytest.raises(DelegationTokenExpired):
        await alice.admin.renew_delegation_token(one)
    with pytest.raises(DelegationTokenExpired):
        await alice.admin.expire_delegation_token(one, expiry_time_period_ms=5)
    assert await alice.admin.describe_delegation_token() == (one,)
    await anyio.sleep(HOUR / 1000)
    with pytest.raises(DelegationTokenNotFound):
        await alice.admin.renew_delegation_token(one)
    assert await alice.admin.describe_delegation_token() == ()


@virtual_time
async def test_a_renewal_extends_a_token_by_its_period_and_never_beyond_its_lifetime() -> None:
    options = {"delegation_token_max_lifetime_ms": 100_000, "delegation_token_expiry_time_ms": 40_000}
    async with (
        made(clock=now_ms, **options) as broker,
        client_of(broker, ALICE) as alice,
    ):
        one = await alice.admin.create_delegation_token(max_lifetime_ms=500_000)
        assert (one.expiry_timestamp_ms - now_ms(), one.max_timestamp_ms - now_ms()) == (40_000, 100_000)
        await anyio.sleep(30)
        assert await alice.admin.renew_delegation_token(one, renew_time_period_ms=20_000) == now_ms() + 20_000
        assert await alice.admin.renew_delegation_token(one, renew_time_period_ms=80_000) == now_ms() + 40_000
        await anyio.sleep(35)
        assert await alice.admin.renew_delegation_token(one) == one.max_timestamp_ms


@virtual_time
async def test_a_login_ends_with_its_token_and_lasts_on_with_a_renewed_one(broker: Broker, alice: Client) -> None:
    one = await alice.admin.create_delegation_token()
    await alice.admin.expire_delegation_token(one, expiry_time_period_ms=60_000)
    async with client_of(broker, by_token(one)) as client:
        await anyio.sleep(30)
        await alice.admin.renew_delegation_token(one, renew_time_period_ms=HOUR)
        await anyio.sleep(45)
        assert await client.admin.list_topics() == ()
        assert await client.admin.list_topics() == ()
        connections = {request.connection for request in broker.requests.of(ApiKey.METADATA)[-2:]}
        assert len(connections) == 1


@virtual_time
async def test_who_logs_in_by_an_expired_token_gets_no_further(broker: Broker, alice: Client) -> None:
    """As in Apache Kafka, until a check removes the token."""
    one = await alice.admin.create_delegation_token(max_lifetime_ms=1_000)
    await anyio.sleep(2)
    async with RawClient(await over_memory(broker)) as client:
        assert (await handshake(client, "SCRAM-SHA-256")).error_code == 0
        talk = ScramLogin("SCRAM-SHA-256", one.token_id, one.hmac_base64, extensions=",tokenauth=true")
        first = await token(client, talk.first())
        last = await token(client, talk.final(bytes(first.auth_bytes)))
        assert (last.error_code, last.session_lifetime_ms) == (0, 0)
        with pytest.raises(anyio.EndOfStream):
            await is_in(client)


def test_tokens_in_a_simulation_expire_in_virtual_time() -> None:
    async def life(simulation: Simulation) -> None:
        async with simulation.client(**ALICE) as alice:
            one = await alice.admin.create_delegation_token()
            assert 0 <= simulation.wall_ms() - one.issue_timestamp_ms < 10
            async with simulation.client(**by_token(one)) as client:
                await client.admin.list_topics()
            await anyio.sleep(25 * HOUR / 1000)
            with pytest.raises((DelegationTokenExpired, DelegationTokenNotFound)):
                await alice.admin.renew_delegation_token(one)

    simulate(life, seed=1, time_limit=200_000, users=USERS, delegation_token_secret_key="key")


# --- what is off, and what is old ------------------------------------------------------------------------------------


async def test_without_a_key_there_are_no_tokens() -> None:
    async with (
        made(delegation_token_secret_key=None) as broker,
        client_of(broker, ALICE) as alice,
    ):
        for call in (
            alice.admin.create_delegation_token(),
            alice.admin.renew_delegation_token(b"h"),
            alice.admin.expire_delegation_token(b"h"),
            alice.admin.describe_delegation_token(),
        ):
            with pytest.raises(DelegationTokenAuthDisabled):
                await call


@pytest.mark.parametrize("release", ["1.1", "2.4", "4.3"])
async def test_tokens_in_every_version_of_their_requests(release: str) -> None:
    async with (
        made(max_versions=release) as broker,
        client_of(broker, ALICE) as alice,
    ):
        one = await alice.admin.create_delegation_token(renewers=[KafkaPrincipal.user("bob")])
        assert one.token_requester == one.owner == KafkaPrincipal.user("alice")
        assert await alice.admin.describe_delegation_token() == (one,)
        await alice.admin.renew_delegation_token(one)
        if release != "4.3":
            told = (
                r"delegation tokens need brokers since 1\.1 \(KIP-48\), and tokens for another owner 3\.3 \(KIP-373\)"
            )
            with pytest.raises(UnsupportedVersion, match=told):
                await alice.admin.create_delegation_token(owner=KafkaPrincipal.user("bob"))
        await alice.admin.expire_delegation_token(one)
        assert await alice.admin.describe_delegation_token() == ()


async def test_brokers_before_1_1_have_no_tokens() -> None:
    async with made(max_versions="1.0") as broker, client_of(broker, ALICE) as alice:
        with pytest.raises(UnsupportedVersion, match=r"delegation tokens need brokers since 1\.1 \(KIP-48\): "):
            await alice.admin.describe_delegation_token()


async def test_errors_name_the_owner_and_the_requester_and_no_times() -> None:
    async with Broker(port=None) as open_, RawClient(await over_memory(open_)) as client:
        create = CreateDelegationTokenRequest(
            owner_principal_type="User", owner_principal_name="bob", renewers=[], max_lifetime_ms=-1
        )
        answer = await client.ask(create, 3)
        assert (answer.error_code, answer.principal_name) == (ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, "bob")
        assert (answer.token_requester_principal_name, answer.issue_timestamp_ms, answer.hmac) == ("ANONYMOUS", -1, b"")
        refused = [
            (await client.ask(RenewDelegationTokenRequest(hmac=b"h", renew_period_ms=-1), 2)).error_code,
            (await client.ask(ExpireDelegationTokenRequest(hmac=b"h", expiry_time_period_ms=-1), 2)).error_code,
            (await client.ask(DescribeDelegationTokenRequest(owners=None), 3)).error_code,
        ]
        assert refused == [ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED] * 3


async def test_no_hmac_is_shown(broker: Broker, alice: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    one = await alice.admin.create_delegation_token()
    await alice.admin.renew_delegation_token(one)
    await alice.admin.describe_delegation_token()
    async with client_of(broker, by_token(one)) as client:
        await client.admin.list_topics()
        shown = repr((one, client, broker.requests.of(ApiKey.RENEW_DELEGATION_TOKEN), list(broker.requests)))
    for text in (shown, caplog.text):
        for secret in (one.hmac_base64, repr(one.hmac)[2:-1], one.hmac.hex()):
            assert secret not in text


def test_no_id_begins_with_a_dash() -> None:
    ids = iter([UUID(bytes=bytes([first]) + bytes(15)) for first in (0xF8, 0xFB, 0x04)])
    tokens = DelegationTokens("key", HOUR, HOUR, lambda: BEGAN, lambda: next(ids))
    assert tokens.create("User:alice", "User:alice", (), -1).token_id == "BA" + "A" * 20
