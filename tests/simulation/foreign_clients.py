"""Other clients of Kafka as group members: the versions that they send, their assignors, and their subscriptions.

Java's consumer (Apache Kafka 4), librdkafka 2.16 and 2.0, kafka-python 3.0 and 2.0, and aiokafka 0.14 have sent this to
the in-process broker; `test_foreign_clients.py` has the bytes of their subscriptions. What is here of Sarama 1.31, for
Kafka 2.0 or 0.10.2 by its configuration, and of kafka-go 0.4.40 is in their sources (``consumer_group.go``,
``offset_manager.go``, ``consumer.go``; ``consumergroup.go``, ``conn.go``).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import attrs

from aiokafkawire import TopicPartition
from aiokafkawire.group.consumer_protocol import NO_GENERATION, Subscription, by_topic, encode_subscription
from aiokafkawire.group.sticky import StickyUserData, StickyUserDataTopic
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.compiler import encode
from aiokafkawire.testing.cluster.releases import versions_of

__all__ = ("CLIENTS", "COOPERATIVE", "ForeignClient", "Held", "Part")

COOPERATIVE: Final = "cooperative-sticky"
_VERSION_SIZE: Final = 2


@attrs.frozen
class Held:
    """What a member knows of its last assignment when it joins."""

    owned: tuple[TopicPartition, ...] = ()
    """The partitions that it keeps during the rebalance."""
    generation: int = NO_GENERATION
    previous: tuple[TopicPartition, ...] | None = None
    """The last assignment; None before the first."""
    user_data: bytes | None = None
    """What the leader of that assignment has added."""


@attrs.frozen
class Part:
    """What a leader assigns to a member, and what it knows of it."""

    partitions: tuple[TopicPartition, ...]
    generation: int
    user_data: bytes | None
    """The user data of the member's subscription."""


_UserData: TypeAlias = Callable[[str, Held], bytes | None]


@attrs.frozen
class ForeignClient:
    """A client, and in what it differs from others."""

    name: str
    versions: Mapping[ApiKey, int]
    """The newest version of each request that it sends."""
    strategies: Sequence[str]
    """The names of its assignors, in the order in which it offers them."""
    others: Sequence[str]
    """Assignors that it has besides, if users choose them."""
    subscription_version: int
    user_data: _UserData
    """What its subscription has for an assignor."""
    assignment_user_data: Callable[[str, Part], bytes | None]
    """What it adds to assignments as the leader."""
    assignment_version: int = 0
    rack: str | None = None
    lacks_owned_partitions: bool = False
    """Whether its subscriptions of version 1 end before the owned partitions."""
    leaves_out: bool = False
    """Whether it sends no assignment for members without partitions, as the leader."""
    is_unsorted: bool = False
    """Whether it lists partitions of an assignment in any order: it is in the order of a hash table."""
    retention_time_ms: int = -1
    """How long brokers are to keep its offsets, in versions of OffsetCommit that have it."""
    reads_truncated: bool = False
    """Whether it can lead a group that has members with such subscriptions."""
    has_rebalance_timeout: bool = True
    """Whether it sends its max.poll.interval.ms as the rebalance timeout; else it is the session timeout."""

    def offers(self, common: str) -> Sequence[str]:
        """Return the assignors that it offers in a group whose members have this one in common.

        That one comes first: a coordinator that takes over a group knows the chosen assignor of its members alone, and
        refuses others that lack it. Cooperative members offer no eager assignor, which librdkafka does not allow.
        """
        if common == COOPERATIVE or common not in self.strategies:
            return (common,)
        return (common, *(strategy for strategy in self.strategies if strategy != common))

    def has(self, strategy: str) -> bool:
        """Return whether it has this assignor."""
        return strategy in (*self.strategies, *self.others)

    def is_served_by(self, release: str) -> bool:
        """Return whether brokers of this release of Kafka accept its versions, or older ones of the same kind."""
        return all(self.version(api, release) >= versions_of(release)[api].first for api in self.versions)

    def version(self, api: ApiKey, release: str) -> int:
        """Return the version of a request that it sends to brokers of this release."""
        return min(self.versions[api], versions_of(release)[api].last)

    def rebalance_timeout_ms(self, session_timeout_ms: int, max_poll_interval_ms: int) -> int:
        """Return the rebalance timeout that it sends with these settings."""
        return max_poll_interval_ms if self.has_rebalance_timeout else session_timeout_ms

    def subscription(self, strategy: str, topics: Sequence[str], held: Held) -> bytes:
        """Return what it sends for an assignor in JoinGroup."""
        has_generation = self.name == "java" or strategy == COOPERATIVE
        subscription = Subscription(
            topics=tuple(topics),
            user_data=self.user_data(strategy, held),
            owned_partitions=held.owned,
            generation_id=held.generation if has_generation else NO_GENERATION,
            rack_id=self.rack,
        )
        if self.lacks_owned_partitions:
            return b"\0\1" + encode_subscription(subscription, 0)[_VERSION_SIZE:]
        return encode_subscription(subscription, self.subscription_version)


def _sticky(partitions: Iterable[TopicPartition], generation: int) -> bytes:
    """Return the user data of sticky assignors (KIP-54, KIP-341)."""
    topics = [StickyUserDataTopic(topic=topic, partitions=numbers) for topic, numbers in by_topic(partitions).items()]
    return encode(StickyUserData(previous_assignment=topics, generation=generation), 1)


# --- what subscriptions have for assignors --------------------------------------------------------------------------


def _of_java(strategy: str, held: Held) -> bytes | None:
    """Java's cooperative assignor sends its generation alone, and the others nothing before the first assignment."""
    if strategy == COOPERATIVE:
        return held.generation.to_bytes(4, signed=True)
    return None if strategy != "sticky" or held.previous is None else _sticky(held.previous, held.generation)


