"""Tokens that stand for a user (KIP-48).

A user creates a token and gives its id and HMAC to whoever is to act as that user: they log in by SASL/SCRAM with
tokenauth=true, the id as the name and the HMAC, in Base64, as the password. The token lives until it expires, and may
be renewed up to its maximum. Any broker takes these requests, on a connection that is authenticated, but not by a
token. Brokers of 4.0 and later serve v1 and up. Timestamps are ms since 1970.
"""

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
    """The new token, or why there is none; the principal is its owner."""

    error_code: Int16 = field("0+")
    principal_type: String = field("0+")
    principal_name: String = field("0+")
    token_requester_principal_type: String = field("3+", default="")  # KIP-373: who asked for the token
    token_requester_principal_name: String = field("3+", default="")
    issue_timestamp_ms: Int64 = field("0+")
    expiry_timestamp_ms: Int64 = field("0+")
    max_timestamp_ms: Int64 = field("0+")  # no renewal goes beyond
    token_id: String = field("0+")
    hmac: Bytes = field("0+", secret=True)  # the secret
    throttle_time_ms: Int32 = field("0+", default=0)


@nested
class CreatableRenewers:
    """Somebody else who may renew the token; the type must be User."""

    principal_type: String = field("0+")
    principal_name: String = field("0+")


@message(ApiKey.CREATE_DELEGATION_TOKEN, versions="0-3", flexible="2+")
class CreateDelegationTokenRequest(Request[CreateDelegationTokenResponse]):
    """A token to create, with v3+ also for another user (KIP-373)."""

    # KIP-373; null or empty: the user who asks
    owner_principal_type: String | None = field("3+", nullable="3+", default="")
    owner_principal_name: String | None = field("3+", nullable="3+", default="")
    renewers: Array[CreatableRenewers] = field("0+")
    max_lifetime_ms: Int64 = field("0+")  # -1: as long as the broker allows


@message(ApiKey.RENEW_DELEGATION_TOKEN, versions="0-2", flexible="2+")
class RenewDelegationTokenResponse(Response):
    """When the token expires now."""

    error_code: Int16 = field("0+")
    expiry_timestamp_ms: Int64 = field("0+")
    throttle_time_ms: Int32 = field("0+", default=0)


@message(ApiKey.RENEW_DELEGATION_TOKEN, versions="0-2", flexible="2+")
class RenewDelegationTokenRequest(Request[RenewDelegationTokenResponse]):
    """A token that is to live longer."""

    hmac: Bytes = field("0+", secret=True)
    renew_period_ms: Int64 = field("0+")  # from now; -1: as long as the broker allows


@message(ApiKey.EXPIRE_DELEGATION_TOKEN, versions="0-2", flexible="2+")
class ExpireDelegationTokenResponse(Response):
    """When the token expires now."""

    error_code: Int16 = field("0+")
    expiry_timestamp_ms: Int64 = field("0+")
    throttle_time_ms: Int32 = field("0+", default=0)


@message(ApiKey.EXPIRE_DELEGATION_TOKEN, versions="0-2", flexible="2+")
class ExpireDelegationTokenRequest(Request[ExpireDelegationTokenResponse]):
    """A token that is to end at another time, or at once."""

    hmac: Bytes = field("0+", secret=True)
    expiry_time_period_ms: Int64 = field("0+")  # from now; negative: at once


@nested
class DescribedDelegationTokenRenewer:
    """Somebody else who may renew the token."""

    principal_type: String = field("0+")
    principal_name: String = field("0+")


@nested
class DescribedDelegationToken:
    """A token, its secret HMAC included; the principal is its owner."""

    principal_type: String = field("0+")
    principal_name: String = field("0+")
    token_requester_principal_type: String = field("3+", default="")  # KIP-373: who asked for the token
    token_requester_principal_name: String = field("3+", default="")
    issue_timestamp: Int64 = field("0+")  # ms
    expiry_timestamp: Int64 = field("0+")  # ms
    max_timestamp: Int64 = field("0+")  # ms; no renewal goes beyond
    token_id: String = field("0+")
    hmac: Bytes = field("0+", secret=True)
    renewers: Array[DescribedDelegationTokenRenewer] = field("0+")


@message(ApiKey.DESCRIBE_DELEGATION_TOKEN, versions="0-3", flexible="2+")
class DescribeDelegationTokenResponse(Response):
    """The tokens that were asked for and that the user may see."""

    error_code: Int16 = field("0+")
    tokens: Array[DescribedDelegationToken] = field("0+")
    throttle_time_ms: Int32 = field("0+", default=0)


@nested
class DescribeDelegationTokenOwner:
    """A user whose tokens are asked for."""

    principal_type: String = field("0+")
    principal_name: String = field("0+")


@message(ApiKey.DESCRIBE_DELEGATION_TOKEN, versions="0-3", flexible="2+")
class DescribeDelegationTokenRequest(Request[DescribeDelegationTokenResponse]):
    """Which tokens do these users own? Null is all users, an empty list none."""

    owners: Array[DescribeDelegationTokenOwner] | None = field("0+", nullable="0+")
