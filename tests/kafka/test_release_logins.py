"""Logins and TLS on releases that logged in otherwise: in bare frames before 1.0, and by users that ZooKeeper keeps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12
from support.apache_kafka import missing
from support.kafka_releases import KafkaRelease, number_of
from support.login_settings import login
from support.needing import require
from support.securing import Papers, make_papers, refusal, there_and_back

from aiokafkawire.errors import (
    BrokerNotTrusted,
    NoBrokerReachable,
    SaslAuthenticationFailed,
    SecurityMismatch,
    UnsupportedSaslMechanism,
)

pytestmark = [pytest.mark.anyio, pytest.mark.matrix, pytest.mark.timeout(200)]

LISTENERS = {"TLS": "SSL", "GUARDED": "SASL_PLAINTEXT", "BOTH": "SASL_SSL"}
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
PASSWORD = "secret-of-alice"
MODULES = "org.apache.kafka.common.security"
# Before 1.1 a broker has one configuration of logins for all listeners, in a file.
JAAS = f"""\
KafkaServer {{
  {MODULES}.plain.PlainLoginModule required user_alice="{PASSWORD}";
  {MODULES}.scram.ScramLoginModule required;
}};
"""


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """One loop will do: what a release speaks is the same on all."""
    return "asyncio", {"use_uvloop": False}


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    return make_papers(tmp_path_factory.mktemp("papers"))


def keystore(papers: Papers) -> Path:
    """A broker's certificate and key for Java, which reads no PEM before 2.7."""
    issued = papers.authority.issue_cert("localhost", "127.0.0.1")
    key: Any = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    certificate, *rest = [x509.load_pem_x509_certificate(one.bytes()) for one in issued.cert_chain_pems]
    path = papers.folder / "broker.p12"
    encryption = serialization.BestAvailableEncryption(b"of-the-store")
    path.write_bytes(pkcs12.serialize_key_and_certificates(b"broker", key, certificate, rest, encryption))
    return path


@pytest.fixture(scope="module", params=["0.10.2.2", "0.11.0.3", "1.1.1", "2.8.2"])
def kafka(request: pytest.FixtureRequest, papers: Papers) -> Iterator[KafkaRelease]:
    require(missing())
    jaas = papers.folder / "jaas.conf"
    jaas.write_text(JAAS)
    properties = {
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(keystore(papers)),
        "ssl.keystore.password": "of-the-store",
        "ssl.key.password": "of-the-store",
    }
    jvm = [f"-Djava.security.auth.login.config={jaas}"]
    with KafkaRelease(request.param, listeners=LISTENERS, properties=properties, jvm=jvm) as kafka:
        for mechanism in MECHANISMS[1:]:
            kafka.scram_user(mechanism, "alice", PASSWORD)
        yield kafka


async def test_records_inside_tls(kafka: KafkaRelease, papers: Papers) -> None:
    await there_and_back(kafka.addresses["TLS"], **papers.client())


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_records_of_who_logs_in(kafka: KafkaRelease, papers: Papers, mechanism: str) -> None:
    alice = login(mechanism, "alice", PASSWORD)
    await there_and_back(kafka.addresses["GUARDED"], **alice)
    await there_and_back(kafka.addresses["BOTH"], **{**papers.client(), **alice, "security_protocol": "SASL_SSL"})


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_wrong_password(kafka: KafkaRelease, mechanism: str) -> None:
    wrong = login(mechanism, "alice", "wrong-secret")
    if number_of(kafka.version) >= (1, 0):
        assert type(await refusal(kafka.addresses["GUARDED"], **wrong)) is SaslAuthenticationFailed
        return
    error = await refusal(kafka.addresses["GUARDED"], **wrong, bootstrap_timeout_ms=1_000)
    assert type(error) is NoBrokerReachable
    assert "brokers before 1.0 do so if they refuse the login" in str(error)


async def test_what_does_not_fit(kafka: KafkaRelease, papers: Papers, tmp_path: Path) -> None:
    alice = login("PLAIN", "alice", PASSWORD)
    aws = {"sasl_mechanism": "AWS_MSK_IAM", "sasl_aws_region": "x", "security_protocol": "SASL_PLAINTEXT"}
    for kind, address, options in (
        (SecurityMismatch, kafka.bootstrap, papers.client()),
        (SecurityMismatch, kafka.addresses["TLS"], {}),
        (SecurityMismatch, kafka.addresses["BOTH"], alice),
        (SecurityMismatch, kafka.addresses["GUARDED"], {}),
        (UnsupportedSaslMechanism, kafka.addresses["GUARDED"], aws),
        (BrokerNotTrusted, kafka.addresses["TLS"], make_papers(tmp_path).client()),
    ):
        assert type(await refusal(address, **options)) is kind, (address, options)
