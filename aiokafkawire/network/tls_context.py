"""Makes an SSLContext from the settings, which reads files and blocks. Errors name the file and the problem."""

import contextlib
import os
import ssl
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime

from ..config.security import FilePath, SecurityConfig
from ..errors import ConfigError
from .certificate_parsing import certificates_in, has_encrypted_key, has_key, validity
from .cipher_suites import CipherSuites, parse_cipher_suites
from .keystores import Identity, client_identity, trusted_certificates
from .setting_files import read_setting_file

__all__ = ("files_of", "make_context")


def files_of(config: SecurityConfig) -> tuple[str, ...]:
    """Return the files from which a context is made."""
    named = (
        config.ssl_ca_location,
        config.ssl_truststore_location,
        config.ssl_certificate_location,
        config.ssl_key_location,
        config.ssl_keystore_location,
    )
    return tuple(os.fspath(name) for name in named if name is not None)


def make_context(config: SecurityConfig, *, looking: bool = False) -> ssl.SSLContext:
    """Make a context for TLS 1.2 and later, with the trusted authorities and the client's certificate.

    Args:
        config: the settings, without ``ssl_context``.
        looking: whether the context only serves to read the broker's certificate; then the host name is not verified,
            and the client's certificate is not sent.

    Raises:
        ConfigError: a file is missing or its content is invalid, a password or a key is wrong, a certificate has
            expired.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _limit(context, config)
    context.check_hostname = not looking and config.ssl_endpoint_identification_algorithm == "https"
    _trust(context, config)
    if looking:
        return context
    if config.ssl_keystore_location is not None:
        _show(context, f"ssl_keystore_location {config.ssl_keystore_location!r}", client_identity(config))
    elif config.ssl_certificate_location is not None:
        _show(context, f"ssl_certificate_location {config.ssl_certificate_location!r}", _identity_in_pem(config))
    elif config.ssl_certificate_pem is not None:
        _show(context, "ssl_certificate_pem", _identity_in_pem(config))
    return context


def _limit(context: ssl.SSLContext, config: SecurityConfig) -> None:
    """Allow the versions of TLS and the cipher suites that the settings name; TLS 1.2 and later without them."""
    versions = set(config.ssl_enabled_protocols or ("TLSv1.2", "TLSv1.3"))
    if config.ssl_cipher_suites is not None:
        suites = parse_cipher_suites(config.ssl_cipher_suites)
        if suites.ciphers is not None:
            _set_ciphers(context, suites, suites.ciphers)
        versions -= set() if suites.allows_tls_1_3 else {"TLSv1.3"}
        versions -= set() if suites.ciphers is not None else {"TLSv1.2"}
        if not versions:
            raise ConfigError("ssl_cipher_suites has no suite for the versions in ssl_enabled_protocols")
    context.minimum_version = ssl.TLSVersion.TLSv1_2 if "TLSv1.2" in versions else ssl.TLSVersion.TLSv1_3
    context.maximum_version = ssl.TLSVersion.TLSv1_3 if "TLSv1.3" in versions else ssl.TLSVersion.TLSv1_2


def _set_ciphers(context: ssl.SSLContext, suites: CipherSuites, ciphers: str) -> None:
    try:
        context.set_ciphers(ciphers)
    except (ssl.SSLError, ValueError):
        raise ConfigError(f"ssl_cipher_suites: OpenSSL has none of {ciphers!r:.200}") from None
    known = {cipher["name"] for cipher in context.get_ciphers()}
    missing = [name for name, cipher in suites.named if cipher not in known]
    if missing:
        raise ConfigError(f"ssl_cipher_suites: OpenSSL does not have {', '.join(missing):.200}")


def _trust(context: ssl.SSLContext, config: SecurityConfig) -> None:
    source, text = "ssl_ca_pem", config.ssl_ca_pem
    location = config.ssl_ca_location
    if config.ssl_truststore_location is not None:
        _trust_store(context, config)
        return
    if location is None and text is None:
        context.load_default_certs()
        return
    if location is not None:
        if os.path.isdir(location):
            context.load_verify_locations(capath=location)
            return
        source, text = f"ssl_ca_location {location!r}", _read_text("ssl_ca_location", location)
    assert text is not None
    if not certificates_in(text):
        raise ConfigError(f"{source} holds no certificate in PEM (-----BEGIN CERTIFICATE-----)")
    try:
        # Comments around the certificates may not be ASCII.
        context.load_verify_locations(cadata=text.encode("ascii", "replace").decode())
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"{source}: its certificates cannot be read: {_reason(error)}") from None


def _trust_store(context: ssl.SSLContext, config: SecurityConfig) -> None:
    try:
        context.load_verify_locations(cadata=trusted_certificates(config))
    except (ssl.SSLError, ValueError) as error:
        source = f"ssl_truststore_location {config.ssl_truststore_location!r}"
        raise ConfigError(f"{source}: its certificates cannot be read: {_reason(error)}") from None


def _identity_in_pem(config: SecurityConfig) -> Identity:
    certificate = config.ssl_certificate_pem
    if config.ssl_certificate_location is not None:
        certificate = _read_text("ssl_certificate_location", config.ssl_certificate_location)
    assert certificate is not None
    return Identity(certificate, _key_in_pem(config) or certificate, config.ssl_key_password)


def _key_in_pem(config: SecurityConfig) -> str | None:
    if config.ssl_key_location is not None:
        return _read_text("ssl_key_location", config.ssl_key_location)
    return config.ssl_key_pem


def _show(context: ssl.SSLContext, source: str, identity: Identity) -> None:
    found = certificates_in(identity.certificates)
    if not found:
        raise ConfigError(f"{source} holds no certificate in PEM (-----BEGIN CERTIFICATE-----)")
    if not has_key(identity.key):
        raise ConfigError(f"there is no private key in PEM for {source}: set ssl_key_location or ssl_key_pem")
    encrypted = has_encrypted_key(identity.key)
    if encrypted and not identity.password:
        raise ConfigError(f"the private key for {source} is encrypted: set ssl_key_password")
    _check_times(source, found[0])
    try:
        with _as_file(identity.certificates) as certificate_file, _as_file(identity.key) as key_file:
            # Without the function for the password, OpenSSL would prompt for it on the terminal.
            context.load_cert_chain(certificate_file, key_file, lambda: identity.password or "")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ConfigError(f"the private key does not belong to the certificate in {source}") from None
        if encrypted:
            raise ConfigError(f"the private key for {source} cannot be decrypted: ssl_key_password is wrong") from None
        raise ConfigError(f"{source}: certificate or key cannot be read: {_reason(error)}") from None
    except ValueError as error:  # a password that is too long for OpenSSL
        raise ConfigError(f"{source}: certificate or key cannot be read: {error}") from None


def _check_times(source: str, certificate: bytes) -> None:
    valid = validity(certificate)
    if valid is None:
        return  # OpenSSL or the broker reports the problem
    now = datetime.now(UTC)
    if now > valid.ends:
        raise ConfigError(
            f"the certificate in {source} has expired: it was valid until {valid.ends:%Y-%m-%d %H:%M:%S} UTC"
        )
    if now < valid.begins:
        raise ConfigError(f"the certificate in {source} is not valid before {valid.begins:%Y-%m-%d %H:%M:%S} UTC")


@contextlib.contextmanager
def _as_file(text: str) -> Iterator[str]:
    """Yield the path of a file with this text, since OpenSSL reads keys only from files; in memory if possible."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        descriptor = os.memfd_create("aiokafkawire")
        path = f"/proc/self/fd/{descriptor}"
    else:
        descriptor, path = tempfile.mkstemp(prefix="aiokafkawire-")  # readable only by this user
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            yield path
    finally:
        if not path.startswith("/proc/"):
            with contextlib.suppress(OSError):
                os.unlink(path)


def _read_text(setting: str, location: FilePath) -> str:
    return read_setting_file(setting, location).decode(errors="replace")


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", None) or error)
