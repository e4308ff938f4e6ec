"""Reads or signs the assertion that proves to a token endpoint who the client is (RFC 7523), in a blocking call."""

from typing import Any
from uuid import uuid4

import attrs

from ..config.oauth import OAuthConfig
from ..errors import ConfigError
from .oauth_requests import AssertionTemplate, assertion_parts, parse_template
from .setting_files import read_setting_file

__all__ = ("make_assertion",)

_PASSPHRASE = "sasl_oauthbearer_assertion_private_key_passphrase"  # noqa: S105


def make_assertion(config: OAuthConfig, now_s: int) -> str:
    """Return an assertion: the content of the setting's file, or a JWT that is signed now. Files are read each time.

    Raises:
        ConfigError: a file is missing or its content is invalid, the passphrase is wrong, the key is not one for the
            algorithm, or a library is missing.
    """
    if config.sasl_oauthbearer_assertion_file is not None:
        return _from_file(config.sasl_oauthbearer_assertion_file)
    try:
        import jwt
    except ImportError:
        raise ConfigError(
            "sasl_oauthbearer_assertion_private_key_... needs the library PyJWT: pip install 'aiokafkawire[oauth]', "
            "or use sasl_oauthbearer_assertion_file"
        ) from None
    template = AssertionTemplate()
    location = config.sasl_oauthbearer_assertion_template_file
    if location is not None:
        name = "sasl_oauthbearer_assertion_template_file"
        template = parse_template(f"{name} {location!r}", read_setting_file(name, location))
    header, claims = assertion_parts(config, template, now_s, str(uuid4()))
    source, key = _private_key(config)
    algorithm = config.sasl_oauthbearer_assertion_algorithm
    try:
        return jwt.encode(claims, key, algorithm=algorithm, headers=header)
    except (jwt.PyJWTError, TypeError, ValueError) as error:
        raise ConfigError(f"{source} cannot sign an assertion by {algorithm}: {error}") from None


def _from_file(location: Any) -> str:
    name = "sasl_oauthbearer_assertion_file"
    text = read_setting_file(name, location).decode(errors="replace").strip()
    if text.count(".") != 2 or not text.isascii() or any(character.isspace() for character in text):
        raise ConfigError(f"{name} {location!r} holds no JWT, which is three parts with dots between")
    return text


@attrs.frozen
class _PemKey:
    """A private key in PEM and its passphrase. Its repr shows neither, nor do the variables of tracebacks."""

    pem: bytes = attrs.field(repr=False)
    passphrase: str | None = attrs.field(repr=False)

    @property
    def is_encrypted(self) -> bool:
        return b"ENCRYPTED" in self.pem

    def load(self) -> Any:
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        return load_pem_private_key(self.pem, (self.passphrase or "").encode() if self.is_encrypted else None)


def _pem_key(config: OAuthConfig) -> _PemKey:
    passphrase = config.sasl_oauthbearer_assertion_private_key_passphrase
    location = config.sasl_oauthbearer_assertion_private_key_file
    if location is not None:
        return _PemKey(read_setting_file("sasl_oauthbearer_assertion_private_key_file", location), passphrase)
    return _PemKey(str(config.sasl_oauthbearer_assertion_private_key_pem).encode(), passphrase)


def _private_key(config: OAuthConfig) -> tuple[str, Any]:
    """Return the name of the key's setting for errors, and the key."""
    from cryptography.exceptions import UnsupportedAlgorithm

    location = config.sasl_oauthbearer_assertion_private_key_file
    source = "sasl_oauthbearer_assertion_private_key_pem"
    if location is not None:
        source = f"sasl_oauthbearer_assertion_private_key_file {location!r}"
    key = _pem_key(config)
    if key.is_encrypted and key.passphrase is None:
        raise ConfigError(f"{source} is encrypted: set {_PASSPHRASE}")
    try:
        return source, key.load()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        wrong = ": it holds no private key in PEM"
        if key.is_encrypted:
            wrong = f": {_PASSPHRASE} is wrong, or it is damaged"
        raise ConfigError(f"{source} cannot be read{wrong}") from None
