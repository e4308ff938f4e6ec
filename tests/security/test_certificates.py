"""Certificates and keys as files: what is wrong with which of them is told."""

from __future__ import annotations

import base64
import datetime as dt
import os
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12
from hypothesis import given
from hypothesis import strategies as st
from support.securing import KEY, Papers, make_papers

from aiokafkawire.config import ClientConfig, make_config
from aiokafkawire.errors import ConfigError
from aiokafkawire.network.certificate_parsing import certificates_in, has_encrypted_key, has_key, validity
from aiokafkawire.network.tls_context import make_context

PASSWORD = "s3cret"


def made_of(**options: Any) -> ClientConfig:
    return make_config(ClientConfig, {"security_protocol": "SSL", **options})


def context(**options: Any) -> ssl.SSLContext:
    return make_context(made_of(**options))


def told(**options: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        context(**options)
    assert PASSWORD not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


def encrypted(papers: Papers, path: Path, password: str = PASSWORD) -> str:
    key = serialization.load_pem_private_key(Path(papers.key).read_bytes(), None)
    shape = serialization.PrivateFormat.PKCS8
    how = serialization.BestAvailableEncryption(password.encode())
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, shape, how))
    return str(path)


def keystore(papers: Papers, path: Path, password: str | None = PASSWORD) -> str:
    key: Any = serialization.load_pem_private_key(Path(papers.key).read_bytes(), None)
    certificate, *more = x509.load_pem_x509_certificates(Path(papers.certificate).read_bytes())
    how: Any = serialization.NoEncryption()
    if password is not None:
        how = serialization.BestAvailableEncryption(password.encode())
    path.write_bytes(pkcs12.serialize_key_and_certificates(b"alice", key, certificate, more, how))
    return str(path)


def test_a_context_is_as_safe_as_it_should_be(papers: Papers) -> None:
    made = context(ssl_ca_location=papers.ca)
    assert made.check_hostname
    assert made.verify_mode is ssl.CERT_REQUIRED
    assert made.minimum_version is ssl.TLSVersion.TLSv1_2
    assert len(made.get_ca_certs()) == 1
    looking = make_context(made_of(ssl_certificate_location=papers.certificate, ssl_key_location="/none"), looking=True)
    assert looking.verify_mode is ssl.CERT_REQUIRED  # and the key was not looked for: no certificate is shown
    assert not looking.check_hostname
    loose = context(ssl_ca_location=papers.ca, ssl_endpoint_identification_algorithm="none")
    assert not loose.check_hostname
    assert loose.verify_mode is ssl.CERT_REQUIRED


TLS_1_3 = "TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256,TLS_AES_128_GCM_SHA256"
OLDER = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"


@pytest.mark.parametrize(
    ("options", "versions", "ciphers"),
    [
        ({}, (2, 3), None),
        ({"ssl_enabled_protocols": ["TLSv1.2"]}, (2, 2), None),
        ({"ssl_enabled_protocols": ["TLSv1.3"]}, (3, 3), None),
        ({"ssl_enabled_protocols": ["TLSv1.3", "TLSv1.2"]}, (2, 3), None),
        (
            {"ssl_cipher_suites": OLDER},
            (2, 2),
            {"ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"},
        ),
        ({"ssl_cipher_suites": f"{TLS_1_3},TLS_RSA_WITH_AES_256_CBC_SHA256"}, (2, 3), {"AES256-SHA256"}),
        ({"ssl_cipher_suites": TLS_1_3}, (3, 3), None),
        ({"ssl_cipher_suites": "ECDHE-RSA-AES256-SHA384"}, (2, 3), {"ECDHE-RSA-AES256-SHA384"}),
        (
            {"ssl_cipher_suites": "ECDHE-RSA-AES256-GCM-SHA384", "ssl_enabled_protocols": ["TLSv1.2"]},
            (2, 2),
            {"ECDHE-RSA-AES256-GCM-SHA384"},
        ),
    ],
)
def test_versions_and_cipher_suites(
    options: dict[str, Any], versions: tuple[int, int], ciphers: set[str] | None
) -> None:
    made = context(**options)
    named = {2: ssl.TLSVersion.TLSv1_2, 3: ssl.TLSVersion.TLSv1_3}
    assert (made.minimum_version, made.maximum_version) == (named[versions[0]], named[versions[1]])
    if ciphers is not None:
        assert {cipher["name"] for cipher in made.get_ciphers() if cipher["protocol"] != "TLSv1.3"} == ciphers


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ssl_cipher_suites": "TLS_AES_128_GCM_SHA256"}, "of TLS 1.3, name all of TLS_AES_256_GCM_SHA384"),
        ({"ssl_cipher_suites": "nonsense"}, "OpenSSL has none of 'nonsense'"),
        ({"ssl_cipher_suites": "\0"}, "OpenSSL has none of"),
        ({"ssl_cipher_suites": f"{OLDER},TLS_ECDHE_RSA_WITH_ROT13"}, "does not have TLS_ECDHE_RSA_WITH_ROT13"),
        ({"ssl_cipher_suites": OLDER, "ssl_enabled_protocols": ["TLSv1.3"]}, "no suite for the versions"),
    ],
)
def test_cipher_suites_that_will_not_do(options: dict[str, Any], words: str) -> None:
    assert words in told(**options)


