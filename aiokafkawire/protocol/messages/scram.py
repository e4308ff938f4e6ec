"""The SCRAM credentials of users (KIP-554)."""

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
    """DOC(DescribeUserScramCredentialsResponse.CredentialInfos)."""

    mechanism: Int8 = field("0+")
    iterations: Int32 = field("0+")


@nested
class DescribeUserScramCredentialsResult:
    """DOC(DescribeUserScramCredentialsResponse.Results)."""

    user: String = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    credential_infos: Array[CredentialInfo] = field("0+")


@message(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    results: Array[DescribeUserScramCredentialsResult] = field("0+")


@nested
class UserName:
    """DOC(DescribeUserScramCredentialsRequest.Users)."""

    name: String = field("0+")


@message(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+")
class DescribeUserScramCredentialsRequest(Request[DescribeUserScramCredentialsResponse]):
    """DOC."""

    users: Array[UserName] | None = field("0+", nullable="0+")


@nested
class AlterUserScramCredentialsResult:
    """DOC(AlterUserScramCredentialsResponse.Results)."""

    user: String = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")


@message(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+")
class AlterUserScramCredentialsResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    results: Array[AlterUserScramCredentialsResult] = field("0+")


@nested
class ScramCredentialDeletion:
    """DOC(AlterUserScramCredentialsRequest.Deletions)."""

    name: String = field("0+")
    mechanism: Int8 = field("0+")


@nested
class ScramCredentialUpsertion:
    """DOC(AlterUserScramCredentialsRequest.Upsertions)."""

    name: String = field("0+")
    mechanism: Int8 = field("0+")
    iterations: Int32 = field("0+")
    salt: Bytes = field("0+")
    salted_password: Bytes = field("0+")


@message(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+")
class AlterUserScramCredentialsRequest(Request[AlterUserScramCredentialsResponse]):
    """DOC."""

    deletions: Array[ScramCredentialDeletion] = field("0+")
    upsertions: Array[ScramCredentialUpsertion] = field("0+")
