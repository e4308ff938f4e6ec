"""Subscriptions and assignments of a classic group's members, and their encoding.

The bytes are a version and a message of ``protocol/messages/consumer_protocol.py``. A newer version is decoded as the
newest known one.
"""

from collections.abc import Iterable, Mapping, Sequence
from struct import Struct
from typing import Final, NamedTuple, TypeAlias, TypeVar

import attrs

from ..errors import WireError
from ..protocol.compiler import decode_prefix, encode
from ..protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from ..protocol.schema import Message
from ..types import TopicPartition

__all__ = (
    "NEWEST",
    "NO_GENERATION",
    "Assignment",
    "PartitionInfo",
    "Partitions",
    "Subscription",
    "by_topic",
    "decode_assignment",
    "decode_subscription",
    "encode_assignment",
    "encode_subscription",
)

NO_GENERATION: Final = -1
"""The generation of a member that has none, or whose generation is unknown."""

NEWEST: Final = ConsumerProtocolSubscription.versions.last
"""The default version for encoding."""

_VERSION: Final = Struct(">h")

M = TypeVar("M", bound=Message)


class PartitionInfo(NamedTuple):
    """A partition of a topic, and the racks of its replicas, in sync or not (KIP-881)."""

    partition: int
    racks: tuple[str, ...] = ()


Partitions: TypeAlias = Mapping[str, Sequence[PartitionInfo]]
"""All partitions of each topic, in any order. Topics that do not exist are missing, or have no partitions."""


@attrs.frozen
class Subscription:
    """A member's subscription.

    ``user_data`` belongs to the assignor. ``owned_partitions`` are the partitions that the member did not revoke before
    it joined (KIP-429), assigned in ``generation_id`` (KIP-792). ``rack_id`` is the member's ``client.rack`` (KIP-881).
    ``group_instance_id`` (KIP-345) is not part of the encoded subscription, but of JoinGroup.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation_id: int = NO_GENERATION
    rack_id: str | None = None
    group_instance_id: str | None = None


@attrs.frozen
class Assignment:
    """The partitions assigned to a member. ``user_data`` belongs to the assignor."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes | None = None


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the partition numbers of each topic, in the order of the input."""
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found


def encode_subscription(subscription: Subscription, version: int = NEWEST) -> bytes:
    """Encode a subscription for JoinGroup, byte for byte as Java does. Fields that ``version`` lacks are left out.

    Raises:
        InvalidMessage: a field's value does not fit its type.
        UnsupportedVersion: ``version`` does not exist.
    """
    owned = [
        ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=partitions)
        for topic, partitions in by_topic(sorted(subscription.owned_partitions)).items()
    ]
    message = ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=owned,
        generation_id=max(subscription.generation_id, NO_GENERATION),
        rack_id=subscription.rack_id,
    )
    return _VERSION.pack(version) + encode(message, version)


def decode_subscription(data: bytes, group_instance_id: str | None = None) -> Subscription:
    """Decode a member's subscription of any version.

    A subscription of version 1 may end before its owned partitions: that of kafka-go up to 0.4.40 does.

    Raises:
        WireError: the bytes are not a subscription.
    """
    message = _decode_truncated(data) or _decode(ConsumerProtocolSubscription, data)
    return Subscription(
        topics=tuple(message.topics),
        user_data=None if message.user_data is None else bytes(message.user_data),
        owned_partitions=_partitions(message.owned_partitions),
        generation_id=max(message.generation_id, NO_GENERATION),
        rack_id=message.rack_id or None,
        group_instance_id=group_instance_id,
    )


def encode_assignment(assignment: Assignment, version: int = NEWEST) -> bytes:
    """Encode an assignment for SyncGroup, byte for byte as Java does. All versions have the same fields.

    Raises as :func:`encode_subscription`.
    """
    assigned = [
        ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=partitions)
        for topic, partitions in by_topic(assignment.partitions).items()
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=assigned, user_data=assignment.user_data)
    return _VERSION.pack(version) + encode(message, version)


def decode_assignment(data: bytes) -> Assignment:
    """Decode a member's assignment, which the leader has encoded in any version.

    Raises:
        WireError: the bytes are not an assignment, or a partition is negative. Empty bytes, which a member gets that
            the leader left out, are none.
    """
    message = _decode(ConsumerProtocolAssignment, data)
    user_data = None if message.user_data is None else bytes(message.user_data)
    partitions = _partitions(message.assigned_partitions)
    if any(partition.partition < 0 for partition in partitions):
        raise WireError("ConsumerProtocolAssignment: a partition has a negative number")
    return Assignment(partitions, user_data)


def _decode_truncated(data: bytes) -> ConsumerProtocolSubscription | None:
    """Return a subscription of version 1 that has the fields of version 0 alone; None for all others."""
    if not data.startswith(_VERSION.pack(1)):
        return None
    message, end = decode_prefix(ConsumerProtocolSubscription, 0, data, _VERSION.size)
    return message if end == len(data) else None


def _decode(cls: type[M], data: bytes) -> M:
    if len(data) < _VERSION.size:
        raise WireError(f"{cls.__name__}: {len(data)} bytes are too short for a version and a message")
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise WireError(f"{cls.__name__}: there is no version {version}")
    return decode_prefix(cls, min(version, cls.versions.last), data, _VERSION.size)[0]


def _partitions(
    topics: Sequence[ConsumerProtocolSubscriptionTopicPartition | ConsumerProtocolAssignmentTopicPartition],
) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic.topic, partition) for topic in topics for partition in topic.partitions)
