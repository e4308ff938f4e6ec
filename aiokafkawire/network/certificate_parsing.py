"""Finds certificates in PEM, and decodes their validity, without a library."""

import base64
import re
from datetime import UTC, datetime
from typing import Final, NamedTuple

__all__ = ("Validity", "certificates_in", "der_element", "has_encrypted_key", "has_key", "validity")

_CERTIFICATE: Final = re.compile(
    r"-----BEGIN (?:TRUSTED )?CERTIFICATE-----(.*?)-----END (?:TRUSTED )?CERTIFICATE-----", re.S
)
_KEY: Final = re.compile(r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----")
_ENCRYPTED: Final = re.compile(r"-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED", re.M)

_SEQUENCE, _VERSION, _UTC_TIME = 0x30, 0xA0, 0x17


class Validity(NamedTuple):
    """The period in which a certificate is valid, in UTC."""

    begins: datetime
    ends: datetime


def certificates_in(pem: str) -> list[bytes]:
    """Return the certificates in a PEM text, in DER; skip invalid base64."""
    found = []
    for text in _CERTIFICATE.findall(pem):
        try:
            found.append(base64.b64decode("".join(text.split()), validate=True))
        except ValueError:
            continue
    return [der for der in found if der]


def has_key(pem: str) -> bool:
    """Return whether a PEM text contains a private key."""
    return _KEY.search(pem) is not None


def has_encrypted_key(pem: str) -> bool:
    """Return whether the key in a PEM text is encrypted."""
    return _ENCRYPTED.search(pem) is not None


def validity(der: bytes) -> Validity | None:
    """Return the validity of a certificate; None if the certificate cannot be decoded."""
    try:
        _, certificate, _ = der_element(der, 0)
        _, signed, _ = der_element(certificate, 0)
        position = 0
        tag, _, after = der_element(signed, 0)
        if tag == _VERSION:
            position = after
        for _ in range(3):  # serial number, algorithm, issuer
            _, _, position = der_element(signed, position)
        tag, times, _ = der_element(signed, position)
        if tag != _SEQUENCE:
            return None
        tag, first, position = der_element(times, 0)
        begins = _time(tag, first)
        tag, second, _ = der_element(times, position)
        return Validity(begins, _time(tag, second))
    except (IndexError, ValueError):
        return None


def der_element(data: bytes, position: int) -> tuple[int, bytes, int]:
    """Decode one DER element; return its tag, its content, and the position of the next element.

    Raises:
        IndexError, ValueError: the element is truncated.
    """
    tag, size = data[position], data[position + 1]
    position += 2
    if size & 0x80:
        width = size & 0x7F
        size = int.from_bytes(data[position : position + width], "big")
        position += width
    content = data[position : position + size]
    if len(content) != size:
        raise ValueError("truncated")
    return tag, content, position + size


def _time(tag: int, content: bytes) -> datetime:
    text = content.decode("ascii")
    if tag == _UTC_TIME:  # the year has two digits, and is from 1950 to 2049
        text = ("19" if int(text[:2]) >= 50 else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
