"""The SCRAM credentials of users (KIP-554), and the changes of them that users of the admin ask for."""

from enum import IntEnum

import attrs

__all__ = (
    "ScramCredentialInfo",
    "ScramMechanism",
    "UserScramCredentialDeletion",
    "UserScramCredentialUpsertion",
)


class ScramMechanism(IntEnum):
    """A SCRAM mechanism; the values are those of Kafka's requests."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def mechanism_name(self) -> str:
        """The name in settings and in SASL, such as "SCRAM-SHA-256"."""
        return self.name.replace("_", "-")


@attrs.frozen
class ScramCredentialInfo:
    """The part of a SCRAM credential that is no secret: the mechanism, and the number of hash iterations."""

    mechanism: ScramMechanism
    iterations: int = 4096


@attrs.frozen
class UserScramCredentialUpsertion:
    """A user's SCRAM credential to set or replace. Its repr hides the password and the salt.

    The client derives the credential from the ``password``, which is text or UTF-8 bytes; the brokers never get the
    password. ``salt`` is random unless given. Kafka allows 4096 to 16384 iterations.
    """

    user: str
    credential_info: ScramCredentialInfo
    password: str | bytes = attrs.field(repr=False)
    salt: bytes | None = attrs.field(default=None, repr=False)


@attrs.frozen
class UserScramCredentialDeletion:
    """A user's SCRAM credential to delete."""

    user: str
    mechanism: ScramMechanism
