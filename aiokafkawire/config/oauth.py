"""The settings of OAUTHBEARER: where tokens come from, and how the client proves who it is to a token endpoint."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal, TypeAlias, TypedDict
from urllib.parse import urlsplit

import attrs

from .._lazy_classes import frozen
from ..errors import ConfigError
from ..types import OAuthBearerToken
from .fields import FilePath, choice, integer, optional_text, path, provider, secret

__all__ = ("JWT_BEARER", "OAuthConfig", "OAuthOptions", "TokenProvider", "check_oauth")

_Token: TypeAlias = str | OAuthBearerToken
TokenProvider: TypeAlias = Callable[[], _Token | Awaitable[_Token]]
"""A function that returns a token for a login. A plain function is called on a thread, so it may block."""

JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_GrantType: TypeAlias = Literal["client_credentials", "urn:ietf:params:oauth:grant-type:jwt-bearer"]
_KEYS: Final = ("sasl_oauthbearer_assertion_private_key_file", "sasl_oauthbearer_assertion_private_key_pem")


def _without_query(url: str | None) -> str:
    # The query may contain a key.
    return repr(url.partition("?")[0] if isinstance(url, str) else url)


def _extensions(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    if value is None:
        return
    if not isinstance(value, Mapping) or not all(isinstance(text, str) for pair in value.items() for text in pair):
        raise ConfigError(
            f"{attribute.name} must be a mapping of strings to strings or None, got {value!r:.200}",
            setting=attribute.name,
        )


def _algorithm() -> Any:
    made = choice("RS256", "RS256", "ES256")
    made.converter = lambda value: value.upper() if isinstance(value, str) else value
    return made


class OAuthOptions(TypedDict, total=False):
    """Keyword arguments of ``Client`` about OAUTHBEARER; :class:`OAuthConfig` describes them."""

    sasl_oauthbearer_token: TokenProvider | None
    sasl_oauthbearer_method: Literal["default", "oidc"]
    sasl_oauthbearer_client_id: str | None
    sasl_oauthbearer_client_secret: str | None
    sasl_oauthbearer_token_endpoint_url: str | None
    sasl_oauthbearer_scope: str | None
    sasl_oauthbearer_header_urlencode: bool
    sasl_oauthbearer_extensions: Mapping[str, str] | None
    sasl_oauthbearer_grant_type: _GrantType
    sasl_oauthbearer_assertion_file: FilePath | None
    sasl_oauthbearer_assertion_private_key_file: FilePath | None
    sasl_oauthbearer_assertion_private_key_pem: str | None
    sasl_oauthbearer_assertion_private_key_passphrase: str | None
    sasl_oauthbearer_assertion_algorithm: Literal["RS256", "ES256"]
    sasl_oauthbearer_assertion_template_file: FilePath | None
    sasl_oauthbearer_assertion_claim_iss: str | None
    sasl_oauthbearer_assertion_claim_sub: str | None
    sasl_oauthbearer_assertion_claim_aud: str | None
    sasl_oauthbearer_assertion_claim_exp_seconds: int
    sasl_oauthbearer_assertion_claim_nbf_seconds: int
    sasl_oauthbearer_assertion_claim_jti_include: bool
    sasl_oauthbearer_metadata_authentication_type: Literal["none", "azure_imds"]


@frozen(kw_only=True)
class OAuthConfig:
    """The settings of OAUTHBEARER."""

    sasl_oauthbearer_token: TokenProvider | None = provider()
    """A function, plain or async, that returns the OAUTHBEARER token: a str, or an
    :class:`~aiokafkawire.types.OAuthBearerToken`."""
    sasl_oauthbearer_method: Literal["default", "oidc"] = choice("default", "default", "oidc")
    """The source of tokens: ``"default"`` for the function ``sasl_oauthbearer_token``, or ``"oidc"`` for the token
    endpoint, which needs the client's id and secret (KIP-768), an assertion (KIP-1139, KIP-1258), or
    ``sasl_oauthbearer_metadata_authentication_type``."""
    sasl_oauthbearer_client_id: str | None = optional_text()
    """The client's id at the token endpoint."""
    sasl_oauthbearer_client_secret: str | None = secret()
    """The client's secret at the token endpoint."""
    sasl_oauthbearer_token_endpoint_url: str | None = optional_text("a URL", repr=_without_query)
    """The token endpoint's URL, such as ``https://login.example.org/oauth2/token``."""
    sasl_oauthbearer_scope: str | None = optional_text()
    """The scope to request from the token endpoint, if the endpoint needs one."""
    sasl_oauthbearer_header_urlencode: bool = choice(False, True, False)
    """Whether the client's id and secret are URL-encoded in the request to the token endpoint, as RFC 6749 demands and
    some endpoints expect."""
    sasl_oauthbearer_extensions: Mapping[str, str] | None = attrs.field(default=None, validator=_extensions)
    """Extensions to send with the token (KIP-342), such as ``{"logicalCluster": "lkc-1"}``."""
    sasl_oauthbearer_grant_type: _GrantType = choice("client_credentials", "client_credentials", JWT_BEARER)
    """How a token is requested: ``"client_credentials"`` by the client's secret, or by an assertion if one is set
    (RFC 7523, section 2.2); with the other value the assertion is the grant (section 2.1, KIP-1139)."""
    sasl_oauthbearer_assertion_file: FilePath | None = path()
    """A file with an assertion, which is a signed JWT, that another program keeps up to date. If it is set, the
    settings for an assertion of the client's own are unused."""
    sasl_oauthbearer_assertion_private_key_file: FilePath | None = path()
    """A file with the private key, in PEM, with which the client signs an assertion for each request; needs the extra
    ``aiokafkawire[oauth]``."""
    sasl_oauthbearer_assertion_private_key_pem: str | None = secret(str, "a string of PEM")
    """The private key for assertions, as PEM text."""
    sasl_oauthbearer_assertion_private_key_passphrase: str | None = secret()
    """The password of the private key for assertions, if the key is encrypted."""
    sasl_oauthbearer_assertion_algorithm: Literal["RS256", "ES256"] = _algorithm()
    """The algorithm of the signature: RS256 for an RSA key, ES256 for a key on the curve P-256."""
    sasl_oauthbearer_assertion_template_file: FilePath | None = path()
    """A JSON file with an object ``header`` and an object ``payload``, which are added to the assertion's."""
    sasl_oauthbearer_assertion_claim_iss: str | None = optional_text()
    """The claim ``iss`` of the assertion: the issuer, which is often the client's id."""
    sasl_oauthbearer_assertion_claim_sub: str | None = optional_text()
    """The claim ``sub`` of the assertion: the subject, which is often the client's id."""
    sasl_oauthbearer_assertion_claim_aud: str | None = optional_text()
    """The claim ``aud`` of the assertion: the audience, which is often the endpoint's URL."""
    sasl_oauthbearer_assertion_claim_exp_seconds: int = integer(300, minimum=1)
    """For how long an assertion is valid, in s."""
    sasl_oauthbearer_assertion_claim_nbf_seconds: int = integer(60)
    """How long before its making an assertion becomes valid, in s, since clocks differ."""
    sasl_oauthbearer_assertion_claim_jti_include: bool = choice(False, True, False)
    """Whether an assertion has the claim ``jti``, a random id."""
    sasl_oauthbearer_metadata_authentication_type: Literal["none", "azure_imds"] = choice("none", "none", "azure_imds")
    """``"azure_imds"`` requests tokens of the managed identity of a virtual machine in Azure, without a secret;
    ``sasl_oauthbearer_token_endpoint_url`` is then the metadata service's URL with its query."""

    @property
    def sends_assertions(self) -> bool:
        """Whether the client proves who it is to the token endpoint by an assertion."""
        given = (self.sasl_oauthbearer_assertion_file, self.sasl_oauthbearer_assertion_claim_iss)
        keys = (getattr(self, name) for name in _KEYS)
        return self.sasl_oauthbearer_grant_type == JWT_BEARER or any(value is not None for value in (*given, *keys))


