"""The blocking admin's methods for users: SCRAM credentials, quotas and delegation tokens."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ..admin.admin import Admin as AsyncAdmin
from ..loop_thread import LoopThread

if TYPE_CHECKING:
    from ..admin.client_quotas import ClientQuotaEntity, ClientQuotaFilter
    from ..admin.delegation_token_descriptions import DelegationToken, KafkaPrincipal
    from ..admin.scram_credentials import ScramCredentialInfo, UserScramCredentialDeletion, UserScramCredentialUpsertion

__all__ = ("UserAdmin",)


class UserAdmin:
    """The methods of :class:`~.admin.Admin` for users. Errors are those of the asynchronous admin client."""

    _loop: LoopThread
    _admin: AsyncAdmin

    def describe_user_scram_credentials(
        self, users: str | Iterable[str] | None = None, *, timeout: float | None = None
    ) -> "dict[str, tuple[ScramCredentialInfo, ...]]":
        """Return the mechanisms and iterations of SCRAM credentials, by user; of all users for None."""
        return self._loop.call(self._admin.describe_user_scram_credentials, users, timeout=timeout)

    def alter_user_scram_credentials(
        self,
        alterations: "Iterable[UserScramCredentialUpsertion | UserScramCredentialDeletion]",
        *,
        timeout: float | None = None,
    ) -> None:
        """Set, replace and delete SCRAM credentials of users; the brokers never get a password."""
        self._loop.call(self._admin.alter_user_scram_credentials, alterations, timeout=timeout)

    # --- quotas --------------------------------------------------------------------------------------------------

    def describe_client_quotas(
        self, quota_filter: "ClientQuotaFilter | None" = None, *, timeout: float | None = None
    ) -> "dict[ClientQuotaEntity, dict[str, float]]":
        """Return the quotas of the entities that match the filter, or of all entities for None."""
        return self._loop.call(self._admin.describe_client_quotas, quota_filter, timeout=timeout)

    def alter_client_quotas(
        self,
        alterations: "Mapping[ClientQuotaEntity, Mapping[str, float | None]]",
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Set quotas of entities; None removes a quota, and other quotas stay."""
        self._loop.call(self._admin.alter_client_quotas, alterations, validate_only=validate_only, timeout=timeout)

    # --- delegation tokens ---------------------------------------------------------------------------------------

    def create_delegation_token(
        self,
        *,
        renewers: "Iterable[KafkaPrincipal]" = (),
        owner: "KafkaPrincipal | None" = None,
        max_lifetime_ms: int | None = None,
        timeout: float | None = None,
    ) -> "DelegationToken":
        """Create a token by which others log in as the owner, by default the user of this client."""
        return self._loop.call(
            self._admin.create_delegation_token,
            renewers=renewers,
            owner=owner,
            max_lifetime_ms=max_lifetime_ms,
            timeout=timeout,
        )

    def renew_delegation_token(
        self,
        token: "DelegationToken | bytes",
        *,
        renew_time_period_ms: int | None = None,
        timeout: float | None = None,
    ) -> int:
        """Renew a token, and return its new expiry in ms since the epoch."""
        return self._loop.call(
            self._admin.renew_delegation_token, token, renew_time_period_ms=renew_time_period_ms, timeout=timeout
        )

    def expire_delegation_token(
        self,
        token: "DelegationToken | bytes",
        *,
        expiry_time_period_ms: int | None = None,
        timeout: float | None = None,
    ) -> int:
        """Delete a token, or change its expiry; return the expiry in ms since the epoch."""
        return self._loop.call(
            self._admin.expire_delegation_token, token, expiry_time_period_ms=expiry_time_period_ms, timeout=timeout
        )

    def describe_delegation_token(
        self, owners: "Iterable[KafkaPrincipal] | None" = None, *, timeout: float | None = None
    ) -> "tuple[DelegationToken, ...]":
        """Return the tokens of these users, or all tokens that this user may see for None."""
        return self._loop.call(self._admin.describe_delegation_token, owners, timeout=timeout)
