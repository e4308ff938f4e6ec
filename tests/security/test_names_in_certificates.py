"""Which host names a broker's certificate is for, and which versions of TLS a client accepts."""

from __future__ import annotations

import ssl
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from support.securing import Papers, make_papers, server_named

from aiokafkawire.config import ClientConfig, make_config
from aiokafkawire.network.tls_context import make_context

BROKER = "broker-1.kafka.test"


def handshake(client: ssl.SSLContext, server: ssl.SSLContext, host: str) -> str | None:
    """Complete a handshake without a network; return the version of TLS.

    Raises:
        ssl.SSLError: a side refuses the other.
    """
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname=host)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    waiting = [ours, theirs]
    while waiting:
        side = waiting.pop(0)
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            waiting.append(side)
    return ours.version()


@pytest.fixture
def papers(tmp_path: Path) -> Papers:
    return make_papers(tmp_path)


def client(papers: Papers, **options: Any) -> ssl.SSLContext:
    return make_context(make_config(ClientConfig, {**papers.client(), **options}))


def dns(name: str) -> x509.GeneralName:
    return x509.DNSName(name)


def ip(address: str) -> x509.GeneralName:
    return x509.IPAddress(ip_address(address))


@pytest.mark.parametrize(
    ("names", "host"),
    [
        ([dns(BROKER)], BROKER),
        ([dns(BROKER)], BROKER.upper()),
        ([dns("other.test"), dns(BROKER)], BROKER),
        ([dns("*.kafka.test")], BROKER),
        ([ip("10.0.0.1")], "10.0.0.1"),
        ([ip("2001:db8::1")], "2001:db8::1"),
        ([ip("2001:db8::1")], "2001:db8:0::0:1"),
        ([], "nobody.test"),  # without subjectAltName the common name counts, as in Java and librdkafka
    ],
)
def test_a_certificate_is_for_this_host(papers: Papers, names: list[x509.GeneralName], host: str) -> None:
    assert handshake(client(papers), server_named(papers, names, "nobody.test"), host) == "TLSv1.3"


@pytest.mark.parametrize(
    ("names", "host"),
    [
        ([dns("kafka.test")], BROKER),
        ([dns("*.kafka.test")], "kafka.test"),
        ([dns("*.kafka.test")], f"a.{BROKER}"),  # a wildcard is one label
        ([dns("*")], "broker"),
        ([dns("*.1")], "10.0.0.1"),
        ([dns("*.0.0.1")], "10.0.0.1"),
        ([dns("10.0.0.1")], "10.0.0.1"),  # an address must be in the certificate as an address
        ([dns("2001:db8::1")], "2001:db8::1"),
        ([ip("10.0.0.2")], "10.0.0.1"),
        ([dns("other.test")], "nobody.test"),  # with a subjectAltName the common name does not count
        ([dns(f"{BROKER}.evil.test")], BROKER),
        ([], BROKER),
    ],
)
def test_a_certificate_is_not_for_this_host(papers: Papers, names: list[x509.GeneralName], host: str) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        handshake(client(papers), server_named(papers, names, "nobody.test"), host)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
def test_versions_before_tls_1_2_are_refused(papers: Papers, version: ssl.TLSVersion) -> None:
    old = server_named(papers, [dns(BROKER)], BROKER)
    old.minimum_version = ssl.TLSVersion.TLSv1
    old.maximum_version = version
    old.set_ciphers("ALL:@SECLEVEL=0")  # or OpenSSL itself has no such version
    with pytest.raises(ssl.SSLError, match=r"(?i)protocol|version"):
        handshake(client(papers), old, BROKER)


def test_a_client_of_tls_1_3_does_not_go_back_to_1_2(papers: Papers) -> None:
    old = server_named(papers, [dns(BROKER)], BROKER)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert handshake(client(papers), old, BROKER) == "TLSv1.2"
    with pytest.raises(ssl.SSLError, match=r"(?i)protocol|version"):
        handshake(client(papers, ssl_enabled_protocols=["TLSv1.3"]), old, BROKER)
