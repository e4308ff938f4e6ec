"""The reconciliation of one member with its target assignment: it revokes, acknowledges, then takes (KIP-848)."""

from collections.abc import Set as AbstractSet
from uuid import UUID

import attrs

from .consumer_member import ConsumerMember, Epochs, MemberState, TopicIdPartition
from .release_rules import RULES_OF_4_3, ReleaseRules

__all__ = ("Reconciliation", "reconcile")


@attrs.frozen
class Reconciliation:
    """The data for the reconciliation of a member.

    ``owned`` are the partitions that the member has reported, None if it reported none. ``others`` are the partitions
    that other members hold. ``subscribed`` are the ids of the topics to which the member subscribes. ``rules`` are
    those of the emulated release.
    """

    epoch: int
    target: AbstractSet[TopicIdPartition]
    subscribed: AbstractSet[UUID]
    others: AbstractSet[TopicIdPartition]
    owned: AbstractSet[TopicIdPartition] | None
    subscription_changed: bool = False
    rules: ReleaseRules = RULES_OF_4_3

    def still_owns(self, partitions: Epochs) -> bool:
        """Return whether the member may still own some of these partitions."""
        return self.owned is None or not self.owned.isdisjoint(partitions)


def reconcile(member: ConsumerMember, given: Reconciliation) -> ConsumerMember:
    """Return the member in its next state, or the same object if it has to wait."""
    revokes = given.subscription_changed and given.rules.unsubscribing_revokes
    epoch = member.epoch
    match member.state:
        case MemberState.STABLE if member.epoch == given.epoch:
            return _without_unsubscribed(member, given) if revokes else member
        case MemberState.UNREVOKED_PARTITIONS if given.still_owns(member.revoking):
            return _without_unsubscribed(member, given) if revokes else member
        case MemberState.UNREVOKED_PARTITIONS if not given.rules.revocation_keeps_epoch:
            epoch += 1
    return _next(member, given, epoch)


def _next(member: ConsumerMember, given: Reconciliation, epoch: int) -> ConsumerMember:
    target = given.target
    if given.rules.unsubscribing_revokes:
        target = {partition for partition in target if partition.topic_id in given.subscribed}
    kept = {partition: epoch for partition, epoch in member.assigned.items() if partition in target}
    revoked = {partition: epoch for partition, epoch in member.assigned.items() if partition not in target}
    if revoked and given.still_owns(revoked):
        # The member stays in its epoch until it acknowledges the revocation.
        return _moved(member, epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoked)
    missing = target - kept.keys()
    if given.rules.revoked_partitions_come_back:
        unreleased = (missing & given.others) - member.revoking.keys()
    else:
        unreleased = missing & (given.others | member.revoking.keys())
    state = MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE
    taken = dict.fromkeys(sorted(missing - unreleased), given.epoch)
    return _moved(member, given.epoch, state, kept | taken, {})


def _without_unsubscribed(member: ConsumerMember, given: Reconciliation) -> ConsumerMember:
    """Revoke the partitions of topics to which the member no longer subscribes, before the next target assignment."""
    gone = {part: epoch for part, epoch in member.assigned.items() if part.topic_id not in given.subscribed}
    if not gone:
        return member
    kept = {part: epoch for part, epoch in member.assigned.items() if part not in gone}
    revoking = {**member.revoking, **gone}
    if given.still_owns(revoking):
        moved = _moved(member, member.epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoking)
    else:
        moved = _moved(member, member.epoch, member.state, kept, member.revoking)
    if given.rules.unsubscribing_ends_epoch:
        return moved
    return attrs.evolve(moved, previous_epoch=member.previous_epoch)


def _moved(
    member: ConsumerMember, epoch: int, state: MemberState, assigned: Epochs, revoking: Epochs
) -> ConsumerMember:
    # As in Kafka, the previous epoch is the last one even if the epoch stays.
    moved = attrs.evolve(
        member, state=state, epoch=epoch, previous_epoch=member.epoch, assigned=assigned, revoking=revoking
    )
    return member if moved == member else moved
