"""Chooses a record's partition: by a hash of its key, as other clients do, or by a strategy that ignores keys."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate
from struct import unpack
from typing import Final, Protocol
from zlib import crc32

import attrs

from ..config import Partitioner, ProducerConfig
from ..errors import UsageError
from ..records import layout
from ..types import RandomSource, TopicPartition
from ._implementation import StickyPartition
from .record_checks import RECORD_OVERHEAD

__all__ = (
    "BrokerAvailability",
    "Choose",
    "Partitioning",
    "QueueSizes",
    "RoundRobin",
    "UniformSticky",
    "fnv1a",
    "make_partitioner",
    "murmur2",
    "partition_for_crc32",
    "partition_for_fnv1a",
    "partition_for_key",
)

ByKey = Callable[[bytes, int], int]
"""A function that returns the partition of a key, given the number of partitions."""

_SEED: Final = 0x9747B28C
_MIX: Final = 0x5BD1E995
_FNV_OFFSET: Final = 0x811C9DC5
_FNV_PRIME: Final = 0x01000193
_WORD: Final = 0xFFFFFFFF
_SIGN: Final = 0x80000000


class Choose(Protocol):
    """A function that chooses a record's partition; called once for each record, as soon as there is buffer space."""

    def __call__(self, topic: str, key: bytes | None, available: Sequence[int], count: int, size: int, /) -> int:
        """Return the index of one of the topic's ``count`` partitions; ``available`` lists those that have a leader.

        ``size`` is the result of ``record_size_bound`` for the record. A topic's ``available`` is the same object until
        a partition gets or loses its leader.
        """


@attrs.frozen
class Partitioning:
    """The partitioner as the appender uses it.

    ``choose`` returns the partition of any record. In two cases the appender may find the partition without this call:

    - With ``hashes_keys``, the :func:`murmur2` hash of a record's key gives the partition.
    - Records without a key, or with ``ignores_keys`` all records, go to the topic's partition in ``sticky``, until
      ``limit`` bytes were sent to it; while its open batch has room, until ``max_sent`` bytes were sent.
    """

    choose: Choose
    hashes_keys: bool = False
    ignores_keys: bool = False
    sticky: Mapping[str, StickyPartition] | None = None


class QueueSizes(Protocol):
    """The part of the sender that the sticky partitioner uses to decide when the partition changes, and to which."""

    def has_room(self, partition: TopicPartition, size: int) -> bool:
        """Return whether the partition has an open batch with room for a record of up to ``size`` bytes."""

    def queue_lengths(self, topic: str) -> Mapping[int, int]:
        """Return the number of waiting batches by partition index, for the topic's partitions with waiting batches."""

    def unavailable(self, topic: str) -> Collection[int]:
        """Return the indexes of the topic's partitions whose leader is unavailable, see :class:`BrokerAvailability`."""

    def leaders_in_rack(self, topic: str, rack: str) -> Collection[int]:
        """Return the indexes of the topic's partitions whose leader is in the rack."""


# --- by key --------------------------------------------------------------------------------------------


def murmur2(data: bytes) -> int:
    """Return the unsigned 32-bit MurmurHash2 (by Austin Appleby) with the seed of Kafka's Java client."""
    length = len(data)
    h = _SEED ^ length
    whole = length & ~3
    for k in unpack(f"<{length >> 2}I", data[:whole]):
        k = k * _MIX & _WORD
        k = (k ^ k >> 24) * _MIX & _WORD
        h = (h * _MIX & _WORD) ^ k
    if length > whole:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _MIX & _WORD
    h = (h ^ h >> 13) * _MIX & _WORD
    return h ^ h >> 15


def fnv1a(data: bytes) -> int:
    """Return the 32-bit FNV-1a hash, taken as signed and then made positive, as in Sarama and librdkafka."""
    h = _FNV_OFFSET
    for byte in data:
        h = (h ^ byte) * _FNV_PRIME & _WORD
    return h if h < _SIGN else _WORD + 1 - h


def partition_for_key(key: bytes, partitions: int) -> int:
    """Return the partition that Java's default partitioner chooses for this key."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def partition_for_crc32(key: bytes, partitions: int) -> int:
    """Return the partition that librdkafka's ``consistent`` and its default partitioner choose for this key."""
    return crc32(key) % partitions


def partition_for_fnv1a(key: bytes, partitions: int) -> int:
    """Return the partition that librdkafka's ``fnv1a`` and Sarama's hash partitioner choose for this key."""
    return fnv1a(key) % partitions


