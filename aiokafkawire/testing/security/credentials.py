"""Who may log in: passwords, and what SCRAM keeps in their place (RFC 5802, KIP-84, KIP-554). No secret has a repr."""

import hashlib
import hmac
from collections.abc import Collection, Mapping
from enum import Enum
from typing import Final

import attrs

from .bearer_tokens import BearerTokens

__all__ = ("LEAST_ITERATIONS", "MOST_ITERATIONS", "Credentials", "ScramCredential", "ScramMechanism")

LEAST_ITERATIONS: Final = 4096
MOST_ITERATIONS: Final = 16384


class ScramMechanism(Enum):
    """The two mechanisms; the values are their names, which SaslHandshake gives."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"

    @property
    def code(self) -> int:
        """How the requests of KIP-554 name it."""
        return 1 if self is ScramMechanism.SHA_256 else 2

    @property
    def hash_name(self) -> str:
        """As hashlib calls it."""
        return self.value.removeprefix("SCRAM-").replace("-", "").lower()

    def hmac(self, key: bytes, message: bytes) -> bytes:
        """HMAC of RFC 5802."""
        return hmac.digest(key, message, self.hash_name)

    def hash(self, data: bytes) -> bytes:
        """H of RFC 5802."""
        return hashlib.new(self.hash_name, data).digest()

    def salted(self, password: str, salt: bytes, iterations: int) -> bytes:
        """Hi of RFC 5802; passwords are taken as they are, without SASLprep, as Kafka does."""
        return hashlib.pbkdf2_hmac(self.hash_name, password.encode(), salt, iterations)


@attrs.frozen
class ScramCredential:
    """What a server keeps of a password: enough to check a proof, and too little to make one."""

    iterations: int
    salt: bytes = attrs.field(repr=False)
    stored_key: bytes = attrs.field(repr=False)
    server_key: bytes = attrs.field(repr=False)

    @classmethod
    def made_of(
        cls, mechanism: ScramMechanism, salted_password: bytes, salt: bytes, iterations: int
    ) -> "ScramCredential":
        """From the salted password, which is not kept."""
        client_key = mechanism.hmac(salted_password, b"Client Key")
        return cls(iterations, salt, mechanism.hash(client_key), mechanism.hmac(salted_password, b"Server Key"))


class Credentials:
    """The users of a cluster. PLAIN's passwords stay as they were given; SCRAM's credentials can be altered.

    Args:
        passwords: of each user, for all mechanisms.
        mechanisms: those that are enabled; users have credentials for the SCRAM ones among them.
        tokens: which of OAUTHBEARER are taken; None: it is not enabled.

    Raises:
        ValueError: there are passwords, and no mechanism to log in with: nobody would be asked for one.
    """

    def __init__(
        self,
        passwords: Mapping[str, str] | None = None,
        mechanisms: Collection[str] = (),
        tokens: BearerTokens | None = None,
    ) -> None:
        if passwords is not None and not mechanisms:
            raise ValueError("users, and no mechanism to log in with")
        self.tokens: BearerTokens | None = tokens
        self._passwords = dict(passwords or {})
        self._scram: dict[ScramMechanism, dict[str, ScramCredential]] = {each: {} for each in ScramMechanism}
        for mechanism in ScramMechanism:
            if mechanism.value in mechanisms:
                for user, password in self._passwords.items():
                    # Made from the name, so that runs are alike: what a salt is for matters to no test.
                    salt = mechanism.hash(f"{mechanism.value} {user}".encode())[:16]
                    salted = mechanism.salted(password, salt, LEAST_ITERATIONS)
                    self.put(mechanism, user, ScramCredential.made_of(mechanism, salted, salt, LEAST_ITERATIONS))

    def is_password(self, user: str, password: str) -> bool:
        """Whether there is such a user with that password."""
        known = self._passwords.get(user)
        return known is not None and hmac.compare_digest(known.encode(), password.encode())

    def scram(self, mechanism: ScramMechanism, user: str) -> ScramCredential | None:
        """A user's credential; None if there is none."""
        return self._scram[mechanism].get(user)

    def scram_users(self) -> list[str]:
        """All users that have a SCRAM credential."""
        return list(dict.fromkeys(user for users in self._scram.values() for user in users))

    def put(self, mechanism: ScramMechanism, user: str, credential: ScramCredential) -> None:
        """Set or replace a user's credential."""
        self._scram[mechanism][user] = credential

    def remove(self, mechanism: ScramMechanism, user: str) -> None:
        """Forget a user's credential.

        Raises:
            KeyError: there is none.
        """
        del self._scram[mechanism][user]
