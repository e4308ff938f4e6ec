"""CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken and DescribeDelegationToken (KIP-48, KIP-373)."""

from collections.abc import Callable
from typing import Final

from ...errors import ErrorCode
from ...protocol.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from ..cluster.api_error import ApiError
from ..security.delegation_tokens import DelegationTokens, IssuedToken
from ..serving.call import ServerCall

__all__ = (
    "create_delegation_token",
    "describe_delegation_token",
    "expire_delegation_token",
    "renew_delegation_token",
)

_USER: Final = "User"
_NO_TIME: Final = -1
_REQUESTERS_SINCE: Final = 3


async def create_delegation_token(
    call: ServerCall, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    """Create a token for the client's user, or for another owner."""
    requester = owner = call.peer.principal
    if request.owner_principal_name:
        owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    response = CreateDelegationTokenResponse(
        error_code=ErrorCode.NONE,
        principal_type=_parts(owner)[0],
        principal_name=_parts(owner)[1],
        issue_timestamp_ms=_NO_TIME,
        expiry_timestamp_ms=_NO_TIME,
        max_timestamp_ms=_NO_TIME,
        token_id="",
        hmac=b"",
    )
    if call.version >= _REQUESTERS_SINCE:
        response.token_requester_principal_type, response.token_requester_principal_name = _parts(requester)
    try:
        _check_allowed(call)
        if any(renewer.principal_type != _USER for renewer in request.renewers):
            raise ApiError(ErrorCode.INVALID_PRINCIPAL_TYPE)
        # Apache Kafka's controller, which gives the answers from here on, leaves the times out of errors.
        response.issue_timestamp_ms = response.expiry_timestamp_ms = response.max_timestamp_ms = 0
        renewers = [f"{renewer.principal_type}:{renewer.principal_name}" for renewer in request.renewers]
        token = _tokens(call).create(owner, requester, renewers, request.max_lifetime_ms)
    except ApiError as refused:
        response.error_code = refused.code
        return response
    response.issue_timestamp_ms, response.max_timestamp_ms = token.issued_ms, token.max_ms
    response.expiry_timestamp_ms = token.expires_ms
    response.token_id, response.hmac = token.token_id, token.hmac
    return response


async def renew_delegation_token(
    call: ServerCall, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    """Renew a token that the client's user owns or may renew."""
    code, expiry_ms = _new_expiry(
        call, lambda tokens, user: tokens.renew(bytes(request.hmac), user, request.renew_period_ms)
    )
    return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=expiry_ms)


async def expire_delegation_token(
    call: ServerCall, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    """Delete a token that the client's user owns or may renew, or change its expiry."""
    code, expiry_ms = _new_expiry(
        call, lambda tokens, user: tokens.expire(bytes(request.hmac), user, request.expiry_time_period_ms)
    )
    return ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=expiry_ms)


async def describe_delegation_token(
    call: ServerCall, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    """Return the tokens of the requested owners, or all tokens; none for an empty list."""
    response = DescribeDelegationTokenResponse(error_code=ErrorCode.NONE, tokens=[])
    try:
        _check_allowed(call)
        tokens = _tokens(call)
    except ApiError as refused:
        response.error_code = refused.code
        return response
    owners = None
    if request.owners is not None:
        owners = [f"{owner.principal_type}:{owner.principal_name}" for owner in request.owners]
    response.tokens = [_described(token, call.version) for token in tokens.of(owners)]
    return response


def _new_expiry(call: ServerCall, change: Callable[[DelegationTokens, str], int]) -> tuple[ErrorCode, int]:
    """Change a token for the client's user; return the error code and the token's expiry."""
    expiry_ms = _NO_TIME
    try:
        _check_allowed(call)
        expiry_ms = 0  # as in the errors of Apache Kafka's controller, which gives the answers from here on
        return ErrorCode.NONE, change(_tokens(call), call.peer.principal)
    except ApiError as refused:
        return refused.code, expiry_ms


def _check_allowed(call: ServerCall) -> None:
    """Check that the client has authenticated, and not by a token.

    Raises:
        ApiError: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
    """
    login = call.peer.login
    anonymous = login is None and call.peer.principal == "User:ANONYMOUS"
    if anonymous or (login is not None and login.by_token):
        raise ApiError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def _tokens(call: ServerCall) -> DelegationTokens:
    """Return the cluster's tokens.

    Raises:
        ApiError: DELEGATION_TOKEN_AUTH_DISABLED, the cluster has no secret key.
    """
    tokens = call.cluster.credentials.delegation_tokens
    if tokens is None:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return tokens


def _described(token: IssuedToken, version: int) -> DescribedDelegationToken:
    owner_type, owner = _parts(token.owner)
    described = DescribedDelegationToken(
        principal_type=owner_type,
        principal_name=owner,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=token.hmac,
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
            for kind, name in map(_parts, token.renewers)
        ],
    )
    if version >= _REQUESTERS_SINCE:
        described.token_requester_principal_type, described.token_requester_principal_name = _parts(token.requester)
    return described


def _parts(principal: str) -> tuple[str, str]:
    kind, _, name = principal.partition(":")
    return kind, name
