"""Translates the names of cipher suites in Java (IANA) to those in OpenSSL."""

import re
from typing import Final

import attrs

from ..errors import ConfigError

__all__ = ("CipherSuites", "parse_cipher_suites")

_TLS_1_3: Final = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
"""The suites of TLS 1.3 that OpenSSL enables by default."""


@attrs.frozen
class CipherSuites:
    """The cipher suites that the settings name."""

    ciphers: str | None
    """The list for OpenSSL, of the suites of TLS 1.2; None if there are none."""
    named: tuple[tuple[str, str], ...] = ()
    """IANA's names of the suites of TLS 1.2, and OpenSSL's; none if OpenSSL's list was given."""
    allows_tls_1_3: bool = True


def parse_cipher_suites(text: str) -> CipherSuites:
    """Parse IANA's names, separated by commas, or a list as OpenSSL has it, which decides about TLS 1.2 alone.

    Raises:
        ConfigError: the names of TLS 1.3 are some of OpenSSL's three, of which Python's ssl module cannot choose.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not all(name.startswith("TLS_") for name in names):
        return CipherSuites(text)
    newest = {name for name in names if "_WITH_" not in name}
    if newest and newest != set(_TLS_1_3):
        raise ConfigError(
            f"ssl_cipher_suites: of TLS 1.3, name all of {', '.join(_TLS_1_3)} or none: Python cannot choose among them"
        )
    older = tuple((name, _openssl(name)) for name in names if name not in newest)
    return CipherSuites(":".join(cipher for _, cipher in older) or None, older, bool(newest))


def _openssl(name: str) -> str:
    """Return OpenSSL's name of a suite of TLS 1.2, such as ECDHE-RSA-AES128-GCM-SHA256."""
    exchange, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
    cipher = re.sub(r"(AES|ARIA|CAMELLIA)_(128|256)", r"\1\2", cipher).replace("_CBC_", "_")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    parts = [*([] if exchange == "RSA" else exchange.split("_")), *cipher.split("_")]
    return "-".join(parts)
