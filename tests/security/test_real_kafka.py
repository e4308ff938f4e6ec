"""Real Apache Kafka with secured listeners: records through each, and what it says to those whom it refuses."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from importlib.util import find_spec
from secrets import token_hex
from typing import Any

import anyio
import pytest
from support.apache_kafka import ApacheKafka, missing
from support.bearer import unsecured
from support.login_settings import login
from support.needing import require
from support.securing import Papers, expired, make_papers, outlives_its_login, refusal, secured_kafka, there_and_back

from aiokafkawire import Client, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from aiokafkawire.errors import (
    BrokerNotTrusted,
    ClientCertificateRefused,
    ConfigError,
    IllegalSaslState,
    SaslAuthenticationFailed,
    SecurityMismatch,
    UnsupportedSaslMechanism,
)
from aiokafkawire.types import OAuthBearerToken

pytestmark = [pytest.mark.anyio, pytest.mark.kafka, pytest.mark.usefixtures("nothing_fails_unheard")]

# Kafka takes passwords as they are; SASLprep would have made "pass" of the second.
USERS = {"alice": "secret-of-alice", "bob": "pªss Gruß"}


@pytest.fixture(scope="module")
def kafka(papers: Papers) -> Iterator[ApacheKafka]:
    require(missing())
    with secured_kafka(papers, USERS) as kafka:
        yield kafka


def options_of(mechanism: str, user: str = "alice", **more: Any) -> dict[str, Any]:
    if mechanism == "OAUTHBEARER":
        known = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism}
        return {**known, "sasl_oauthbearer_token": lambda: unsecured(time.time()), **more}
    return {**login(mechanism, user, USERS.get(user, "none")), **more}


async def test_records_inside_tls(kafka: ApacheKafka, papers: Papers) -> None:
    await there_and_back(kafka.addresses["TLS"], **papers.client())


async def test_records_of_who_shows_a_certificate(kafka: ApacheKafka, papers: Papers) -> None:
    await there_and_back(kafka.addresses["MUTUAL"], **papers.client(shows=True))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])
async def test_records_of_who_logs_in(kafka: ApacheKafka, papers: Papers, mechanism: str) -> None:
    await there_and_back(kafka.addresses["GUARDED"], **options_of(mechanism))
    inside = {**papers.client(), **options_of(mechanism), "security_protocol": "SASL_SSL"}
    await there_and_back(kafka.addresses["BOTH"], **inside)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_kafka_takes_passwords_as_they_are(kafka: ApacheKafka, mechanism: str) -> None:
    await there_and_back(kafka.addresses["GUARDED"], **options_of(mechanism, "bob"))
    prepared = await refusal(kafka.addresses["GUARDED"], **options_of(mechanism, "bob", sasl_password="pass Gruß"))
    assert type(prepared) is SaslAuthenticationFailed


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_a_wrong_password(kafka: ApacheKafka, papers: Papers, mechanism: str) -> None:
    wrong = options_of(mechanism, sasl_password="wrong-secret")
    inside = {**papers.client(), **wrong, "security_protocol": "SASL_SSL"}
    for listener, options in (("GUARDED", wrong), ("BOTH", inside)):
        error = await refusal(kafka.addresses[listener], **options)
        assert type(error) is SaslAuthenticationFailed
        assert "wrong-secret" not in str(error)
    assert (
        type(await refusal(kafka.addresses["GUARDED"], **options_of(mechanism, "mallory"))) is SaslAuthenticationFailed
    )


async def test_an_expired_token(kafka: ApacheKafka) -> None:
    def ended() -> OAuthBearerToken:
        return OAuthBearerToken(unsecured(time.time(), ends_in=-60), int(time.time() + 60) * 1000)

    error = await refusal(kafka.addresses["GUARDED"], **options_of("OAUTHBEARER", sasl_oauthbearer_token=ended))
    assert type(error) is SaslAuthenticationFailed
    assert "invalid_token" in str(error)


async def test_a_mechanism_that_it_lacks_and_a_login_that_it_does_not_want(kafka: ApacheKafka) -> None:
    aws = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "AWS_MSK_IAM", "sasl_aws_region": "x"}
    error = await refusal(kafka.addresses["GUARDED"], **aws)
    assert type(error) is UnsupportedSaslMechanism
    assert "it supports " in str(error)
    assert "OAUTHBEARER" in str(error)
    assert type(await refusal(kafka.bootstrap, **options_of("PLAIN"))) is IllegalSaslState


async def test_no_login_where_one_is_wanted(kafka: ApacheKafka, papers: Papers) -> None:
    for address, options in ((kafka.addresses["GUARDED"], {}), (kafka.addresses["BOTH"], papers.client())):
        error = await refusal(address, **options)
        assert type(error) is SecurityMismatch
        assert "requires SASL authentication with " in str(error)
        assert "SCRAM-SHA-512" in str(error)


async def test_an_authority_that_is_not_trusted(
    kafka: ApacheKafka, papers: Papers, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = make_papers(tmp_path_factory.mktemp("other"))
    assert type(await refusal(kafka.addresses["TLS"], **other.client())) is BrokerNotTrusted
    own = {"ssl_certificate_location": other.certificate, "ssl_key_location": other.key}
    assert type(await refusal(kafka.addresses["MUTUAL"], **papers.client(), **own)) is ClientCertificateRefused


async def test_a_certificate_of_the_past_or_for_another_host(kafka: ApacheKafka, papers: Papers) -> None:
    ended = await refusal(kafka.addresses["EXPIRED"], **papers.client())
    assert type(ended) is BrokerNotTrusted
    assert "it, or one in its chain, has expired" in str(ended)
    elsewhere = await refusal(kafka.addresses["ELSEWHERE"], **papers.client())
    assert type(elsewhere) is BrokerNotTrusted
    assert "is not for the host '127.0.0.1'. It is for kafka-1.example.org, *.example.net." in str(elsewhere)


async def test_an_expired_certificate_of_this_clients(kafka: ApacheKafka, papers: Papers) -> None:
    mine = expired(papers)
    found = await refusal(kafka.addresses["MUTUAL"], **mine.client(shows=True))
    assert type(found) is ConfigError
    assert "has expired" in str(found)
    context = ssl.create_default_context(cafile=mine.ca)  # this client does not look into those
    context.load_cert_chain(mine.certificate, mine.key)
    error = await refusal(kafka.addresses["MUTUAL"], security_protocol="SSL", ssl_context=context)
    assert type(error) is ClientCertificateRefused


async def test_no_certificate_where_one_is_wanted(kafka: ApacheKafka, papers: Papers) -> None:
    error = await refusal(kafka.addresses["MUTUAL"], **papers.client())
    assert type(error) is ClientCertificateRefused
    assert "or requires one and got none: set ssl_certificate_location" in str(error)


async def test_tls_and_none(kafka: ApacheKafka, papers: Papers) -> None:
    assert type(await refusal(kafka.bootstrap, **papers.client())) is SecurityMismatch
    assert type(await refusal(kafka.addresses["TLS"])) is SecurityMismatch
    assert type(await refusal(kafka.addresses["BOTH"], **options_of("PLAIN"))) is SecurityMismatch


async def test_a_password_that_changes_under_load_is_refused_once_and_the_new_one_goes_on(kafka: ApacheKafka) -> None:
    topic, acknowledged = token_hex(6), 0
    async with Client(kafka.bootstrap, allow_auto_create_topics=True) as admin:
        await admin.admin.alter_user_scram_credentials([_password("first")])
        with anyio.fail_after(60):
            for word in ("first", "second"):
                options = login("SCRAM-SHA-256", "carol", word)
                async with (
                    Client(kafka.addresses["RENEWED"], **options, allow_auto_create_topics=True) as client,
                    client.producer() as producer,
                ):
                    for _ in range(40):
                        await producer.send(topic, b"v")
                        acknowledged += 1
                    if word == "second":
                        break
                    await admin.admin.alter_user_scram_credentials([_password("second")])
                    with pytest.raises(SaslAuthenticationFailed):
                        while True:
                            await producer.send(topic, b"v")
                            acknowledged += 1
        async with admin.consumer(topic, auto_offset_reset="earliest") as consumer:
            found = [await anext(consumer) for _ in range(acknowledged)]
        assert len({(record.partition, record.offset) for record in found}) == acknowledged


def _password(word: str) -> UserScramCredentialUpsertion:
    return UserScramCredentialUpsertion("carol", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256), word)


# Each takes two lifetimes of a login, so the loops take turns; test_renewals.py has each of them.
@pytest.mark.parametrize(
    ("mechanism", "anyio_backend"),
    [
        pytest.param("PLAIN", ("trio", {}), id="PLAIN-trio", marks=pytest.mark.thorough),
        pytest.param(
            "SCRAM-SHA-256",
            ("asyncio", {"use_uvloop": True}),
            id="SCRAM-SHA-256-uvloop",
            marks=pytest.mark.skipif(find_spec("uvloop") is None, reason="uvloop is not installed"),
        ),
        pytest.param("SCRAM-SHA-512", ("trio", {}), id="SCRAM-SHA-512-trio", marks=pytest.mark.thorough),
        pytest.param("OAUTHBEARER", ("asyncio", {}), id="OAUTHBEARER-asyncio"),
    ],
)
async def test_a_login_that_ends_is_renewed_under_way(kafka: ApacheKafka, mechanism: str) -> None:
    await outlives_its_login(kafka.addresses["RENEWED"], **options_of(mechanism))