def _of_librdkafka(strategy: str, held: Held) -> bytes:
    """librdkafka's cooperative assignor sends the last assignment, as eager ones do, and never sends null."""
    return b"" if strategy != COOPERATIVE or held.previous is None else _sticky(held.previous, held.generation)


def _of_kafka_python(strategy: str, held: Held) -> bytes:
    return b"" if strategy != "sticky" or held.previous is None else _sticky(held.previous, held.generation)


def _of_sarama(strategy: str, held: Held) -> bytes | None:
    """Sarama sends back what the last leader has added to its assignment, whichever client that was."""
    return held.user_data


def _of_kafka_go(strategy: str, held: Held) -> None:
    return None


# --- what leaders add to assignments --------------------------------------------------------------------------------


def _null(strategy: str, part: Part) -> None:
    return None


def _empty(strategy: str, part: Part) -> bytes:
    return b""


def _librdkafka_adds(strategy: str, part: Part) -> bytes:
    """librdkafka's cooperative assignor gives every member its own user data back."""
    return part.user_data or b"" if strategy == COOPERATIVE else b""


def _sarama_adds(strategy: str, part: Part) -> bytes | None:
    """Sarama's sticky assignor sends a member what it has to tell the next leader."""
    return _sticky(part.partitions, part.generation) if strategy == "sticky" else None


# --- the clients ----------------------------------------------------------------------------------------------------


def _versions(
    join: int, sync: int, heartbeat: int, leave: int, offsets: int, commit: int, fetch: int
) -> dict[ApiKey, int]:
    return {
        ApiKey.JOIN_GROUP: join,
        ApiKey.SYNC_GROUP: sync,
        ApiKey.HEARTBEAT: heartbeat,
        ApiKey.LEAVE_GROUP: leave,
        ApiKey.OFFSET_FETCH: offsets,
        ApiKey.OFFSET_COMMIT: commit,
        ApiKey.FETCH: fetch,
    }


_JAVA: Final = ForeignClient(
    "java",
    _versions(9, 5, 4, 5, 9, 9, 18),
    strategies=("range", COOPERATIVE),
    others=("roundrobin", "sticky"),
    subscription_version=3,
    user_data=_of_java,
    assignment_version=3,
    assignment_user_data=_null,
)
_LIBRDKAFKA: Final = ForeignClient(
    "librdkafka",
    _versions(5, 3, 3, 1, 9, 9, 16),
    strategies=("range", "roundrobin"),
    others=(COOPERATIVE,),
    subscription_version=3,
    user_data=_of_librdkafka,
    assignment_user_data=_librdkafka_adds,
    rack="",
)
_OLD_LIBRDKAFKA: Final = ForeignClient(
    "librdkafka-2.0",
    _versions(5, 3, 3, 1, 7, 7, 11),
    strategies=("range", "roundrobin"),
    others=(COOPERATIVE,),
    subscription_version=1,
    user_data=_of_librdkafka,
    assignment_user_data=_librdkafka_adds,
)
_KAFKA_PYTHON: Final = ForeignClient(
    "kafka-python",
    _versions(7, 5, 4, 5, 8, 8, 12),
    strategies=("range", "roundrobin"),
    others=("sticky",),
    subscription_version=0,
    user_data=_of_kafka_python,
    assignment_user_data=_empty,
)
_OLD_KAFKA_PYTHON: Final = ForeignClient(
    "kafka-python-2.0",
    _versions(2, 1, 1, 1, 1, 2, 4),
    strategies=("range", "roundrobin"),
    others=("sticky",),
    subscription_version=0,
    user_data=_of_kafka_python,
    assignment_user_data=_empty,
    reads_truncated=True,
)
_AIOKAFKA: Final = ForeignClient(
    "aiokafka",
    _versions(5, 3, 1, 1, 3, 3, 11),
    strategies=("roundrobin",),
    others=("range",),
    subscription_version=0,
    user_data=_of_kafka_python,
    assignment_user_data=_empty,
    reads_truncated=True,
    has_rebalance_timeout=False,
)
_SARAMA: Final = ForeignClient(
    "sarama",
    _versions(1, 0, 0, 2, 1, 4, 8),
    strategies=("range",),
    others=("roundrobin", "sticky"),
    subscription_version=0,
    user_data=_of_sarama,
    assignment_user_data=_sarama_adds,
    leaves_out=True,
    is_unsorted=True,
    retention_time_ms=3_600_000,
    reads_truncated=True,
)
_OLD_SARAMA: Final = attrs.evolve(_SARAMA, name="sarama-0.10", versions=_versions(1, 0, 0, 0, 1, 2, 3))
"""Sarama configured for Kafka 0.10.2, the oldest one with which it joins groups: brokers convert records for it."""
_KAFKA_GO: Final = ForeignClient(
    "kafka-go",
    _versions(1, 0, 0, 0, 1, 2, 10),
    strategies=("range", "roundrobin"),
    others=(),
    subscription_version=1,
    user_data=_of_kafka_go,
    assignment_version=1,
    assignment_user_data=_null,
    lacks_owned_partitions=True,
    is_unsorted=True,
    retention_time_ms=86_400_000,
    reads_truncated=True,
)

CLIENTS: Final[Sequence[ForeignClient]] = (
    *(_JAVA, _LIBRDKAFKA, _OLD_LIBRDKAFKA, _KAFKA_PYTHON, _OLD_KAFKA_PYTHON),
    *(_AIOKAFKA, _SARAMA, _OLD_SARAMA, _KAFKA_GO),
)
