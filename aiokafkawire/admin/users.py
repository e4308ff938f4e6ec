"""The admin's methods for the SCRAM credentials of users.

The first call imports the message classes of SCRAM credentials.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ..argument_checks import check_text, is_integer, is_text, items_of, shown
from ..errors import UsageError
from .admin_base import AdminBase

if TYPE_CHECKING:
    from .scram_credentials import (
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialDeletion,
        UserScramCredentialUpsertion,
    )

__all__ = ("UserAdmin",)


class UserAdmin(AdminBase):
    """The methods of :class:`~.admin.Admin` for users and their SCRAM credentials."""

    async def describe_user_scram_credentials(
        self, users: str | Iterable[str] | None = None, *, timeout: float | None = None
    ) -> "dict[str, tuple[ScramCredentialInfo, ...]]":
        """Return the mechanisms and iterations of users' SCRAM credentials, by user (KIP-554, brokers since 2.7).

        Args:
            users: a user or several; None for all users with SCRAM credentials.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            ResourceNotFound, ...: the only user has no credential, or the broker answered with another error.
            AdminError: some of several users have no credential; the others are in its ``results``.
            UnsupportedVersion: the broker is too old.
            UsageError: an argument is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .scram_requests import describe_user_scram_credentials

        if isinstance(users, str):
            users = [users]
        requested = None if users is None else items_of("users", users, "['alice']")
        for user in requested or ():
            check_text("a user", user)
        deadline = self._deadline(timeout)
        if requested is not None and not requested:
            return {}

        return await describe_user_scram_credentials(self._cluster, requested, deadline)

    async def alter_user_scram_credentials(
        self,
        alterations: "Iterable[UserScramCredentialUpsertion | UserScramCredentialDeletion]",
        *,
        timeout: float | None = None,
    ) -> None:
        """Set, replace and delete SCRAM credentials of users (KIP-554, brokers since 2.7).

        The salted passwords are computed here, so the brokers never get a password. One call takes one change of each
        user: Kafka rejects all changes of a user who has several.

        Args:
            alterations: the changes, such as ``[UserScramCredentialUpsertion("alice",
                ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192), password)]``.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            ResourceNotFound, DuplicateResource, ...: the controller rejected the only user.
            AdminError: the controller rejected some of several users; the others are changed.
            UnsupportedVersion: the broker is too old.
            UsageError: a change is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .scram_requests import alter_user_scram_credentials

        changes = [_checked(change) for change in items_of("alterations", alterations, _ALTERATIONS)]
        deadline = self._deadline(timeout)
        if changes:
            await alter_user_scram_credentials(self._cluster, changes, deadline)


_ALTERATIONS: Final = "[UserScramCredentialDeletion('alice', ScramMechanism.SCRAM_SHA_256)]"
_MIN_ITERATIONS: Final = 4096
_MAX_ITERATIONS: Final = 16384


def _checked(change: object) -> "UserScramCredentialUpsertion | UserScramCredentialDeletion":
    """Return a user's change. The errors show neither the password nor the salt.

    Raises:
        UsageError: the argument is not a change.
    """
    from .scram_credentials import ScramCredentialInfo, UserScramCredentialDeletion, UserScramCredentialUpsertion

    if not isinstance(change, UserScramCredentialUpsertion | UserScramCredentialDeletion):
        expected = "UserScramCredentialUpsertion or UserScramCredentialDeletion"
        raise UsageError(f"an alteration must be a {expected}, got {_type_of(change)}")
    check_text("the user of an alteration", change.user)
    if isinstance(change, UserScramCredentialDeletion):
        _check_mechanism(change.user, change.mechanism)
        return change
    info = change.credential_info
    if not isinstance(info, ScramCredentialInfo):
        raise UsageError(
            f"the credential_info of user {change.user!r} must be a ScramCredentialInfo, got {shown(info)}"
        )
    _check_mechanism(change.user, info.mechanism)
    if not is_integer(info.iterations, _MIN_ITERATIONS, _MAX_ITERATIONS):
        allowed = f"an integer from {_MIN_ITERATIONS} to {_MAX_ITERATIONS} (KIP-554)"
        raise UsageError(f"the iterations of user {change.user!r} must be {allowed}, got {shown(info.iterations)}")
    _check_secret(f"the password of user {change.user!r}", change.password)
    if change.salt is not None and (not isinstance(change.salt, bytes) or not change.salt):
        raise UsageError(f"the salt of user {change.user!r} must be bytes, at least one, or None for a random salt")
    return change


def _check_mechanism(user: str, mechanism: "ScramMechanism") -> None:
    from .scram_credentials import ScramMechanism

    if not isinstance(mechanism, ScramMechanism) or mechanism is ScramMechanism.UNKNOWN:
        known = "ScramMechanism.SCRAM_SHA_256 or SCRAM_SHA_512"
        raise UsageError(f"the mechanism of user {user!r} must be {known}, got {shown(mechanism)}")


def _check_secret(name: str, given: object) -> None:
    if not isinstance(given, str | bytes):
        raise UsageError(f"{name} must be a string or bytes, got {_type_of(given)} (not shown)")
    if not given:
        raise UsageError(f"{name} must not be empty")
    if isinstance(given, str) and not is_text(given):
        raise UsageError(f"{name} has characters that UTF-8 cannot encode (half a surrogate pair)")


def _type_of(given: object) -> str:
    """Return the name of a value's type, for an error that does not show the value, which may be a secret."""
    return "None" if given is None else type(given).__name__
