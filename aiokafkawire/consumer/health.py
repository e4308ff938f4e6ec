"""A consumer's health: its partitions and lag, its group membership, and the reason if it is idle."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from ..cluster.cluster import Cluster
from ..cluster.missing_topics import say_missing
from ..errors import KafkaError, LeaderNotAvailable
from ..group.membership import GroupState
from ..types import Address, CoordinatorType, GroupMetadata, TopicPartition
from .fetcher import Fetcher
from .read_replica import select_read_replica
from .subscription_state import PartitionState, SubscriptionState

if TYPE_CHECKING:  # consumers with assign() join no group
    from .coordinator import ConsumerCoordinator

__all__ = ("ConsumerHealth", "MemberHealth", "PartitionHealth", "health_snapshot", "why_idle")

_MAX_REASONS: Final = 5


@attrs.frozen
class PartitionHealth:
    """The health of one assigned partition. ``answered`` is in seconds before now, None for never."""

    position: int | None
    high_watermark: int | None
    broker: Address | None
    """The broker that the partition is fetched from."""
    unread: bool
    """Whether there are fetched records that the user has not received yet."""
    paused: bool
    being_given_up: bool
    answered: float | None
    """When the broker last responded to a fetch."""
    silent: bool
    """Whether the broker's last response to a fetch is older than a fetch may take: ``fetch_max_wait_ms`` plus 5 s."""
    trouble: str | None
    """The last error of the partition, if it persists."""

    @property
    def lag(self) -> int | None:
        """The number of offsets from the position to the end of the log; None while either is unknown."""
        if self.position is None or self.high_watermark is None:
            return None
        return max(0, self.high_watermark - self.position)


@attrs.frozen
class MemberHealth:
    """The health of a consumer's membership in its group."""

    state: GroupState
    group: GroupMetadata
    protocol: str
    """The assignor that the group has chosen; empty until then."""
    coordinator: Address | None
    """The group's coordinator, if known."""
    last_heartbeat: float | None
    """When the coordinator last confirmed the membership, in seconds ago."""
    rebalances: int
    """The number of generations that the member has joined."""
    trouble: str | None
    """The error of the last request to the coordinator, or why the coordinator has refused the member."""
    overdue: bool
    """Whether the member has left the group because poll() was not called in time (``max_poll_interval_ms``)."""


@attrs.frozen
class ConsumerHealth:
    """A consumer's health at one moment. Times are in seconds before that moment, None for never."""

    membership: MemberHealth | None
    """The membership in the group; None without a group."""
    last_record: float | None
    """When the user last received a record or a batch."""
    partitions: Mapping[TopicPartition, PartitionHealth]
    why_idle: str | None
    """Why there are no records; None if there are some."""
    stalled: bool
    """Whether the consumer has no records to hand out although unread ones may exist; False if it has read all."""
    lost_in_hand: Mapping[TopicPartition, str] = attrs.field(factory=dict)
    """The partitions that were revoked while their records were being processed, and the reasons. Commits fail until
    the next poll."""
    missing_topics: tuple[str, ...] = ()
    """The topics that the consumer should read, but that do not exist in the cluster."""

    @property
    def lag(self) -> int:
        """The sum of the partitions' lags; unknown lags count as 0."""
        return sum(partition.lag or 0 for partition in self.partitions.values())


