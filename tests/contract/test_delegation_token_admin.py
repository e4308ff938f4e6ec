"""What the admin does with delegation tokens (KIP-48), and logins by them, whichever broker it talks to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from contract.conftest import Where
from support.apache_kafka import ApacheKafka, missing
from support.login_settings import login
from support.needing import require
from support.transactional import settled

from aiokafkawire import Client, DelegationToken, KafkaPrincipal, ScramMechanism
from aiokafkawire.errors import (
    DelegationTokenExpired,
    DelegationTokenNotFound,
    DelegationTokenOwnerMismatch,
    DelegationTokenRequestNotAllowed,
    InvalidPrincipalType,
    SaslAuthenticationFailed,
)
from aiokafkawire.network.connector import connect_tcp
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio

USERS = {"alice": "alice-secret", "bob": "bob-secret", "carol": "carol-secret"}
ALICE, BOB, CAROL = map(KafkaPrincipal.user, USERS)
MECHANISMS = ["SCRAM-SHA-256", "SCRAM-SHA-512"]
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
KEY = "the-key-of-all-tokens"
DAY = 86_400_000


@pytest.fixture(scope="module")
def apache_with_tokens(request: pytest.FixtureRequest) -> Iterator[ApacheKafka]:
    require(missing())
    properties = {
        "delegation.token.secret.key": KEY,
        "connection.failed.authentication.delay.ms": "0",
        "listener.name.guarded.sasl.enabled.mechanisms": ",".join(MECHANISMS),
        **{f"listener.name.guarded.{name.lower()}.sasl.jaas.config": MODULE for name in MECHANISMS},
    }
    scram = [f"SCRAM-SHA-256=[name={user},password={password}]" for user, password in USERS.items()]
    with ApacheKafka(
        request.config.option.kafka, properties=properties, listeners={"GUARDED": "SASL_PLAINTEXT"}, scram=scram
    ) as kafka:
        yield kafka


@pytest.fixture(params=["in-process", "memory", pytest.param("apache-kafka", marks=pytest.mark.kafka)])
async def cluster(request: pytest.FixtureRequest, kafka_release: str | None) -> AsyncIterator[Where]:
    """A cluster whose clients log in."""
    if request.param == "apache-kafka":
        yield Where(request.getfixturevalue("apache_with_tokens").addresses["GUARDED"], connect_tcp)
        return
    port = None if request.param == "memory" else 0
    async with Broker(
        port=port,
        max_versions=kafka_release,
        users=USERS,
        connection_failed_authentication_delay_ms=0,
        delegation_token_secret_key=KEY,
    ) as broker:
        yield Where(broker.bootstrap, connect_tcp if port == 0 else broker.connect)


def known_as(cluster: Where, user: str) -> Client:
    return cluster.client(**login("SCRAM-SHA-256", user, USERS[user]))


def by_token(cluster: Where, token: DelegationToken, mechanism: str = "SCRAM-SHA-256", **options: Any) -> Client:
    return cluster.client(
        **login(mechanism, token.token_id, token.hmac_base64, sasl_tokenauth=True),
        bootstrap_timeout_ms=20_000,
        **options,
    )


@pytest.fixture
async def alice(cluster: Where) -> AsyncIterator[Client]:
    async with known_as(cluster, "alice") as client:
        yield client


async def known(client: Client, token: DelegationToken) -> DelegationToken:
    """Wait until a token is known: a broker of Apache Kafka hears of it from its controller."""

    async def found() -> list[DelegationToken]:
        return [one for one in await client.admin.describe_delegation_token() if one.token_id == token.token_id]

    return (await settled(found, bool))[0]


async def gone(client: Client, token: DelegationToken) -> None:
    async def ids() -> list[str]:
        return [one.token_id for one in await client.admin.describe_delegation_token()]

    await settled(ids, lambda there: token.token_id not in there)


async def test_a_token_has_an_owner_renewers_and_a_lifetime(alice: Client) -> None:
    token = await alice.admin.create_delegation_token(renewers=[BOB])
    assert (token.owner, token.token_requester, token.renewers) == (ALICE, ALICE, (BOB,))
    assert token.expiry_timestamp_ms - token.issue_timestamp_ms == DAY
    assert token.max_timestamp_ms - token.issue_timestamp_ms == 7 * DAY
    assert len(token.hmac) == 64
    assert await known(alice, token) == token
    short = await alice.admin.create_delegation_token(max_lifetime_ms=60_000)
    assert short.expiry_timestamp_ms == short.max_timestamp_ms == short.issue_timestamp_ms + 60_000
    longest = await alice.admin.create_delegation_token(max_lifetime_ms=2**63 - 1)
    assert longest.max_timestamp_ms - longest.issue_timestamp_ms == 7 * DAY
    assert token.hmac_base64 not in repr(token)
    assert str(token.hmac) not in repr(token)


async def test_tokens_are_found_by_their_owners_and_renewers(alice: Client) -> None:
    token = await alice.admin.create_delegation_token(renewers=[BOB])
    await known(alice, token)
    for owners, is_found in (
        (None, True),
        ([ALICE], True),
        ([BOB], True),
        ([CAROL, BOB], True),
        ([CAROL], False),
        ([], False),
    ):
        found = await alice.admin.describe_delegation_token(owners)
        assert (token in found) is is_found, owners


async def test_a_token_is_made_for_another_owner(alice: Client, cluster: Where) -> None:
    token = await alice.admin.create_delegation_token(owner=BOB)
    assert (token.owner, token.token_requester) == (BOB, ALICE)
    assert (await known(alice, token)).token_requester == ALICE
    async with known_as(cluster, "bob") as bob:
        await bob.admin.renew_delegation_token(token)
    with pytest.raises(DelegationTokenOwnerMismatch):
        await alice.admin.renew_delegation_token(token)


async def test_owner_and_renewers_renew_and_expire_a_token_and_nobody_else(alice: Client, cluster: Where) -> None:
    token = await alice.admin.create_delegation_token(renewers=[BOB])
    await known(alice, token)
    async with known_as(cluster, "bob") as bob, known_as(cluster, "carol") as carol:
        for act in (carol.admin.renew_delegation_token, carol.admin.expire_delegation_token):
            with pytest.raises(DelegationTokenOwnerMismatch):
                await act(token)
        expiry = await bob.admin.renew_delegation_token(token, renew_time_period_ms=2 * DAY)
        assert 0 <= expiry - token.expiry_timestamp_ms < 120_000  # a day at most
        soon = await alice.admin.renew_delegation_token(token.hmac, renew_time_period_ms=60_000)
        assert 0 < soon - token.issue_timestamp_ms < 200_000

        async def expires() -> int:
            return (await known(alice, token)).expiry_timestamp_ms

        await settled(expires, lambda at: at == soon)
        later = await bob.admin.expire_delegation_token(token, expiry_time_period_ms=30 * DAY)
        assert later == token.max_timestamp_ms
        await bob.admin.expire_delegation_token(token)
        await gone(alice, token)
    for call in (alice.admin.renew_delegation_token, alice.admin.expire_delegation_token):
        with pytest.raises(DelegationTokenNotFound):
            await call(token)


async def test_a_token_that_has_expired_is_not_renewed(alice: Client) -> None:
    token = await alice.admin.create_delegation_token(max_lifetime_ms=1)
    await known(alice, token)

    async def renewed() -> bool:
        try:
            await alice.admin.renew_delegation_token(token)
        except DelegationTokenExpired:
            return False
        return True

    await settled(renewed, lambda is_renewed: not is_renewed)
    await alice.admin.expire_delegation_token(token)  # at once, which removes it
    await gone(alice, token)


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_client_logs_in_by_a_token(
    alice: Client, cluster: Where, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    token = await alice.admin.create_delegation_token()
    await known(alice, token)
    async with by_token(cluster, token, mechanism) as client:
        await client.admin.list_topics()
        calls = (
            client.admin.create_delegation_token(),
            client.admin.renew_delegation_token(token),
            client.admin.expire_delegation_token(token),
            client.admin.describe_delegation_token(),
        )
        for call in calls:
            with pytest.raises(DelegationTokenRequestNotAllowed):
                await call
    await alice.admin.expire_delegation_token(token)
    await gone(alice, token)
    with pytest.raises(SaslAuthenticationFailed):
        async with by_token(cluster, token, mechanism):
            pass
    assert token.hmac_base64 not in caplog.text


async def test_a_login_by_a_token_that_is_none(alice: Client, cluster: Where) -> None:
    token = await alice.admin.create_delegation_token()
    await known(alice, token)
    wrong = login("SCRAM-SHA-256", token.token_id, "no-such-hmac", sasl_tokenauth=True)
    unmarked = login("SCRAM-SHA-256", token.token_id, token.hmac_base64)
    user = login("SCRAM-SHA-256", "alice", USERS["alice"], sasl_tokenauth=True)
    for options in (wrong, unmarked, user):
        with pytest.raises(SaslAuthenticationFailed) as caught:
            async with cluster.client(**options):
                pass
        assert token.hmac_base64 not in str(caught.value)


async def test_tokens_that_cannot_be(alice: Client) -> None:
    with pytest.raises(InvalidPrincipalType):
        await alice.admin.create_delegation_token(renewers=[KafkaPrincipal("Group", "admins")])
    for call in (alice.admin.renew_delegation_token, alice.admin.expire_delegation_token):
        with pytest.raises(DelegationTokenNotFound):
            await call(b"no such token")


async def test_clients_that_have_not_logged_in_get_no_token(request: pytest.FixtureRequest, cluster: Where) -> None:
    if "apache" in request.node.name:
        async with Client(request.getfixturevalue("apache_with_tokens").bootstrap) as client:
            with pytest.raises(DelegationTokenRequestNotAllowed):
                await client.admin.create_delegation_token()
        return
    async with (
        Broker(port=None, delegation_token_secret_key=KEY) as broker,
        Client(broker.bootstrap, connector=broker.connect) as client,
    ):
        with pytest.raises(DelegationTokenRequestNotAllowed):
            await client.admin.create_delegation_token()


async def test_users_whose_credentials_the_admin_sets_log_in(alice: Client, cluster: Where) -> None:
    from aiokafkawire import ScramCredentialInfo, UserScramCredentialUpsertion

    for mechanism, password in ((ScramMechanism.SCRAM_SHA_256, "first secret"), (ScramMechanism.SCRAM_SHA_512, "Gruß")):
        info = ScramCredentialInfo(mechanism, 8192)
        await alice.admin.alter_user_scram_credentials([UserScramCredentialUpsertion("dave", info, password)])

        async def infos() -> tuple[ScramCredentialInfo, ...]:
            everyone = await alice.admin.describe_user_scram_credentials()
            return everyone.get("dave", ())

        await settled(infos, lambda there, info=info: info in there)  # type: ignore[misc]
        async with cluster.client(**login(mechanism.mechanism_name, "dave", password)) as dave:
            await dave.admin.list_topics()
