"""Decodes Java's keystores of the types JKS and JCEKS, which older versions of keytool write."""

import hashlib
import hmac
from typing import Final

import attrs

from .certificate_parsing import der_element

__all__ = ("JavaKeystore", "KeyEntry", "WrongPassword", "is_java_keystore", "parse_java_keystore", "private_key")

_MAGIC: Final = {b"\xfe\xed\xfe\xed": "JKS", b"\xce\xce\xce\xce": "JCEKS"}
_KEY, _CERTIFICATE, _SECRET = 1, 2, 3
_DIGEST_SIZE: Final = 20
_SALT_SIZE: Final = 20
_MARK: Final = b"Mighty Aphrodite"  # a constant of the format, hashed between the password and the content
_JKS_CIPHER: Final = bytes.fromhex("2b060104012a02110101")  # 1.3.6.1.4.1.42.2.17.1.1
_JCEKS_CIPHER: Final = bytes.fromhex("2b060104012a021301")  # 1.3.6.1.4.1.42.2.19.1, PBEWithMD5AndTripleDES
_MAX_ITERATIONS: Final = 5_000_000  # Java's own limit


class WrongPassword(ValueError):
    """The password does not fit the keystore or the key, or the file was changed."""


@attrs.frozen
class KeyEntry:
    """A private key, still encrypted, and its certificates in DER, from the key's own to the authority's."""

    encrypted: bytes = attrs.field(repr=False)
    chain: tuple[bytes, ...]


@attrs.frozen
class JavaKeystore:
    """The content of a keystore, in the file's order."""

    keys: tuple[KeyEntry, ...]
    trusted: tuple[bytes, ...]
    """The certificates of trusted authorities, in DER."""


def is_java_keystore(data: bytes) -> bool:
    """Return whether the file is a JKS or JCEKS."""
    return data[:4] in _MAGIC


def parse_java_keystore(data: bytes, password: str | None) -> JavaKeystore:
    """Decode a JKS or JCEKS.

    Args:
        data: the file.
        password: the password of the store, which authenticates the file; None to skip this check, as Java does. Only
            private keys are encrypted, so certificates can be read without it.

    Raises:
        WrongPassword: the password is wrong.
        ValueError: the file is damaged, or has an entry that cannot be read; the message says which.
    """
    content = data[:-_DIGEST_SIZE]
    if password is not None:
        digest = hashlib.sha1(_utf16(password) + _MARK + content, usedforsecurity=False).digest()
        if not hmac.compare_digest(digest, data[-_DIGEST_SIZE:]):
            raise WrongPassword("the password is wrong, or the file was changed")
    reader = _Reader(content, 4)
    version = reader.number(4)
    if version not in (1, 2):
        raise ValueError(f"it has the unknown version {version}")
    keys: list[KeyEntry] = []
    trusted: list[bytes] = []
    for _ in range(reader.number(4)):
        tag = reader.number(4)
        alias = reader.block(2).decode(errors="replace")
        reader.number(8)  # the time of creation
        if tag == _KEY:
            encrypted = reader.block(4)
            keys.append(KeyEntry(encrypted, tuple(reader.certificate(version) for _ in range(reader.number(4)))))
        elif tag == _CERTIFICATE:
            trusted.append(reader.certificate(version))
        elif tag == _SECRET:
            raise ValueError(f"its entry {alias!r} is a secret key: remove it with keytool -delete")
        else:
            raise ValueError(f"its entry {alias!r} has the unknown type {tag}")
    return JavaKeystore(tuple(keys), tuple(trusted))


def private_key(entry: KeyEntry, password: str) -> bytes:
    """Decrypt a private key; return it in PKCS8, in DER.

    Raises:
        WrongPassword: the password is wrong.
        ValueError: the entry is damaged, or encrypted by an unknown algorithm.
        ImportError: the key is of a JCEKS, and the library cryptography is not installed.
    """
    try:
        _, outer, _ = der_element(entry.encrypted, 0)
        _, algorithm, after = der_element(outer, 0)
        _, encrypted, _ = der_element(outer, after)
        _, identifier, position = der_element(algorithm, 0)
        if identifier == _JKS_CIPHER:
            return _decrypt_jks(encrypted, password)
        if identifier == _JCEKS_CIPHER:
            _, parameters, _ = der_element(algorithm, position)
            _, salt, position = der_element(parameters, 0)
            _, iterations, _ = der_element(parameters, position)
            return _decrypt_jceks(encrypted, password, salt, int.from_bytes(iterations, "big"))
    except IndexError:
        raise ValueError("its private key is truncated") from None
    raise ValueError("its private key is encrypted by an unknown algorithm")


def _decrypt_jks(encrypted: bytes, password: str) -> bytes:
    """Decrypt with the SHA-1 key stream of Sun's KeyProtector; the plain key's digest follows the encrypted key."""
    secret = _utf16(password)
    digest, body, check = encrypted[:_SALT_SIZE], encrypted[_SALT_SIZE:-_DIGEST_SIZE], encrypted[-_DIGEST_SIZE:]
    stream = bytearray()
    while len(stream) < len(body):
        digest = hashlib.sha1(secret + digest, usedforsecurity=False).digest()
        stream += digest
    plain = bytes(left ^ right for left, right in zip(body, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + plain, usedforsecurity=False).digest(), check):
        raise WrongPassword("the password of the private key is wrong")
    return plain


def _decrypt_jceks(encrypted: bytes, password: str, salt: bytes, iterations: int) -> bytes:
    from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.modes import CBC
    from cryptography.hazmat.primitives.padding import PKCS7

    if len(salt) != 8 or not 0 < iterations <= _MAX_ITERATIONS:
        raise ValueError("its private key has invalid parameters")
    derived = b""
    for half in (salt[:4], salt[4:]):
        for _ in range(iterations):
            half = hashlib.md5(half + password.encode(), usedforsecurity=False).digest()
        derived += half
    decryptor = Cipher(TripleDES(derived[:24]), CBC(derived[24:])).decryptor()
    unpadder = PKCS7(64).unpadder()
    try:
        padded = decryptor.update(encrypted) + decryptor.finalize()
        plain = unpadder.update(padded) + unpadder.finalize()
        if der_element(plain, 0)[2] != len(plain):
            raise WrongPassword
    except (ValueError, IndexError):
        raise WrongPassword("the password of the private key is wrong") from None
    return plain


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")


class _Reader:
    """Reads big-endian numbers, and blocks with their size before them."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data, self._position = data, position

    def number(self, size: int) -> int:
        return int.from_bytes(self._take(size), "big")

    def block(self, size: int) -> bytes:
        return self._take(self.number(size))

    def certificate(self, version: int) -> bytes:
        if version == 2:
            self.block(2)  # the type, which is X.509
        return self.block(4)

    def _take(self, size: int) -> bytes:
        taken = self._data[self._position : self._position + size]
        if len(taken) != size:
            raise ValueError("it is truncated")
        self._position += size
        return taken