def why_idle(
    member: MemberHealth | None,
    partitions: Mapping[TopicPartition, PartitionHealth],
    missing: Sequence[str] = (),
    pattern: str | None = None,
) -> tuple[str | None, bool]:
    """Return why a consumer has no records to hand out (None if it has some), and whether it is stalled.

    Args:
        member: the consumer's membership, if it has a group.
        partitions: the assigned partitions.
        missing: topics that the consumer should read, but that do not exist.
        pattern: the subscribed pattern, if no topic matches it.
    """
    awake = {
        partition: health for partition, health in partitions.items() if not (health.paused or health.being_given_up)
    }
    if any(health.unread for health in awake.values()):
        return None, False
    reasons = [f"{say_missing(missing)} in the cluster"] if missing else []
    if member is not None and member.state is not GroupState.STABLE:
        reasons.append(f"in {member.group.group_id!r} it is {member.state.value}")
    if member is not None and member.trouble is not None:
        reasons.append(f"its coordinator: {member.trouble}")
    reasons += [
        f"{partition}: {trouble}" for partition, health in awake.items() if (trouble := _trouble(health)) is not None
    ]
    if reasons:
        return "; ".join(reasons[:_MAX_REASONS]) + (
            f"; and {len(reasons) - _MAX_REASONS} more" if len(reasons) > _MAX_REASONS else ""
        ), True
    if not partitions and pattern is not None:
        return f"no topic matches the pattern {pattern!r} of its subscription", False
    if not partitions:
        return "it has no partitions: the other members have them, or the topics have none", False
    if not awake:
        return "all of its partitions are paused, or are being revoked", False
    return "it has read everything there is", False


def _trouble(partition: PartitionHealth) -> str | None:
    if partition.trouble is not None:
        return partition.trouble
    if partition.broker is None:
        return "it has no leader"
    if partition.position is None:
        return "where to begin is being looked up"
    if partition.silent:
        return f"{partition.broker} has not answered for {partition.answered:.0f} s"
    if partition.lag:
        return f"{partition.lag} records are being fetched from {partition.broker}"
    return None


def health_snapshot(
    cluster: Cluster,
    positions: SubscriptionState,
    fetcher: Fetcher,
    coordinator: "ConsumerCoordinator | None",
    got_at: float | None,
    topics: Iterable[str] = (),
) -> ConsumerHealth:
    """Return a consumer's current health.

    Args:
        cluster: the cluster that the consumer reads from.
        positions: the consumer's partitions.
        fetcher: the consumer's fetcher.
        coordinator: the consumer's coordinator, if it has a group.
        got_at: when the user last received a record or a batch, in seconds of the runtime's clock.
        topics: the topics that the consumer reads without a group.
    """
    now = cluster.runtime.now()
    partitions = {state.partition: _partition(cluster, fetcher, state, now) for state in positions}
    member = _member(cluster, coordinator, now) if coordinator is not None else None
    subscription = coordinator.topics.subscription if coordinator is not None else None
    subscribed = subscription.topics if subscription is not None else ()
    missing = tuple(
        cluster.metadata.missing_of(
            dict.fromkeys([*topics, *subscribed, *(partition.topic for partition in partitions)])
        )
    )
    unmatched = subscription.unmatched_in(cluster.metadata.snapshot) if subscription is not None else None
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


def _partition(cluster: Cluster, fetcher: Fetcher, state: PartitionState, now: float) -> PartitionHealth:
    node = select_read_replica(cluster.metadata.snapshot, state, now)
    answered = fetcher.answered.get(node.node_id) if node is not None else None
    trouble = fetcher.error_of(state.partition)
    if node is not None and isinstance(trouble, LeaderNotAvailable):
        trouble = None  # the error is outdated unless the broker repeats it
    return PartitionHealth(
        position=state.position,
        high_watermark=state.high_watermark,
        broker=node.address if node is not None else None,
        unread=state.partition in fetcher.unread,
        paused=state.paused,
        being_given_up=state.withheld,
        answered=now - answered if answered is not None else None,
        silent=answered is not None and now - answered > fetcher.patience and not state.is_suspended,
        trouble=_describe(trouble),
    )


def _member(cluster: Cluster, coordinator: "ConsumerCoordinator", now: float) -> MemberHealth:
    machine, driver = coordinator.machine, coordinator.driver
    node = cluster.known_coordinator(CoordinatorType.GROUP, machine.settings.group_id)
    return MemberHealth(
        state=machine.state,
        group=machine.group,
        protocol=machine.protocol,
        coordinator=node.address if node is not None else None,
        last_heartbeat=now - machine.confirmed_at if machine.confirmed_at is not None else None,
        rebalances=machine.rebalances,
        trouble=_describe(machine.error or driver.trouble),
        overdue=driver.overdue,
    )


def _describe(error: KafkaError | None) -> str | None:
    return f"{type(error).__name__}: {error}" if error is not None else None
