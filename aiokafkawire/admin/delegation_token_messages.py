"""The requests about delegation tokens, and the tokens in their responses (KIP-48, KIP-373)."""

from collections.abc import Sequence
from typing import TypeAlias

from ..protocol.messages.delegation_tokens import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenResponse,
)
from .delegation_token_descriptions import DelegationToken, KafkaPrincipal
from .response_errors import raise_for

__all__ = (
    "TokenResponse",
    "check_token_answer",
    "create_request",
    "created_token",
    "describe_request",
    "described_tokens",
)

TokenResponse: TypeAlias = (
    CreateDelegationTokenResponse
    | DescribeDelegationTokenResponse
    | ExpireDelegationTokenResponse
    | RenewDelegationTokenResponse
)


def create_request(
    owner: KafkaPrincipal | None, renewers: Sequence[KafkaPrincipal], max_lifetime_ms: int
) -> CreateDelegationTokenRequest:
    """Return the request for a token."""
    return CreateDelegationTokenRequest(
        owner_principal_type=owner.principal_type if owner is not None else "",
        owner_principal_name=owner.name if owner is not None else "",
        renewers=[CreatableRenewers(principal_type=one.principal_type, principal_name=one.name) for one in renewers],
        max_lifetime_ms=max_lifetime_ms,
    )


def created_token(response: CreateDelegationTokenResponse, renewers: Sequence[KafkaPrincipal]) -> DelegationToken:
    """Return the new token."""
    owner = KafkaPrincipal(response.principal_type, response.principal_name)
    return DelegationToken(
        response.token_id,
        owner,
        _requester(response.token_requester_principal_type, response.token_requester_principal_name, owner),
        tuple(renewers),
        response.issue_timestamp_ms,
        response.expiry_timestamp_ms,
        response.max_timestamp_ms,
        bytes(response.hmac),
    )


def describe_request(owners: Sequence[KafkaPrincipal] | None) -> DescribeDelegationTokenRequest:
    """Return the request for the tokens of owners and renewers, or for all tokens for None."""
    return DescribeDelegationTokenRequest(
        owners=None
        if owners is None
        else [
            DescribeDelegationTokenOwner(principal_type=one.principal_type, principal_name=one.name) for one in owners
        ]
    )


def described_tokens(response: DescribeDelegationTokenResponse) -> tuple[DelegationToken, ...]:
    """Return the tokens."""
    tokens = []
    for token in response.tokens:
        owner = KafkaPrincipal(token.principal_type, token.principal_name)
        tokens.append(
            DelegationToken(
                token.token_id,
                owner,
                _requester(token.token_requester_principal_type, token.token_requester_principal_name, owner),
                tuple(KafkaPrincipal(one.principal_type, one.principal_name) for one in token.renewers),
                token.issue_timestamp,
                token.expiry_timestamp,
                token.max_timestamp,
                bytes(token.hmac),
            )
        )
    return tuple(tokens)


def _requester(principal_type: str, name: str, owner: KafkaPrincipal) -> KafkaPrincipal:
    """Return the requester of a token; up to Kafka 3.2 that is the owner, and responses do not name it (KIP-373)."""
    return KafkaPrincipal(principal_type, name) if name else owner


def check_token_answer(response: TokenResponse) -> None:
    """Check that a response has no error.

    Raises:
        BrokerError: the broker rejected the request.
    """
    raise_for(response.error_code, type(response).__name__.removesuffix("Response"))
