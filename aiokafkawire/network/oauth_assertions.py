"""Reads or signs the assertion that proves to a token endpoint who the client is (RFC 7523), in a blocking call."""

from typing import Any
from uuid import uuid4

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


def _private_key(config: OAuthConfig) -> tuple[str, Any]:
    """Return the name of the key's setting for errors, and the key."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    source, pem = "sasl_oauthbearer_assertion_private_key_pem", config.sasl_oauthbearer_assertion_private_key_pem
    location = config.sasl_oauthbearer_assertion_private_key_file
    if location is not None:
        name = "sasl_oauthbearer_assertion_private_key_file"
        source, data = f"{name} {location!r}", read_setting_file(name, location)
    else:
        data = str(pem).encode()
    passphrase = config.sasl_oauthbearer_assertion_private_key_passphrase
    is_encrypted = b"ENCRYPTED" in data
    if is_encrypted and passphrase is None:
        raise ConfigError(f"{source} is encrypted: set {_PASSPHRASE}")
    password = passphrase.encode() if passphrase is not None and is_encrypted else None
    try:
        return source, load_pem_private_key(data, password)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        wrong = f": {_PASSPHRASE} is wrong, or it is damaged" if is_encrypted else ": it holds no private key in PEM"
        raise ConfigError(f"{source} cannot be read{wrong}") from None