def test_certificates_that_do(papers: Papers, tmp_path: Path) -> None:
    own = {"ssl_certificate_location": papers.certificate}
    key = encrypted(papers, tmp_path / "key")
    both, commented = tmp_path / "both.pem", tmp_path / "commented.pem"
    both.write_text(Path(papers.key).read_text() + Path(papers.certificate).read_text())
    commented.write_text(f"# Zürich\n{both.read_text()}")
    empty = tmp_path / "empty"
    empty.mkdir()
    for options, authorities in (
        (own | {"ssl_key_location": papers.key}, None),
        (own | {"ssl_key_location": key, "ssl_key_password": PASSWORD}, None),
        ({"ssl_certificate_location": both}, None),
        ({"ssl_certificate_pem": both.read_text()}, None),
        ({"ssl_keystore_location": keystore(papers, tmp_path / "k.p12"), "ssl_keystore_password": PASSWORD}, None),
        ({"ssl_keystore_location": keystore(papers, tmp_path / "open.p12", None)}, None),
        ({"ssl_ca_location": str(empty)}, 0),  # a directory
        ({"ssl_ca_pem": f"# Zürich\n{Path(papers.ca).read_text()}"}, 1),
        ({"ssl_ca_location": commented, "ssl_certificate_location": commented}, 1),
    ):
        made = context(**options)
        assert made.verify_mode is ssl.CERT_REQUIRED
        assert authorities is None or made.cert_store_stats()["x509"] == authorities


def test_files_that_are_not_there_or_hold_something_else(papers: Papers, tmp_path: Path) -> None:
    none, other = str(tmp_path / "none.pem"), tmp_path / "other.pem"
    other.write_text("hello")
    own = {"ssl_certificate_location": papers.certificate}
    assert told(ssl_ca_location=none) == f"ssl_ca_location {none!r} cannot be read: No such file or directory"
    assert told(ssl_ca_location="a\0b") == "ssl_ca_location 'a\\x00b' cannot be read: embedded null byte"
    assert "holds no certificate in PEM" in told(ssl_ca_location=other)
    assert told(ssl_ca_pem="hello").startswith("ssl_ca_pem holds no certificate in PEM")
    broken = Path(papers.ca).read_text().replace("MII", "AAA", 1)
    assert "its certificates cannot be read" in told(ssl_ca_pem=broken)
    assert "ssl_certificate_location" in told(ssl_certificate_location=none)
    assert "holds no certificate in PEM" in told(ssl_certificate_location=papers.key, ssl_key_location=papers.key)
    assert "there is no private key in PEM" in told(**own)
    assert "there is no private key in PEM" in told(**own, ssl_key_location=other)
    assert told(**own, ssl_key_location=none).startswith(f"ssl_key_location {none!r} cannot be read")
    assert "or it is neither PKCS12 nor JKS" in told(ssl_keystore_location=other, ssl_keystore_password=PASSWORD)
    with other.open("wb") as file:
        file.truncate(16 * 1024 * 1024 + 1)
    for setting in ("ssl_ca_location", "ssl_truststore_location", "ssl_certificate_location"):
        assert told(**{setting: other}).endswith("is larger than 16777216 bytes: is it the right file?")
    other.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    assert "it is truncated" in told(ssl_keystore_location=other)


