"""Why there is no TLS connection: which side refused, and what to do about it. Pure: it looks at names of errors."""

from typing import Final

from ..errors import BrokerNotTrusted, ClientCertificateRefused, KafkaError, SecurityMismatch, TlsFailed
from .sasl import printable

__all__ = ("not_tls", "refused_by_broker", "refused_by_us")

_ASKS: Final = "set ssl_certificate_location and ssl_key_location, or ssl_keystore_location"
_UNKNOWN: Final = "an authority that is not trusted here signed it: set ssl_ca_location to that authority's certificate"

_EXPIRED, _NOT_YET, _REVOKED = 10, 9, 23
_SELF_SIGNED, _SELF_SIGNED_IN_CHAIN, _NO_ISSUER, _NO_ISSUER_HERE, _FIRST_UNVERIFIED = 18, 19, 2, 20, 21
_WRONG_HOST, _WRONG_ADDRESS = 62, 64
_DISTRUST: Final = {
    _EXPIRED: "it has expired, or one that it rests on (is this machine's clock right?)",
    _NOT_YET: "it does not hold yet (is this machine's clock right?)",
    _REVOKED: "it was revoked",
    _SELF_SIGNED: "it is signed by itself and not trusted here: set ssl_ca_location to it, if it is the right one",
    _SELF_SIGNED_IN_CHAIN: _UNKNOWN,
    _NO_ISSUER: _UNKNOWN,
    _NO_ISSUER_HERE: _UNKNOWN,
    _FIRST_UNVERIFIED: _UNKNOWN,
}
_ALERTS: Final = {
    "CERTIFICATE_REQUIRED": f"it asks for a certificate of this client, and got none: {_ASKS}",
    "UNKNOWN_CA": "it does not trust the authority that signed this client's certificate",
    "BAD_CERTIFICATE": f"it does not take this client's certificate, or asks for one and got none: {_ASKS}",
    "CERTIFICATE_EXPIRED": "this client's certificate has expired",
    "CERTIFICATE_REVOKED": "this client's certificate was revoked",
    "CERTIFICATE_UNKNOWN": "it does not take this client's certificate",
    "UNSUPPORTED_CERTIFICATE": "it does not take this kind of certificate",
    "ACCESS_DENIED": "this client's certificate gives no access",
    "DECRYPT_ERROR": "this client's certificate or its key are damaged",
}
_OTHERS: Final = {
    "HANDSHAKE_FAILURE": "no cipher is known to both, or it asks for a certificate of this client and got none",
    "PROTOCOL_VERSION": "it speaks no version of TLS from 1.2 on",
    "UNRECOGNIZED_NAME": "it does not know the host name that was asked for",
    "INSUFFICIENT_SECURITY": "it wants stronger ciphers",
}


def refused_by_us(
    where: str, host: str, code: int | None, message: str, *, names: tuple[str, ...] | None = None
) -> KafkaError:
    """The broker's certificate does not do.

    Args:
        where: the broker.
        host: the name that was dialled.
        code: OpenSSL's X509_V_ERR code.
        message: OpenSSL's words.
        names: those that the certificate is for, if they are known.
    """
    certificate = f"the certificate of {where}"
    if code in (_WRONG_HOST, _WRONG_ADDRESS):
        held = "" if names is None else f" It is for {printable(', '.join(names)) or 'no host at all'}."
        how = "dial it by one of its names, or have the certificate issued for this one"
        return BrokerNotTrusted(f"{certificate} is not for the host {host!r}.{held} Refused by this client: {how}")
    told = _DISTRUST.get(code or 0, message)
    return BrokerNotTrusted(f"{certificate} is refused by this client: {told} (OpenSSL: {message})")


def refused_by_broker(where: str, reason: object) -> KafkaError | None:
    """What an alert that the broker sent means; None if ``reason`` is not about one.

    Args:
        where: the broker.
        reason: OpenSSL's name of the error, such as TLSV13_ALERT_CERTIFICATE_REQUIRED.
    """
    _, alert, name = (reason if isinstance(reason, str) else "").partition("_ALERT_")
    if not alert:
        return None
    if name in _ALERTS:
        return ClientCertificateRefused(f"{where} refused the connection: {_ALERTS[name]} (TLS alert {name})")
    told = _OTHERS.get(name, "see its log")
    return TlsFailed(f"{where} refused the connection: {told} (TLS alert {name})")


def not_tls(where: str, heard: bytes) -> KafkaError:
    """The other side does not speak TLS."""
    shown = f"; it said {heard[:40]!r}" if heard else ""
    told = "set security_protocol to PLAINTEXT or SASL_PLAINTEXT, or take the port of its TLS listener"
    return SecurityMismatch(f"{where} does not speak TLS, and this client does: {told}{shown}")
