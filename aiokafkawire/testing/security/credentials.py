"""The users' credentials: passwords, and SCRAM credentials (RFC 5802, KIP-84, KIP-554). Reprs show no secrets."""

import hashlib
import hmac
from collections.abc import Collection, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Final

import attrs

from .bearer_tokens import BearerTokens

if TYPE_CHECKING:
    from .delegation_tokens import DelegationTokens

__all__ = ("LEAST_ITERATIONS", "MOST_ITERATIONS", "Credentials", "ScramAlgorithm", "ScramCredential")

LEAST_ITERATIONS: Final = 4096
MOST_ITERATIONS: Final = 16384


class ScramAlgorithm(Enum):
    """The two SCRAM mechanisms; the values are their names in SaslHandshake."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"

    @property
    def code(self) -> int:
        """The mechanism's code in the requests of KIP-554."""
        return 1 if self is ScramAlgorithm.SHA_256 else 2

    @property
    def hash_name(self) -> str:
        """The name of the hash in hashlib."""
        return self.value.removeprefix("SCRAM-").replace("-", "").lower()

    def hmac(self, key: bytes, message: bytes) -> bytes:
        """Compute HMAC of RFC 5802."""
        return hmac.digest(key, message, self.hash_name)

    def hash(self, data: bytes) -> bytes:
        """Compute H of RFC 5802."""
        return hashlib.new(self.hash_name, data).digest()

    def salted(self, password: str, salt: bytes, iterations: int) -> bytes:
        """Compute Hi of RFC 5802; passwords are used without SASLprep, as in Kafka."""
        return hashlib.pbkdf2_hmac(self.hash_name, password.encode(), salt, iterations)


@attrs.frozen
class ScramCredential:
    """The server's SCRAM credential for a user; it suffices to check a client's proof, but not to make a proof."""

    iterations: int
    salt: bytes = attrs.field(repr=False)
    stored_key: bytes = attrs.field(repr=False)
    server_key: bytes = attrs.field(repr=False)

    @classmethod
    def made_of(
        cls, mechanism: ScramAlgorithm, salted_password: bytes, salt: bytes, iterations: int
    ) -> "ScramCredential":
        """Derive a credential from the salted password, which is not kept."""
        client_key = mechanism.hmac(salted_password, b"Client Key")
        return cls(iterations, salt, mechanism.hash(client_key), mechanism.hmac(salted_password, b"Server Key"))


class Credentials:
    """The credentials of a cluster's users. Requests can alter SCRAM credentials, but not the passwords of PLAIN.

    Args:
        passwords: the password of each user, for all mechanisms.
        mechanisms: the enabled mechanisms; users get credentials for the SCRAM mechanisms among them.
        tokens: the validator of OAUTHBEARER tokens; None if OAUTHBEARER is disabled.
        delegation_tokens: the tokens by which clients may log in with SCRAM; None if there can be none.

    Raises:
        ValueError: there are passwords, but no enabled mechanism.
    """

    def __init__(
        self,
        passwords: Mapping[str, str] | None = None,
        mechanisms: Collection[str] = (),
        tokens: BearerTokens | None = None,
        delegation_tokens: "DelegationTokens | None" = None,
    ) -> None:
        if passwords is not None and not mechanisms:
            raise ValueError("users need at least one mechanism in sasl_enabled_mechanisms")
        self.tokens: BearerTokens | None = tokens
        self.delegation_tokens = delegation_tokens
        self._passwords = dict(passwords or {})
        self._scram: dict[ScramAlgorithm, dict[str, ScramCredential]] = {each: {} for each in ScramAlgorithm}
        for mechanism in ScramAlgorithm:
            if mechanism.value in mechanisms:
                for user, password in self._passwords.items():
                    # The salt is derived from the name, so that all runs are alike; no test needs a random salt.
                    salt = mechanism.hash(f"{mechanism.value} {user}".encode())[:16]
                    salted = mechanism.salted(password, salt, LEAST_ITERATIONS)
                    self.put(mechanism, user, ScramCredential.made_of(mechanism, salted, salt, LEAST_ITERATIONS))

    def is_password(self, user: str, password: str) -> bool:
        """Return whether the user exists and has this password."""
        known = self._passwords.get(user)
        return known is not None and hmac.compare_digest(known.encode(), password.encode())

    def scram(self, mechanism: ScramAlgorithm, user: str) -> ScramCredential | None:
        """Return a user's credential for a mechanism; None if there is none."""
        return self._scram[mechanism].get(user)

    def scram_users(self) -> list[str]:
        """Return all users with a SCRAM credential."""
        return list(dict.fromkeys(user for users in self._scram.values() for user in users))

    def put(self, mechanism: ScramAlgorithm, user: str, credential: ScramCredential) -> None:
        """Set or replace a user's credential for a mechanism."""
        self._scram[mechanism][user] = credential

    def remove(self, mechanism: ScramAlgorithm, user: str) -> None:
        """Delete a user's credential for a mechanism.

        Raises:
            KeyError: there is no such credential.
        """
        del self._scram[mechanism][user]