def test_keys_and_passwords_that_are_wrong(papers: Papers, tmp_path: Path) -> None:
    own = {"ssl_certificate_location": papers.certificate}
    key, store = encrypted(papers, tmp_path / "key"), keystore(papers, tmp_path / "k.p12")
    assert "is encrypted: set ssl_key_password" in told(**own, ssl_key_location=key)
    assert "ssl_key_password is wrong" in told(**own, ssl_key_location=key, ssl_key_password="another")
    assert "ssl_keystore_password is wrong" in told(ssl_keystore_location=store, ssl_keystore_password="another")
    assert "ssl_keystore_password is not set" in told(ssl_keystore_location=store)
    mine = tmp_path / "mine"
    mine.mkdir()
    other = make_papers(mine)
    assert "the private key does not belong to the certificate in ssl_certificate_location" in told(
        **own, ssl_key_location=other.key
    )
    damaged = Path(papers.key).read_text().replace("M", "N", 1)
    assert "cannot be read" in told(**own, ssl_key_pem=damaged)


@pytest.mark.parametrize(("days", "words"), [(-2, "has expired: it was valid until "), (2, "is not valid before ")])
def test_a_certificate_of_another_time(papers: Papers, days: int, words: str) -> None:
    moment = dt.datetime.now(dt.UTC) + dt.timedelta(days=days)
    begins, ends = (moment - dt.timedelta(1), moment) if days < 0 else (moment, moment + dt.timedelta(1))
    issued = papers.authority.issue_cert("a@localhost", not_before=begins, not_after=ends, key_type=KEY)
    pem = issued.cert_chain_pems[0].bytes().decode()
    message = told(ssl_certificate_pem=pem, ssl_key_pem=issued.private_key_pem.bytes().decode())
    assert words in message
    assert f"{moment:%Y-%m-%d %H:%M:%S} UTC" in message


def test_no_key_is_left_in_a_file(papers: Papers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    own = {"ssl_certificate_location": papers.certificate}
    monkeypatch.delattr(os, "memfd_create", raising=False)  # as on other systems
    context(**own, ssl_key_location=papers.key)
    told(**own, ssl_key_pem=Path(papers.key).read_text().replace("M", "N", 1))
    assert list(tmp_path.iterdir()) == []


def test_a_keystore_without_the_library_names_the_extra(papers: Papers, tmp_path: Path) -> None:
    store = keystore(papers, tmp_path / "k.p12")
    program = f"""
import sys
sys.modules["cryptography"] = sys.modules["cryptography.hazmat.primitives"] = None
from aiokafkawire.config import ClientConfig
from aiokafkawire.network.tls_context import make_context
make_context(ClientConfig(security_protocol="SSL", ssl_keystore_location={store!r}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "ConfigError: ssl_keystore_location needs the library cryptography" in done.stderr
    assert "pip install 'aiokafkawire[security]'" in done.stderr


def test_times_are_read_as_the_library_reads_them(papers: Papers) -> None:
    for year in (1999, 2031, 2049, 2050, 2200):
        ends = dt.datetime(year, 5, 6, 7, 8, 9, tzinfo=dt.UTC)
        begins = dt.datetime(1951, 1, 1, tzinfo=dt.UTC)
        issued = papers.authority.issue_cert("a.example", not_before=begins, not_after=ends, key_type=KEY)
        pem = issued.cert_chain_pems[0].bytes()
        seen = x509.load_pem_x509_certificate(pem)
        (der,) = certificates_in(pem.decode())
        assert validity(der) == (seen.not_valid_before_utc, seen.not_valid_after_utc)


def test_kinds_of_keys() -> None:
    assert has_key("-----BEGIN PRIVATE KEY-----")
    assert has_key("-----BEGIN RSA PRIVATE KEY-----")
    assert has_key("-----BEGIN ENCRYPTED PRIVATE KEY-----")
    assert not has_key("-----BEGIN PUBLIC KEY-----")
    assert has_encrypted_key("-----BEGIN ENCRYPTED PRIVATE KEY-----")
    assert has_encrypted_key("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n")
    assert not has_encrypted_key("-----BEGIN PRIVATE KEY-----")


CERTIFICATE = certificates_in(trustme.CA(key_type=KEY).cert_pem.bytes().decode())[0]


@given(st.integers(0, len(CERTIFICATE) - 1), st.integers(0, 255), st.integers(0, len(CERTIFICATE)))
def test_a_damaged_certificate_is_read_or_not(at: int, byte: int, cut: int) -> None:
    damaged = CERTIFICATE[:at] + bytes([byte]) + CERTIFICATE[at + 1 :]
    for one in (damaged, damaged[:cut]):
        found = validity(one)
        assert found is None or len(found) == 2


@given(st.text())
def test_what_is_no_pem_holds_none(text: str) -> None:
    assert certificates_in(text) == []
    framed = f"-----BEGIN CERTIFICATE-----{text}-----END CERTIFICATE-----"
    assert all(base64.b64encode(found) for found in certificates_in(framed))
