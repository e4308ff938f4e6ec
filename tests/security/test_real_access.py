"""Who may do what on a real Kafka with ACLs, and tokens that it checks against the keys of an OIDC server."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from secrets import token_hex
from typing import Any

import anyio
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from support.apache_kafka import ApacheKafka, missing
from support.login_settings import login
from support.needing import require
from support.patience import PATIENCE, SOON
from support.securing import Papers, make_papers, refusal, there_and_back, tls_properties
from support.token_endpoint import endpoint, options_for

from aiokafkawire import Client
from aiokafkawire.cluster.cluster import any_broker, controller
from aiokafkawire.errors import (
    GroupAuthorizationFailed,
    SaslAuthenticationFailed,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
)
from aiokafkawire.protocol.messages.acls import AclCreation, CreateAclsRequest, DescribeAclsRequest
from aiokafkawire.types import OAuthBearerToken

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.anyio,
    pytest.mark.kafka,
    pytest.mark.usefixtures("nothing_fails_unheard"),
]

TOPIC, GROUP = 2, 3
READ, WRITE, DESCRIBE = 3, 4, 8
ANY, ALLOW, LITERAL = 1, 3, 3
OAUTH = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}
ALICE = login("PLAIN", "alice", "secret")
ALICES = DescribeAclsRequest(
    resource_type_filter=ANY,
    resource_name_filter=None,
    pattern_type_filter=ANY,
    principal_filter="User:alice",
    host_filter=None,
    operation=ANY,
    permission_type=ANY,
)
MODULES = "org.apache.kafka.common.security"


@pytest.fixture(scope="module")
def guarded() -> Iterator[ApacheKafka]:
    require(missing())
    plain = f'{MODULES}.plain.PlainLoginModule required user_alice="secret";'
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "listener.name.guarded.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.guarded.plain.sasl.jaas.config": plain,
    }
    with ApacheKafka(properties=properties, listeners={"GUARDED": "SASL_PLAINTEXT"}) as kafka:
        yield kafka


async def allow(kafka: ApacheKafka, *rights: tuple[int, str, int], topic: str) -> None:
    """Make a topic, and let alice do this, as who may do anything; the broker knows of it then."""
    creations = [
        AclCreation(
            resource_type=kind,
            resource_name=name,
            resource_pattern_type=LITERAL,
            principal="User:alice",
            host="*",
            operation=operation,
            permission_type=ALLOW,
        )
        for kind, name, operation in rights
    ]
    async with Client(kafka.bootstrap) as client:
        await client.admin.create_topics({topic: 1})
        cluster = client._cluster
        answer = await cluster.ask(controller, CreateAclsRequest(creations=creations), cluster.deadline(10))
        assert {one.error_code for one in answer.results} <= {0}
        wanted, known = {(kind, name) for kind, name, _ in rights}, set[tuple[int, str]]()
        with anyio.fail_after(PATIENCE):
            while not wanted <= known:
                found = await cluster.ask(any_broker, ALICES, cluster.deadline(10))
                known = {(one.resource_type, one.resource_name) for one in found.resources}


async def refused(kafka: ApacheKafka, error: type[Exception], told: str, act: Callable[[Client], Any]) -> None:
    """Alice is told at once, and not when she would give up."""
    async with Client(kafka.addresses["GUARDED"], **ALICE) as client:
        with anyio.fail_after(SOON), pytest.raises(error, match=told):
            await act(client)


async def test_a_topic_that_one_may_not_see(guarded: ApacheKafka) -> None:
    topic = token_hex(6)
    await allow(guarded, topic=topic)

    async def produce(client: Client) -> None:
        async with client.producer() as producer:
            await producer.send(topic, b"v")

    async def consume(client: Client) -> None:
        async with client.consumer(topic) as consumer:
            await anext(aiter(consumer))

    await refused(guarded, TopicAuthorizationFailed, topic, produce)
    await refused(guarded, TopicAuthorizationFailed, topic, consume)


async def test_a_topic_that_one_may_see_but_not_write(guarded: ApacheKafka) -> None:
    topic = token_hex(6)
    await allow(guarded, (TOPIC, topic, DESCRIBE), topic=topic)

    async def produce(client: Client) -> None:
        async with client.producer() as producer:
            await producer.send(topic, b"v")

    await refused(guarded, TopicAuthorizationFailed, topic, produce)


async def test_a_group_that_one_may_not_join(guarded: ApacheKafka) -> None:
    topic, group = token_hex(6), token_hex(6)
    await allow(guarded, (TOPIC, topic, READ), topic=topic)

    async def join(client: Client) -> None:
        async with client.consumer(topic, group_id=group) as consumer:
            await anext(aiter(consumer))

    await refused(guarded, GroupAuthorizationFailed, group, join)


async def test_a_transactional_id_that_is_anothers(guarded: ApacheKafka) -> None:
    topic, name = token_hex(6), token_hex(6)
    await allow(guarded, (TOPIC, topic, WRITE), topic=topic)

    async def transact(client: Client) -> None:
        async with client.producer(transactional_id=name) as producer, producer.transaction():
            await producer.send(topic, b"v")

    await refused(guarded, TransactionalIdAuthorizationFailed, name, transact)


async def test_who_may_does(guarded: ApacheKafka) -> None:
    topic, group = token_hex(6), token_hex(6)
    rights = ((TOPIC, topic, READ), (TOPIC, topic, WRITE), (GROUP, group, READ))
    await allow(guarded, *rights, topic=topic)
    with anyio.fail_after(PATIENCE):
        async with Client(guarded.addresses["GUARDED"], **ALICE) as client:
            async with client.producer() as producer:
                await producer.send(topic, b"v")
            async with client.consumer(topic, group_id=group, auto_offset_reset="earliest") as consumer:
                assert (await anext(aiter(consumer))).value == b"v"


# --- tokens --------------------------------------------------------------------------------------------------


class Issuer:
    """What an OIDC server has: a key, which is published as JWKS, and tokens signed with it."""

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(65537, 2048)
        self.audience, self.lasts = "kafka", 60

    def keys(self) -> bytes:
        numbers = self._key.public_key().public_numbers()
        parts = {"n": numbers.n.to_bytes(256, "big"), "e": numbers.e.to_bytes(3, "big")}
        shown = {name: _coded(value) for name, value in parts.items()}
        return json.dumps({"keys": [{"kty": "RSA", "kid": "k1", "use": "sig", "alg": "RS256", **shown}]}).encode()

    def token(self) -> str:
        now = int(time.time())
        claims = {"sub": "alice", "iss": "tests", "aud": self.audience, "iat": now - 120, "exp": now + self.lasts}
        parts = ({"alg": "RS256", "kid": "k1"}, claims)
        said = ".".join(_coded(json.dumps(one).encode()) for one in parts)
        return f"{said}.{_coded(self._key.sign(said.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def _coded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


@pytest.fixture(scope="module")
def oidc() -> Iterator[tuple[str, Issuer]]:
    """The URL of a small OIDC server: tokens for who posts, keys for who gets."""
    issuer = Issuer()

    def answer(handler: Any) -> None:
        body = issuer.keys()
        if handler.command == "POST":
            body = json.dumps({"access_token": issuer.token(), "expires_in": 60, "token_type": "Bearer"}).encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    with endpoint(answer) as (url, _):
        yield url, issuer


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    return make_papers(tmp_path_factory.mktemp("papers"))


@pytest.fixture(scope="module")
def checking(oidc: tuple[str, Issuer], papers: Papers) -> Iterator[ApacheKafka]:
    """A Kafka that fetches the keys, and checks signatures, times and audience."""
    require(missing())
    properties = tls_properties(papers)
    for prefix in ("listener.name.guarded", "listener.name.both"):
        properties |= {
            f"{prefix}.sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{prefix}.oauthbearer.sasl.jaas.config": (
                f'{MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
            ),
            f"{prefix}.oauthbearer.sasl.server.callback.handler.class": (
                f"{MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
            ),
        }
    properties |= {
        "sasl.oauthbearer.jwks.endpoint.url": oidc[0],
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.oauthbearer.expected.issuer": "tests",
        "connection.failed.authentication.delay.ms": "0",
    }
    jvm = [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={oidc[0]}"]
    listeners = {"GUARDED": "SASL_PLAINTEXT", "BOTH": "SASL_SSL"}
    with ApacheKafka(properties=properties, listeners=listeners, jvm=jvm) as kafka:
        yield kafka


async def test_tokens_of_an_oidc_server_whose_keys_kafka_knows(
    checking: ApacheKafka, oidc: tuple[str, Issuer], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, issuer = oidc
    await there_and_back(checking.addresses["GUARDED"], **options_for(url))
    for name, value in (("audience", "others"), ("lasts", -60), ("_key", Issuer()._key)):
        with monkeypatch.context() as patch:
            patch.setattr(issuer, name, value)
            token = issuer.token()
        later = int(time.time() + 60) * 1000  # so that this client does not refuse it itself
        given = {**OAUTH, "sasl_oauthbearer_token": partial(OAuthBearerToken, token, later)}
        error = await refusal(checking.addresses["GUARDED"], **given)
        assert type(error) is SaslAuthenticationFailed
        assert token not in str(error)


async def test_tokens_of_an_oidc_server_inside_tls(
    checking: ApacheKafka, oidc: tuple[str, Issuer], papers: Papers
) -> None:
    url, _ = oidc
    inside = {**papers.client(), **options_for(url), "security_protocol": "SASL_SSL"}
    await there_and_back(checking.addresses["BOTH"], **inside)
    stranger = {**OAUTH, **papers.client(), "sasl_oauthbearer_token": Issuer().token, "security_protocol": "SASL_SSL"}
    assert type(await refusal(checking.addresses["BOTH"], **stranger)) is SaslAuthenticationFailed
