"""Small values that users and every room share: partitions, offsets, what a delivery returns."""

import re
from collections.abc import Awaitable, Mapping, Sequence
from enum import IntEnum
from typing import ClassVar, NamedTuple, Protocol, TypeAlias

import attrs

from .argument_checks import INT32, INT64, check_mapping, check_text, is_integer, items_of, shown
from .errors import UsageError

__all__ = (
    "Address",
    "AwsCredentials",
    "BytesLike",
    "Random",
    "CoordinatorType",
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
    "TopicPartition",
    "check_group_id",
    "check_partition",
    "check_spec",
    "check_start",
    "check_topic_name",
    "normalize_offsets",
    "normalize_partitions",
    "normalize_specs",
)

BytesLike: TypeAlias = bytes | bytearray | memoryview
"""What producers take as bytes; they copy the bytes when they are given."""

Header: TypeAlias = tuple[str, bytes | None]
"""A record header: a name, and bytes or null (KIP-82)."""

Headers: TypeAlias = Sequence[tuple[str, BytesLike | None]] | Mapping[str, BytesLike | None]
"""What ``send(headers=...)`` takes. Order and repeated names are kept when given as a sequence."""


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Random(Protocol):
    """Randomness as an argument, as :class:`random.Random` gives it."""

    def uniform(self, low: float, high: float, /) -> float: ...

    def randrange(self, stop: int, /) -> int: ...


class Event(Protocol):
    """Something that tasks wait for, once: as ``anyio.Event``."""

    def set(self) -> object: ...

    def wait(self) -> Awaitable[object]: ...


class TopicPartition(NamedTuple):
    """A partition of a topic; sorts and hashes as a tuple."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TimestampType(IntEnum):
    """Who set a record's timestamp (``message.timestamp.type`` of the topic, KIP-32).

    ``NO_TIMESTAMP_TYPE``: nobody, for the record is in the format from before Kafka 0.10 (magic 0), which has none.
    """

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class IsolationLevel(IntEnum):
    """Which records of transactions a read shows (``isolation.level``, KIP-98)."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


@attrs.frozen
class OffsetAndMetadata:
    """A position to commit: the offset of the next record to read, a note, and the epoch it was read under."""

    offset: int
    metadata: str = ""
    leader_epoch: int | None = None


@attrs.frozen
class OffsetAndTimestamp:
    """What an offset lookup found. ``timestamp`` is in ms since the epoch, -1 where the lookup was not by time."""

    offset: int
    timestamp: int = -1
    leader_epoch: int | None = None


@attrs.frozen
class OAuthBearerToken:
    """A token to log in with by OAUTHBEARER; its repr does not show it.

    Args:
        value: the token, such as a JWT in its compact form.
        expires_at_ms: until when it holds, in ms since the epoch; None is what the token itself says, if it is a JWT.
            A token whose end is not known is asked for at every login.
        extensions: more to tell the brokers (KIP-342).
    """

    value: str = attrs.field(repr=False)
    expires_at_ms: int | None = None
    extensions: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class AwsCredentials:
    """What requests to AWS are signed with; its repr shows the key's id alone."""

    access_key_id: str
    secret_access_key: str = attrs.field(repr=False)
    session_token: str | None = attrs.field(default=None, repr=False)


class CoordinatorType(IntEnum):
    """What FindCoordinator looks for."""

    GROUP = 0
    TRANSACTION = 1


@attrs.frozen
class GroupMetadata:
    """Who commits offsets for a group (KIP-447). Without a membership: generation -1, and no member id."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


@attrs.frozen
class ProducerIdentity:
    """A transactional producer's id and epoch, for another producer to write into its open transaction.

    ``transaction_version`` is 2 where the brokers add partitions to transactions by themselves (KIP-890).
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    transaction_version: int = 2


