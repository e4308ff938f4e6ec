"""What a consumer has in its group and what it gives up, what it tells the leader, and what it decides as one."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import attrs

from ..cluster.metadata import Snapshot
from ..errors import UsageError, WireError
from ..types import TopicPartition
from .assignors import Assignor, RangeAssignor, RebalanceProtocol, RoundRobinAssignor
from .consumer_protocol import (
    NO_GENERATION,
    Assignment,
    PartitionInfo,
    Partitions,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from .member_tasks import ApplyAssignment, JoinedMember
from .sticky import CooperativeStickyAssignor, StickyAssignor

__all__ = ("AssignmentDelta", "ConsumerMember", "make_assignors", "partitions_of")

_ASSIGNORS: Final[Mapping[str, type[Assignor]]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}

_Counts: TypeAlias = dict[str, list[tuple[int, list[str]]]]


def make_assignors(names: Iterable[str]) -> tuple[Assignor, ...]:
    """The assignors of these names, for one consumer."""
    return tuple(_ASSIGNORS[name]() for name in names)


def partitions_of(snapshot: Snapshot, topics: Iterable[str]) -> dict[str, list[PartitionInfo]]:
    """All partitions of those topics that exist, with the racks of their replicas."""
    racks = {node.node_id: node.rack for node in snapshot.nodes.values() if node.rack}
    found: dict[str, list[PartitionInfo]] = {}
    for name in topics:
        topic = snapshot.topics.get(name)
        if topic is not None and topic.partitions:
            found[name] = [
                PartitionInfo(one.index, tuple(racks[replica] for replica in one.replicas if replica in racks))
                for one in topic.partitions
            ]
    return found


@attrs.frozen
class AssignmentDelta:
    """What an assignment changes: what others get, what is new, and what it is in all."""

    revoked: tuple[TopicPartition, ...]
    added: tuple[TopicPartition, ...]
    assigned: tuple[TopicPartition, ...]
    told: Assignment = attrs.field(default=Assignment(()), eq=False)
    """As the leader wrote it, for the assignor."""


class ConsumerMember:
    """One consumer.

    Args:
        assignors: what it knows, the preferred one first. It rebalances cooperatively if all can (KIP-429).
        rack: where it runs, if that is known.
    """

    def __init__(self, assignors: Sequence[Assignor], rack: str | None = None) -> None:
        names = [assignor.name for assignor in assignors]
        if not names or len(set(names)) < len(names):
            raise UsageError(f"a member of a group needs assignors of different names, got {names}")
        shared = frozenset.intersection(*(frozenset(assignor.protocols) for assignor in assignors))
        if not shared:
            raise UsageError(f"{names} share no rebalance protocol: some are eager alone, and some cooperative alone")
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._rack = rack
        self.is_cooperative: bool = RebalanceProtocol.COOPERATIVE in shared
        """Whether it keeps in a rebalance what nobody else gets."""
        self.topics: tuple[str, ...] = ()
        """What it wants to read."""
        self.owned: tuple[TopicPartition, ...] = ()
        """What it has."""
        self._generation = NO_GENERATION
        self._watched: tuple[str, ...] = ()
        self._counted: _Counts = {}

    # --- giving up and joining ---------------------------------------------------------------------------

    def to_give_up(self, *, lost: bool) -> tuple[TopicPartition, ...]:
        """What it must give up before it joins; everything if its membership is ``lost``."""
        if lost or not self.is_cooperative:
            return self.owned
        topics = frozenset(self.topics)
        return tuple(where for where in self.owned if where.topic not in topics)

    def gave_up(self, partitions: Iterable[TopicPartition], *, lost: bool = False) -> None:
        """It has given these up."""
        gone = frozenset(partitions)
        self.owned = tuple(where for where in self.owned if where not in gone)
        if lost:
            self._generation = NO_GENERATION

    def took_back(self, partitions: Iterable[TopicPartition]) -> None:
        """It goes on with these, which it had given up to join."""
        self.owned = tuple(partitions)

    def protocols(self) -> list[tuple[str, bytes]]:
        """What to join with: for each assignor its name, and what it tells the leader."""
        told = []
        for name, assignor in self._assignors.items():
            subscription = Subscription(
                topics=self.topics,
                user_data=assignor.subscription(self.topics, self.owned, self._generation),
                owned_partitions=self.owned,
                generation_id=self._generation,
                rack_id=self._rack,
            )
            told.append((name, encode_subscription(subscription)))
        return told

    # --- as the leader -----------------------------------------------------------------------------------

    def read(self, members: Sequence[JoinedMember]) -> dict[str, Subscription]:
        """What the members want.

        Raises:
            WireError: what one of them said cannot be read.
        """
        found = {}
        for member in members:
            try:
                found[member.member_id] = decode_subscription(member.metadata, member.group_instance_id)
            except WireError as error:
                raise WireError(f"member {member.member_id!r} joined with what is no subscription: {error}") from error
        return found

    def assign(
        self, protocol: str, subscriptions: Mapping[str, Subscription], partitions: Partitions
    ) -> dict[str, bytes]:
        """What each member is to read, as the assignor decides.

        Raises:
            UsageError: the assignor, which users may write, gives a partition to two, or something to nobody.
        """
        decided = self._assignors[protocol].assign(partitions, subscriptions)
        strangers = [member for member in decided if member not in subscriptions]
        if strangers:
            raise UsageError(f"assignor {protocol!r} gives partitions to {strangers[0]!r}, which is no member")
        owners: dict[TopicPartition, str] = {}
        for member, assignment in decided.items():
            for where in assignment.partitions:
                other = owners.setdefault(where, member)
                if other != member:
                    raise UsageError(f"assignor {protocol!r} gives {where} both to {other!r} and to {member!r}")
        self.watch(subscriptions, partitions)
        nothing = Assignment(())
        return {member: encode_assignment(decided.get(member, nothing)) for member in subscriptions}

    def watch(self, subscriptions: Mapping[str, Subscription], partitions: Partitions) -> None:
        """It leads these members, whose topics have these partitions: a change of them calls for a rebalance."""
        self._watched = tuple(sorted({topic for one in subscriptions.values() for topic in one.topics}))
        self._counted = _counts(partitions)

    def is_outdated(self, partitions: Partitions) -> bool:
        """Whether what it decided as the leader is outdated: these are the watched topics' partitions and racks now."""
        return bool(self._watched) and _counts(partitions) != self._counted

    @property
    def watched(self) -> tuple[str, ...]:
        """The topics whose changes call for another rebalance, if it was the leader of the last."""
        return self._watched

    # --- taking ------------------------------------------------------------------------------------------

    def change(self, take: ApplyAssignment) -> AssignmentDelta:
        """What an assignment changes.

        Raises:
            WireError: it cannot be read.
        """
        if not take.leader:
            self._watched = ()
        # A member that the leader has forgotten gets no bytes at all.
        told = decode_assignment(take.assignment) if take.assignment else Assignment(())
        wanted = frozenset(self.topics)
        assigned = tuple(dict.fromkeys(where for where in told.partitions if where.topic in wanted))
        before, after = frozenset(self.owned), frozenset(assigned)
        return AssignmentDelta(
            revoked=tuple(where for where in self.owned if where not in after),
            added=tuple(where for where in assigned if where not in before),
            assigned=assigned,
            told=told,
        )

    def stayed(self, take: ApplyAssignment) -> None:
        """Another rebalance has come before it could take that: it has what it had, in the new generation."""
        self._generation = take.generation

    def took(self, take: ApplyAssignment, change: AssignmentDelta) -> None:
        """It has what the assignment gives it, and nothing else."""
        self.owned, self._generation = change.assigned, take.generation
        self._assignors[take.protocol].on_assignment(change.told, take.generation)


def _counts(partitions: Partitions) -> _Counts:
    return {
        topic: sorted((info.partition, sorted(info.racks)) for info in infos) for topic, infos in partitions.items()
    }