def check_oauth(config: OAuthConfig) -> None:
    """Raise ConfigError unless the settings say where tokens come from."""
    if config.sasl_oauthbearer_method != "oidc":
        if config.sasl_oauthbearer_token is None:
            endpoint = config.sasl_oauthbearer_token_endpoint_url or config.sasl_oauthbearer_client_id
            given = endpoint or config.sasl_oauthbearer_client_secret
            hint = " ('oidc', since there is an endpoint?)" if given is not None else ""
            raise ConfigError(
                f"OAUTHBEARER needs sasl_oauthbearer_token, or sasl_oauthbearer_method 'oidc'{hint}",
                setting="sasl_oauthbearer_token",
            )
        return
    needed = ["sasl_oauthbearer_token_endpoint_url"]
    uses_metadata = config.sasl_oauthbearer_metadata_authentication_type != "none"
    if not uses_metadata and not config.sends_assertions:
        needed += ["sasl_oauthbearer_client_id", "sasl_oauthbearer_client_secret"]
    for name in needed:
        if not getattr(config, name):
            raise ConfigError(f"sasl_oauthbearer_method 'oidc' needs {name}", setting=name)
    if config.sasl_oauthbearer_token is not None:
        raise ConfigError(
            "sasl_oauthbearer_token and sasl_oauthbearer_method 'oidc': set one of them",
            setting="sasl_oauthbearer_token",
        )
    if uses_metadata and config.sends_assertions:
        raise ConfigError(
            "sasl_oauthbearer_metadata_authentication_type 'azure_imds' sends no assertion: remove one of them",
            setting="sasl_oauthbearer_metadata_authentication_type",
        )
    if config.sends_assertions and config.sasl_oauthbearer_assertion_file is None:
        _check_key(config)
    _check_endpoint(str(config.sasl_oauthbearer_token_endpoint_url))


def _check_key(config: OAuthConfig) -> None:
    given = [name for name in _KEYS if getattr(config, name) is not None]
    if not given:
        raise ConfigError(
            f"an assertion needs {_KEYS[0]} or {_KEYS[1]}, or sasl_oauthbearer_assertion_file", setting=_KEYS[0]
        )
    if len(given) == 2:
        raise ConfigError(f"{_KEYS[0]} and {_KEYS[1]} are two sources of the same: set one of them", setting=_KEYS[0])


def _check_endpoint(url: str) -> None:
    setting = "sasl_oauthbearer_token_endpoint_url"
    try:
        parts = urlsplit(url)
        named = parts.hostname if parts.port != 0 else None
    except ValueError:
        raise ConfigError(f"{setting} is no URL; use https://host/path", setting=setting) from None
    if parts.scheme not in ("https", "http"):
        raise ConfigError(f"{setting} must begin with https:// or http://", setting=setting)
    if not named or " " in url:
        raise ConfigError(f"{setting} has no host; use https://host/path", setting=setting)
    if not (url.isascii() and url.isprintable()):
        raise ConfigError(
            f"{setting} has invalid characters: write them as %xx, and host names as xn--...", setting=setting
        )
    if "@" in parts.netloc:
        raise ConfigError(
            f"{setting} cannot contain a name or a password: set sasl_oauthbearer_client_id", setting=setting
        )
