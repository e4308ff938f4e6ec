"""The validation of OAUTHBEARER tokens: by a given function, or as unsecured development tokens (RFC 7515, KIP-255)."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Final, NoReturn, TypeAlias

import attrs

from ...errors import ConfigError
from ..cluster.api_error import Disconnect

__all__ = ("BearerToken", "BearerTokens", "TokenRefused", "TokenValidator", "UnsecuredTokens", "bearer_tokens")


@attrs.frozen
class BearerToken:
    """The content of an accepted token: the principal, and the expiry in ms since the epoch."""

    principal: str
    ends_ms: int


class TokenRefused(Exception):
    """The rejection of a token. The broker logs the reason and sends the client the other arguments (RFC 7628, 3.2.2).

    Args:
        reason: why the token is rejected.
        status: an error code of RFC 6750.
        scope: the scope that the token needs.
        openid_configuration: the URL at which to get another token.
    """

    def __init__(
        self,
        reason: str,
        *,
        status: str = "invalid_token",
        scope: str | None = None,
        openid_configuration: str | None = None,
    ) -> None:
        super().__init__(reason)
        fields = {"status": status, "scope": scope, "openid-configuration": openid_configuration}
        self.answer: str = json.dumps(
            {name: value for name, value in fields.items() if value is not None}, separators=(", ", ":")
        )
        """The JSON response to the client."""


TokenValidator: TypeAlias = Callable[[str, int], BearerToken]
"""A function of a token and the time in ms since the epoch; it returns the token's content or raises TokenRefused."""


@attrs.frozen
class BearerTokens:
    """A validator of tokens, and the clock for it, which returns ms since the epoch."""

    validator: TokenValidator
    clock: Callable[[], int]

    def check(self, token: str) -> tuple[str, int]:
        """Return the principal of a token and its remaining lifetime in ms.

        Raises:
            TokenRefused: the token is invalid.
            Disconnect: the token is invalid, and the client gets no response.
        """
        now = self.clock()
        found = self.validator(token, now)
        if found.ends_ms <= now:
            raise TokenRefused("the token has expired")
        return found.principal, found.ends_ms - now


def bearer_tokens(setting: bool | TokenValidator, clock: Callable[[], int]) -> BearerTokens | None:
    """Return the validator for a broker's setting: a function, True for unsecured tokens, or False, which gives None.

    Raises:
        ConfigError: the setting is neither a bool nor a function.
    """
    if isinstance(setting, bool):
        return BearerTokens(UnsecuredTokens(), clock) if setting else None
    if not callable(setting):
        raise ConfigError(f"oauthbearer is {setting!r}: True for unsecured tokens, or a function that checks them")
    return BearerTokens(setting, clock)


_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]*")
_LATEST: Final = 2**63 - 1

_Claim: TypeAlias = str | float | list[str]


@attrs.frozen
class UnsecuredTokens:
    """A validator of unsecured tokens (JWS without a signature), like Kafka's validator for development.

    The claim ``sub`` is the principal, ``exp`` the expiry; ``iat``, if present, must not be in the future. The claim
    ``scope``, a list or one value as text, must contain all values of ``required_scope``.

    Raises:
        ConfigError: ``required_scope`` is a string.
    """

    required_scope: Collection[str] = attrs.field(default=())

    @required_scope.validator
    def _check_scope(self, _: object, scope: Collection[str]) -> None:
        if isinstance(scope, str):
            raise ConfigError(f"required_scope is {scope!r}: a list of values, as [{scope!r}]")

    def __call__(self, token: str, now_ms: int) -> BearerToken:
        """Return the content of a valid token.

        Raises:
            TokenRefused: the token is malformed, expired or not yet valid, or lacks a required scope.
            Disconnect: the token has no algorithm.
        """
        parts = token.split(".")
        if len(parts) != 3 or ".." in token:
            raise TokenRefused("the token does not have the three parts of a JWS")
        header, claims = (_fields(part) for part in parts[:2])
        if "alg" not in header:
            raise Disconnect("the token has no algorithm")  # Apache Kafka fails here, too
        if header["alg"] != "none" or parts[2]:
            raise TokenRefused("the token is signed; this validator accepts unsigned ones only")
        scope = _scope(claims)
        ends, begins = _seconds(claims, "exp"), _seconds(claims, "iat")
        principal = claims.get("sub")
        if not isinstance(principal, str) or not principal.strip():
            raise TokenRefused("the claim sub has no principal")
        if begins is not None and begins * 1000 > now_ms:
            raise TokenRefused("the token was issued in the future")
        if ends is None or ends * 1000 <= now_ms:
            raise TokenRefused("the token has expired, or has no expiry")
        if not scope.issuperset(self.required_scope):
            required = f"[{', '.join(self.required_scope)}]"
            raise TokenRefused("the token lacks a required scope", status="insufficient_scope", scope=required)
        # Kafka rounds to ms; a token that is valid for less than half a ms is still valid.
        return BearerToken(principal, max(now_ms + 1, int(min(ends * 1000 + 0.5, _LATEST))))


def _fields(part: str) -> Mapping[str, _Claim]:
    """Decode the header or claims of a token as Kafka does: values other than lists and numbers become text."""
    try:
        if not _BASE64URL.fullmatch(part):
            raise ValueError("not base64url")
        decoded = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
        # All numbers are floats, so that none is too large.
        found = json.loads(decoded or b"{}", parse_int=float, parse_constant=_no_number)
    except (binascii.Error, ValueError, RecursionError) as error:
        raise TokenRefused("a part of the token is not JSON in base64url") from error
    if not isinstance(found, dict):
        return {}
    return {name: _claim(value) for name, value in found.items()}


def _claim(value: object) -> _Claim:
    if isinstance(value, float):
        return value
    return [_text(item) for item in value] if isinstance(value, list) else _text(value)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()  # JSON may contain half of a surrogate pair
    if isinstance(value, dict | list):
        return ""
    return json.dumps(value)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _seconds(claims: Mapping[str, _Claim], name: str) -> float | None:
    value = claims.get(name)
    if value is not None and not isinstance(value, float):
        raise TokenRefused(f"the claim {name} is not a number")
    return value


def _scope(claims: Mapping[str, _Claim]) -> set[str]:
    value = claims.get("scope", [])
    if isinstance(value, float):
        raise TokenRefused("the claim scope is neither text nor a list")
    return {item.strip() for item in ([value] if isinstance(value, str) else value)} - {""}
