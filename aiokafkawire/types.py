"""Small types that users and all packages share: partitions, offsets, metadata of records."""

import re
from collections.abc import Awaitable, Mapping, Sequence
from enum import IntEnum
from typing import ClassVar, Final, NamedTuple, Protocol, TypeAlias

import attrs

from ._lazy_classes import frozen
from ._printable import printable
from .argument_checks import INT32, INT64, check_integer, check_mapping, check_text, is_integer, items_of, shown
from .errors import UsageError

__all__ = (
    "Address",
    "AwsCredentials",
    "BytesLike",
    "RandomSource",
    "CoordinatorType",
    "ElectionType",
    "Event",
    "GroupMetadata",
    "Header",
    "Headers",
    "IsolationLevel",
    "OAuthBearerToken",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetSpec",
    "ProducerIdentity",
    "RecordMetadata",
    "TimestampType",
    "SubscriptionPattern",
    "TopicPartition",
    "TopicPartitionReplica",
    "check_group_id",
    "check_partition",
    "check_replica",
    "check_spec",
    "check_start",
    "check_topic_name",
    "normalize_offsets",
    "normalize_partitions",
    "normalize_specs",
)

BytesLike: TypeAlias = bytes | bytearray | memoryview
"""The types of keys and values that producers accept. A producer copies the bytes when it accepts a record."""

Header: TypeAlias = tuple[str, bytes | None]
"""A record header: a name, and a value of bytes or null (KIP-82)."""

Headers: TypeAlias = Sequence[tuple[str, BytesLike | None]] | Mapping[str, BytesLike | None]
"""The type of ``send(headers=...)``. A sequence keeps the order of headers and may repeat names."""


_LONGEST_HOST: Final = 255


class Address(NamedTuple):
    """The host and port that a broker listens at."""

    host: str
    port: int

    def __str__(self) -> str:
        # A broker may advertise anything; no name of a host in the DNS is longer.
        host = printable(self.host, _LONGEST_HOST)
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


class RandomSource(Protocol):
    """A source of random numbers, such as :class:`random.Random`."""

    def uniform(self, low: float, high: float, /) -> float: ...

    def randrange(self, stop: int, /) -> int: ...


class Event(Protocol):
    """An event that tasks wait for, such as ``anyio.Event``; it is set once."""

    def set(self) -> object: ...

    def wait(self) -> Awaitable[object]: ...


class TopicPartition(NamedTuple):
    """A partition of a topic, which compares and hashes as a tuple."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TopicPartitionReplica(NamedTuple):
    """A replica of a partition: the copy that one broker holds."""

    topic: str
    partition: int
    broker_id: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} on broker {self.broker_id}"


class TimestampType(IntEnum):
    """The origin of a record's timestamp (``message.timestamp.type`` of the topic, KIP-32).

    ``NO_TIMESTAMP_TYPE``: the record has no timestamp, as in the format before Kafka 0.10 (magic 0).
    """

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class IsolationLevel(IntEnum):
    """Whether a read returns records of open and aborted transactions (``isolation.level``, KIP-98)."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


@frozen
class OffsetAndMetadata:
    """The content of a commit: the next offset to read, a text, and the leader epoch of the last record read."""

    offset: int
    metadata: str = ""
    leader_epoch: int | None = None


@frozen
class OffsetAndTimestamp:
    """The result of an offset lookup. ``timestamp`` is in ms since the epoch, or -1 if the broker sent none."""

    offset: int
    timestamp: int = -1
    leader_epoch: int | None = None


@frozen
class OAuthBearerToken:
    """A token for SASL/OAUTHBEARER; its repr does not show the token.

    Args:
        value: the token, such as a JWT in its compact form.
        expires_at_ms: the time at which the token expires, in ms since the epoch; None to read the time from a JWT. A
            token without a known expiry is requested again for every login.
        extensions: SASL extensions to send to the brokers (KIP-342).
    """

    value: str = attrs.field(repr=False)
    expires_at_ms: int | None = None
    extensions: Mapping[str, str] = attrs.field(factory=dict)


@frozen
class AwsCredentials:
    """Credentials that sign requests to AWS; the repr shows only the key's id."""

    access_key_id: str
    secret_access_key: str = attrs.field(repr=False)
    session_token: str | None = attrs.field(default=None, repr=False)


