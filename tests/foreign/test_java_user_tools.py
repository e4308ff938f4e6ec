"""kafka-configs.sh and kafka-delegation-tokens.sh show what our admin has changed, and our admin what they have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
from support.login_settings import login
from support.user_tools import ALICE, CONFIGS, TOKENS, Served, login_file, serve, shown, token_rows, tool, until

from aiokafkawire import (
    ClientQuotaEntity,
    ClientQuotaFilter,
    ClientQuotaFilterComponent,
    DelegationToken,
    KafkaPrincipal,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
    blocking,
)
from aiokafkawire.errors import SaslAuthenticationFailed

pytestmark = [pytest.mark.thorough, pytest.mark.kafka, pytest.mark.timeout(300)]

TOPICS = "org.apache.kafka.tools.TopicCommand"
SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512


@pytest.fixture(scope="module", params=["in-process", "apache-kafka"])
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    with serve(request.param) as served:
        yield served


@pytest.fixture
def kafka(served: Served) -> Iterator[blocking.Client]:
    with blocking.Client(served.open) as client:
        yield client


@pytest.fixture
def user() -> str:
    return f"user-{token_hex(4)}"


def test_scram_credentials_on_both_sides(served: Served, kafka: blocking.Client, user: str) -> None:
    named = ("--entity-type", "users", "--entity-name", user)
    info = ScramCredentialInfo(SHA_256, 8192)
    kafka.admin.alter_user_scram_credentials([UserScramCredentialUpsertion(user, info, "s3cret")])
    described = tool(served.open, CONFIGS, "--describe", *named)
    assert shown(described) == {f"user-principal '{user}'": {"SCRAM-SHA-256": "iterations=8192"}}
    tool(served.open, CONFIGS, "--alter", *named, "--add-config", "SCRAM-SHA-512=[iterations=5000,password=s3cret]")
    both = {info, ScramCredentialInfo(SHA_512, 5000)}
    until(lambda: set(kafka.admin.describe_user_scram_credentials(user)[user]) == both)
    tool(served.open, CONFIGS, "--alter", *named, "--delete-config", "SCRAM-SHA-256")
    left = {user: (ScramCredentialInfo(SHA_512, 5000),)}
    until(lambda: kafka.admin.describe_user_scram_credentials(user) == left)
    kafka.admin.alter_user_scram_credentials([UserScramCredentialDeletion(user, SHA_512)])
    assert "SCRAM" not in tool(served.open, CONFIGS, "--describe", *named)


def test_quotas_on_both_sides(served: Served, kafka: blocking.Client, user: str) -> None:
    own, both = ClientQuotaEntity.user(user), ClientQuotaEntity.user_and_client_id(user, None)
    address = ClientQuotaEntity.ip("203.0.113.9")
    named = ("--entity-type", "users", "--entity-name", user)
    default = ("--entity-type", "clients", "--entity-default")
    at = ("--entity-type", "ips", "--entity-name", "203.0.113.9")
    quotas = {
        own: {"producer_byte_rate": 1e6, "request_percentage": 12.5},
        both: {"consumer_byte_rate": 2e6},
        address: {"connection_creation_rate": 7.0},
    }
    kafka.admin.alter_client_quotas(quotas)
    described = {
        **shown(tool(served.open, CONFIGS, "--describe", *named)),
        **shown(tool(served.open, CONFIGS, "--describe", *named, *default)),
        **shown(tool(served.open, CONFIGS, "--describe", *at)),
    }
    assert {entity: {key: float(value) for key, value in one.items()} for entity, one in described.items()} == {
        f"user-principal '{user}'": quotas[own],
        f"user-principal '{user}', the default client-id": quotas[both],
        "ip '203.0.113.9'": quotas[address],
    }
    tool(served.open, CONFIGS, "--alter", *named, "--add-config", "consumer_byte_rate=5000")
    tool(served.open, CONFIGS, "--alter", *named, *default, "--delete-config", "consumer_byte_rate")
    tool(served.open, CONFIGS, "--alter", *at, "--delete-config", "connection_creation_rate")
    of_user = ClientQuotaFilter.contains(ClientQuotaFilterComponent.of_entity("user", user))
    now = {own: {**quotas[own], "consumer_byte_rate": 5000.0}}
    until(lambda: kafka.admin.describe_client_quotas(of_user) == now)
    until(lambda: address not in kafka.admin.describe_client_quotas())
    kafka.admin.alter_client_quotas({own: dict.fromkeys(["consumer_byte_rate", *quotas[own]])})
    assert shown(tool(served.open, CONFIGS, "--describe", *named)) == {}


def test_delegation_tokens_on_both_sides(served: Served, tmp_path: Path) -> None:
    alice = login_file(tmp_path / "alice.properties", "alice", "alice-secret")
    with blocking.Client(served.guarded, **ALICE) as kafka:
        ours = kafka.admin.create_delegation_token(renewers=[KafkaPrincipal.user("bob")], max_lifetime_ms=7_200_000)
        described = ("--describe", "--owner-principal", "User:alice")  # without an owner it shows none
        found = token_rows(tool(served.guarded, TOKENS, *alice, *described))
        assert found[ours.token_id] == [ours.hmac_base64, "User:alice", "User:alice", "[User:bob]"]
        tool(served.guarded, TOKENS, *alice, "--renew", "--hmac", ours.hmac_base64, "--renew-time-period", "3600000")
        until(lambda: known(kafka)[ours.token_id].expiry_timestamp_ms < ours.expiry_timestamp_ms)

        created = token_rows(tool(served.guarded, TOKENS, *alice, "--create", "--max-life-time-period", "-1"))
        ((token_id, (hmac, *_)),) = created.items()
        until(lambda: token_id in known(kafka))
        theirs = known(kafka)[token_id]
        assert (theirs.hmac_base64, theirs.owner, theirs.renewers) == (hmac, KafkaPrincipal.user("alice"), ())
        with blocking.Client(served.guarded, **by(theirs.token_id, theirs.hmac_base64)) as guest:
            guest.admin.create_topics({f"made-{token_id[:4].strip('-_')}": 1})
        token = login_file(tmp_path / "token.properties", ours.token_id, ours.hmac_base64, tokenauth=True)
        assert "made-" in tool(served.guarded, TOPICS, *token, "--list")

        tool(served.guarded, TOKENS, *alice, "--expire", "--hmac", ours.hmac_base64, "--expiry-time-period", "-1")
        until(lambda: ours.token_id not in known(kafka))
        kafka.admin.expire_delegation_token(theirs)
        assert token_rows(tool(served.guarded, TOKENS, *alice, *described)) == {}
        with pytest.raises(SaslAuthenticationFailed):
            blocking.Client(served.guarded, **by(ours.token_id, ours.hmac_base64)).__enter__()


def known(kafka: blocking.Client) -> dict[str, DelegationToken]:
    return {token.token_id: token for token in kafka.admin.describe_delegation_token()}


def by(token_id: str, hmac: str) -> dict[str, Any]:
    return login("SCRAM-SHA-256", token_id, hmac, sasl_tokenauth=True)
