"""Assignors that leave members what they have, as far as even numbers allow: sticky and cooperative sticky."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from ..errors import WireError
from ..protocol.compiler import decode_prefix, encode
from ..protocol.primitives import Array, Int32, String
from ..protocol.schema import Message, field, message, nested
from ..types import TopicPartition
from .assignors import RebalanceProtocol, subscribed_partitions
from .consumer_protocol import NO_GENERATION, Assignment, Partitions, Subscription, by_topic
from .current_assignment import OwnedPartitions, Racks, Topics, settle
from .sticky_constrained import assign_equal_shares
from .sticky_general import assign_by_moving

__all__ = ("CooperativeStickyAssignor", "StickyAssignor", "StickyUserData", "StickyUserDataTopic")


@nested
class StickyUserDataTopic:
    """Partitions of one topic that the member had."""

    topic: String = field("0+")
    partitions: Array[Int32] = field("0+")


@message(versions="0-1")
class StickyUserData(Message):
    """What a member with the sticky assignor had. The bytes do not say which version; 1 is longer (KIP-54, KIP-341)."""

    previous_assignment: Array[StickyUserDataTopic] = field("0+")
    generation: Int32 = field("1+", default=NO_GENERATION, ignorable=True)


@message(versions="0")
class CooperativeUserData(Message):
    """Since when a member has what its subscription says; newer subscriptions say that as well (KIP-792)."""

    generation: Int32 = field("0+")


_Moving = Mapping[TopicPartition, str]
"""Partitions that another member has to give up first, and who is to get them."""


class StickyAssignor:
    """Gives members what they had; balances what is left, and moves as little as it takes (KIP-54).

    - Where all want the same topics, numbers of partitions differ by one at most.
    - Else whoever has less by two or more than another wants nothing of what that one has.
    - Where racks matter, members in a partition's rack come first, as far as numbers allow (KIP-881).

    Members give up all that they have before they join, so each tells in its user data what it had.
    """

    name = "sticky"
    protocols: tuple[RebalanceProtocol, ...] = (RebalanceProtocol.EAGER,)

    def __init__(self) -> None:
        self._had: tuple[TopicPartition, ...] | None = None
        self._generation = NO_GENERATION

    def subscription(self, topics: Sequence[str], owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        """What this member was assigned last, and in which generation; None before its first assignment."""
        if self._had is None:
            return None
        told = [StickyUserDataTopic(topic=topic, partitions=had) for topic, had in by_topic(self._had).items()]
        return encode(StickyUserData(previous_assignment=told, generation=self._generation), 1)

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        """Keep it for the next subscription."""
        self._had, self._generation = assignment.partitions, generation

    def assign(self, partitions: Partitions, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        """As Java's, but that nobody gets what it does not want, or what is no more."""
        topics = subscribed_partitions(partitions, subscriptions)
        held = {member: _told_in_user_data(one.user_data) for member, one in subscriptions.items()}
        assigned, _ = _assign(topics, subscriptions, held)
        return {member: Assignment(tuple(each)) for member, each in assigned.items()}


class CooperativeStickyAssignor:
    """As :class:`StickyAssignor`, for members that give up only what goes to others (KIP-429).

    What a member is to give up goes to nobody at first; the next rebalance, which follows at once, hands it out.
    """

    name = "cooperative-sticky"
    protocols: tuple[RebalanceProtocol, ...] = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def subscription(self, topics: Sequence[str], owned: Sequence[TopicPartition], generation: int) -> bytes:
        """The generation of the last assignment, for leaders that do not find it in the subscription itself."""
        return encode(CooperativeUserData(generation=self._generation), 0)

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        """Keep the generation for the next subscription."""
        self._generation = generation

    def assign(self, partitions: Partitions, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        """As Java's, but that nobody gets what it does not want, or what is no more."""
        topics = subscribed_partitions(partitions, subscriptions)
        held = {member: _told_in_subscription(one) for member, one in subscriptions.items()}
        assigned, moving = _assign(topics, subscriptions, held)
        if moving is None:
            moving = _moving(assigned, subscriptions)
        return {
            member: Assignment(tuple(where for where in each if moving.get(where) != member))
            for member, each in assigned.items()
        }


def _assign(
    topics: Topics, subscriptions: Mapping[str, Subscription], held: Mapping[str, OwnedPartitions]
) -> tuple[Mapping[str, list[TopicPartition]], _Moving | None]:
    """Who gets what; and of that what is to be given up first, where this is found on the way."""
    ownership, racks = settle(topics, subscriptions, held), Racks(topics, subscriptions)
    # Java leaves members without topics out of this comparison if they come first, and then gives them partitions.
    if len({frozenset(one.topics) for one in subscriptions.values()}) > 1:
        return assign_by_moving(topics, subscriptions, ownership, racks), None
    return assign_equal_shares(topics, ownership, racks)


def _moving(assigned: Mapping[str, list[TopicPartition]], subscriptions: Mapping[str, Subscription]) -> _Moving:
    given_up: dict[TopicPartition, None] = {}
    for member, each in assigned.items():
        kept = frozenset(each)
        given_up.update(dict.fromkeys(one for one in subscriptions[member].owned_partitions if one not in kept))
    owned = {member: frozenset(subscriptions[member].owned_partitions) for member in assigned}
    return {
        where: member
        for member, each in assigned.items()
        for where in each
        if where in given_up and where not in owned[member]
    }


def _told_in_user_data(user_data: bytes | None) -> OwnedPartitions:
    if not user_data:
        return OwnedPartitions()
    for version in (1, 0):
        try:
            told, _ = decode_prefix(StickyUserData, version, user_data)
        except WireError:
            continue
        had = [TopicPartition(each.topic, one) for each in told.previous_assignment for one in each.partitions]
        return OwnedPartitions(had, told.generation)
    return OwnedPartitions()  # whatever it is, this member had nothing


def _told_in_subscription(subscription: Subscription) -> OwnedPartitions:
    generation = subscription.generation_id
    if generation == NO_GENERATION and subscription.user_data is not None:
        with suppress(WireError):
            generation = decode_prefix(CooperativeUserData, 0, subscription.user_data)[0].generation
    return OwnedPartitions(subscription.owned_partitions, generation)