class CoordinatorType(IntEnum):
    """The type of coordinator that FindCoordinator looks up."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class ElectionType(IntEnum):
    """The type of a leader election (KIP-460).

    ``PREFERRED`` makes the first replica of a partition the leader, if it is in sync. ``UNCLEAN`` makes any live
    replica the leader of a partition without one, even if it lacks records: these records are lost.
    """

    PREFERRED = 0
    UNCLEAN = 1


@frozen
class GroupMetadata:
    """The group and the member that commit offsets (KIP-447). For a commit without a member, generation_id is -1."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


@frozen
class ProducerIdentity:
    """A transactional producer's id and epoch, with which another producer can send records in its open transaction.

    ``transaction_version`` is 2 if the brokers add partitions to transactions automatically (KIP-890).
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    transaction_version: int = 2


class RecordMetadata(NamedTuple):
    """The topic, partition, offset and timestamp of an acknowledged record.

    ``offset`` is -1 with ``acks=0``, because brokers do not answer. ``timestamp`` is in ms since the epoch: as the
    producer set it, or the broker's time if the topic uses LogAppendTime.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int


@frozen
class SubscriptionPattern:
    """A subscription to all topics whose whole name matches a regular expression, which the brokers match (KIP-848).

    ``pattern`` has RE2 syntax: no look-around, no back references. It needs ``group_protocol="consumer"``.
    """

    pattern: str = attrs.field()

    @pattern.validator
    def _check_pattern(self, _: object, pattern: object) -> None:
        if not isinstance(pattern, str) or not pattern:
            raise UsageError(f"SubscriptionPattern needs a regular expression as non-empty text, got {shown(pattern)}")


@attrs.frozen
class OffsetSpec:
    """The offset to look up: ``EARLIEST``, ``LATEST``, ``MAX_TIMESTAMP`` (KIP-734) or ``at(ms)``.

    ``timestamp`` is the value in ListOffsets requests: ms since the epoch, or a negative constant.
    """

    EARLIEST: ClassVar["OffsetSpec"]
    LATEST: ClassVar["OffsetSpec"]
    MAX_TIMESTAMP: ClassVar["OffsetSpec"]

    timestamp: int

    @classmethod
    def at(cls, timestamp_ms: int) -> "OffsetSpec":
        """Return the spec for the first record whose timestamp is at least ``timestamp_ms``, in ms since the epoch.

        Raises:
            TypeError: the timestamp is not an integer.
            ValueError: the timestamp is negative or exceeds 64 bits.
        """
        if isinstance(timestamp_ms, bool) or not isinstance(timestamp_ms, int):
            raise TypeError(f"a timestamp to look up must be an integer, ms since the epoch, got {shown(timestamp_ms)}")
        if timestamp_ms > INT64:
            raise ValueError(f"a timestamp to look up must be at most {INT64} ms, got {timestamp_ms}")
        if timestamp_ms < 0:
            raise ValueError(f"a timestamp to look up must not be negative (ms since the epoch), got {timestamp_ms}")
        return cls(timestamp_ms)


OffsetSpec.EARLIEST = OffsetSpec(-2)
OffsetSpec.LATEST = OffsetSpec(-1)
OffsetSpec.MAX_TIMESTAMP = OffsetSpec(-3)


_PARTITIONS = "[TopicPartition('orders', 0)]"
_OFFSETS = "{TopicPartition('orders', 0): 42}"
_SPECS = "{TopicPartition('orders', 0): OffsetSpec.LATEST}"


def check_partition(given: object) -> TopicPartition:
    """Return a user's TopicPartition or (topic, partition) pair as a TopicPartition.

    Raises:
        UsageError: the argument is not a partition.
    """
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise UsageError(
            f"a partition must be a TopicPartition, such as TopicPartition('orders', 0); got {shown(given)}"
        )
    topic, partition = given
    check_topic_name(topic)
    if not is_integer(partition, 0, INT32):
        raise UsageError(
            f"a partition must be an integer from 0 to {INT32}, got {partition!r:.100} for topic {topic!r}"
        )
    return TopicPartition(topic, partition)


def check_replica(given: object) -> TopicPartitionReplica:
    """Return a user's TopicPartitionReplica or (topic, partition, broker id) triple as a TopicPartitionReplica.

    Raises:
        UsageError: the argument is not a replica.
    """
    if not isinstance(given, tuple | list) or len(given) != 3:
        raise UsageError(f"a replica must be like TopicPartitionReplica('orders', 0, 1), got {shown(given)}")
    topic, partition, broker_id = given
    check_partition((topic, partition))
    check_integer(f"the broker id of a replica of {topic}-{partition}", broker_id)
    return TopicPartitionReplica(topic, partition, broker_id)


