"""Reads keystores and truststores, of PKCS12 or of Java's own types JKS and JCEKS; the content shows the type."""

import secrets
import ssl
from typing import Final

import attrs

from ..config.security import SecurityConfig
from ..errors import ConfigError
from .java_keystores import JavaKeystore, WrongPassword, is_java_keystore, parse_java_keystore, private_key
from .setting_files import read_setting_file

__all__ = ("Identity", "client_identity", "trusted_certificates")

_EXTRA: Final = "needs the library cryptography: pip install 'aiokafkawire[security]'"
_PEM_KEY: Final = "or use ssl_certificate_location and ssl_key_location (PEM)"
_PEM_TRUST: Final = "or use ssl_ca_location (PEM)"


@attrs.frozen
class Identity:
    """A client's certificates and private key in PEM, and the password with which the key is encrypted, if it is.

    Its repr shows neither, nor do tracebacks with the variables of frames.
    """

    certificates: str = attrs.field(repr=False)
    """They may be in one text with the key."""
    key: str = attrs.field(repr=False)
    password: str | None = attrs.field(repr=False)


def client_identity(config: SecurityConfig) -> Identity:
    """Read the private key and its certificates from ``ssl_keystore_location``.

    Raises:
        ConfigError: the file is missing or damaged, is no keystore, or holds no private key; a password is wrong, or a
            library is missing.
    """
    location = config.ssl_keystore_location
    assert location is not None
    source = f"ssl_keystore_location {location!r}"
    data = read_setting_file("ssl_keystore_location", location)
    if not is_java_keystore(data):
        return _pkcs12_identity(data, source, config)
    store = _java_keystore(data, source, "ssl_keystore_password", config)
    if not store.keys or not store.keys[0].chain:
        raise ConfigError(f"{source} holds no private key with its certificate")
    entry = store.keys[0]
    name = "ssl_key_password" if config.ssl_key_password is not None else "ssl_keystore_password"
    if getattr(config, name) is None:
        raise ConfigError(f"{source}: its private key is encrypted: set ssl_keystore_password or ssl_key_password")
    try:
        key = private_key(entry, getattr(config, name))
    except WrongPassword:
        hint = "" if name == "ssl_key_password" else "; set ssl_key_password, if the key has its own"
        raise ConfigError(f"{source}: {name} is not the password of the private key{hint}") from None
    except ValueError as error:
        raise ConfigError(f"{source} cannot be read: {error}") from None
    except ImportError:
        raise ConfigError(f"{source} is a JCEKS keystore, which {_EXTRA}, {_PEM_KEY}") from None
    text = ssl.DER_cert_to_PEM_cert(key).replace("CERTIFICATE", "PRIVATE KEY")
    return Identity(_pem(entry.chain), text, None)


def trusted_certificates(config: SecurityConfig) -> bytes:
    """Read the certificates of ``ssl_truststore_location``; return them in DER, one after another.

    As in Java, the certificates of private keys are trusted as well.

    Raises:
        ConfigError: the file is missing or damaged, is no keystore, or holds no certificate; the password is wrong, or
            a library is missing.
    """
    location = config.ssl_truststore_location
    assert location is not None
    source = f"ssl_truststore_location {location!r}"
    data = read_setting_file("ssl_truststore_location", location)
    if is_java_keystore(data):
        store = _java_keystore(data, source, "ssl_truststore_password", config)
        found = [*store.trusted, *(entry.chain[0] for entry in store.keys if entry.chain)]
    else:
        found = _pkcs12_certificates(data, source, config)
    if not found:
        raise ConfigError(f"{source} holds no certificate")
    return b"".join(found)


def _java_keystore(data: bytes, source: str, setting: str, config: SecurityConfig) -> JavaKeystore:
    try:
        return parse_java_keystore(data, getattr(config, setting))
    except WrongPassword:
        raise ConfigError(f"{source} cannot be opened: {setting} is wrong, or the file was changed") from None
    except ValueError as error:
        raise ConfigError(f"{source} cannot be read: {error}") from None


def _pkcs12_identity(data: bytes, source: str, config: SecurityConfig) -> Identity:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise ConfigError(f"ssl_keystore_location {_EXTRA}, {_PEM_KEY}") from None
    try:
        key, certificate, more = pkcs12.load_key_and_certificates(data, _encoded(config.ssl_keystore_password))
    except ValueError:
        raise _not_opened(source, "ssl_keystore_password", config) from None
    if key is None or certificate is None:
        raise ConfigError(f"{source} holds no private key with its certificate")
    chain = [link.public_bytes(serialization.Encoding.DER) for link in (certificate, *more)]
    secret = secrets.token_hex(16)
    encryption = serialization.BestAvailableEncryption(secret.encode())
    shape = serialization.PrivateFormat.PKCS8
    return Identity(_pem(chain), key.private_bytes(serialization.Encoding.PEM, shape, encryption).decode(), secret)


def _pkcs12_certificates(data: bytes, source: str, config: SecurityConfig) -> list[bytes]:
    try:
        from cryptography.hazmat.primitives.serialization import Encoding, pkcs12
    except ImportError:
        raise ConfigError(f"ssl_truststore_location of PKCS12 {_EXTRA}, {_PEM_TRUST}") from None
    try:
        _, own, more = pkcs12.load_key_and_certificates(data, _encoded(config.ssl_truststore_password))
    except ValueError:
        raise _not_opened(source, "ssl_truststore_password", config) from None
    return [certificate.public_bytes(Encoding.DER) for certificate in ((own,) if own else ()) + tuple(more)]


def _encoded(password: str | None) -> bytes | None:
    return None if password is None else password.encode()


def _not_opened(source: str, setting: str, config: SecurityConfig) -> ConfigError:
    wrong = "is wrong" if getattr(config, setting) is not None else "is not set"
    return ConfigError(f"{source} cannot be opened: {setting} {wrong}, or it is neither PKCS12 nor JKS")


def _pem(certificates: "list[bytes] | tuple[bytes, ...]") -> str:
    return "".join(map(ssl.DER_cert_to_PEM_cert, certificates))
