"""The subscriptions and assignments of classic consumers, which a consumer group has to read and write (KIP-848)."""

import struct
from collections.abc import Iterable
from typing import Final

import attrs

from ...errors import WireError
from ...protocol.compiler import decode_prefix, encode
from ...protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from ...types import TopicPartition

__all__ = ("MemberSubscription", "read_assignment", "read_subscription", "write_assignment")

_NEWEST: Final = 3
_VERSION: Final = struct.Struct(">h")


@attrs.frozen
class MemberSubscription:
    """The subscription of a classic consumer; ``version`` is the one in which it reads its assignment."""

    version: int
    topics: frozenset[str]
    rack_id: str | None
    owned: frozenset[TopicPartition]


def read_subscription(metadata: bytes) -> MemberSubscription:
    """Parse the metadata of a classic member.

    Raises:
        WireError: the metadata is malformed.
    """
    version = _version(metadata)
    read, _ = decode_prefix(ConsumerProtocolSubscription, version, metadata, _VERSION.size)
    owned = (TopicPartition(topic.topic, index) for topic in read.owned_partitions for index in topic.partitions)
    return MemberSubscription(version, frozenset(read.topics), read.rack_id or None, frozenset(owned))


def read_assignment(assignment: bytes) -> tuple[list[TopicPartition], bytes]:
    """Parse the assignment of a classic member; return the partitions and the assignor's own data.

    Raises:
        WireError: the assignment is malformed.
    """
    if not assignment:
        return [], b""
    read, _ = decode_prefix(ConsumerProtocolAssignment, _version(assignment), assignment, _VERSION.size)
    partitions = [
        TopicPartition(topic.topic, index) for topic in read.assigned_partitions for index in topic.partitions
    ]
    return partitions, bytes(read.user_data or b"")


def write_assignment(partitions: Iterable[TopicPartition], version: int) -> bytes:
    """Return the assignment of a classic member in this version."""
    topics: dict[str, list[int]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    assigned = [
        ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=indexes) for topic, indexes in topics.items()
    ]
    return _VERSION.pack(version) + encode(ConsumerProtocolAssignment(assigned_partitions=assigned), version)


def _version(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise WireError("the version of the consumer protocol is missing")
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise WireError(f"version {version} of the consumer protocol")
    return min(int(version), _NEWEST)
