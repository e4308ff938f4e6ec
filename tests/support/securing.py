"""Certificates, and clients and brokers that know them, for the tests of TLS and SASL."""

from __future__ import annotations

import datetime as dt
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any

import anyio
import attrs
import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from support.apache_kafka import ApacheKafka

from aiokafkawire import Client
from aiokafkawire.admin.new_topics import NewTopic
from aiokafkawire.errors import KafkaError

from .login_settings import login
from .patience import PATIENCE

__all__ = (
    "LIFETIME_MS",
    "MECHANISMS",
    "USERS",
    "Papers",
    "alice",
    "expired",
    "make_papers",
    "outlives_its_login",
    "refusal",
    "secured_kafka",
    "server_named",
    "there_and_back",
    "tls_properties",
)

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""Those with passwords."""
USERS = {"alice": "secret-of-alice", "b=b,": "Gruß = x,y"}
"""Two of them, and their passwords: one whose name SCRAM has to write otherwise."""

KEY = trustme.KeyType.ECDSA
LONG_AGO = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


@attrs.frozen
class Papers:
    """The files of an authority, of a client's certificate, and what others are made of."""

    authority: trustme.CA
    folder: Path
    ca: str
    certificate: str
    key: str

    def client(self, *, shows: bool = False) -> dict[str, Any]:
        """Settings of a client that trusts the authority, and ``shows`` a certificate if it is to."""
        own = {"ssl_certificate_location": self.certificate, "ssl_key_location": self.key} if shows else {}
        return {"security_protocol": "SSL", "ssl_ca_location": self.ca, **own}

    def server(
        self, *names: str, asks: ssl.VerifyMode = ssl.CERT_NONE, ends: dt.datetime | None = None
    ) -> ssl.SSLContext:
        """A broker's context; without names it is for this machine."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        issued = self.authority.issue_cert(*(names or ("localhost", "127.0.0.1")), key_type=KEY, not_after=ends)
        issued.configure_cert(context)
        self.authority.configure_trust(context)
        context.verify_mode = asks
        return context


def alice(mechanism: str, **more: Any) -> dict[str, Any]:
    """Settings of a client that is the first of `USERS`."""
    return {**login(mechanism, "alice", USERS["alice"]), **more}


async def there_and_back(bootstrap: str, **options: Any) -> None:
    """A record produced and consumed, in a topic of its own."""
    topic = token_hex(6)
    with anyio.fail_after(PATIENCE):
        async with Client(bootstrap, **options) as client:
            await client.admin.create_topics({topic: NewTopic(partitions=1, replication_factor=1)})
            async with client.producer() as producer:
                await producer.send(topic, b"v" * 100_000)
            async with client.consumer(topic, auto_offset_reset="earliest") as consumer:
                async for record in consumer:
                    assert record.value == b"v" * 100_000
                    break


async def refusal(bootstrap: str, **options: Any) -> KafkaError:
    """Why a client does not open: told at once, and not when it would give up on a network."""
    with anyio.fail_after(PATIENCE), pytest.raises(KafkaError) as caught:
        async with Client(bootstrap, **{"bootstrap_timeout_ms": 60_000, **options}):
            raise AssertionError("opened")
    return caught.value


def make_papers(folder: Path, name: str = "alice") -> Papers:
    """A new authority, and a certificate of it for a client."""
    authority = trustme.CA(key_type=KEY)
    ca = folder / "ca.pem"
    authority.cert_pem.write_to_path(str(ca))
    return Papers(authority, folder, str(ca), *_for_client(authority, folder, name))


def server_named(papers: Papers, names: Sequence[x509.GeneralName], common_name: str) -> ssl.SSLContext:
    """Return a server's context whose certificate has these names, which trustme gives to nobody."""
    authority = x509.load_pem_x509_certificate(papers.authority.cert_pem.bytes())
    signer: Any = serialization.load_pem_private_key(papers.authority.private_key_pem.bytes(), None)
    key, now = ec.generate_private_key(ec.SECP256R1()), dt.datetime.now(dt.UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    builder = x509.CertificateBuilder(authority.subject, subject, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - dt.timedelta(1)).not_valid_after(now + dt.timedelta(1))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    path = papers.folder / "server.pem"
    shapes = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    made = builder.sign(signer, hashes.SHA256())
    path.write_bytes(key.private_bytes(*shapes) + made.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


def expired(papers: Papers) -> Papers:
    """The same with a client's certificate of the past."""
    ends = LONG_AGO + dt.timedelta(days=1)
    certificate, key = _for_client(papers.authority, papers.folder, "expired", begins=LONG_AGO, ends=ends)
    return attrs.evolve(papers, certificate=certificate, key=key)


def _for_client(
    authority: trustme.CA,
    folder: Path,
    name: str,
    *,
    begins: dt.datetime | None = None,
    ends: dt.datetime | None = None,
) -> tuple[str, str]:
    issued = authority.issue_cert(
        f"{name}@localhost", common_name=name, key_type=KEY, not_before=begins, not_after=ends
    )
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(str(key))
    return str(certificate), str(key)


def _keystore(
    papers: Papers, *names: str, called: str = "broker.pem", begins: dt.datetime | None = None, ends: Any = None
) -> str:
    """A broker's certificate and key in one PEM file, the key as Java reads it; without names for this machine."""
    issued = papers.authority.issue_cert(
        *(names or ("localhost", "127.0.0.1")), key_type=KEY, not_before=begins, not_after=ends
    )
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    shapes = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    path = papers.folder / called
    path.write_bytes(key.private_bytes(*shapes) + b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    return str(path)


def tls_properties(papers: Papers) -> dict[str, str]:
    """Properties of a real Kafka whose listeners inside TLS show a certificate of the authority."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": _keystore(papers),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": papers.ca,
    }


LISTENERS = {
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "EXPIRED": "SSL",
    "ELSEWHERE": "SSL",
    "GUARDED": "SASL_PLAINTEXT",
    "RENEWED": "SASL_PLAINTEXT",
    "BOTH": "SASL_SSL",
}
LIFETIME_MS = 2_000


def secured_kafka(papers: Papers, users: Mapping[str, str]) -> ApacheKafka:
    """A real Kafka, to be started, with a listener for each way to be secured.

    TLS and MUTUAL speak it, the second asks for a certificate; EXPIRED shows one of the past, ELSEWHERE one for another
    host; GUARDED, RENEWED and BOTH ask for a login, and on
    RENEWED it holds for `LIFETIME_MS`.
    """
    modules = "org.apache.kafka.common.security"
    plain = " ".join(f'user_{user}="{password}"' for user, password in users.items() if user.isalpha())
    found = {
        "connection.failed.authentication.delay.ms": "0",
        **tls_properties(papers),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.expired.ssl.keystore.location": _keystore(
            papers, called="expired.pem", begins=LONG_AGO, ends=LONG_AGO + dt.timedelta(days=1)
        ),
        "listener.name.elsewhere.ssl.keystore.location": _keystore(
            papers, "kafka-1.example.org", "*.example.net", called="elsewhere.pem"
        ),
    }
    for listener in ("guarded", "renewed", "both"):
        prefix = f"listener.name.{listener}"
        found[f"{prefix}.sasl.enabled.mechanisms"] = ",".join((*MECHANISMS, "OAUTHBEARER"))
        configs = {
            "plain": f"{modules}.plain.PlainLoginModule required {plain};",
            "scram-sha-256": f"{modules}.scram.ScramLoginModule required;",
            "scram-sha-512": f"{modules}.scram.ScramLoginModule required;",
            "oauthbearer": (
                f'{modules}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
            ),
        }
        for mechanism, config in configs.items():
            found[f"{prefix}.{mechanism}.sasl.jaas.config"] = config
            if listener == "renewed":
                found[f"{prefix}.{mechanism}.connections.max.reauth.ms"] = str(LIFETIME_MS)
    scram = [
        f"{mechanism}=[name={user},password={password}]"
        for mechanism in MECHANISMS[1:]
        for user, password in users.items()
    ]
    return ApacheKafka(properties=found, listeners=LISTENERS, scram=scram)


async def outlives_its_login(bootstrap: str, **options: Any) -> None:
    """Write for two lifetimes of a login, each `LIFETIME_MS`, by the same connections all the time."""
    async with Client(bootstrap, **options, allow_auto_create_topics=True) as client, client.producer() as producer:
        topic, lanes = token_hex(6), client._cluster.brokers._lanes
        await producer.send(topic, b"first")
        for _ in range(5):
            before, longest, now = [lane.connection for lane in lanes.values()], 0.0, anyio.current_time()
            ends = now + LIFETIME_MS / 1000 * 2
            while now < ends:  # Kafka hangs up on who asks with a login that has ended
                await producer.send(topic, b"more")
                longest, now = max(longest, anyio.current_time() - now), anyio.current_time()
            if before == [lane.connection for lane in lanes.values()]:
                break
            # It is renewed a little before its end, which a machine that stands still may miss.
            assert longest > LIFETIME_MS / 1000 * 0.05
        assert all(one is not None and one.failure is None for one in before)
