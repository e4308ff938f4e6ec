"""The admin's methods for delegation tokens.

The first call imports the message classes of delegation tokens.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ..argument_checks import INT64, check_integer, check_text, items_of, shown
from ..errors import UsageError
from .admin_base import AdminBase

if TYPE_CHECKING:
    from .delegation_token_descriptions import DelegationToken, KafkaPrincipal

__all__ = ("DelegationTokenAdmin",)


class DelegationTokenAdmin(AdminBase):
    """The methods of :class:`~.admin.Admin` for delegation tokens (KIP-48).

    Brokers take these requests on connections that are authenticated by SASL or a client certificate, and not by a
    token. The brokers need the setting ``delegation.token.secret.key``.
    """

    async def create_delegation_token(
        self,
        *,
        renewers: "Iterable[KafkaPrincipal]" = (),
        owner: "KafkaPrincipal | None" = None,
        max_lifetime_ms: int | None = None,
        timeout: float | None = None,
    ) -> "DelegationToken":
        """Create a token by which others log in as the owner (KIP-48, brokers since 1.1).

        If the response is lost, the call creates another token; the first one then expires unused.

        Args:
            renewers: the users who may renew and expire the token, besides the owner.
            owner: the user who logs in by the token; by default the user of this client. For another user an ACL must
                allow CREATE_TOKENS (KIP-373, brokers since 3.3).
            max_lifetime_ms: the time after which the token cannot be renewed any more; by default, and at most, the
                brokers' ``delegation.token.max.lifetime.ms``.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            DelegationTokenRequestNotAllowed: the connection is not authenticated, or authenticated by a token.
            DelegationTokenAuthDisabled: the brokers have no secret key for tokens.
            DelegationTokenAuthorizationFailed, InvalidPrincipalType, ...: the broker created no token.
            UnsupportedVersion: the broker is too old.
            UsageError: an argument is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .delegation_token_requests import create_delegation_token

        checked = [_checked("a renewer", one) for one in items_of("renewers", renewers, f"[{_PRINCIPAL}]")]
        if owner is not None:
            _checked("owner", owner)
        lifetime = _period("max_lifetime_ms", max_lifetime_ms, least=1)
        return await create_delegation_token(self._cluster, owner, checked, lifetime, self._deadline(timeout))

    async def renew_delegation_token(
        self,
        token: "DelegationToken | bytes",
        *,
        renew_time_period_ms: int | None = None,
        timeout: float | None = None,
    ) -> int:
        """Renew a token, and return its new expiry in ms since the epoch (KIP-48, brokers since 1.1).

        Args:
            token: the token, or its HMAC.
            renew_time_period_ms: the time from now until the token expires; by default, and at most, the brokers'
                ``delegation.token.expiry.time.ms``. The token's ``max_timestamp_ms`` limits it, too.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            DelegationTokenNotFound, DelegationTokenExpired: there is no such token, or not any more.
            DelegationTokenOwnerMismatch: the user of this client is neither the token's owner nor a renewer.
            DelegationTokenRequestNotAllowed, ...: as :meth:`create_delegation_token`.
            UsageError: an argument is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .delegation_token_requests import renew_delegation_token

        hmac, period = _hmac(token), _period("renew_time_period_ms", renew_time_period_ms, least=1)
        return await renew_delegation_token(self._cluster, hmac, period, self._deadline(timeout))

    async def expire_delegation_token(
        self,
        token: "DelegationToken | bytes",
        *,
        expiry_time_period_ms: int | None = None,
        timeout: float | None = None,
    ) -> int:
        """Delete a token, or change its expiry; return the expiry in ms since the epoch (KIP-48, brokers since 1.1).

        Args:
            token: the token, or its HMAC.
            expiry_time_period_ms: the time from now until the token expires; None deletes the token at once.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            DelegationTokenNotFound, ...: as :meth:`renew_delegation_token`.
            UsageError: an argument is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .delegation_token_requests import expire_delegation_token

        hmac, period = _hmac(token), _period("expiry_time_period_ms", expiry_time_period_ms, least=0)
        return await expire_delegation_token(self._cluster, hmac, period, self._deadline(timeout))

    async def describe_delegation_token(
        self, owners: "Iterable[KafkaPrincipal] | None" = None, *, timeout: float | None = None
    ) -> "tuple[DelegationToken, ...]":
        """Return tokens with their secrets: those that this user owns or may renew, or that ACLs allow it to see.

        Args:
            owners: only tokens that one of these users owns, requested or may renew; None for all tokens.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            DelegationTokenRequestNotAllowed, DelegationTokenAuthDisabled, ...: the broker rejected the request.
            UnsupportedVersion: the broker is older than 1.1.
            UsageError: an argument is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .delegation_token_requests import describe_delegation_token

        checked = None
        if owners is not None:
            checked = [_checked("an owner", one) for one in items_of("owners", owners, f"[{_PRINCIPAL}]")]
        return await describe_delegation_token(self._cluster, checked, self._deadline(timeout))


_PRINCIPAL: Final = "KafkaPrincipal.user('alice')"
_DEFAULT: Final = -1
"""The code of the brokers' default period, and of "at once" in ExpireDelegationToken."""


def _checked(name: str, given: object) -> "KafkaPrincipal":
    """Return a user's principal.

    Raises:
        UsageError: the argument is not a principal.
    """
    from .delegation_token_descriptions import KafkaPrincipal

    if not isinstance(given, KafkaPrincipal):
        raise UsageError(f"{name} must be a KafkaPrincipal, such as {_PRINCIPAL}; got {shown(given)}")
    check_text(f"the type of {name}", given.principal_type)
    check_text(f"the name of {name}", given.name)
    return given


def _hmac(token: object) -> bytes:
    """Return the HMAC of a token. The errors do not show it.

    Raises:
        UsageError: the argument is neither a token nor an HMAC.
    """
    from .delegation_token_descriptions import DelegationToken

    hmac = token.hmac if isinstance(token, DelegationToken) else token
    if not isinstance(hmac, bytes) or not hmac:
        given = "None" if token is None else type(token).__name__
        raise UsageError(f"token must be a DelegationToken or the bytes of its HMAC, got {given} (not shown)")
    return hmac


def _period(name: str, given: int | None, *, least: int) -> int:
    if given is None:
        return _DEFAULT
    check_integer(name, given, least, INT64)
    return given