class RecordMetadata(NamedTuple):
    """Where an acknowledged record is.

    ``offset`` is -1 with ``acks=0``, where no broker says. ``timestamp`` is in ms since the epoch: the
    producer's own, or the broker's for a topic with LogAppendTime.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int


@attrs.frozen
class OffsetSpec:
    """Which offset to look up: ``EARLIEST``, ``LATEST``, ``MAX_TIMESTAMP`` (KIP-734) or ``at(ms)``.

    ``timestamp`` is the value that ListOffsets carries: negative ones are names, others ms since the epoch.
    """

    EARLIEST: ClassVar["OffsetSpec"]
    LATEST: ClassVar["OffsetSpec"]
    MAX_TIMESTAMP: ClassVar["OffsetSpec"]

    timestamp: int

    @classmethod
    def at(cls, timestamp_ms: int) -> "OffsetSpec":
        """The first record whose timestamp is at least ``timestamp_ms`` (ms since the epoch).

        Raises:
            TypeError: the timestamp is no integer.
            ValueError: the timestamp is negative, or beyond 64 bits.
        """
        if isinstance(timestamp_ms, bool) or not isinstance(timestamp_ms, int):
            raise TypeError(f"a timestamp to look up must be an integer, ms since the epoch, got {shown(timestamp_ms)}")
        if timestamp_ms > INT64:
            raise ValueError(f"a timestamp to look up must be at most {INT64} ms, got {timestamp_ms}")
        if timestamp_ms < 0:
            raise ValueError(f"a timestamp to look up is ms since the epoch and not negative, got {timestamp_ms}")
        return cls(timestamp_ms)


OffsetSpec.EARLIEST = OffsetSpec(-2)
OffsetSpec.LATEST = OffsetSpec(-1)
OffsetSpec.MAX_TIMESTAMP = OffsetSpec(-3)


_PARTITIONS = "[TopicPartition('orders', 0)]"
_OFFSETS = "{TopicPartition('orders', 0): 42}"
_SPECS = "{TopicPartition('orders', 0): OffsetSpec.LATEST}"


def check_partition(given: object) -> TopicPartition:
    """Read a partition that a user gave, as a TopicPartition or a plain pair.

    Raises:
        UsageError: it is none.
    """
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise UsageError(
            f"a partition must be a TopicPartition, such as TopicPartition('orders', 0); got {shown(given)}"
        )
    topic, partition = given
    check_topic_name(topic)
    if not is_integer(partition, 0, INT32):
        raise UsageError(
            f"a partition is a number from 0 on, up to {INT32}; got {partition!r:.100} for topic {topic!r}"
        )
    return TopicPartition(topic, partition)


def normalize_partitions(partitions: object) -> list[TopicPartition]:
    """Read a collection of partitions that a user gave.

    Raises:
        UsageError: it is no collection, or one of them is no partition.
    """
    return [check_partition(one) for one in items_of("partitions", partitions, _PARTITIONS)]


def normalize_offsets(offsets: object) -> dict[TopicPartition, OffsetAndMetadata]:
    """Read the offsets that a user gave.

    Raises:
        UsageError: a partition is none, or has no offset.
    """
    check_mapping("offsets", offsets, _OFFSETS)
    assert isinstance(offsets, Mapping)
    return {check_partition(where): _checked_offset(where, offset) for where, offset in offsets.items()}


def _checked_offset(where: tuple[str, int], offset: object) -> OffsetAndMetadata:
    plain = offset.offset if isinstance(offset, OffsetAndMetadata) else offset
    if not is_integer(plain, 0, INT64):
        told = f"to be committed, from 0 to {INT64}; got {shown(offset)}"
        raise UsageError(f"{where} needs an offset, or an OffsetAndMetadata, {told}")
    if not isinstance(offset, OffsetAndMetadata):
        assert isinstance(plain, int)
        return OffsetAndMetadata(plain)
    check_text(f"the metadata of {where}", offset.metadata, empty=True)
    if offset.leader_epoch is not None and not is_integer(offset.leader_epoch, -1, INT32):
        raise UsageError(f"the leader_epoch of {where} must be an integer or None, got {shown(offset.leader_epoch)}")
    return offset


def normalize_specs(specs: object) -> dict[TopicPartition, "OffsetSpec"]:
    """Read which offsets a user wants to have looked up.

    Raises:
        UsageError: a partition is none, or what is wanted is no OffsetSpec.
    """
    check_mapping("specs", specs, _SPECS)
    assert isinstance(specs, Mapping)
    found = {}
    for given, spec in specs.items():
        where = check_partition(given)
        check_spec(where, spec)
        found[where] = spec
    return found


def check_spec(where: TopicPartition, spec: object) -> None:
    """Refuse what is no OffsetSpec.

    Raises:
        UsageError: the message says how to write one.
    """
    if not isinstance(spec, OffsetSpec) or not is_integer(spec.timestamp, -INT64 - 1, INT64):
        known = "OffsetSpec.EARLIEST, OffsetSpec.LATEST, OffsetSpec.MAX_TIMESTAMP or OffsetSpec.at(timestamp_ms)"
        raise UsageError(f"what to look up for {where} must be {known}, got {shown(spec)}")


def check_start(where: TopicPartition, start: object) -> None:
    """Refuse what says no place to read a partition from.

    Raises:
        UsageError: it is neither an offset nor an OffsetSpec.
    """
    if isinstance(start, OffsetSpec):
        check_spec(where, start)
        return
    if isinstance(start, bool) or not isinstance(start, int):
        raise UsageError(f"{where} can begin at an offset or an OffsetSpec, not at {shown(start)}")
    if start < 0:
        raise UsageError(f"{where} cannot begin at {start}: offsets begin at 0; for the ends use an OffsetSpec")
    if start > INT64:
        raise UsageError(f"{where} cannot begin at {start}: offsets end at {INT64}; for the ends use an OffsetSpec")


def check_group_id(given: object) -> None:
    """Refuse what cannot be a group's id.

    Raises:
        UsageError: it is no string, or empty.
    """
    check_text("group_id", given)


_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def check_topic_name(name: object) -> None:
    """Refuse what no broker takes as a topic's name.

    Raises:
        UsageError: the message says which rule it breaks.
    """
    if not isinstance(name, str):
        raise UsageError(f"a topic's name is a string, got {name!r:.200}")
    if name in (".", "..") or not _TOPIC_NAME.fullmatch(name):
        rule = "1 to 249 of the letters a-z and A-Z, digits, '.', '_' and '-', and neither '.' nor '..'"
        raise UsageError(f"{name[:300]!r} cannot be a topic's name: it takes {rule}")
