"""Which tokens OAUTHBEARER takes: those of a function, or unsecured ones for development (RFC 7515, KIP-255)."""

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
    """What a token says that is taken: who logs in, and until when, in ms since the epoch."""

    principal: str
    ends_ms: int


class TokenRefused(Exception):
    """A token is not taken. The reason is for the broker's log; the client is told the rest (RFC 7628, 3.2.2).

    Args:
        reason: why.
        status: an error code of RFC 6750.
        scope: what the token would have to be for.
        openid_configuration: where to ask for another.
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
        said = {"status": status, "scope": scope, "openid-configuration": openid_configuration}
        self.answer: str = json.dumps(
            {name: one for name, one in said.items() if one is not None}, separators=(", ", ":")
        )
        """The JSON that the client gets."""


TokenValidator: TypeAlias = Callable[[str, int], BearerToken]
"""Looks at a token at a time, in ms since the epoch of the broker's clock; raises TokenRefused."""


@attrs.frozen
class BearerTokens:
    """Who looks at tokens, and by which clock, in ms since the epoch."""

    validator: TokenValidator
    clock: Callable[[], int]

    def check(self, token: str) -> tuple[str, int]:
        """Who logs in, and for how many ms from now the token holds.

        Raises:
            TokenRefused: it does not.
            Disconnect: nor is that told.
        """
        now = self.clock()
        found = self.validator(token, now)
        if found.ends_ms <= now:
            raise TokenRefused("the token has expired")
        return found.principal, found.ends_ms - now


def bearer_tokens(setting: bool | TokenValidator, clock: Callable[[], int]) -> BearerTokens | None:
    """What the setting of a broker says; None: there is no OAUTHBEARER.

    Raises:
        ConfigError: it is neither a bool nor a function.
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
    """Tokens that anyone could have written: a JWS without a signature, as Kafka's validator for development has it.

    ``sub`` says who, ``exp`` until when; ``iat``, if it is there, has to be past. ``required_scope`` are values
    that the claim ``scope`` must have all of: a text, which is one value, or a list.

    Raises:
        ConfigError: ``required_scope`` is one string.
    """

    required_scope: Collection[str] = attrs.field(default=())

    @required_scope.validator
    def _check_scope(self, _: object, scope: Collection[str]) -> None:
        if isinstance(scope, str):
            raise ConfigError(f"required_scope is {scope!r}: a list of values, as [{scope!r}]")

    def __call__(self, token: str, now_ms: int) -> BearerToken:
        """Who a token is for.

        Raises:
            TokenRefused: it does not say so, has ended, has not begun, or is for something else.
            Disconnect: it does not even say how it is signed.
        """
        parts = token.split(".")
        if len(parts) != 3 or ".." in token:
            raise TokenRefused("no three parts, as a JWS has")
        header, claims = (_fields(part) for part in parts[:2])
        if "alg" not in header:
            raise Disconnect("a token without an algorithm")  # Apache Kafka stumbles over it
        if header["alg"] != "none" or parts[2]:
            raise TokenRefused("it is signed, and nobody here could verify it")
        scope = _scope(claims)
        ends, begins = _seconds(claims, "exp"), _seconds(claims, "iat")
        principal = claims.get("sub")
        if not isinstance(principal, str) or not principal.strip():
            raise TokenRefused("the claim sub does not say who it is")
        if begins is not None and begins * 1000 > now_ms:
            raise TokenRefused("it was issued in the future")
        if ends is None or ends * 1000 <= now_ms:
            raise TokenRefused("it has expired, or does not say when it does")
        if not scope.issuperset(self.required_scope):
            told = f"[{', '.join(self.required_scope)}]"
            raise TokenRefused("it is for something else", status="insufficient_scope", scope=told)
        # Kafka rounds; a token that ends within this half of a millisecond would be one without an end.
        return BearerToken(principal, max(now_ms + 1, int(min(ends * 1000 + 0.5, _LATEST))))


def _fields(part: str) -> Mapping[str, _Claim]:
    """A header or claims, as Kafka reads them: what is no list and no number is text."""
    try:
        if not _BASE64URL.fullmatch(part):
            raise ValueError("a letter that base64url has not")
        decoded = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
        # All numbers are floats: so there is none that is too large.
        found = json.loads(decoded or b"{}", parse_int=float, parse_constant=_no_number)
    except (binascii.Error, ValueError, RecursionError) as error:
        raise TokenRefused("a part of it is not JSON in base64url") from error
    if not isinstance(found, dict):
        return {}
    return {name: _claim(value) for name, value in found.items()}


def _claim(value: object) -> _Claim:
    if isinstance(value, float):
        return value
    return [_text(one) for one in value] if isinstance(value, list) else _text(value)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()  # JSON may name half of a letter
    if isinstance(value, dict | list):
        return ""
    return json.dumps(value)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _seconds(claims: Mapping[str, _Claim], name: str) -> float | None:
    value = claims.get(name)
    if value is not None and not isinstance(value, float):
        raise TokenRefused(f"the claim {name} is not a number")
    return value


def _scope(claims: Mapping[str, _Claim]) -> set[str]:
    value = claims.get("scope", [])
    if isinstance(value, float):
        raise TokenRefused("the claim scope is neither text nor a list")
    return {one.strip() for one in ([value] if isinstance(value, str) else value)} - {""}
