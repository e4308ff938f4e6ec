"""Makes the errors of failed TLS handshakes from OpenSSL's names; they say which side refused, and what to do."""

from typing import Final

from ..errors import BrokerNotTrusted, ClientCertificateRefused, KafkaError, SecurityMismatch, TlsFailed
from .sasl import printable

__all__ = ("not_tls", "refused_by_broker", "refused_by_us")

_SET_CERTIFICATE: Final = "set ssl_certificate_location and ssl_key_location, or ssl_keystore_location"
_UNKNOWN: Final = "an authority that is not trusted here signed it: set ssl_ca_location to that authority's certificate"

_EXPIRED, _NOT_YET, _REVOKED = 10, 9, 23
_SELF_SIGNED, _SELF_SIGNED_IN_CHAIN, _NO_ISSUER, _NO_ISSUER_HERE, _FIRST_UNVERIFIED = 18, 19, 2, 20, 21
_WRONG_HOST, _WRONG_ADDRESS = 62, 64
_DISTRUST: Final = {
    _EXPIRED: "it, or one in its chain, has expired (is this machine's clock right?)",
    _NOT_YET: "it is not valid yet (is this machine's clock right?)",
    _REVOKED: "it was revoked",
    _SELF_SIGNED: "it is self-signed and not trusted here: set ssl_ca_location to it, if it is the right one",
    _SELF_SIGNED_IN_CHAIN: _UNKNOWN,
    _NO_ISSUER: _UNKNOWN,
    _NO_ISSUER_HERE: _UNKNOWN,
    _FIRST_UNVERIFIED: _UNKNOWN,
}
_ALERTS: Final = {
    "CERTIFICATE_REQUIRED": f"it requires a certificate of this client, and got none: {_SET_CERTIFICATE}",
    "UNKNOWN_CA": "it does not trust the authority that signed this client's certificate",
    "BAD_CERTIFICATE": f"it refuses this client's certificate, or requires one and got none: {_SET_CERTIFICATE}",
    "CERTIFICATE_EXPIRED": "this client's certificate has expired",
    "CERTIFICATE_REVOKED": "this client's certificate was revoked",
    "CERTIFICATE_UNKNOWN": "it refuses this client's certificate",
    "UNSUPPORTED_CERTIFICATE": "it does not support this type of certificate",
    "ACCESS_DENIED": "this client's certificate gives no access",
    "DECRYPT_ERROR": "this client's certificate or its key is damaged",
}
_OTHER_ALERTS: Final = {
    "HANDSHAKE_FAILURE": "there is no common cipher, or it requires a certificate of this client and got none",
    "PROTOCOL_VERSION": "it supports no version of TLS from 1.2 on",
    "UNRECOGNIZED_NAME": "it does not know the requested host name",
    "INSUFFICIENT_SECURITY": "it requires stronger ciphers",
}


def refused_by_us(
    broker: str, host: str, code: int | None, message: str, *, names: tuple[str, ...] | None = None
) -> KafkaError:
    """Return the error of a handshake in which this client refused the broker's certificate.

    Args:
        broker: the broker's name in errors.
        host: the host name that the client connected to.
        code: OpenSSL's X509_V_ERR code.
        message: OpenSSL's message.
        names: the names in the certificate, if they are known.
    """
    certificate = f"the certificate of {broker}"
    if code in (_WRONG_HOST, _WRONG_ADDRESS):
        found = "" if names is None else f" It is for {printable(', '.join(names)) or 'no host at all'}."
        how = "use one of its names in the address, or issue the certificate for this host"
        return BrokerNotTrusted(f"{certificate} is not for the host {host!r}.{found} Refused by this client: {how}")
    reason = _DISTRUST.get(code or 0, message)
    return BrokerNotTrusted(f"{certificate} is refused by this client: {reason} (OpenSSL: {message})")


def refused_by_broker(broker: str, reason: object) -> KafkaError | None:
    """Return the error for a TLS alert that the broker sent; None if ``reason`` names no alert.

    Args:
        broker: the broker's name in errors.
        reason: OpenSSL's name of the error, such as TLSV13_ALERT_CERTIFICATE_REQUIRED.
    """
    _, alert, name = (reason if isinstance(reason, str) else "").partition("_ALERT_")
    if not alert:
        return None
    if name in _ALERTS:
        return ClientCertificateRefused(f"{broker} refused the connection: {_ALERTS[name]} (TLS alert {name})")
    cause = _OTHER_ALERTS.get(name, "see its log")
    return TlsFailed(f"{broker} refused the connection: {cause} (TLS alert {name})")


def not_tls(broker: str, received: bytes) -> KafkaError:
    """Return the error of a listener that does not speak TLS; ``received`` has the first bytes that it sent."""
    shown = f"; it sent {received[:40]!r}" if received else ""
    hint = "set security_protocol to PLAINTEXT or SASL_PLAINTEXT, or use the port of its TLS listener"
    return SecurityMismatch(f"{broker} does not speak TLS, and this client does: {hint}{shown}")