def normalize_partitions(partitions: object) -> list[TopicPartition]:
    """Return a user's collection of partitions as a list of TopicPartition.

    Raises:
        UsageError: the argument is not a collection, or an item is not a partition.
    """
    return [check_partition(partition) for partition in items_of("partitions", partitions, _PARTITIONS)]


def normalize_offsets(offsets: object) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return a user's offsets by TopicPartition, each as OffsetAndMetadata.

    Raises:
        UsageError: a key is not a partition, or a value is not an offset.
    """
    check_mapping("offsets", offsets, _OFFSETS)
    assert isinstance(offsets, Mapping)
    return {check_partition(partition): _checked_offset(partition, offset) for partition, offset in offsets.items()}


def _checked_offset(partition: tuple[str, int], offset: object) -> OffsetAndMetadata:
    plain = offset.offset if isinstance(offset, OffsetAndMetadata) else offset
    if not is_integer(plain, 0, INT64):
        expected = f"an offset from 0 to {INT64}, or an OffsetAndMetadata"
        raise UsageError(f"the offset to commit for {partition} must be {expected}, got {shown(offset)}")
    if not isinstance(offset, OffsetAndMetadata):
        assert isinstance(plain, int)
        return OffsetAndMetadata(plain)
    check_text(f"the metadata of {partition}", offset.metadata, empty=True)
    if offset.leader_epoch is not None and not is_integer(offset.leader_epoch, -1, INT32):
        text = shown(offset.leader_epoch)
        raise UsageError(f"the leader_epoch of {partition} must be an integer or None, got {text}")
    return offset


def normalize_specs(specs: object) -> dict[TopicPartition, "OffsetSpec"]:
    """Return a user's OffsetSpecs by TopicPartition.

    Raises:
        UsageError: a key is not a partition, or a value is not an OffsetSpec.
    """
    check_mapping("specs", specs, _SPECS)
    assert isinstance(specs, Mapping)
    found = {}
    for given, spec in specs.items():
        partition = check_partition(given)
        check_spec(partition, spec)
        found[partition] = spec
    return found


def check_spec(partition: TopicPartition, spec: object) -> None:
    """Raise UsageError unless ``spec`` is a valid OffsetSpec; the message names the partition."""
    if not isinstance(spec, OffsetSpec) or not is_integer(spec.timestamp, -INT64 - 1, INT64):
        known = "OffsetSpec.EARLIEST, OffsetSpec.LATEST, OffsetSpec.MAX_TIMESTAMP or OffsetSpec.at(timestamp_ms)"
        raise UsageError(f"the offset to look up for {partition} must be {known}, got {shown(spec)}")


def check_start(partition: TopicPartition, start: object) -> None:
    """Raise UsageError unless ``start`` is a valid offset or OffsetSpec; the message names the partition."""
    if isinstance(start, OffsetSpec):
        check_spec(partition, start)
        return
    if isinstance(start, bool) or not isinstance(start, int):
        raise UsageError(f"{partition} can begin at an offset or an OffsetSpec, not at {shown(start)}")
    if start < 0:
        raise UsageError(f"{partition} cannot begin at {start}: offsets begin at 0; for the ends use an OffsetSpec")
    if start > INT64:
        raise UsageError(f"{partition} cannot begin at {start}: offsets end at {INT64}; for the ends use an OffsetSpec")


def check_group_id(given: object) -> None:
    """Raise UsageError unless the value is a valid group id: a string, not empty, that a request can encode."""
    check_text("group_id", given)


_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def check_topic_name(name: object) -> None:
    """Raise UsageError unless the brokers' rules allow the topic's name; the message lists the rules."""
    if not isinstance(name, str):
        raise UsageError(f"a topic's name must be a string, got {name!r:.200}")
    if name in (".", "..") or not _TOPIC_NAME.fullmatch(name):
        rule = "1 to 249 of the letters a-z and A-Z, digits, '.', '_' and '-', and neither '.' nor '..'"
        raise UsageError(f"{name[:300]!r} cannot be a topic's name: names have {rule}")
