"""The settings of this client for the arguments that aiokafka's clients, producers and consumers share."""

import warnings
from collections.abc import Awaitable, Callable, Sequence
from inspect import isawaitable
from math import ceil, inf
from typing import Any, Final

from ..argument_checks import shown
from ..config import ClientOptions
from ..types import OAuthBearerToken
from .abc import AbstractTokenProvider

__all__ = ("check_milliseconds", "client_options", "servers_of", "warn_deprecated", "whole_milliseconds")

_PROTOCOLS: Final = ("SSL", "PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS: Final = ("PLAIN", "GSSAPI", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_NEVER: Final = 2**31 - 1
_BOOTSTRAP_MS: Final = 10_000
_MAX_BACKOFF_MS: Final = 1_000


def warn_deprecated(loop: object, api_version: object, *, stacklevel: int) -> None:
    """Warn of the arguments ``loop`` and ``api_version``, which do nothing, as aiokafka does."""
    for name, given in (("loop", loop), ("api_version", api_version)):
        if given is not None:
            text = f"the argument {name} is deprecated, and does nothing"
            warnings.warn(text, DeprecationWarning, stacklevel=stacklevel + 1)


def check_milliseconds(**given: object) -> None:
    """Raise ValueError unless each argument is a number; which numbers are valid, the settings check themselves."""
    for name, value in given.items():
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise ValueError(f"{name} must be a number of milliseconds, got {shown(value)}")


def whole_milliseconds(**given: float) -> list[int]:
    """Return times as whole milliseconds, rounded up, since aiokafka takes fractions as well.

    Raises:
        ValueError: one is no number.
    """
    check_milliseconds(**given)
    # The settings refuse negative numbers, inf and nan, with the name of the setting.
    return [
        ceil(value) if isinstance(value, float) and 0 <= value < inf else value  # type: ignore[misc]
        for value in given.values()
    ]


def servers_of(bootstrap_servers: str | Sequence[str]) -> str | list[str]:
    """Return the bootstrap servers as this client takes them: text, or a list of texts."""
    return bootstrap_servers if isinstance(bootstrap_servers, str) else list(bootstrap_servers)


def client_options(
    *,
    client_id: str,
    metadata_max_age_ms: float,
    request_timeout_ms: float,
    retry_backoff_ms: float,
    connections_max_idle_ms: float | None,
    security_protocol: str,
    ssl_context: Any,
    sasl_mechanism: str,
    sasl_plain_username: str | None,
    sasl_plain_password: str | None,
    sasl_kerberos_service_name: str,
    sasl_kerberos_domain_name: str | None,
    sasl_oauth_token_provider: AbstractTokenProvider | None,
) -> ClientOptions:
    """Return the options of :class:`~aiokafkawire.Client` for arguments of aiokafka.

    Raises:
        ValueError: an argument is wrong, or one is missing.
    """
    timeout_ms, backoff_ms, max_age_ms, max_idle_ms = whole_milliseconds(
        request_timeout_ms=request_timeout_ms,
        retry_backoff_ms=retry_backoff_ms,
        metadata_max_age_ms=metadata_max_age_ms,
        connections_max_idle_ms=_NEVER if connections_max_idle_ms is None else connections_max_idle_ms,
    )
    options: ClientOptions = {
        "client_id": client_id,
        "metadata_max_age_ms": max_age_ms,
        "request_timeout_ms": timeout_ms,
        "default_api_timeout_ms": timeout_ms,
        "bootstrap_timeout_ms": min(timeout_ms, _BOOTSTRAP_MS),
        "topic_metadata_propagation_max_ms": timeout_ms,
        "retry_backoff_ms": backoff_ms,
        "retry_backoff_max_ms": max(backoff_ms, _MAX_BACKOFF_MS),
        "connections_max_idle_ms": max_idle_ms,
        "allow_auto_create_topics": True,
    }
    if security_protocol not in _PROTOCOLS:
        raise ValueError(f"security_protocol must be one of {', '.join(_PROTOCOLS)}, got {shown(security_protocol)}")
    options["security_protocol"] = security_protocol  # type: ignore[typeddict-item]  # checked above
    if "SSL" in security_protocol.split("_"):
        if ssl_context is None:
            raise ValueError(f"ssl_context is needed with security_protocol={security_protocol!r}")
        options["ssl_context"] = ssl_context
    if security_protocol.startswith("SASL"):
        if sasl_mechanism not in _MECHANISMS:
            raise ValueError(f"sasl_mechanism must be one of {', '.join(_MECHANISMS)}, got {shown(sasl_mechanism)}")
        options["sasl_mechanism"] = sasl_mechanism  # type: ignore[typeddict-item]  # checked above
        if sasl_mechanism == "OAUTHBEARER":
            options["sasl_oauthbearer_token"] = _token_function(sasl_oauth_token_provider)
        elif sasl_mechanism == "GSSAPI":
            if sasl_kerberos_domain_name is not None:
                raise ValueError("sasl_kerberos_domain_name is not supported: the brokers' host names are used")
            options["sasl_kerberos_service_name"] = sasl_kerberos_service_name
        else:
            if sasl_plain_username is None or sasl_plain_password is None:
                raise ValueError(f"sasl_plain_username and sasl_plain_password are needed with {sasl_mechanism}")
            options["sasl_username"] = sasl_plain_username
            options["sasl_password"] = sasl_plain_password
    return options


def _token_function(provider: AbstractTokenProvider | None) -> Callable[[], Awaitable[OAuthBearerToken]]:
    if not isinstance(provider, AbstractTokenProvider):
        raise ValueError(f"sasl_oauth_token_provider must be an AbstractTokenProvider, got {shown(provider)}")

    async def token() -> OAuthBearerToken:
        value = provider.token()
        text = await value if isawaitable(value) else value
        return OAuthBearerToken(text, extensions=dict(provider.extensions()))

    return token
