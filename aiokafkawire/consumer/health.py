"""A consumer's health: its partitions and lag, its group membership, and the reason if it is idle."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from .._lazy_classes import frozen
from ..cluster.cluster import Cluster
from ..cluster.missing_topics import say_missing
from ..errors import LeaderNotAvailable
from ..group.member_health import MemberHealth, member_health
from ..group.membership import GroupState
from ..plain_values import as_plain, error_text, example_of, sentence
from ..types import Address, TopicPartition
from .fetcher import Fetcher
from .read_replica import select_read_replica
from .subscription_state import PartitionState, SubscriptionState

if TYPE_CHECKING:  # consumers with assign() join no group
    from .coordinator import ConsumerCoordinator

__all__ = ("ConsumerHealth", "PartitionHealth", "health_snapshot", "why_idle")


@frozen
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
    """Whether the broker leaves a fetch unanswered for longer than one may take: ``fetch_max_wait_ms`` plus 5 s. It
    gets none while the user has unread records of it."""
    trouble: str | None
    """The last error of the partition, if it persists."""
    committed_end: int | None = None
    """Where the first open transaction begins, or the end of the log without one; None unless the consumer reads
    committed records only, or while it is unknown."""

    @property
    def lag(self) -> int | None:
        """The number of offsets from the position to the end of what may be read; None while either is unknown."""
        end = self.high_watermark if self.committed_end is None else self.committed_end
        return None if self.position is None or end is None else max(0, end - self.position)

    @property
    def is_behind_transaction(self) -> bool:
        """Whether all records that are not read come after the beginning of an open transaction."""
        end = self.high_watermark
        return self.committed_end is not None and end is not None and end > self.committed_end and self.lag == 0

    @property
    def waits_for(self) -> str | None:
        """The reason why the partition brings no records; None if it is read to its end, paused or being given up."""
        if self.unread or self.paused or self.being_given_up:
            return None
        if self.trouble is not None:
            return self.trouble
        if self.broker is None:
            return "it has no leader"
        if self.position is None:
            return "where to begin is being looked up"
        if self.silent and self.answered is None:
            return f"{self.broker} has not answered any fetch"
        if self.silent:
            return f"{self.broker} has not answered for {self.answered:.0f} s"
        if self.lag:
            return f"{self.lag} records are being fetched from {self.broker}"
        return None


@frozen
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
    state: str = "open"
    """``"new"``, ``"open"``, ``"closing"`` or ``"closed"``."""
    failed: str | None = None
    """Why the consumer will read nothing more, so that the program has to make another; None if it may."""

    def to_dict(self) -> dict[str, Any]:
        """Return the health as a dict that JSON can encode; partitions are texts such as ``"orders-0"``."""
        return {"lag": self.lag, **as_plain(self)}

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
        partitions: the assigned partitions; those with one cause share a reason.
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
    causes: dict[object, dict[TopicPartition, PartitionHealth]] = {}
    for partition, health in awake.items():
        if health.waits_for is not None:
            causes.setdefault(_cause(partition, health), {})[partition] = health
    reasons += [f"{example_of(list(found))}: {_waits_together(list(found.values()))}" for found in causes.values()]
    if reasons:
        return sentence(reasons), True
    if not partitions and pattern is not None:
        return f"no topic matches the pattern {pattern!r} of its subscription", False
    if not partitions:
        return "it has no partitions: the other members have them, or the topics have none", False
    if not awake:
        return "all of its partitions are paused, or are being revoked", False
    behind = [partition for partition, health in awake.items() if health.is_behind_transaction]
    if behind:
        return f"{example_of(behind)}: it has read everything up to a transaction that is open", False
    return "it has read everything there is", False


def _cause(partition: TopicPartition, health: PartitionHealth) -> object:
    """Return a value that is equal for partitions that wait for the same."""
    if health.trouble is not None:
        return health.trouble.replace(str(partition), "")
    return health.broker, health.broker is None or health.position is None, health.silent


def _waits_together(found: Sequence[PartitionHealth]) -> str | None:
    """Return what partitions with one cause wait for; the records to fetch are those of all."""
    first, lag = found[0], sum(health.lag or 0 for health in found)
    return attrs.evolve(first, high_watermark=(first.position or 0) + lag, committed_end=None).waits_for


def health_snapshot(
    cluster: Cluster,
    positions: SubscriptionState,
    fetcher: Fetcher,
    coordinator: "ConsumerCoordinator | None",
    got_at: float | None,
    topics: Iterable[str] = (),
    state: str = "open",
) -> ConsumerHealth:
    """Return a consumer's current health.

    Args:
        cluster: the cluster that the consumer reads from.
        positions: the consumer's partitions.
        fetcher: the consumer's fetcher.
        coordinator: the consumer's coordinator, if it has a group.
        got_at: when the user last received a record or a batch, in seconds of the runtime's clock.
        topics: the topics that the consumer reads without a group.
        state: whether the consumer is open, as in :attr:`ConsumerHealth.state`.
    """
    now = cluster.runtime.now()
    partitions = {state.partition: _partition(cluster, fetcher, state, now) for state in positions}
    member, subscription = None, None
    if coordinator is not None:
        subscription = coordinator.topics.subscription
        is_subscribed = subscription is not None
        member = member_health(cluster, coordinator.machine, coordinator.driver, now, subscribed=is_subscribed)
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
        state=state,
        failed=_why_failed(member, fetcher, coordinator) if state == "open" else None,
    )


def _why_failed(member: MemberHealth | None, fetcher: Fetcher, coordinator: "ConsumerCoordinator | None") -> str | None:
    if fetcher.has_ended or (coordinator is not None and coordinator.driver.has_ended):
        return "a background task of the consumer has ended; the log has its error (aiokafkawire.runtime)"
    if member is not None and member.fenced:
        return f"another member of {member.group.group_id!r} has taken its group_instance_id: {member.trouble}"
    return None


def _partition(cluster: Cluster, fetcher: Fetcher, state: PartitionState, now: float) -> PartitionHealth:
    node = select_read_replica(cluster.metadata.snapshot, state, now)
    answered = fetcher.answered.get(node.node_id) if node is not None else None
    asked = fetcher.asked.get(node.node_id) if node is not None else None
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
        silent=asked is not None and now - asked > fetcher.patience and not state.is_suspended,
        trouble=error_text(trouble),
        committed_end=state.committed_end,
    )
