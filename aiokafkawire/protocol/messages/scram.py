"""The SCRAM credentials of users (KIP-554).

Any broker takes these requests.
"""

from ..api import ApiKey
from ..primitives import Array, Bytes, Int8, Int16, Int32, String
from ..schema import Request, Response, field, message, nested

__all__ = (
    "AlterUserScramCredentialsRequest",
    "AlterUserScramCredentialsResponse",
    "AlterUserScramCredentialsResult",
    "CredentialInfo",
    "DescribeUserScramCredentialsRequest",
    "DescribeUserScramCredentialsResponse",
    "DescribeUserScramCredentialsResult",
    "ScramCredentialDeletion",
    "ScramCredentialUpsertion",
    "UserName",
)


@nested
class CredentialInfo:
    """A mechanism that the user can log in with; nothing secret is told."""

    mechanism: Int8 = field("0+")  # 0: unknown; 1: SCRAM-SHA-256; 2: SCRAM-SHA-512
    iterations: Int32 = field("0+")


@nested
class DescribeUserScramCredentialsResult:
    """The credentials of one user, RESOURCE_NOT_FOUND if there are none."""

    user: String = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    credential_infos: Array[CredentialInfo] = field("0+")


@message(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse(Response):
    """The credentials of each user."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    results: Array[DescribeUserScramCredentialsResult] = field("0+")


@nested
class UserName:
    """A user to describe; one that is named twice is answered with DUPLICATE_RESOURCE."""

    name: String = field("0+")


@message(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+")
class DescribeUserScramCredentialsRequest(Request[DescribeUserScramCredentialsResponse]):
    """Which credentials do these users have? Null and an empty list are all users."""

    users: Array[UserName] | None = field("0+", nullable="0+")


@nested
class AlterUserScramCredentialsResult:
    """How the changes of one user went."""

    user: String = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")


@message(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+")
class AlterUserScramCredentialsResponse(Response):
    """How the changes of each user went."""

    throttle_time_ms: Int32 = field("0+", default=0)
    results: Array[AlterUserScramCredentialsResult] = field("0+")


@nested
class ScramCredentialDeletion:
    """A credential to delete."""

    name: String = field("0+")
    mechanism: Int8 = field("0+")  # 1: SCRAM-SHA-256; 2: SCRAM-SHA-512


@nested
class ScramCredentialUpsertion:
    """A credential to set or to replace; the password stays with the client."""

    name: String = field("0+")
    mechanism: Int8 = field("0+")  # 1: SCRAM-SHA-256; 2: SCRAM-SHA-512
    iterations: Int32 = field("0+")  # 4096 to 16384
    salt: Bytes = field("0+")  # random bytes of the client's
    salted_password: Bytes = field("0+", secret=True)  # Hi(password, salt, iterations) of RFC 5802


@message(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+")
class AlterUserScramCredentialsRequest(Request[AlterUserScramCredentialsResponse]):
    """Credentials to set and to delete; a user that is named twice may be answered with DUPLICATE_RESOURCE."""

    deletions: Array[ScramCredentialDeletion] = field("0+")
    upsertions: Array[ScramCredentialUpsertion] = field("0+")
