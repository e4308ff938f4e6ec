"""A share consumer's health: its membership, its partitions, the records that it has, and the reason if it is idle."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from ..cluster.cluster import Cluster
from ..cluster.missing_topics import say_missing
from ..group.member_health import MemberHealth, member_health
from ..group.membership import GroupState
from ..plain_values import as_plain, sentence
from ..types import Address, TopicPartition

if TYPE_CHECKING:  # few programs ask for a share consumer's health
    from .share_consumer_coordinator import ShareConsumerCoordinator
    from .share_fetcher import ShareFetcher

__all__ = ("ShareConsumerHealth", "SharePartitionHealth", "share_consumer_health")


@attrs.frozen
class SharePartitionHealth:
    """The health of one partition of a share consumer."""

    broker: Address | None
    """The partition's leader; None if none is known."""
    trouble: str | None
    """Why the last request to the leader has failed, or for how long it is unanswered; None if the leader answers."""


@attrs.frozen
class ShareConsumerHealth:
    """A share consumer's health at one moment."""

    name: str
    """The consumer's name, which its connections have as well, such as ``"share-3"``."""
    state: str
    """``"new"``, ``"open"``, ``"closing"`` or ``"closed"``."""
    membership: MemberHealth
    partitions: Mapping[TopicPartition, SharePartitionHealth]
    unread: int
    """The number of acquired records that the user has not taken."""
    in_hand: int
    """The number of records that the user has taken and not acknowledged, as far as their locks hold."""
    why_idle: str | None
    """Why there are no records; None if there are some."""
    stalled: bool
    """Whether the consumer may get no records although the group has some; False if it waits for new records."""
    missing_topics: tuple[str, ...] = ()
    """The topics that the consumer subscribes to, but that do not exist in the cluster."""
    failed: str | None = None
    """Why the consumer will get no more records, so that the program has to make another; None if it may."""

    def to_dict(self) -> dict[str, Any]:
        """Return the health as a dict that JSON can encode; partitions are texts such as ``"orders-0"``."""
        return dict(as_plain(self))


def share_consumer_health(
    cluster: Cluster,
    fetcher: "ShareFetcher",
    member: "ShareConsumerCoordinator",
    topics: tuple[str, ...],
    state: str,
) -> ShareConsumerHealth:
    """Return a share consumer's current health.

    Args:
        cluster: the cluster that it reads from.
        fetcher: acquires its records.
        member: its membership.
        topics: the topics that it subscribes to.
        state: whether it is open, as in :attr:`ShareConsumerHealth.state`.
    """
    snapshot, troubles = cluster.metadata.snapshot, fetcher.troubles()
    partitions = {}
    for partition in sorted(fetcher.assigned):
        leader = snapshot.leader(partition)
        trouble = troubles.get(leader.node_id) if leader is not None else None
        partitions[partition] = SharePartitionHealth(leader.address if leader is not None else None, trouble)
    membership = member_health(cluster, member.machine, member.driver, cluster.runtime.now(), subscribed=bool(topics))
    missing = tuple(cluster.metadata.missing_of(topics))
    fetcher.locks.end_run()
    unread = len(fetcher.buffer)
    why, stalled = (None, False) if unread else _why_idle(membership, partitions, missing)
    ended = state == "open" and (fetcher.has_ended or member.driver.has_ended)
    return ShareConsumerHealth(
        name=fetcher.lane,
        state=state,
        membership=membership,
        partitions=partitions,
        unread=unread,
        in_hand=fetcher.locks.outstanding,
        why_idle=why,
        stalled=stalled,
        missing_topics=missing,
        failed="a background task has ended; the log has its error (aiokafkawire.runtime)" if ended else None,
    )


def _why_idle(
    member: MemberHealth, partitions: Mapping[TopicPartition, SharePartitionHealth], missing: tuple[str, ...]
) -> tuple[str, bool]:
    reasons = [f"{say_missing(missing)} in the cluster"] if missing else []
    if member.state is not GroupState.STABLE:
        reasons.append(f"in {member.group.group_id!r} it is {member.state.value}")
    if member.trouble is not None:
        reasons.append(f"its coordinator: {member.trouble}")
    for partition, health in partitions.items():
        if health.broker is None or health.trouble is not None:
            reasons.append(f"{partition}: {health.trouble or 'it has no leader'}")
    why = sentence(reasons)
    if why is not None:
        return why, True
    if not partitions:
        return "the coordinator has assigned no partitions", False
    return "no records are available: other members have them, or all were read", False
