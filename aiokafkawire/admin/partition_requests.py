"""The admin's requests to the controller that elect leaders and reassign partitions."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from ..cluster.cluster import Cluster, controller
from ..cluster.retry import Deadline
from ..errors import NoReassignmentInProgress
from ..protocol.messages.reassignments import ElectLeadersResponse, ListPartitionReassignmentsResponse
from ..protocol.schema import Versions
from ..types import ElectionType, TopicPartition
from .outcomes import Outcomes, ask_for_each
from .partition_messages import (
    elect_request,
    elected,
    list_reassignments_request,
    ongoing_reassignments,
    reassign_request,
    reassigned,
)
from .response_errors import explain_unsupported
from .topic_descriptions import PartitionReassignment

__all__ = ("elect_leaders", "list_reassignments", "reassign_partitions")

_LANE: Final = "admin"
_ANY: Final = Versions.parse("0+")
_UNCLEAN_SINCE: Final = Versions.parse("1+")  # KIP-460
_FIXED_FACTOR_SINCE: Final = Versions.parse("1+")  # KIP-860
_REASSIGNING: Final = "reassigning partitions needs brokers since 2.4 (KIP-455)"


async def elect_leaders(
    cluster: Cluster,
    election_type: ElectionType,
    partitions: Collection[TopicPartition] | None,
    deadline: Deadline,
) -> Outcomes[TopicPartition, bool]:
    """Elect leaders of partitions, or of all for None. Raise as :meth:`Admin.elect_leaders`."""
    timeout_ms = cluster.broker_timeout_ms(deadline)
    versions = _UNCLEAN_SINCE if election_type is ElectionType.UNCLEAN else _ANY
    with explain_unsupported("electing leaders needs brokers since 2.2 (KIP-183), unclean elections 2.4 (KIP-460)"):
        if partitions is not None:
            return await ask_for_each(
                cluster,
                controller,
                partitions,
                deadline,
                request=lambda pending: elect_request(election_type, pending, timeout_ms),
                outcomes=elected,
                versions=versions,
            )
        found: Outcomes[TopicPartition, bool] = {}

        def check(response: ElectLeadersResponse) -> None:
            found.update(elected(response))

        request = elect_request(election_type, None, timeout_ms)
        await cluster.ask(controller, request, deadline, lane=_LANE, wanted=versions, check=check)
    return dict(sorted(found.items()))


async def reassign_partitions(
    cluster: Cluster,
    targets: Mapping[TopicPartition, Sequence[int] | None],
    deadline: Deadline,
    *,
    change_replication_factor: bool,
) -> Outcomes[TopicPartition, None]:
    """Start or cancel reassignments. Raise as :meth:`Admin.alter_partition_reassignments`."""
    timeout_ms = cluster.broker_timeout_ms(deadline)
    needs = _REASSIGNING
    if not change_replication_factor:
        needs += ", allow_replication_factor_change=False 4.1 (KIP-860)"
    with explain_unsupported(needs):
        return await ask_for_each(
            cluster,
            controller,
            targets,
            deadline,
            request=lambda pending: reassign_request(
                {partition: targets[partition] for partition in pending},
                timeout_ms,
                change_replication_factor=change_replication_factor,
            ),
            outcomes=reassigned,
            versions=_ANY if change_replication_factor else _FIXED_FACTOR_SINCE,
            refusals=(NoReassignmentInProgress,),
        )


async def list_reassignments(
    cluster: Cluster, partitions: Collection[TopicPartition] | None, deadline: Deadline
) -> dict[TopicPartition, PartitionReassignment]:
    """Return the ongoing reassignments. Raise as :meth:`Admin.list_partition_reassignments`."""
    request = list_reassignments_request(partitions, cluster.broker_timeout_ms(deadline))
    found: dict[TopicPartition, PartitionReassignment] = {}

    def check(response: ListPartitionReassignmentsResponse) -> None:
        found.update(ongoing_reassignments(response))

    with explain_unsupported(_REASSIGNING):
        await cluster.ask(controller, request, deadline, lane=_LANE, check=check)
    return found