_BY_KEY: Final[dict[str, ByKey]] = {
    "default": partition_for_key,
    "consistent": partition_for_crc32,
    "murmur2": partition_for_key,
    "fnv1a": partition_for_fnv1a,
}


# --- sticky --------------------------------------------------------------------------------------------


class UniformSticky:
    """A partitioner that sends records without a key to one partition for about one batch (KIP-480, KIP-794).

    The partition changes once ``batch_size`` bytes were sent to it, so slow brokers get no more records than others.
    While the partition's open batch has room, the change waits, so that no batch is left half empty; but it does not
    wait beyond twice ``batch_size`` bytes.

    The next partition is random, and may be the same. With ``partitioner_adaptive_partitioning_enable`` a partition
    with few waiting batches is likelier: its weight is the longest queue's length plus 1, less its own queue's length.
    With ``partitioner_rack_aware`` it is one whose leader is in ``client_rack``, if there is one (KIP-1123).
    """

    def __init__(self, config: ProducerConfig, chance: RandomSource, queues: QueueSizes, by_key: ByKey | None) -> None:
        """Choose the partition of a record with a key by ``by_key``; if ``by_key`` is None, ignore keys."""
        self._chance, self._queues, self._by_key = chance, queues, by_key
        self._adaptive = config.partitioner_adaptive_partitioning_enable
        self._rack = config.client_rack if config.partitioner_rack_aware else ""
        self._skips_unavailable = config.partitioner_availability_timeout_ms > 0
        self._batch_size, self._max_sent = config.batch_size, 2 * config.batch_size
        self.sticky: dict[str, StickyPartition] = {}
        """The sticky partition of each topic."""

    def choose(self, topic: str, key: bytes | None, available: Sequence[int], count: int, size: int, /) -> int:
        """Return the record's partition, as :class:`Choose` says."""
        if key is not None and self._by_key is not None:
            return self._by_key(key, count)
        sticky = self.sticky.get(topic)
        if sticky is None or (
            (sticky.available is not available or not available) and _is_gone(sticky, available, count)
        ):
            return self._next(topic, available, count, size)
        sent = sticky.sent + size - RECORD_OVERHEAD
        if sent > self._batch_size and (
            sent > self._max_sent or not self._queues.has_room(TopicPartition(topic, sticky.partition), size)
        ):
            return self._next(topic, available, count, size)
        sticky.sent = sent
        return sticky.partition

    def _next(self, topic: str, available: Sequence[int], count: int, size: int) -> int:
        if not available:
            # No partition has a leader, so the record waits for one in any partition.
            chosen = self._chance.randrange(count)
        elif self._adaptive and len(available) > 1:
            chosen = self._by_load(topic, available)
        else:
            nearby = self._nearby(topic, available)
            chosen = nearby[self._chance.randrange(len(nearby))]
        sent = layout.HEADER_SIZE + size - RECORD_OVERHEAD
        self.sticky[topic] = StickyPartition(chosen, available, sent, self._batch_size, self._max_sent)
        return chosen

    def _by_load(self, topic: str, available: Sequence[int]) -> int:
        lengths = self._queues.queue_lengths(topic)
        if lengths and self._skips_unavailable:
            unavailable = set(self._queues.unavailable(topic))
            # A partition without waiting batches is kept: only a record sent to it shows whether its broker is back.
            kept = [index for index in available if index not in unavailable or not lengths.get(index)]
            available = kept or available
        available = self._nearby(topic, available)
        if not lengths:
            return available[self._chance.randrange(len(available))]
        longest = max(lengths.get(index, 0) for index in available)
        table = list(accumulate(longest + 1 - lengths.get(index, 0) for index in available))
        return available[bisect_right(table, self._chance.randrange(table[-1]))]

    def _nearby(self, topic: str, available: Sequence[int]) -> Sequence[int]:
        """Return those of the partitions whose leader is in the client's rack; all if there are none."""
        if not self._rack:
            return available
        in_rack = set(self._queues.leaders_in_rack(topic, self._rack))
        return [index for index in available if index in in_rack] or available


def _is_gone(sticky: StickyPartition, available: Sequence[int], count: int) -> bool:
    """Store the new ``available``; return whether the sticky partition has lost its leader or was deleted."""
    sticky.available = available
    return sticky.partition not in (available or range(count))


