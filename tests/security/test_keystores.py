"""Keystores and truststores of Java: what keytool wrote is read, and what cannot be read is told.

The files in tests/data/keystores are keytool's, with the passwords "of-the-store" and "of-the-key". All hold the key
and the self-signed certificate of client.pem, or that certificate as an authority; secret.jceks holds a secret key.
"""

from __future__ import annotations

import shutil
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st
from support.needing import require
from support.securing import KEY, Papers, there_and_back

from aiokafkawire.config import ClientConfig, make_config
from aiokafkawire.config.properties import settings_from
from aiokafkawire.errors import ConfigError
from aiokafkawire.network.certificate_parsing import certificates_in
from aiokafkawire.network.java_keystores import parse_java_keystore, private_key
from aiokafkawire.network.keystores import client_identity, trusted_certificates
from aiokafkawire.network.tls_context import make_context
from aiokafkawire.testing.broker import Broker

STORES = Path(__file__).parents[1] / "data" / "keystores"
STORE, KEY_PASSWORD = "of-the-store", "of-the-key"


def made_of(**options: Any) -> ClientConfig:
    return make_config(ClientConfig, {"security_protocol": "SSL", **options})


def identity_of(name: str, **more: Any) -> ClientConfig:
    return made_of(ssl_keystore_location=STORES / name, **{"ssl_keystore_password": STORE, **more})


def trusting(name: str, password: str | None = STORE) -> ClientConfig:
    return made_of(ssl_truststore_location=STORES / name, ssl_truststore_password=password)


def public_of(key: str, password: str | None) -> bytes:
    loaded = serialization.load_pem_private_key(key.encode(), None if password is None else password.encode())
    return loaded.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def own_certificate() -> bytes:
    [found] = certificates_in((STORES / "client.pem").read_text())
    return found


@pytest.mark.parametrize(("name", "key_password"), [("client.jks", KEY_PASSWORD), ("client.jceks", KEY_PASSWORD),
                                                    ("client.p12", None)])  # fmt: skip
def test_the_key_and_its_certificate(name: str, key_password: str | None) -> None:
    config = identity_of(name, ssl_key_password=key_password)
    identity = client_identity(config)
    assert certificates_in(identity.certificates) == [own_certificate()]
    other = client_identity(identity_of("client.p12"))
    assert public_of(identity.key, identity.password) == public_of(other.key, other.password)
    make_context(config)  # which checks that the key is the certificate's


@pytest.mark.parametrize("name", ["trusted.jks", "trusted.p12", "client.jks"])
def test_the_authorities(name: str) -> None:
    assert trusted_certificates(trusting(name)) == own_certificate()
    assert make_context(trusting(name)).cert_store_stats()["x509"] == 1


