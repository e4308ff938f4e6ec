"""What another client's member decides as the leader of a group, and in which form it sends that."""

from collections.abc import Iterable, Mapping, Sequence
from random import Random

from aiokafkawire import TopicPartition
from aiokafkawire.group.consumer_protocol import (
    Assignment,
    PartitionInfo,
    by_topic,
    decode_subscription,
    encode_assignment,
)
from aiokafkawire.group.sticky import CooperativeStickyAssignor
from aiokafkawire.protocol.compiler import decode_prefix
from aiokafkawire.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from aiokafkawire.protocol.messages.group import JoinGroupResponse, SyncGroupRequestAssignment

from .foreign_clients import COOPERATIVE, ForeignClient, Part

__all__ = ("assignments",)

_Shares = Mapping[str, Sequence[TopicPartition]]


def assignments(
    client: ForeignClient, joined: JoinGroupResponse, partitions: Sequence[TopicPartition], chance: Random
) -> list[SyncGroupRequestAssignment]:
    """Return what this client's leader sends in SyncGroup, of these partitions."""
    strategy, told = joined.protocol_name or "", {one.member_id: bytes(one.metadata) for one in joined.members}
    sent = []
    for member, share in _shares(strategy, told, partitions).items():
        if client.leaves_out and not share:
            continue
        user_data = decode_prefix(ConsumerProtocolSubscription, 0, told[member], 2)[0].user_data
        part = Part(
            tuple(chance.sample(share, len(share)) if client.is_unsorted else share),
            joined.generation_id,
            None if user_data is None else bytes(user_data),
        )
        assignment = Assignment(part.partitions, client.assignment_user_data(strategy, part))
        encoded = encode_assignment(assignment, client.assignment_version)
        sent.append(SyncGroupRequestAssignment(member_id=member, assignment=encoded))
    return sent


def _shares(strategy: str, told: Mapping[str, bytes], partitions: Sequence[TopicPartition]) -> _Shares:
    members = sorted(told)
    if strategy == COOPERATIVE:
        return _cooperative(told, partitions)
    if strategy == "range":
        return _ranges(members, partitions)
    return {member: partitions[number :: len(members)] for number, member in enumerate(members)}


def _ranges(members: Sequence[str], partitions: Iterable[TopicPartition]) -> _Shares:
    shares: dict[str, list[TopicPartition]] = {member: [] for member in members}
    for topic, numbers in by_topic(partitions).items():
        for place, number in enumerate(numbers):
            shares[members[place * len(members) // len(numbers)]].append(TopicPartition(topic, number))
    return shares


def _cooperative(told: Mapping[str, bytes], partitions: Iterable[TopicPartition]) -> _Shares:
    """Decide as Java's assignor, which ours equals (`tests/group/test_java_equality.py`)."""
    topics = {topic: [PartitionInfo(number) for number in numbers] for topic, numbers in by_topic(partitions).items()}
    subscriptions = {member: decode_subscription(data) for member, data in told.items()}
    decided = CooperativeStickyAssignor().assign(topics, subscriptions)
    return {member: decided[member].partitions for member in told}
