"""Delegation tokens (KIP-48), and the principals that own and renew them."""

import base64

import attrs

from ..errors import UsageError

__all__ = ("DelegationToken", "KafkaPrincipal")


@attrs.frozen
class KafkaPrincipal:
    """A user as brokers name it, such as ``User:alice``."""

    principal_type: str
    name: str

    @classmethod
    def user(cls, name: str) -> "KafkaPrincipal":
        """Return the principal of a user."""
        return cls("User", name)

    @classmethod
    def parse(cls, text: str) -> "KafkaPrincipal":
        """Return the principal that a text such as "User:alice" names. Raises UsageError for another text."""
        principal_type, colon, name = text.partition(":") if isinstance(text, str) else ("", "", "")
        if not (principal_type and colon and name):
            raise UsageError(f"a principal must be like 'User:alice', got {text!r:.200}")
        return cls(principal_type, name)

    def __str__(self) -> str:
        return f"{self.principal_type}:{self.name}"


@attrs.frozen
class DelegationToken:
    """A token by which others log in as its owner (KIP-48). Its repr hides the secret, the HMAC.

    To log in, set ``sasl_username`` to the ``token_id``, ``sasl_password`` to ``hmac_base64`` and ``sasl_tokenauth`` to
    True, with a SCRAM mechanism.

    ``token_requester`` created the token, for the ``owner`` or as the owner (KIP-373). ``renewers`` may renew and
    expire the token, too. The token is valid until ``expiry_timestamp_ms``, which a renewal moves, but not beyond
    ``max_timestamp_ms``. Times are in ms since the epoch.
    """

    token_id: str
    owner: KafkaPrincipal
    token_requester: KafkaPrincipal
    renewers: tuple[KafkaPrincipal, ...]
    issue_timestamp_ms: int
    expiry_timestamp_ms: int
    max_timestamp_ms: int
    hmac: bytes = attrs.field(repr=False)

    @property
    def hmac_base64(self) -> str:
        """The HMAC in Base64, which is the password of the token."""
        return base64.b64encode(self.hmac).decode()
