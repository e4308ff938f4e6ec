"""SCRAM credentials, client quotas and delegation tokens: values, moved controllers, old brokers, wrong answers."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support.clusters import QUICK

from aiokafkawire import (
    Client,
    ClientQuotaEntity,
    ClientQuotaFilter,
    ClientQuotaFilterComponent,
    ClientQuotaMatchType,
    DelegationToken,
    KafkaPrincipal,
    ScramCredentialInfo,
    ScramMechanism,
    UnsupportedVersion,
    UsageError,
    UserScramCredentialUpsertion,
    WireError,
)
from aiokafkawire.admin.admin import Admin
from aiokafkawire.errors import AdminError, ClusterAuthorizationFailed, ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.quotas import AlterClientQuotasResponse
from aiokafkawire.protocol.messages.scram import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from aiokafkawire.testing.broker import Broker

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]

SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
ALICE, RATE = ClientQuotaEntity.user("alice"), {"producer_byte_rate": 5.0}


@asynccontextmanager
async def running(release: str | None = None, nodes: int = 1, **options: Any) -> AsyncIterator[tuple[Broker, Admin]]:
    async with (
        Broker(nodes, port=None, max_versions=release) as broker,
        Client(broker.bootstrap, connector=broker.connect, **{**QUICK, **options}) as kafka,
    ):
        yield broker, kafka.admin


def setting(user: str, password: str | bytes = "s3cret", **more: Any) -> UserScramCredentialUpsertion:
    return UserScramCredentialUpsertion(user, ScramCredentialInfo(SHA_256), password, **more)


# --- values --------------------------------------------------------------------------------------------------------


def test_entities_are_values_whatever_the_order_of_their_parts() -> None:
    both = ClientQuotaEntity.user_and_client_id("alice", None)
    assert both == ClientQuotaEntity({"client-id": None, "user": "alice"}) == ClientQuotaEntity(both.entries)
    assert {both: 1}[ClientQuotaEntity({"user": "alice", "client-id": None})] == 1
    assert both != ALICE == ClientQuotaEntity.user("alice") != ClientQuotaEntity.user(None)
    assert repr(ALICE) == "ClientQuotaEntity({'user': 'alice'})"
    named = [str(entity) for entity in (both, ALICE, ClientQuotaEntity.ip(None), ClientQuotaEntity.client_id("c"))]
    assert named == ["default client-id, user 'alice'", "user 'alice'", "default ip", "client-id 'c'"]


@pytest.mark.parametrize(
    "wrong", [None, "alice", [("user", "alice")], {5: "alice"}, {"": "a"}, {"user": 5}, {"user": ""}]
)
def test_parts_of_entities_are_text(wrong: Any) -> None:
    with pytest.raises(UsageError, match="of a ClientQuotaEntity must be"):
        ClientQuotaEntity(wrong)


def test_filters_are_values() -> None:
    component = ClientQuotaFilterComponent.of_entity("user", "alice")
    assert component == ClientQuotaFilterComponent("user", ClientQuotaMatchType.EXACT, "alice")
    assert ClientQuotaFilter.contains(component) == ClientQuotaFilter((component,))
    assert ClientQuotaFilter.contains_only(component).strict
    assert ClientQuotaFilter.all() == ClientQuotaFilter.contains() == ClientQuotaFilter()


def test_principals_are_texts_with_a_type() -> None:
    principal = KafkaPrincipal.parse("User:CN=a:b")
    assert (principal.principal_type, principal.name, str(principal)) == ("User", "CN=a:b", "User:CN=a:b")
    assert KafkaPrincipal.user("alice") == KafkaPrincipal("User", "alice")
    for wrong in ("alice", ":alice", "User:", "", None, 5):
        with pytest.raises(UsageError, match="a principal must be like 'User:alice', got"):
            KafkaPrincipal.parse(wrong)  # type: ignore[arg-type]


async def test_no_error_and_no_repr_shows_a_password_a_salt_or_an_hmac() -> None:
    wrong: Any = [
        setting("", "s3cret"),
        setting("alice", "s3cret\ud800"),
        setting("alice", bytearray(b"s3cret")),  # type: ignore[arg-type]
        setting("alice", "s3cret", salt="s3cret"),
        UserScramCredentialUpsertion("alice", None, "s3cret"),  # type: ignore[arg-type]
        "s3cret",
    ]
    async with running() as (_, admin):
        for change in wrong:
            with pytest.raises(UsageError) as caught:
                await admin.alter_user_scram_credentials([change])
            assert "s3cret" not in str(caught.value)
        with pytest.raises(UsageError) as caught:
            await admin.renew_delegation_token("s3cret")  # type: ignore[arg-type]
        assert "s3cret" not in str(caught.value)
    owner = KafkaPrincipal.user("alice")
    token = DelegationToken("id", owner, owner, (), 0, 0, 0, b"s3cret")
    assert "s3cret" not in repr([setting("alice", salt=b"s3cret"), token])
    assert token.hmac_base64 == "czNjcmV0"


async def test_the_broker_gets_the_salted_password_alone() -> None:
    async with running() as (broker, admin):
        await admin.alter_user_scram_credentials(
            [
                UserScramCredentialUpsertion("alice", ScramCredentialInfo(SHA_512, 5000), "Gruß", b"pepper"),
                setting("bob", b"bytes"),
                setting("carol", b"bytes"),
            ]
        )
        (request,) = broker.requests.of(ApiKey.ALTER_USER_SCRAM_CREDENTIALS)
        alice, bob, carol = request.request.upsertions
        salted = hashlib.pbkdf2_hmac("sha512", "Gruß".encode(), b"pepper", 5000)
        assert (bytes(alice.salt), alice.iterations, bytes(alice.salted_password)) == (b"pepper", 5000, salted)
        assert len(bytes(bob.salt)) == 24
        assert bytes(bob.salt) != bytes(carol.salt)
        assert bytes(bob.salted_password) == hashlib.pbkdf2_hmac("sha256", b"bytes", bytes(bob.salt), 4096)
        assert repr(salted)[2:-1] not in repr(request)


# --- brokers -------------------------------------------------------------------------------------------------------


async def test_credentials_are_changed_by_the_controller_and_quotas_by_any_broker() -> None:
    async with running(nodes=3) as (broker, admin):
        await broker.stop_node(1)
        await admin.alter_user_scram_credentials([setting("alice")])
        await admin.alter_client_quotas({ALICE: RATE})
        assert [one.node for one in broker.requests.of(ApiKey.ALTER_USER_SCRAM_CREDENTIALS)][-1] == 2
        assert await admin.describe_client_quotas() == {ALICE: RATE}


async def test_a_controller_that_moves_is_waited_for() -> None:
    async with running() as (broker, admin):
        calls: dict[ApiKey, Callable[[], Awaitable[Any]]] = {
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS: lambda: admin.alter_user_scram_credentials([setting("alice")]),
            ApiKey.ALTER_CLIENT_QUOTAS: lambda: admin.alter_client_quotas({ALICE: RATE}),
        }
        for api, call in calls.items():
            rule = broker.on(api, answer=ErrorCode.NOT_CONTROLLER, times=2)
            await call()
            assert rule.is_met
        assert list(await admin.describe_user_scram_credentials()) == ["alice"]
        assert await admin.describe_client_quotas() == {ALICE: RATE}


async def test_only_those_whom_a_retry_may_help_are_sent_again() -> None:
    async with running() as (broker, admin):
        results = [
            AlterUserScramCredentialsResult(user="alice", error_code=0, error_message=None),
            AlterUserScramCredentialsResult(user="bob", error_code=ErrorCode.NOT_CONTROLLER, error_message=None),
        ]
        broker.on(
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS, answer=AlterUserScramCredentialsResponse(results=results), times=1
        )
        await admin.alter_user_scram_credentials([setting("alice"), setting("bob")])
        first, second = broker.requests.of(ApiKey.ALTER_USER_SCRAM_CREDENTIALS)
        assert [change.name for change in first.request.upsertions] == ["alice", "bob"]
        assert [change.name for change in second.request.upsertions] == ["bob"]


async def test_what_a_broker_refuses_is_told() -> None:
    async with running() as (broker, admin):
        calls: dict[ApiKey, Callable[[], Awaitable[Any]]] = {
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: lambda: admin.describe_user_scram_credentials(["alice"]),
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS: lambda: admin.alter_user_scram_credentials([setting("alice")]),
            ApiKey.DESCRIBE_CLIENT_QUOTAS: admin.describe_client_quotas,
            ApiKey.ALTER_CLIENT_QUOTAS: lambda: admin.alter_client_quotas({ALICE: RATE}),
            ApiKey.CREATE_DELEGATION_TOKEN: admin.create_delegation_token,
            ApiKey.RENEW_DELEGATION_TOKEN: lambda: admin.renew_delegation_token(b"h"),
            ApiKey.EXPIRE_DELEGATION_TOKEN: lambda: admin.expire_delegation_token(b"h"),
            ApiKey.DESCRIBE_DELEGATION_TOKEN: admin.describe_delegation_token,
        }
        for api, call in calls.items():
            broker.on(api, answer=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            with pytest.raises(ClusterAuthorizationFailed, match=r"alice|Quotas|DelegationToken|Scram"):
                await call()


async def test_answers_that_lack_who_was_asked_about() -> None:
    async with running() as (broker, admin):
        broker.on(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, answer=AlterUserScramCredentialsResponse(results=[]))
        with pytest.raises(WireError, match="the response lacks the requested alice"):
            await admin.alter_user_scram_credentials([setting("alice")])
        broker.on(ApiKey.ALTER_CLIENT_QUOTAS, answer=AlterClientQuotasResponse(entries=[]))
        with pytest.raises(AdminError) as caught:
            await admin.alter_client_quotas({ALICE: RATE, ClientQuotaEntity.user("bob"): RATE})
        assert "the response lacks the requested user 'alice'" in str(caught.value)
        assert caught.value.results == {}


async def test_mechanisms_that_this_client_does_not_know() -> None:
    async with running() as (broker, admin):
        infos = [CredentialInfo(mechanism=9, iterations=7)]
        result = DescribeUserScramCredentialsResult(
            user="alice", error_code=0, error_message=None, credential_infos=infos
        )
        answer = DescribeUserScramCredentialsResponse(error_code=0, error_message=None, results=[result])
        broker.on(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, answer=answer)
        found = await admin.describe_user_scram_credentials()
        assert found == {"alice": (ScramCredentialInfo(ScramMechanism.UNKNOWN, 7),)}


async def test_brokers_that_are_too_old_are_named_with_what_is_needed() -> None:
    async with running("2.5") as (_, admin):
        scram = r"SCRAM credentials need brokers since 2\.7 \(KIP-554\): "
        quotas = r"client quotas need brokers since 2\.6 \(KIP-546\): "
        for told, call in (
            (scram, admin.describe_user_scram_credentials()),
            (scram, admin.describe_user_scram_credentials(["alice"])),
            (scram, admin.alter_user_scram_credentials([setting("alice")])),
            (quotas, admin.describe_client_quotas()),
            (quotas, admin.alter_client_quotas({ALICE: RATE})),
        ):
            with pytest.raises(UnsupportedVersion, match=told):
                await call


@pytest.mark.parametrize("release", ["2.6", "2.8", "4.3"])
async def test_quotas_in_every_version_of_their_requests(release: str) -> None:
    async with running(release) as (_, admin):
        await admin.alter_client_quotas({ALICE: RATE})
        assert await admin.describe_client_quotas() == {ALICE: RATE}
