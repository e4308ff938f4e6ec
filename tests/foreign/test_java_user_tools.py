"""kafka-configs.sh and kafka-delegation-tokens.sh show what our admin has changed, and our admin what they have."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

import pytest
from support.apache_kafka import ApacheKafka
from support.mixed_groups import java_command
from support.securing import login

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
from aiokafkawire.testing.background import BackgroundBroker

pytestmark = [pytest.mark.thorough, pytest.mark.kafka, pytest.mark.timeout(300)]

CONFIGS = "kafka.admin.ConfigCommand"
TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
ALICE = login("SCRAM-SHA-256", "alice", "alice-secret")
TOKEN_KEY = "the-key-of-all-tokens"

Tool = Callable[..., str]


class Served(NamedTuple):
    """A cluster whose clients log in, or are anonymous and may do everything."""

    guarded: str
    open: str


@pytest.fixture(scope="module", params=["in-process", "apache-kafka"])
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    java_command()
    if request.param == "in-process":
        with (
            BackgroundBroker(users={"alice": "alice-secret"}, delegation_token_secret_key=TOKEN_KEY) as guarded,
            BackgroundBroker() as open_,
        ):
            yield Served(guarded.bootstrap, open_.bootstrap)
        return
    properties = {
        "delegation.token.secret.key": TOKEN_KEY,
        "listener.name.guarded.sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.guarded.scram-sha-256.sasl.jaas.config": f"{SCRAM} required;",
    }
    scram = ["SCRAM-SHA-256=[name=alice,password=alice-secret]"]
    with ApacheKafka(properties=properties, listeners={"GUARDED": "SASL_PLAINTEXT"}, scram=scram) as kafka:
        yield Served(kafka.addresses["GUARDED"], kafka.bootstrap)


def tool(bootstrap: str, main: str, *argv: str) -> str:
    """Run a tool to its end; what it prints."""
    command = [*java_command(), main, "--bootstrap-server", bootstrap, *argv]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def kafka(served: Served) -> Iterator[blocking.Client]:
    with blocking.Client(served.open) as client:
        yield client


@pytest.fixture
def user() -> str:
    return f"user-{token_hex(4)}"


def shown(text: str) -> dict[str, dict[str, str]]:
    """The configs of each entity, from "... configs for <entity> are a=1, b=2"."""
    found = re.findall(r"configs for (?:the )?(.*?) are (.*)", text)
    return {entity: dict(part.split("=", 1) for part in configs.split(", ") if part) for entity, configs in found}


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
    alice = properties(tmp_path / "alice.properties", "alice", "alice-secret")
    with blocking.Client(served.guarded, **ALICE) as kafka:
        ours = kafka.admin.create_delegation_token(renewers=[KafkaPrincipal.user("bob")], max_lifetime_ms=7_200_000)
        described = rows(tool(served.guarded, TOKENS, *alice, "--describe", "--owner-principal", "User:alice"))
        assert described[ours.token_id] == [ours.hmac_base64, "User:alice", "User:alice", "[User:bob]"]
        tool(served.guarded, TOKENS, *alice, "--renew", "--hmac", ours.hmac_base64, "--renew-time-period", "3600000")
        until(lambda: known(kafka)[ours.token_id].expiry_timestamp_ms < ours.expiry_timestamp_ms)

        created = rows(tool(served.guarded, TOKENS, *alice, "--create", "--max-life-time-period", "-1"))
        ((token_id, (hmac, *_)),) = created.items()
        until(lambda: token_id in known(kafka))
        theirs = known(kafka)[token_id]
        assert (theirs.hmac_base64, theirs.owner, theirs.renewers) == (hmac, KafkaPrincipal.user("alice"), ())
        with blocking.Client(served.guarded, **by(theirs.token_id, theirs.hmac_base64)) as guest:
            guest.admin.create_topics({f"made-{token_id[:4].strip('-_')}": 1})
        token = properties(tmp_path / "token.properties", ours.token_id, ours.hmac_base64, tokenauth=True)
        assert "made-" in tool(served.guarded, TOPICS, *token, "--list")

        tool(served.guarded, TOKENS, *alice, "--expire", "--hmac", ours.hmac_base64, "--expiry-time-period", "-1")
        until(lambda: ours.token_id not in known(kafka))
        kafka.admin.expire_delegation_token(theirs)
        assert rows(tool(served.guarded, TOKENS, *alice, "--describe")) == {}
        with pytest.raises(SaslAuthenticationFailed):
            blocking.Client(served.guarded, **by(ours.token_id, ours.hmac_base64)).__enter__()


def known(kafka: blocking.Client) -> dict[str, DelegationToken]:
    return {token.token_id: token for token in kafka.admin.describe_delegation_token()}


def until(condition: Callable[[], bool]) -> None:
    """Wait for what a broker of Apache Kafka hears from its controller."""
    ends = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < ends


def by(token_id: str, hmac: str) -> dict[str, Any]:
    return login("SCRAM-SHA-256", token_id, hmac, sasl_tokenauth=True)


def properties(path: Path, user: str, password: str, *, tokenauth: bool = False) -> tuple[str, str]:
    """The arguments by which a tool logs in."""
    more = ' tokenauth="true"' if tokenauth else ""
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
        f'sasl.jaas.config={SCRAM} required username="{user}" password="{password}"{more};\n'
    )
    return "--command-config", str(path)


def rows(text: str) -> dict[str, list[str]]:
    """The HMAC, owner, requester and renewers of each token in the tool's table, by the token's id."""
    lines = text.partition("TOKENID")[2].splitlines()[1:]
    return {(words := line.split())[0]: words[1:5] for line in lines if line.strip()}
