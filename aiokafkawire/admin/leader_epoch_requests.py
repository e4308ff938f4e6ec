"""The admin's requests for the ends of leader epochs, to the leaders of partitions."""

from collections.abc import Mapping

from ..cluster.cluster import Cluster
from ..cluster.retry import Deadline
from ..protocol.messages.offsets import OffsetForLeaderEpochRequest
from ..types import TopicPartition
from .cluster_descriptions import EpochEndOffset
from .cluster_messages import epoch_ends, epochs_request
from .concurrent_outcomes import raise_if_unsupported
from .leader_outcomes import ask_leaders
from .outcomes import Outcomes, results_of
from .response_errors import explain_unsupported

__all__ = ("offset_for_leader_epoch",)


async def offset_for_leader_epoch(
    cluster: Cluster, epochs: Mapping[TopicPartition, int], deadline: Deadline
) -> dict[TopicPartition, EpochEndOffset | None]:
    """Return the ends of epochs. Raise as :meth:`Admin.offset_for_leader_epoch`."""

    def request(partitions: list[TopicPartition]) -> OffsetForLeaderEpochRequest:
        return epochs_request({partition: epochs[partition] for partition in partitions}, cluster.metadata.snapshot)

    found: Outcomes[TopicPartition, EpochEndOffset | None] = await ask_leaders(
        cluster, epochs, deadline, request=request, outcomes=epoch_ends
    )
    with explain_unsupported("looking up leader epochs needs brokers since 0.11 (KIP-101)"):
        return results_of("looking up leader epochs", raise_if_unsupported(found))
