"""The base class of assignors in aiokafka's API; users may write their own."""

import abc
from collections.abc import Iterable, Mapping

from ...cluster import ClusterMetadata
from ..protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata

__all__ = ("AbstractPartitionAssignor",)


class AbstractPartitionAssignor(abc.ABC):
    """An assignor of partitions to the members of a group; its methods are those of the class, or of an object."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The name that members send to the coordinator; usually an attribute of the class."""

    @classmethod
    @abc.abstractmethod
    def assign(
        cls, cluster: ClusterMetadata, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Return the assignment of each member, by member id; the group's leader calls it.

        Args:
            cluster: has the partitions of the members' topics.
            members: the subscription of each member, by member id.
        """

    @classmethod
    @abc.abstractmethod
    def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Return this member's subscription to these topics, for the leader."""

    @classmethod
    @abc.abstractmethod
    def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Receive this member's new assignment."""
