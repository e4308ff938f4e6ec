"""The sticky and cooperative-sticky assignors, which keep current assignments as far as equal counts allow."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from ..errors import WireError
from ..protocol.compiler import decode_prefix, encode
from ..protocol.primitives import Array, Int32, String
from ..protocol.schema import Message, field, message, nested
from ..types import TopicPartition
from .assignors import RebalanceProtocol, subscribed_partitions
from .consumer_protocol import NO_GENERATION, Assignment, Partitions, Subscription, by_topic
from .sticky_constrained import assign_equal_shares
from .sticky_general import assign_by_moving
from .sticky_input import OwnedPartitions, Racks, Topics, settle

__all__ = ("CooperativeStickyAssignor", "StickyAssignor", "StickyUserData", "StickyUserDataTopic")


@nested
class StickyUserDataTopic:
    """The partitions of one topic that the member owned."""

    topic: String = field("0+")
    partitions: Array[Int32] = field("0+")


@message(versions="0-1")
class StickyUserData(Message):
    """The partitions that a member with the sticky assignor owned (KIP-54, KIP-341).

    The encoded bytes have no version number; readers try version 1 first, since it is longer than version 0.
    """

    previous_assignment: Array[StickyUserDataTopic] = field("0+")
    generation: Int32 = field("1+", default=NO_GENERATION, ignorable=True)


@message(versions="0")
class CooperativeUserData(Message):
    """The generation of a member's owned partitions; newer subscriptions have it as well (KIP-792)."""

    generation: Int32 = field("0+")


_Moving = Mapping[TopicPartition, str]
"""The new members of partitions that another member has to revoke first."""


class StickyAssignor:
    """The sticky assignor: keeps assignments, assigns other partitions evenly, and moves as few as possible (KIP-54).

    - With equal subscriptions, partition counts differ by one at most.
    - Otherwise two members differ by more only if the one with fewer may read none of the other's partitions.
    - Partitions go first to members in their rack, as far as equal counts allow (KIP-881).

    Members revoke all partitions before they join; their user data lists the partitions that they owned.
    """

    name = "sticky"
    protocols: tuple[RebalanceProtocol, ...] = (RebalanceProtocol.EAGER,)

    def __init__(self) -> None:
        self._had: tuple[TopicPartition, ...] | None = None
        self._generation = NO_GENERATION

    def subscription(self, topics: Sequence[str], owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        """Return this member's last assignment and its generation, encoded; None before its first assignment."""
        if self._had is None:
            return None
        previous = [StickyUserDataTopic(topic=topic, partitions=had) for topic, had in by_topic(self._had).items()]
        return encode(StickyUserData(previous_assignment=previous, generation=self._generation), 1)

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        """Keep the assignment for the next subscription."""
        self._had, self._generation = assignment.partitions, generation

    def assign(self, partitions: Partitions, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        """Return the same assignment as Java's assignor, except that it has no unsubscribed or deleted partitions."""
        topics = subscribed_partitions(partitions, subscriptions)
        held = {member: _owned_in_user_data(subscription.user_data) for member, subscription in subscriptions.items()}
        assigned, _ = _assign(topics, subscriptions, held)
        return {member: Assignment(tuple(owned)) for member, owned in assigned.items()}


class CooperativeStickyAssignor:
    """The sticky assignor for members that revoke only the partitions that move to other members (KIP-429).

    A partition to revoke is not assigned at first; the next rebalance, which follows at once, assigns it.
    """

    name = "cooperative-sticky"
    protocols: tuple[RebalanceProtocol, ...] = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def subscription(self, topics: Sequence[str], owned: Sequence[TopicPartition], generation: int) -> bytes:
        """Return the generation of the last assignment, encoded: older subscriptions have no field for it."""
        return encode(CooperativeUserData(generation=self._generation), 0)

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        """Keep the generation for the next subscription."""
        self._generation = generation

    def assign(self, partitions: Partitions, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        """Return the same assignment as Java's assignor, except that it has no unsubscribed or deleted partitions."""
        topics = subscribed_partitions(partitions, subscriptions)
        held = {member: _owned_in_subscription(subscription) for member, subscription in subscriptions.items()}
        assigned, moving = _assign(topics, subscriptions, held)
        if moving is None:
            moving = _moving(assigned, subscriptions)
        return {
            member: Assignment(tuple(partition for partition in partitions if moving.get(partition) != member))
            for member, partitions in assigned.items()
        }


def _assign(
    topics: Topics, subscriptions: Mapping[str, Subscription], held: Mapping[str, OwnedPartitions]
) -> tuple[Mapping[str, list[TopicPartition]], _Moving | None]:
    """Return each member's partitions, and those that another member must revoke first (None: to be computed)."""
    ownership, racks = settle(topics, subscriptions, held), Racks(topics, subscriptions)
    # Java skips members without topics in this comparison if they come first, and then assigns them partitions.
    if len({frozenset(subscription.topics) for subscription in subscriptions.values()}) > 1:
        return assign_by_moving(topics, subscriptions, ownership, racks), None
    return assign_equal_shares(topics, ownership, racks)


def _moving(assigned: Mapping[str, list[TopicPartition]], subscriptions: Mapping[str, Subscription]) -> _Moving:
    given_up: dict[TopicPartition, None] = {}
    for member, partitions in assigned.items():
        kept = frozenset(partitions)
        given_up.update(dict.fromkeys(owned for owned in subscriptions[member].owned_partitions if owned not in kept))
    owned = {member: frozenset(subscriptions[member].owned_partitions) for member in assigned}
    return {
        partition: member
        for member, partitions in assigned.items()
        for partition in partitions
        if partition in given_up and partition not in owned[member]
    }


def _owned_in_user_data(user_data: bytes | None) -> OwnedPartitions:
    if not user_data:
        return OwnedPartitions()
    for version in (1, 0):
        try:
            data, _ = decode_prefix(StickyUserData, version, user_data)
        except WireError:
            continue
        had = [TopicPartition(topic.topic, index) for topic in data.previous_assignment for index in topic.partitions]
        return OwnedPartitions(had, data.generation)
    return OwnedPartitions()  # not a sticky assignor's data: this member owned nothing


def _owned_in_subscription(subscription: Subscription) -> OwnedPartitions:
    generation = subscription.generation_id
    if generation == NO_GENERATION and subscription.user_data is not None:
        with suppress(WireError):
            generation = decode_prefix(CooperativeUserData, 0, subscription.user_data)[0].generation
    return OwnedPartitions(subscription.owned_partitions, generation)