class BrokerAvailability:
    """The brokers to which due batches could not be sent for ``partitioner_availability_timeout_ms`` (KIP-794).

    Times are in seconds of the runtime's clock.
    """

    def __init__(self, config: ProducerConfig) -> None:
        self._timeout = config.partitioner_availability_timeout_ms / 1000
        self._failing: dict[int, tuple[float, float]] = {}

    def record_attempt(self, broker: int, now: float, *, sent: bool) -> None:
        """Record an attempt to send due batches; it fails without a connection or with too many requests in flight."""
        if sent:
            self._failing.pop(broker, None)
        else:
            first, _ = self._failing.get(broker, (now, now))
            self._failing[broker] = first, now

    def is_unavailable(self, broker: int) -> bool:
        """Return whether due batches could not be sent to the broker for longer than the timeout."""
        first, last = self._failing.get(broker, (0.0, 0.0))
        return 0 < self._timeout < last - first


# --- round robin, random, the user's function -------------------------------------------------------------


class RoundRobin:
    """A partitioner that sends each record, with or without a key, to the topic's next available partition."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def choose(self, topic: str, key: bytes | None, available: Sequence[int], count: int, size: int, /) -> int:
        """Return the record's partition, as :class:`Choose` says."""
        number = self._next.get(topic, 0)
        self._next[topic] = number + 1
        return available[number % len(available)] if available else number % count


def _at_random(chance: RandomSource) -> Choose:
    def choose(topic: str, key: bytes | None, available: Sequence[int], count: int, size: int, /) -> int:
        return available[chance.randrange(len(available))] if available else chance.randrange(count)

    return choose


def _by_key_alone(by_key: ByKey) -> Choose:
    """Return a function that treats a missing key as an empty one: all records without a key go to one partition."""

    def choose(topic: str, key: bytes | None, available: Sequence[int], count: int, size: int, /) -> int:
        return by_key(key or b"", count)

    return choose


def _user_function(function: Partitioner) -> Choose:
    name = getattr(function, "__qualname__", None) or repr(function)

    def choose(topic: str, key: bytes | None, available: Sequence[int], count: int, size: int, /) -> int:
        chosen = function(topic, key, available, range(count))
        if not isinstance(chosen, int) or isinstance(chosen, bool) or not 0 <= chosen < count:
            partitions = f"topic {topic!r} has partitions 0 to {count - 1}"
            raise UsageError(f"the partitioner {name} returned {chosen!r}, and {partitions}")
        return chosen

    return choose


def make_partitioner(config: ProducerConfig, chance: RandomSource, queues: QueueSizes) -> Partitioning:
    """Return the partitioning that ``config.partitioner`` names.

    - ``default``, as in the Java client: by the key's murmur2 hash; :class:`UniformSticky` for records without a key,
      or with ``partitioner_ignore_keys`` for all records.
    - ``murmur2``, ``consistent`` and ``fnv1a``, as in librdkafka: by the key's hash, which is CRC-32 for
      ``consistent``; a missing key is hashed as an empty one.
    - ``murmur2_random``, ``consistent_random`` and ``fnv1a_random``: by the same hashes, but :class:`UniformSticky`
      for records without a key, and with ``consistent_random`` also for empty keys.
    - ``random``: a random partition for each record, with or without a key.
    - ``round_robin``: :class:`RoundRobin`.
    - The user's own function: its exceptions propagate; a result that is no partition of the topic raises UsageError.

    A hash chooses among all partitions, including those without a leader.
    """
    name = config.partitioner
    if not isinstance(name, str):
        return Partitioning(_user_function(name))
    if name == "round_robin":
        return Partitioning(RoundRobin().choose)
    if name == "random":
        return Partitioning(_at_random(chance))
    by_key = _BY_KEY[name.removesuffix("_random")]
    hashes_keys = by_key is partition_for_key
    if name in ("consistent", "murmur2", "fnv1a"):
        return Partitioning(_by_key_alone(by_key), hashes_keys=hashes_keys)
    spreads_all = name == "default" and config.partitioner_ignore_keys
    sticky = UniformSticky(config, chance, queues, None if spreads_all else by_key)
    choose = sticky.choose
    if name == "consistent_random":
        return Partitioning(
            lambda topic, key, available, count, size, /: choose(topic, key or None, available, count, size),
            sticky=sticky.sticky,
        )
    return Partitioning(
        choose, hashes_keys=hashes_keys and not spreads_all, ignores_keys=spreads_all, sticky=sticky.sticky
    )
