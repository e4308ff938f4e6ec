"""Tokens that stand for a user (KIP-48)."""

from ..api import ApiKey
from ..primitives import Array, Bytes, Int16, Int32, Int64, String
from ..schema import Request, Response, field, message, nested

__all__ = (
    "CreatableRenewers",
    "CreateDelegationTokenRequest",
    "CreateDelegationTokenResponse",
    "DescribeDelegationTokenOwner",
    "DescribeDelegationTokenRequest",
    "DescribeDelegationTokenResponse",
    "DescribedDelegationToken",
    "DescribedDelegationTokenRenewer",
    "ExpireDelegationTokenRequest",
    "ExpireDelegationTokenResponse",
    "RenewDelegationTokenRequest",
    "RenewDelegationTokenResponse",
)


@message(ApiKey.CREATE_DELEGATION_TOKEN, versions="0-3", flexible="2+")
class CreateDelegationTokenResponse(Response):
    """DOC."""

    error_code: Int16 = field("0+")
    principal_type: String = field("0+")
    principal_name: String = field("0+")
    token_requester_principal_type: String = field("3+", default="")
    token_requester_principal_name: String = field("3+", default="")
    issue_timestamp_ms: Int64 = field("0+")
    expiry_timestamp_ms: Int64 = field("0+")
    max_timestamp_ms: Int64 = field("0+")
    token_id: String = field("0+")
    hmac: Bytes = field("0+")
    throttle_time_ms: Int32 = field("0+", default=0)


@nested
class CreatableRenewers:
    """DOC(CreateDelegationTokenRequest.Renewers)."""

    principal_type: String = field("0+")
    principal_name: String = field("0+")


@message(ApiKey.CREATE_DELEGATION_TOKEN, versions="0-3", flexible="2+")
class CreateDelegationTokenRequest(Request[CreateDelegationTokenResponse]):
    """DOC."""

    owner_principal_type: String | None = field("3+", nullable="3+", default="")
    owner_principal_name: String | None = field("3+", nullable="3+", default="")
    renewers: Array[CreatableRenewers] = field("0+")
    max_lifetime_ms: Int64 = field("0+")


@message(ApiKey.RENEW_DELEGATION_TOKEN, versions="0-2", flexible="2+")
class RenewDelegationTokenResponse(Response):
    """DOC."""

    error_code: Int16 = field("0+")
    expiry_timestamp_ms: Int64 = field("0+")
    throttle_time_ms: Int32 = field("0+", default=0)


@message(ApiKey.RENEW_DELEGATION_TOKEN, versions="0-2", flexible="2+")
class RenewDelegationTokenRequest(Request[RenewDelegationTokenResponse]):
    """DOC."""

    hmac: Bytes = field("0+")
    renew_period_ms: Int64 = field("0+")


@message(ApiKey.EXPIRE_DELEGATION_TOKEN, versions="0-2", flexible="2+")
class ExpireDelegationTokenResponse(Response):
    """DOC."""

    error_code: Int16 = field("0+")
    expiry_timestamp_ms: Int64 = field("0+")
    throttle_time_ms: Int32 = field("0+", default=0)


@message(ApiKey.EXPIRE_DELEGATION_TOKEN, versions="0-2", flexible="2+")
class ExpireDelegationTokenRequest(Request[ExpireDelegationTokenResponse]):
    """DOC."""

    hmac: Bytes = field("0+")
    expiry_time_period_ms: Int64 = field("0+")


@nested
class DescribedDelegationTokenRenewer:
    """DOC(DescribeDelegationTokenResponse.Renewers)."""

    principal_type: String = field("0+")
    principal_name: String = field("0+")


@nested
class DescribedDelegationToken:
    """DOC(DescribeDelegationTokenResponse.Tokens)."""

    principal_type: String = field("0+")
    principal_name: String = field("0+")
    token_requester_principal_type: String = field("3+", default="")
    token_requester_principal_name: String = field("3+", default="")
    issue_timestamp: Int64 = field("0+")
    expiry_timestamp: Int64 = field("0+")
    max_timestamp: Int64 = field("0+")
    token_id: String = field("0+")
    hmac: Bytes = field("0+")
    renewers: Array[DescribedDelegationTokenRenewer] = field("0+")


@message(ApiKey.DESCRIBE_DELEGATION_TOKEN, versions="0-3", flexible="2+")
class DescribeDelegationTokenResponse(Response):
    """DOC."""

    error_code: Int16 = field("0+")
    tokens: Array[DescribedDelegationToken] = field("0+")
    throttle_time_ms: Int32 = field("0+", default=0)


@nested
class DescribeDelegationTokenOwner:
    """DOC(DescribeDelegationTokenRequest.Owners)."""

    principal_type: String = field("0+")
    principal_name: String = field("0+")


@message(ApiKey.DESCRIBE_DELEGATION_TOKEN, versions="0-3", flexible="2+")
class DescribeDelegationTokenRequest(Request[DescribeDelegationTokenResponse]):
    """DOC."""

    owners: Array[DescribeDelegationTokenOwner] | None = field("0+", nullable="0+")
