"""The admin's requests about the Raft quorum of the controllers."""

from collections.abc import Sequence
from typing import Final, TypeVar
from uuid import UUID

from ..cluster.cluster import Cluster
from ..cluster.retry import Deadline
from ..errors import DuplicateVoter, ErrorCode, VoterNotFound
from ..protocol.messages.quorum_voters import (
    AddRaftVoterResponse,
    DescribeQuorumResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from ..protocol.schema import Request
from .cluster_descriptions import QuorumInfo, RaftVoterEndpoint
from .cluster_messages import add_voter_request, described_quorum, quorum_request
from .repeats import Repeats
from .response_errors import explain_unsupported, raise_for

__all__ = ("add_raft_voter", "describe_metadata_quorum", "remove_raft_voter")

R = TypeVar("R", AddRaftVoterResponse, RemoveRaftVoterResponse)

_LANE: Final = "admin"
_ELSEWHERE: Final = (ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER)


async def describe_metadata_quorum(cluster: Cluster, deadline: Deadline) -> QuorumInfo:
    """Return the state of the quorum. Raise as :meth:`Admin.describe_metadata_quorum`."""

    def check(response: DescribeQuorumResponse) -> None:
        described_quorum(response)

    with explain_unsupported("describing the quorum needs KRaft brokers since 3.3 (KIP-595, KIP-836)"):
        response = await cluster.ask(cluster.least_loaded, quorum_request(), deadline, lane=_LANE, check=check)
    return described_quorum(response)


async def add_raft_voter(
    cluster: Cluster,
    voter_id: int,
    directory_id: UUID,
    endpoints: Sequence[RaftVoterEndpoint],
    cluster_id: str | None,
    deadline: Deadline,
) -> None:
    """Add a voter. Raise as :meth:`Admin.add_raft_voter`."""
    timeout_ms = cluster.broker_timeout_ms(deadline)
    request = add_voter_request(voter_id, directory_id, endpoints, cluster_id, timeout_ms)
    await _change(cluster, request, f"adding voter {voter_id}", deadline, Repeats(DuplicateVoter))


async def remove_raft_voter(
    cluster: Cluster, voter_id: int, directory_id: UUID, cluster_id: str | None, deadline: Deadline
) -> None:
    """Remove a voter. Raise as :meth:`Admin.remove_raft_voter`."""
    request = RemoveRaftVoterRequest(cluster_id=cluster_id, voter_id=voter_id, voter_directory_id=directory_id)
    await _change(cluster, request, f"removing voter {voter_id}", deadline, Repeats(VoterNotFound))


async def _change(cluster: Cluster, request: Request[R], what: str, deadline: Deadline, repeats: Repeats) -> None:
    """Send a change of the voters, again only if the node is not the leader or the connection was lost.

    The voter may have changed despite another error, even after a timeout; a retry would then find it changed.
    """

    def check(response: R) -> None:
        if response.error_code in _ELSEWHERE:
            with repeats.noting():
                raise_for(response.error_code, what, response.error_message)

    with explain_unsupported(f"{what} needs KRaft brokers since 3.9 (KIP-853)"):
        response = await cluster.ask(
            cluster.least_loaded, request, deadline, lane=_LANE, check=check, unanswered=repeats.unanswered
        )
    with repeats.explaining():
        raise_for(response.error_code, what, response.error_message)