def test_the_certificates_of_a_jks_are_not_encrypted() -> None:
    assert trusted_certificates(trusting("trusted.jks", None)) == own_certificate()


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (identity_of("client.jks", ssl_keystore_password="wrong"), "cannot be opened: ssl_keystore_password is wrong"),
        (
            identity_of("client.jceks", ssl_keystore_password="wrong"),
            "cannot be opened: ssl_keystore_password is wrong",
        ),
        (identity_of("client.p12", ssl_keystore_password="wrong"), "ssl_keystore_password is wrong, or it is neither"),
        (identity_of("client.jks"), "ssl_keystore_password is not the password of the private key; set ssl_key_pass"),
        (identity_of("client.jceks"), "ssl_keystore_password is not the password of the private key; set ssl_key_pass"),
        (
            identity_of("client.jks", ssl_key_password="wrong"),
            "ssl_key_password is not the password of the private key",
        ),
        (identity_of("client.jks", ssl_keystore_password=None), "set ssl_keystore_password or ssl_key_password"),
        (identity_of("trusted.jks"), "holds no private key with its certificate"),
        (identity_of("secret.jceks"), "its entry 'hidden' is a secret key: remove it with keytool -delete"),
        (identity_of("client.pem"), "ssl_keystore_password is wrong, or it is neither PKCS12 nor JKS"),
        (trusting("trusted.jks", "wrong"), "cannot be opened: ssl_truststore_password is wrong"),
        (trusting("trusted.p12", None), "ssl_truststore_password is not set, or it is neither PKCS12 nor JKS"),
        (trusting("client.pem"), "ssl_truststore_password is wrong, or it is neither PKCS12 nor JKS"),
        (trusting("none.jks"), "cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_be_read_is_told(config: ClientConfig, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_context(config)
    assert told in str(caught.value)
    assert "ssl_keystore_location" in str(caught.value) or "ssl_truststore_location" in str(caught.value)
    assert STORE not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@given(st.integers(0, 514), st.binary(max_size=8))
def test_a_damaged_store_is_an_error_of_its_value(position: int, other: bytes) -> None:
    data = (STORES / "client.jks").read_bytes()
    damaged = data[: 4 + position % (len(data) - 4)] + other
    try:
        for entry in parse_java_keystore(damaged, None).keys:
            private_key(entry, KEY_PASSWORD)
    except ValueError:
        pass


def test_a_changed_certificate_is_noticed_with_the_password(tmp_path: Path) -> None:
    data = bytearray((STORES / "trusted.jks").read_bytes())
    data[200] ^= 1
    changed = tmp_path / "changed.jks"
    changed.write_bytes(data)
    with pytest.raises(ConfigError, match="ssl_truststore_password is wrong, or the file was changed"):
        trusted_certificates(made_of(ssl_truststore_location=changed, ssl_truststore_password=STORE))


def test_a_jceks_without_the_library_names_the_extra() -> None:
    program = f"""
import sys
sys.modules["cryptography"] = sys.modules["cryptography.hazmat.primitives.ciphers"] = None
sys.modules["cryptography.hazmat.decrepit.ciphers.algorithms"] = None
from aiokafkawire.config import ClientConfig
from aiokafkawire.network.tls_context import make_context
where = {str(STORES)!r}
make_context(ClientConfig(security_protocol="SSL", ssl_keystore_location=where + "/client.jks",
    ssl_keystore_password="{STORE}", ssl_key_password="{KEY_PASSWORD}"))
print("JKS needs no library")
make_context(ClientConfig(security_protocol="SSL", ssl_keystore_location=where + "/client.jceks",
    ssl_keystore_password="{STORE}", ssl_key_password="{KEY_PASSWORD}"))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "JKS needs no library\n"
    assert (
        "is a JCEKS keystore, which needs the library cryptography: pip install 'aiokafkawire[security]'" in done.stderr
    )


def test_javas_properties_name_the_stores() -> None:
    settings = settings_from(
        {
            "security.protocol": "SSL",
            "ssl.truststore.location": str(STORES / "trusted.jks"),
            "ssl.truststore.password": STORE,
            "ssl.keystore.type": "JKS",
            "ssl.keystore.location": str(STORES / "client.jks"),
            "ssl.keystore.password": STORE,
            "ssl.key.password": KEY_PASSWORD,
        }
    )
    context = make_context(make_config(ClientConfig, dict(settings.client)))
    assert context.cert_store_stats()["x509"] == 1


def keytool(*arguments: str) -> None:
    subprocess.run(["keytool", *arguments], check=True, capture_output=True, timeout=300)


@pytest.mark.thorough
@pytest.mark.anyio
async def test_stores_of_this_machines_keytool_open_a_listener(papers: Papers, tmp_path: Path) -> None:
    require(None if shutil.which("keytool") else "This test needs Java's keytool.")
    trusted, own, source = tmp_path / "trusted.jks", tmp_path / "own.jks", tmp_path / "own.p12"
    issued = papers.authority.issue_cert("client@localhost", common_name="client", key_type=KEY)
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import pkcs12

    key: Any = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    certificate, *more = x509.load_pem_x509_certificates(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    how = serialization.BestAvailableEncryption(STORE.encode())
    source.write_bytes(pkcs12.serialize_key_and_certificates(b"client", key, certificate, more, how))
    keytool("-importcert", "-noprompt", "-alias", "ca", "-file", papers.ca, "-keystore", str(trusted),
            "-storetype", "JKS", "-storepass", STORE)  # fmt: skip
    keytool("-importkeystore", "-srckeystore", str(source), "-srcstorepass", STORE, "-srcalias", "client",
            "-destkeystore", str(own), "-deststoretype", "JKS", "-deststorepass", STORE,
            "-destkeypass", KEY_PASSWORD)  # fmt: skip
    options: dict[str, Any] = {
        "security_protocol": "SSL",
        "ssl_truststore_location": trusted,
        "ssl_truststore_password": STORE,
        "ssl_keystore_location": own,
        "ssl_keystore_password": STORE,
        "ssl_key_password": KEY_PASSWORD,
    }
    async with Broker(tls=papers.server(asks=ssl.CERT_REQUIRED)) as broker:
        await there_and_back(broker.bootstrap, **options)
