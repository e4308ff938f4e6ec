"""What members of a classic group tell its leader, and what it tells them: values, and their bytes.

The bytes are a version and a message of ``protocol/messages/consumer_protocol.py``. A reader takes a newer version for
the newest that it knows.
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
"""The generation of a member that has none, or does not know it."""

NEWEST: Final = ConsumerProtocolSubscription.versions.last
"""The version that is written unless another is asked for."""

_VERSION: Final = Struct(">h")

M = TypeVar("M", bound=Message)


class PartitionInfo(NamedTuple):
    """A partition of a topic, and the racks of the brokers that have a replica, in sync or not (KIP-881)."""

    partition: int
    racks: tuple[str, ...] = ()


Partitions: TypeAlias = Mapping[str, Sequence[PartitionInfo]]
"""All partitions of each topic, in any order. Topics that do not exist are missing, or have none."""


@attrs.frozen
class Subscription:
    """What a member wants to read, and what it has.

    ``user_data`` is the assignor's own. ``owned_partitions`` are those it did not give up before it joined (KIP-429),
    assigned in ``generation_id`` (KIP-792). ``rack_id`` is its ``client.rack`` (KIP-881). ``group_instance_id``
    (KIP-345) travels beside the bytes, in JoinGroup.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation_id: int = NO_GENERATION
    rack_id: str | None = None
    group_instance_id: str | None = None


@attrs.frozen
class Assignment:
    """What a member is to read. ``user_data`` is the assignor's own."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes | None = None


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The partitions of each topic; topics and partitions in the order in which they are met."""
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found


def encode_subscription(subscription: Subscription, version: int = NEWEST) -> bytes:
    """The bytes for JoinGroup, byte for byte Java's. What ``version`` lacks is left out.

    Raises:
        InvalidMessage: a field holds what its wire type cannot.
        UnsupportedVersion: there is no such version.
    """
    owned = [
        ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=partitions)
        for topic, partitions in by_topic(sorted(subscription.owned_partitions)).items()
    ]
    told = ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=owned,
        generation_id=max(subscription.generation_id, NO_GENERATION),
        rack_id=subscription.rack_id,
    )
    return _VERSION.pack(version) + encode(told, version)


def decode_subscription(data: bytes, group_instance_id: str | None = None) -> Subscription:
    """Read what a member said, of any version.

    Raises:
        WireError: the bytes are no subscription.
    """
    told = _decode(ConsumerProtocolSubscription, data)
    return Subscription(
        topics=tuple(told.topics),
        user_data=None if told.user_data is None else bytes(told.user_data),
        owned_partitions=_partitions(told.owned_partitions),
        generation_id=max(told.generation_id, NO_GENERATION),
        rack_id=told.rack_id or None,
        group_instance_id=group_instance_id,
    )


def encode_assignment(assignment: Assignment, version: int = NEWEST) -> bytes:
    """The bytes for SyncGroup, byte for byte Java's; the same in every version. Raises as `encode_subscription`."""
    assigned = [
        ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=partitions)
        for topic, partitions in by_topic(assignment.partitions).items()
    ]
    told = ConsumerProtocolAssignment(assigned_partitions=assigned, user_data=assignment.user_data)
    return _VERSION.pack(version) + encode(told, version)


def decode_assignment(data: bytes) -> Assignment:
    """Read what the leader said, of any version.

    Raises:
        WireError: the bytes are no assignment. Nor are empty ones, a coordinator's for members that the leader forgot.
    """
    told = _decode(ConsumerProtocolAssignment, data)
    user_data = None if told.user_data is None else bytes(told.user_data)
    return Assignment(_partitions(told.assigned_partitions), user_data)


def _decode(cls: type[M], data: bytes) -> M:
    if len(data) < _VERSION.size:
        raise WireError(f"{cls.__name__}: {len(data)} bytes are no version and message")
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise WireError(f"{cls.__name__}: there is no version {version}")
    return decode_prefix(cls, min(version, cls.versions.last), data, _VERSION.size)[0]


def _partitions(
    told: Sequence[ConsumerProtocolSubscriptionTopicPartition | ConsumerProtocolAssignmentTopicPartition],
) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(each.topic, partition) for each in told for partition in each.partitions)
