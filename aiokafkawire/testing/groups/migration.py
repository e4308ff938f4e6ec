"""The conversion of classic groups into consumer groups and back, while they have members (KIP-848)."""

from collections.abc import Callable, Iterable

from ...errors import ErrorCode, WireError
from ...types import TopicPartition
from ..cluster.api_error import ApiError
from .consumer_group import ConsumerGroup
from .consumer_member import ClassicMember, ConsumerMember, TopicIdPartition
from .consumer_protocol import read_assignment, read_subscription, write_assignment
from .group import CONSUMER, ClassicGroup
from .members import MemberRecord
from .states import CoordinatorState

__all__ = ("downgraded", "upgraded")


def upgraded(group: ClassicGroup, by_id: Callable[[Iterable[TopicPartition]], list[TopicIdPartition]]) -> ConsumerGroup:
    """Return the consumer group that a classic group becomes. ``by_id`` names existing partitions by topic id.

    Raises:
        ApiError: GROUP_ID_NOT_FOUND, the metadata or the assignment of a member cannot be converted.
    """
    new = ConsumerGroup(group.group_id, epoch=group.generation, assignment_epoch=group.generation)
    for record in group.members.values():
        try:
            member = _consumer_member(group, record, by_id)
        except WireError:
            raise _refusal(group, "the embedded consumer protocol is malformed.") from None
        new.members[member.member_id] = member
        new.targets[member.member_id] = frozenset(member.assigned)
    return new


def _consumer_member(
    group: ClassicGroup, record: MemberRecord, by_id: Callable[[Iterable[TopicPartition]], list[TopicIdPartition]]
) -> ConsumerMember:
    partitions, own_data = read_assignment(record.assignment)
    if own_data:
        raise _refusal(
            group,
            "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
            "assignor before re-attempting the upgrade.",
        )
    subscription = read_subscription(record.metadata(group.protocol) or record.protocols[0][1])
    return ConsumerMember(
        record.member_id,
        group.generation,
        group.generation,
        group_instance_id=record.group_instance_id,
        rack_id=subscription.rack_id,
        rebalance_timeout_ms=record.rebalance_timeout_ms,
        client_id=record.client_id,
        client_host=record.client_host,
        topic_names=subscription.topics,
        assigned=dict.fromkeys(by_id(partitions), group.generation),
        classic=ClassicMember(record.session_timeout_ms, record.protocols),
    )


def _refusal(group: ClassicGroup, reason: str) -> ApiError:
    message = f"Cannot upgrade classic group {group.group_id} to consumer group because {reason}"
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, message)


def downgraded(
    group: ConsumerGroup, by_name: Callable[[Iterable[TopicIdPartition]], list[TopicPartition]]
) -> ClassicGroup:
    """Return the stable classic group that a consumer group becomes, of which all members use the classic protocol.

    ``by_name`` names existing partitions by topic.
    """
    new = ClassicGroup(group.group_id, state=CoordinatorState.STABLE, generation=group.epoch)
    for member in group.members.values():
        assert member.classic is not None
        record = MemberRecord(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout_ms,
            member.classic.session_timeout_ms,
            member.classic.protocols,
        )
        new.add(record, CONSUMER)
    new.protocol = new.select_protocol()
    new.find_subscribed_topics()
    for record in new.members.values():
        version = read_subscription(record.metadata(new.protocol)).version
        record.assignment = write_assignment(by_name(group.targets.get(record.member_id, ())), version)
    return new
