"""The settings of a schema registry: names as of Confluent's clients, with underscores."""

import math
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias, TypedDict
from urllib.parse import unquote, urlsplit, urlunsplit

import attrs

from ..argument_checks import items_of, shown
from ..config.fields import integer, provider, secret
from ..config.making import make_config
from ..config.security import FilePath, SecurityConfig
from ..errors import ConfigError

__all__ = ("BearerToken", "SchemaRegistryConfig", "SchemaRegistryOptions", "is_bearer_token", "parse_urls")

BearerToken: TypeAlias = Callable[[], str | Awaitable[str]]
"""A function, plain or async, that returns the token for the next request."""


class SchemaRegistryOptions(TypedDict, total=False):
    """Keyword arguments of ``SchemaRegistry``; :class:`SchemaRegistryConfig` describes them."""

    basic_auth_user_info: str | None
    bearer_auth_token: str | None
    bearer_auth_token_provider: BearerToken | None
    proxy: str | None
    ssl_ca_location: FilePath | None
    ssl_ca_pem: str | None
    ssl_certificate_location: FilePath | None
    ssl_certificate_pem: str | None
    ssl_key_location: FilePath | None
    ssl_key_pem: str | None
    ssl_key_password: str | None
    ssl_context: Any
    request_timeout_ms: int
    default_api_timeout_ms: int
    max_retries: int
    retries_wait_ms: int
    retries_max_wait_ms: int
    cache_capacity: int
    latest_cache_ttl_sec: float
    missing_id_cache_ttl_sec: float


def _seconds(default: float) -> Any:
    def check(_: object, attribute: "attrs.Attribute[float]", value: object) -> None:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value < math.inf:  # type: ignore[operator]
            raise ConfigError(f"{attribute.name} must be a number of seconds, 0 or more, got {shown(value)}")

    return attrs.field(default=default, validator=check)


@attrs.frozen(kw_only=True)
class SchemaRegistryConfig:
    """The settings of a schema registry."""

    basic_auth_user_info: str | None = secret()
    """``"user:password"`` for basic authentication; it can also be part of the URL."""
    bearer_auth_token: str | None = secret()
    """The token for bearer authentication."""
    bearer_auth_token_provider: BearerToken | None = provider()
    """A function, plain or async, that returns the token for bearer authentication; called for each request."""
    proxy: str | None = secret(str, "a URL")
    """``http://user:secret@host:3128``: the proxy of all connections. Environment variables are ignored."""
    ssl_ca_location: FilePath | None = None
    """A file or folder with the certificates of the trusted authorities (PEM); by default the system's."""
    ssl_ca_pem: str | None = secret(str, "a string of PEM")
    """The certificates themselves, instead of a file."""
    ssl_certificate_location: FilePath | None = None
    """A file with the client's certificate (PEM), if the registry requires one."""
    ssl_certificate_pem: str | None = secret(str, "a string of PEM")
    """The certificate itself, instead of a file."""
    ssl_key_location: FilePath | None = None
    """A file with the certificate's private key; by default it is in the certificate's file."""
    ssl_key_pem: str | None = secret(str, "a string of PEM")
    """The private key itself, instead of a file."""
    ssl_key_password: str | None = secret()
    """The password of the private key."""
    ssl_context: Any = None
    """An ``ssl.SSLContext`` of your own, instead of all the settings above."""
    request_timeout_ms: int = integer(10_000, minimum=1)
    """The time limit of one attempt."""
    default_api_timeout_ms: int = integer(60_000, minimum=1)
    """The time limit of a call, with all its attempts."""
    max_retries: int = integer(3)
    """How often a failed request is repeated, at every URL; 0 tries each URL once."""
    retries_wait_ms: int = integer(1000)
    """The pause before the first retry; it doubles with each one, and is shortened by up to half at random."""
    retries_max_wait_ms: int = integer(20_000)
    """The longest pause before a retry."""
    cache_capacity: int = integer(1000, minimum=1)
    """How many schemas each cache keeps."""
    latest_cache_ttl_sec: float = _seconds(60)
    """How long the latest version of a subject is used without asking for a newer one."""
    missing_id_cache_ttl_sec: float = _seconds(1)
    """How long an unknown schema id stays unknown without a request."""

    def __attrs_post_init__(self) -> None:
        given = [name for name in _LOGINS if getattr(self, name) is not None]
        if len(given) > 1:
            raise ConfigError(f"{' and '.join(given)} are two ways to log in: set one of them")
        if self.basic_auth_user_info is not None and ":" not in self.basic_auth_user_info:
            raise ConfigError("basic_auth_user_info must be 'user:password' (it is not shown)")
        if self.bearer_auth_token is not None and not is_bearer_token(self.bearer_auth_token):
            raise ConfigError(
                "bearer_auth_token has characters that a header cannot have, such as an end of a line (it is not shown)"
            )
        if self.proxy is not None and urlsplit(self.proxy).scheme != "http":
            raise ConfigError("proxy must be http://host:port, with user:password@ before the host if it needs them")
        self.security()

    def check_login(self, login: str | None) -> None:
        """Raise ConfigError if there is a login in the URL, and another one in the settings."""
        given = [name for name in _LOGINS if getattr(self, name) is not None]
        if login is not None and given:
            raise ConfigError(f"url has a login, and {given[0]} is another: remove one of them (they are not shown)")

    def security(self) -> SecurityConfig:
        """Return the TLS settings as those of a connection to a broker."""
        names = [field.name for field in attrs.fields(type(self)) if field.name.startswith("ssl_")]
        return make_config(
            SecurityConfig, {"security_protocol": "SSL", **{name: getattr(self, name) for name in names}}
        )


def is_bearer_token(token: object) -> bool:
    """Return whether a header can have the token."""
    return isinstance(token, str) and _TOKEN.fullmatch(token) is not None


_TOKEN = re.compile(r"[\x21-\x7e]+")
_LOGINS = ("basic_auth_user_info", "bearer_auth_token", "bearer_auth_token_provider")


def parse_urls(url: object) -> tuple[tuple[str, ...], str | None]:
    """Return the URLs of a registry without logins, and the login in them, if there is one.

    Args:
        url: one URL, several with commas, or a collection.

    Raises:
        ConfigError: there is none, one is not valid, or two have different logins.
    """
    given: Sequence[object] = url.split(",") if isinstance(url, str) else items_of("url", url, '["http://a:8081"]')
    urls: list[str] = []
    login: str | None = None
    for one in given:
        if not isinstance(one, str):
            raise ConfigError(f"url must be a string such as 'http://localhost:8081', got {shown(one)}")
        plain, found = _without_login(one.strip())
        urls.append(plain)
        if found is not None and login is not None and found != login:
            raise ConfigError("url has two different logins (not shown): the registries of a cluster take the same one")
        login = login or found
    if not urls:
        raise ConfigError("url must name at least one registry, such as 'http://localhost:8081'")
    return tuple(urls), login


def _without_login(url: str) -> tuple[str, str | None]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(
            "url must be like 'http://localhost:8081' or 'https://registry.example.org'; the given one is not (it is "
            "not shown, since it may contain a password)"
        )
    host = f"[{host}]" if ":" in host else host
    netloc = host if port is None else f"{host}:{port}"
    plain = urlunsplit((parts.scheme, netloc, parts.path.rstrip("/"), "", ""))
    login = None
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return plain, login
