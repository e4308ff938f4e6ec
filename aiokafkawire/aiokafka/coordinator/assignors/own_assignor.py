"""The base class of the assignors that are this client's own, under aiokafka's interface."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from ....group.assignors import Assignor
from ....group.client_side_assignment import make_assignors
from ....group.consumer_protocol import PartitionInfo, Subscription, by_topic
from ...cluster import ClusterMetadata
from ..protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from .abstract import AbstractPartitionAssignor

__all__ = ("OwnAssignor",)


class OwnAssignor(AbstractPartitionAssignor):
    """An assignor of this client, by its name; consumers use that assignor itself."""

    name: ClassVar[str] = ""
    kind: ClassVar[str] = ""
    """The name of this client's assignor, also in a subclass of a user with another ``name``."""

    @classmethod
    def make(cls) -> Assignor:
        """Return this client's assignor, for one consumer."""
        return make_assignors((cls.kind,))[0]

    @classmethod
    def assign(
        cls, cluster: ClusterMetadata, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Return the assignment of each member, by member id, as Java's assignor of this kind."""
        topics = {topic for member in members.values() for topic in member.subscription}
        partitions = {
            topic: [PartitionInfo(partition) for partition in sorted(cluster.partitions_for_topic(topic) or ())]
            for topic in topics
        }
        subscriptions = {
            member_id: Subscription(tuple(member.subscription), member.user_data or None)
            for member_id, member in members.items()
        }
        assigned = cls.make().assign(partitions, subscriptions)
        return {
            member_id: ConsumerProtocolMemberAssignment(
                0, [(topic, found) for topic, found in by_topic(assignment.partitions).items()], b""
            )
            for member_id, assignment in assigned.items()
        }

    @classmethod
    def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Return a subscription to these topics."""
        return ConsumerProtocolMemberMetadata(0, list(topics), b"")

    @classmethod
    def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Do nothing: consumers use this client's assignor itself."""
