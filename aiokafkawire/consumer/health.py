"""How a consumer is: what it reads and how far it is, what its group and its brokers say, and why nothing arrives."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from ..cluster.cluster import Cluster
from ..cluster.missing_topics import say_missing
from ..errors import KafkaError, LeaderNotAvailable
from ..group.classic_transitions import GroupState
from ..types import Address, CoordinatorType, GroupMetadata, TopicPartition
from .fetcher import Fetcher
from .preferred_replica import source
from .subscription_state import PartitionState, SubscriptionState

if TYPE_CHECKING:  # who assigns by hand joins no group
    from ..group.membership_manager import MembershipManager
    from .coordinator import ConsumerCoordinator

__all__ = ("ConsumerHealth", "MemberHealth", "PartitionHealth", "look_at", "why_idle")

_MOST: Final = 5


@attrs.frozen
class PartitionHealth:
    """One partition that is read. ``lag`` is how many offsets are between the position and the end of the log, as far
    as that was heard; times are in seconds ago, None for never.
    """

    position: int | None
    high_watermark: int | None
    broker: Address | None
    """Who is asked for its records."""
    unread: bool
    """Whether records are here that the user has not got yet."""
    paused: bool
    being_given_up: bool
    answered: float | None
    """When the broker has last answered for it."""
    silent: bool
    """Whether that is longer ago than it may be."""
    trouble: str | None
    """What it has said last, if that was an error."""

    @property
    def lag(self) -> int | None:
        """How many offsets it is behind."""
        if self.position is None or self.high_watermark is None:
            return None
        return max(0, self.high_watermark - self.position)


@attrs.frozen
class MemberHealth:
    """The part it takes in its group."""

    state: GroupState
    group: GroupMetadata
    protocol: str
    """The assignor that the group has chosen; empty before."""
    coordinator: Address | None
    """Who coordinates the group, as far as that is known."""
    last_heartbeat: float | None
    """When the coordinator has last confirmed the membership, in seconds ago."""
    rebalances: int
    """How many generations it has been in."""
    trouble: str | None
    """Why the coordinator could not be asked the last time, or has refused the member."""
    overdue: bool
    """Whether it has left, since nobody asked for records (``max_poll_interval_ms``)."""


@attrs.frozen
class ConsumerHealth:
    """A consumer at one moment. Times are in seconds ago, None for never."""

    membership: MemberHealth | None
    """None if it takes part in no group."""
    last_record: float | None
    """When the user has last got a record, or a batch."""
    partitions: Mapping[TopicPartition, PartitionHealth]
    why_idle: str | None
    """Why nothing arrives; None if something is here."""
    stalled: bool
    """Whether there may be records that it should get and does not; not if it has read everything."""
    lost_in_hand: Mapping[TopicPartition, str] = attrs.field(factory=dict)
    """The partitions that the group took away while their records were being processed, and why; until more records are
    asked for, commits fail."""
    missing_topics: tuple[str, ...] = ()
    """The topics that it should read and that do not exist, as the cluster says."""

    @property
    def lag(self) -> int:
        """How many offsets it is behind in all, as far as that is known."""
        return sum(one.lag or 0 for one in self.partitions.values())


def why_idle(
    member: MemberHealth | None,
    partitions: Mapping[TopicPartition, PartitionHealth],
    missing: Sequence[str] = (),
    pattern: str | None = None,
) -> tuple[str | None, bool]:
    """Why nothing arrives, None if there is something here for the user; and whether that is a stall.

    Args:
        member: the part it takes in its group, if it does.
        partitions: what is read.
        missing: topics that it should read and that do not exist.
        pattern: what it has subscribed to, if no topic matches that.
    """
    awake = {where: one for where, one in partitions.items() if not (one.paused or one.being_given_up)}
    if any(one.unread for one in awake.values()):
        return None, False
    told = [f"{say_missing(missing)} in the cluster"] if missing else []
    if member is not None and member.state is not GroupState.STABLE:
        told.append(f"in {member.group.group_id!r} it is {member.state.value}")
    if member is not None and member.trouble is not None:
        told.append(f"its coordinator: {member.trouble}")
    told += [f"{where}: {trouble}" for where, one in awake.items() if (trouble := _trouble(one)) is not None]
    if told:
        return "; ".join(told[:_MOST]) + (f"; and {len(told) - _MOST} more" if len(told) > _MOST else ""), True
    if not partitions and pattern is not None:
        return f"no topic matches the pattern {pattern!r} of its subscription", False
    if not partitions:
        return "it has no partitions: the other members have them, or the topics have none", False
    if not awake:
        return "all of its partitions are paused, or are being given up", False
    return "it has read everything there is", False


def _trouble(one: PartitionHealth) -> str | None:
    if one.trouble is not None:
        return one.trouble
    if one.broker is None:
        return "it has no leader"
    if one.position is None:
        return "where to begin is being looked up"
    if one.silent:
        return f"{one.broker} has not answered for {one.answered:.0f} s"
    if one.lag:
        return f"{one.lag} records are being fetched from {one.broker}"
    return None


def look_at(
    cluster: Cluster,
    positions: SubscriptionState,
    fetcher: Fetcher,
    part: "ConsumerCoordinator | None",
    got_at: float | None,
    topics: Iterable[str] = (),
) -> ConsumerHealth:
    """How a consumer is now.

    Args:
        cluster: what it reads from.
        positions: what it reads.
        fetcher: reads it.
        part: its part in its group, if it takes part in one.
        got_at: when its user last got something, in seconds of the runtime's clock.
        topics: what it reads as a whole, in no group.
    """
    now = cluster.runtime.now()
    partitions = {place.where: _partition(cluster, fetcher, place, now) for place in positions}
    member = _member(cluster, part.membership, now) if part is not None else None
    subscription = part.subscription if part is not None else None
    subscribed = subscription.topics if subscription is not None else ()
    missing = tuple(cluster.missing_of(dict.fromkeys([*topics, *subscribed, *(one.topic for one in partitions)])))
    unmatched = subscription.unmatched_in(cluster.snapshot) if subscription is not None else None
    why, stalled = why_idle(member, partitions, missing, unmatched)
    return ConsumerHealth(
        membership=member,
        last_record=now - got_at if got_at is not None else None,
        partitions=partitions,
        why_idle=why,
        stalled=stalled,
        lost_in_hand={partition: lost.reason for partition, lost in positions.lost_in_hand.items()},
        missing_topics=missing,
    )


def _partition(cluster: Cluster, fetcher: Fetcher, place: PartitionState, now: float) -> PartitionHealth:
    node = source(cluster.snapshot, place, now)
    answered = fetcher.answered.get(node.node_id) if node is not None else None
    trouble = fetcher.trouble(place.where)
    if node is not None and isinstance(trouble, LeaderNotAvailable):
        trouble = None  # until it answers
    return PartitionHealth(
        position=place.position,
        high_watermark=place.high_watermark,
        broker=node.address if node is not None else None,
        unread=place.where in fetcher.unread,
        paused=place.paused,
        being_given_up=place.withheld,
        answered=now - answered if answered is not None else None,
        silent=answered is not None and now - answered > fetcher.patience and not place.rests,
        trouble=_said(trouble),
    )


def _member(cluster: Cluster, membership: "MembershipManager", now: float) -> MemberHealth:
    machine = membership.machine
    node = cluster.known_coordinator(CoordinatorType.GROUP, machine.settings.group_id)
    return MemberHealth(
        state=machine.state,
        group=machine.group,
        protocol=machine.protocol,
        coordinator=node.address if node is not None else None,
        last_heartbeat=now - machine.heard_at if machine.heard_at is not None else None,
        rebalances=machine.rebalances,
        trouble=_said(machine.error or membership.trouble),
        overdue=membership.overdue,
    )


def _said(error: KafkaError | None) -> str | None:
    return f"{type(error).__name__}: {error}" if error is not None else None
