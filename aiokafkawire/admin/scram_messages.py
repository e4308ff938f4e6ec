"""The requests about SCRAM credentials, and the outcomes in their responses (KIP-554)."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

from ..errors import KafkaError
from ..protocol.messages.scram import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)
from .response_errors import error_of, raise_for
from .scram_credentials import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

__all__ = ("alter_request", "altered", "described", "describe_request", "salted_upsertion")

_HASHES: Final = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}


def describe_request(users: Iterable[str] | None) -> DescribeUserScramCredentialsRequest:
    """Return the request for the credentials of users, or of all users for None."""
    return DescribeUserScramCredentialsRequest(users=None if users is None else [UserName(name=user) for user in users])


def described(
    response: DescribeUserScramCredentialsResponse,
) -> dict[str, tuple[ScramCredentialInfo, ...] | KafkaError]:
    """Return the credentials of each user, or the user's error.

    Raises:
        BrokerError: the request failed for all users.
    """
    raise_for(response.error_code, "DescribeUserScramCredentials", response.error_message)
    found: dict[str, tuple[ScramCredentialInfo, ...] | KafkaError] = {}
    for result in response.results:
        what = f"describing the SCRAM credentials of user {result.user!r}"
        error = error_of(result.error_code, what, result.error_message)
        found[result.user] = error or tuple(map(_info, result.credential_infos))
    return found


def _info(info: CredentialInfo) -> ScramCredentialInfo:
    try:
        mechanism = ScramMechanism(info.mechanism)
    except ValueError:
        mechanism = ScramMechanism.UNKNOWN
    return ScramCredentialInfo(mechanism, info.iterations)


def salted_upsertion(change: UserScramCredentialUpsertion, salt: bytes) -> ScramCredentialUpsertion:
    """Return a change as the brokers get it, with the salted password; this takes some ms of hashing (RFC 5802).

    Kafka applies no SASLprep to passwords.
    """
    info, password = change.credential_info, change.password
    secret = password.encode() if isinstance(password, str) else password
    return ScramCredentialUpsertion(
        name=change.user,
        mechanism=info.mechanism,
        iterations=info.iterations,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(_HASHES[info.mechanism], secret, salt, info.iterations),
    )


def alter_request(
    upsertions: Iterable[ScramCredentialUpsertion], deletions: Iterable[UserScramCredentialDeletion]
) -> AlterUserScramCredentialsRequest:
    """Return the request that sets and deletes credentials."""
    return AlterUserScramCredentialsRequest(
        upsertions=list(upsertions),
        deletions=[ScramCredentialDeletion(name=change.user, mechanism=change.mechanism) for change in deletions],
    )


def altered(response: AlterUserScramCredentialsResponse) -> Mapping[str, KafkaError | None]:
    """Return None for each user whose credentials were changed, or the user's error."""
    return {
        result.user: error_of(
            result.error_code, f"changing the SCRAM credentials of user {result.user!r}", result.error_message
        )
        for result in response.results
    }
