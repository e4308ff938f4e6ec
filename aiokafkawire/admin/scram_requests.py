"""The admin's requests about SCRAM credentials: descriptions by any broker, changes by the controller."""

import secrets
from collections.abc import Collection, Sequence
from typing import Final

from ..cluster.cluster import Cluster, controller
from ..cluster.retry import Deadline
from ..errors import ResourceNotFound
from ..protocol.messages.scram import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from .outcomes import Outcomes, ask_for_each, results_of
from .response_errors import explain_unsupported
from .scram_credentials import ScramCredentialInfo, UserScramCredentialDeletion, UserScramCredentialUpsertion
from .scram_messages import alter_request, altered, describe_request, described, salted_upsertion

__all__ = ("alter_user_scram_credentials", "describe_user_scram_credentials")

_LANE: Final = "admin"
_NEEDS: Final = "SCRAM credentials need brokers since 2.7 (KIP-554)"
_SALT_SIZE: Final = 24  # bytes


async def describe_user_scram_credentials(
    cluster: Cluster, users: Collection[str] | None, deadline: Deadline
) -> dict[str, tuple[ScramCredentialInfo, ...]]:
    """Return the credentials of each user. Raise as :meth:`Admin.describe_user_scram_credentials`."""
    what = "describing SCRAM credentials"
    with explain_unsupported(_NEEDS):
        if users is None:
            response = await cluster.ask(cluster.least_loaded, describe_request(None), deadline, lane=_LANE)
            return results_of(what, described(response))
        found: Outcomes[str, tuple[ScramCredentialInfo, ...]] = await ask_for_each(
            cluster, cluster.least_loaded, users, deadline, request=describe_request, outcomes=described
        )
        return results_of(what, found)


async def alter_user_scram_credentials(
    cluster: Cluster,
    alterations: Sequence[UserScramCredentialUpsertion | UserScramCredentialDeletion],
    deadline: Deadline,
) -> None:
    """Set and delete credentials. Raise as :meth:`Admin.alter_user_scram_credentials`."""
    deletions = [change for change in alterations if isinstance(change, UserScramCredentialDeletion)]
    upsertions: list[ScramCredentialUpsertion] = []
    for change in alterations:
        if isinstance(change, UserScramCredentialUpsertion):
            salt = secrets.token_bytes(_SALT_SIZE) if change.salt is None else change.salt
            # The hashing takes longer than an event loop should be blocked.
            upsertions.append(await cluster.runtime.offload(salted_upsertion, change, salt))

    def request(users: list[str]) -> AlterUserScramCredentialsRequest:
        return alter_request(
            (change for change in upsertions if change.name in users),
            (change for change in deletions if change.user in users),
        )

    users = [change.user for change in alterations]
    with explain_unsupported(_NEEDS):
        found: Outcomes[str, None] = await ask_for_each(
            cluster, controller, users, deadline, request=request, outcomes=altered, refusals=(ResourceNotFound,)
        )
    results_of("changing SCRAM credentials", found)
