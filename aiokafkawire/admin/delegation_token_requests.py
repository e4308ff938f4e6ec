"""The admin's requests about delegation tokens, which any broker takes."""

from collections.abc import Sequence
from typing import Final, TypeVar

from ..cluster.cluster import Cluster
from ..cluster.retry import Deadline
from ..errors import DelegationTokenNotFound
from ..protocol.messages.delegation_tokens import (
    CreateDelegationTokenResponse,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from ..protocol.schema import Request, Versions
from .delegation_token_descriptions import DelegationToken, KafkaPrincipal
from .delegation_token_messages import (
    check_token_answer,
    create_request,
    created_token,
    describe_request,
    described_tokens,
)
from .repeats import Repeats
from .response_errors import explain_unsupported

__all__ = (
    "create_delegation_token",
    "describe_delegation_token",
    "expire_delegation_token",
    "renew_delegation_token",
)

R = TypeVar(
    "R",
    CreateDelegationTokenResponse,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenResponse,
)

_LANE: Final = "admin"
_ANY: Final = Versions.parse("0+")
_OWNERS_SINCE: Final = Versions.parse("3+")  # KIP-373


async def create_delegation_token(
    cluster: Cluster,
    owner: KafkaPrincipal | None,
    renewers: Sequence[KafkaPrincipal],
    max_lifetime_ms: int,
    deadline: Deadline,
) -> DelegationToken:
    """Create a token. Raise as :meth:`Admin.create_delegation_token`."""
    request = create_request(owner, renewers, max_lifetime_ms)
    wanted = _ANY if owner is None else _OWNERS_SINCE
    return created_token(await _ask(cluster, request, deadline, wanted), renewers)


async def renew_delegation_token(cluster: Cluster, hmac: bytes, period_ms: int, deadline: Deadline) -> int:
    """Renew a token, and return its new expiry. Raise as :meth:`Admin.renew_delegation_token`."""
    request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
    return (await _ask(cluster, request, deadline)).expiry_timestamp_ms


async def expire_delegation_token(cluster: Cluster, hmac: bytes, period_ms: int, deadline: Deadline) -> int:
    """Change the expiry of a token, and return the new one. Raise as :meth:`Admin.expire_delegation_token`."""
    request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
    return (await _ask(cluster, request, deadline)).expiry_timestamp_ms


async def describe_delegation_token(
    cluster: Cluster, owners: Sequence[KafkaPrincipal] | None, deadline: Deadline
) -> tuple[DelegationToken, ...]:
    """Return the tokens of owners. Raise as :meth:`Admin.describe_delegation_token`."""
    return described_tokens(await _ask(cluster, describe_request(owners), deadline))


async def _ask(cluster: Cluster, request: Request[R], deadline: Deadline, wanted: Versions = _ANY) -> R:
    needs = "delegation tokens need brokers since 1.1 (KIP-48)"
    if wanted is _OWNERS_SINCE:
        needs += ", and tokens for another owner 3.3 (KIP-373)"
    repeats = Repeats(*((DelegationTokenNotFound,) if isinstance(request, ExpireDelegationTokenRequest) else ()))

    def check(response: R) -> None:
        with repeats.noting():
            check_token_answer(response)

    with explain_unsupported(needs), repeats.explaining():
        return await cluster.ask(
            cluster.least_loaded,
            request,
            deadline,
            lane=_LANE,
            wanted=wanted,
            check=check,
            unanswered=repeats.unanswered,
        )
