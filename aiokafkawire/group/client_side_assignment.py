"""The client side of assignments in classic groups: the subscription to join with, and the leader's part."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from ..cluster.metadata import Snapshot
from ..errors import UsageError, WireError
from ..types import TopicPartition
from .assignors import Assignor, RangeAssignor, RebalanceProtocol, RoundRobinAssignor
from .consumer_protocol import (
    Assignment,
    PartitionInfo,
    Partitions,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from .membership import ApplyAssignment, JoinedMember
from .sticky import CooperativeStickyAssignor, StickyAssignor

__all__ = ("ClientSideAssignment", "make_assignors", "partitions_of")

_ASSIGNORS: Final[Mapping[str, type[Assignor]]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}

_Counts: TypeAlias = dict[str, list[tuple[int, list[str]]]]


def make_assignors(names: Iterable[str]) -> tuple[Assignor, ...]:
    """Return new assignors of these names, for one consumer."""
    return tuple(_ASSIGNORS[name]() for name in names)


def partitions_of(snapshot: Snapshot, topics: Iterable[str]) -> dict[str, list[PartitionInfo]]:
    """Return the partitions of those topics that exist, with the racks of their replicas."""
    racks = {node.node_id: node.rack for node in snapshot.nodes.values() if node.rack}
    found: dict[str, list[PartitionInfo]] = {}
    for name in topics:
        topic = snapshot.topics.get(name)
        if topic is not None and topic.partitions:
            found[name] = [
                PartitionInfo(
                    metadata.index, tuple(racks[replica] for replica in metadata.replicas if replica in racks)
                )
                for metadata in topic.partitions
            ]
    return found


class ClientSideAssignment:
    """The assignors of one consumer, and the topics that it watches as the group's leader.

    Args:
        assignors: the consumer's assignors, the preferred one first. If all of them support cooperative rebalances, the
            consumer keeps its partitions during a rebalance (KIP-429).
        rack: the consumer's rack, if known.
    """

    def __init__(self, assignors: Sequence[Assignor], rack: str | None = None) -> None:
        names = [assignor.name for assignor in assignors]
        if not names or len(set(names)) < len(names):
            raise UsageError(f"assignors need different names, got {names}")
        shared = frozenset.intersection(*(frozenset(assignor.protocols) for assignor in assignors))
        if not shared:
            raise UsageError(
                f"assignors {names} share no rebalance protocol: some are only eager, others only cooperative"
            )
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._rack = rack
        self.is_cooperative: bool = RebalanceProtocol.COOPERATIVE in shared
        """Whether the consumer keeps its partitions during a rebalance."""
        self._watched: tuple[str, ...] = ()
        self._counted: _Counts = {}
        # Whether members have racks: without, a broker with a rack that restarts is no reason to rebalance.
        self._counts_racks = False

    def protocols(
        self, topics: Sequence[str], owned: Sequence[TopicPartition], generation: int
    ) -> list[tuple[str, bytes]]:
        """Return the protocols to join with: for each assignor its name and the encoded subscription.

        Args:
            topics: the subscribed topics.
            owned: the member's partitions.
            generation: the generation that assigned ``owned``; -1 without one.
        """
        protocols = []
        for name, assignor in self._assignors.items():
            subscription = Subscription(
                topics=tuple(topics),
                user_data=assignor.subscription(topics, owned, generation),
                owned_partitions=tuple(owned),
                generation_id=generation,
                rack_id=self._rack,
            )
            protocols.append((name, encode_subscription(subscription)))
        return protocols

    # --- as the leader -----------------------------------------------------------------------------------

    def read(self, members: Sequence[JoinedMember]) -> dict[str, Subscription]:
        """Return the members' subscriptions, by member id.

        Raises:
            WireError: a subscription cannot be decoded.
        """
        found = {}
        for member in members:
            try:
                found[member.member_id] = decode_subscription(member.metadata, member.group_instance_id)
            except WireError as error:
                raise WireError(f"member {member.member_id!r} sent an invalid subscription: {error}") from error
        return found

    def assign(
        self, protocol: str, subscriptions: Mapping[str, Subscription], partitions: Partitions
    ) -> dict[str, bytes]:
        """Return the encoded assignment of each member, as the assignor computes it.

        Raises:
            UsageError: the assignor, which users may write, assigns a partition twice, or partitions to an unknown
                member.
        """
        decided = self._assignors[protocol].assign(partitions, subscriptions)
        unknown = [member for member in decided if member not in subscriptions]
        if unknown:
            raise UsageError(f"assignor {protocol!r} gives partitions to {unknown[0]!r}, which is no member")
        owners: dict[TopicPartition, str] = {}
        for member, assignment in decided.items():
            for partition in assignment.partitions:
                other = owners.setdefault(partition, member)
                if other != member:
                    raise UsageError(f"assignor {protocol!r} gives {partition} both to {other!r} and to {member!r}")
        self.watch(subscriptions, partitions)
        empty = Assignment(())
        return {member: encode_assignment(decided.get(member, empty)) for member in subscriptions}

    def watch(self, subscriptions: Mapping[str, Subscription], partitions: Partitions) -> None:
        """Remember the current partitions of these members' topics: if these change, the group has to rebalance."""
        self._watched = tuple(
            sorted({topic for subscription in subscriptions.values() for topic in subscription.topics})
        )
        self._counts_racks = any(subscription.rack_id for subscription in subscriptions.values())
        self._counted = _counts(partitions, with_racks=self._counts_racks)

    def is_outdated(self, partitions: Partitions) -> bool:
        """Return whether the watched topics' current ``partitions`` differ from those at the assignment.

        The racks of their replicas count only if a member has a rack (KIP-881).
        """
        return bool(self._watched) and _counts(partitions, with_racks=self._counts_racks) != self._counted

    @property
    def watched(self) -> tuple[str, ...]:
        """The topics whose changes require another rebalance; none unless this member leads the group."""
        return self._watched

    # --- its own assignment ------------------------------------------------------------------------------

    def decode(self, task: ApplyAssignment) -> Assignment:
        """Return the assignment of this member; stop watching topics unless this member leads the group.

        Raises:
            WireError: the assignment cannot be decoded.
        """
        if not task.leader:
            self._watched = ()
        # The coordinator sends no bytes to a member that the leader has left out.
        return decode_assignment(task.assignment) if task.assignment else Assignment(())

    def on_assignment(self, task: ApplyAssignment, assignment: Assignment) -> None:
        """Pass the assignment to the assignor that the group uses."""
        self._assignors[task.protocol].on_assignment(assignment, task.generation)


def _counts(partitions: Partitions, *, with_racks: bool) -> _Counts:
    return {
        topic: sorted((info.partition, sorted(info.racks) if with_racks else []) for info in infos)
        for topic, infos in partitions.items()
    }
