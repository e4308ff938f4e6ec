"""Makes this client's assignors of those that a user gives to a consumer of aiokafka's API."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from inspect import isclass
from typing import Any

from ....argument_checks import shown
from ....group.assignors import Assignor, RebalanceProtocol
from ....group.consumer_protocol import Assignment, Partitions, Subscription, by_topic
from ....types import TopicPartition
from ...cluster import ClusterMetadata
from ..protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from .own_assignor import OwnAssignor

__all__ = ("adapted",)


def adapted(given: Iterable[object], cluster: ClusterMetadata) -> tuple[Assignor, ...]:
    """Return the assignors for one consumer.

    Args:
        given: classes of assignors, or objects.
        cluster: the metadata that a user's assignor gets.

    Raises:
        TypeError: one is no assignor.
    """
    return tuple(_adapted(one, cluster) for one in given)


def _adapted(given: Any, cluster: ClusterMetadata) -> Assignor:
    made_by = given if isclass(given) else type(given)
    methods = ("assign", "metadata", "on_assignment")
    if not all(callable(getattr(given, method, None)) for method in methods):
        raise TypeError(f"partition_assignment_strategy takes classes of AbstractPartitionAssignor, got {shown(given)}")
    if (
        issubclass(made_by, OwnAssignor)
        and made_by.name == made_by.kind
        and all(getattr(made_by, method).__func__ is getattr(OwnAssignor, method).__func__ for method in methods)
    ):
        return made_by.make()
    return _UsersAssignor(given, cluster)


class _UsersAssignor:
    """An assignor of aiokafka's interface that the user has written."""

    protocols: Collection[RebalanceProtocol] = (RebalanceProtocol.EAGER,)

    def __init__(self, given: Any, cluster: ClusterMetadata) -> None:
        name = given.name
        if isinstance(name, property):  # aiokafka calls the methods of classes; a name may need an object
            given = given()
            name = given.name
        self.name: str = name
        self._given, self._cluster = given, cluster

    def subscription(self, topics: Sequence[str], owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        """Return the ``user_data`` of the user's subscription."""
        user_data: bytes | None = self._given.metadata(set(topics)).user_data
        return user_data

    def assign(self, partitions: Partitions, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        """Return the user's assignment."""
        members = {
            member_id: ConsumerProtocolMemberMetadata(0, list(member.topics), member.user_data or b"")
            for member_id, member in subscriptions.items()
        }
        assigned = self._given.assign(self._cluster, members)
        return {
            member_id: Assignment(
                tuple(
                    TopicPartition(topic, partition) for topic, found in assignment.assignment for partition in found
                ),
                assignment.user_data or None,
            )
            for member_id, assignment in assigned.items()
        }

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        """Pass the assignment on."""
        found = [(topic, numbers) for topic, numbers in by_topic(assignment.partitions).items()]
        self._given.on_assignment(ConsumerProtocolMemberAssignment(0, found, assignment.user_data or b""))
