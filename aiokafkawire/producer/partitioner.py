"""Which partition a record goes to: by a hash of its key that other clients share, or to one whose turn it is."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate
from struct import unpack
from typing import Final, Protocol
from zlib import crc32

from ..config import Partitioner, ProducerConfig
from ..errors import UsageError
from ..records import layout
from ..types import Random, TopicPartition
from .appending import Turn
from .door import SPARE, Choose, Partitioning

__all__ = (
    "Queues",
    "RoundRobin",
    "Stalls",
    "UniformSticky",
    "fnv1a",
    "make_partitioner",
    "murmur2",
    "partition_for_crc32",
    "partition_for_fnv1a",
    "partition_for_key",
)

ByKey = Callable[[bytes, int], int]
"""Takes a key and how many partitions there are; gives the key's partition."""

_SEED: Final = 0x9747B28C
_MIX: Final = 0x5BD1E995
_FNV_OFFSET: Final = 0x811C9DC5
_FNV_PRIME: Final = 0x01000193
_WORD: Final = 0xFFFFFFFF
_SIGN: Final = 0x80000000


class Queues(Protocol):
    """What waits to be sent; asked only when a topic's turn may go to another partition."""

    def takes(self, where: TopicPartition, size: int) -> bool:
        """Whether the partition has an open batch with room for a record of up to ``size`` bytes."""

    def waiting(self, topic: str) -> Mapping[int, int]:
        """How many batches wait in each partition's queue; 0 where it says nothing."""

    def stalled(self, topic: str) -> Collection[int]:
        """The partitions whose broker has stalled, as :class:`Stalls` has it."""


# --- by key --------------------------------------------------------------------------------------------


def murmur2(data: bytes) -> int:
    """MurmurHash2 (Austin Appleby's, 32 bits) with the seed that Kafka's Java client uses; unsigned."""
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
    """FNV-1a (32 bits), read as a signed number of which the absolute value is taken, as Sarama and librdkafka do."""
    h = _FNV_OFFSET
    for byte in data:
        h = (h ^ byte) * _FNV_PRIME & _WORD
    return h if h < _SIGN else _WORD + 1 - h


def partition_for_key(key: bytes, partitions: int) -> int:
    """The partition that Java's default partitioner gives this key, so that all clients agree."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def partition_for_crc32(key: bytes, partitions: int) -> int:
    """The partition that librdkafka's ``consistent``, and so its default, gives this key."""
    return crc32(key) % partitions


def partition_for_fnv1a(key: bytes, partitions: int) -> int:
    """The partition that librdkafka's ``fnv1a`` and Sarama's hash partitioner give this key."""
    return fnv1a(key) % partitions


_BY_KEY: Final[dict[str, ByKey]] = {
    "default": partition_for_key,
    "consistent": partition_for_crc32,
    "murmur2": partition_for_key,
    "fnv1a": partition_for_fnv1a,
}


# --- in turn -------------------------------------------------------------------------------------------


class UniformSticky:
    """Records without a key: all to one partition until it had a batch of them, then to another (KIP-480, KIP-794).

    A turn is over at the end of a batch, once ``batch_size`` bytes went to its partition: no batch is left half empty
    because the turn went on, and slow brokers have turns no longer than others. Where other records keep the batches
    open, it is over after twice as much in any case.

    Chance gives the next turn, to the same partition too. With ``partitioner_adaptive_partitioning_enable`` one with
    few batches waiting is likelier than one with many: each weighs the longest queue's length plus 1, less its own.
    """

    def __init__(self, config: ProducerConfig, chance: Random, queues: Queues, by_key: ByKey | None) -> None:
        """Records with a key go where ``by_key`` says; with None they are spread like those without."""
        self._chance, self._queues, self._by_key = chance, queues, by_key
        self._adaptive = config.partitioner_adaptive_partitioning_enable
        self._leave_out = config.partitioner_availability_timeout_ms > 0
        self._batch_size, self._most = config.batch_size, 2 * config.batch_size
        self.turns: dict[str, Turn] = {}
        """Whose turn it is, by topic."""

    def choose(self, topic: str, key: bytes | None, available: Sequence[int], count: int, size: int, /) -> int:
        """As :class:`Choose` says."""
        if key is not None and self._by_key is not None:
            return self._by_key(key, count)
        turn = self.turns.get(topic)
        if turn is None or ((turn.available is not available or not available) and _is_gone(turn, available, count)):
            return self._next(topic, available, count, size)
        sent = turn.sent + size - SPARE
        if sent > self._batch_size and (
            sent > self._most or not self._queues.takes(TopicPartition(topic, turn.partition), size)
        ):
            return self._next(topic, available, count, size)
        turn.sent = sent
        return turn.partition

    def _next(self, topic: str, available: Sequence[int], count: int, size: int) -> int:
        if not available:
            # It waits for a leader wherever it goes.
            chosen = self._chance.randrange(count)
        elif self._adaptive and len(available) > 1:
            chosen = self._by_load(topic, available)
        else:
            chosen = available[self._chance.randrange(len(available))]
        self.turns[topic] = Turn(chosen, available, layout.HEADER_SIZE + size - SPARE, self._batch_size, self._most)
        return chosen

    def _by_load(self, topic: str, available: Sequence[int]) -> int:
        waiting = self._queues.waiting(topic)
        if waiting and self._leave_out:
            stalled = set(self._queues.stalled(topic))
            # Where nothing waits any more, a record is what finds out whether the broker is back.
            available = [one for one in available if one not in stalled or not waiting.get(one)] or available
        if not waiting:
            return available[self._chance.randrange(len(available))]
        lengths = [waiting.get(one, 0) for one in available]
        longest = max(lengths)
        table = list(accumulate(longest + 1 - length for length in lengths))
        return available[bisect_right(table, self._chance.randrange(table[-1]))]


def _is_gone(turn: Turn, available: Sequence[int], count: int) -> bool:
    """Whether the turn's partition has lost its leader, or is no more, now that what is available has changed."""
    turn.available = available
    return turn.partition not in (available or range(count))


class Stalls:
    """Which brokers could take nothing for longer than ``partitioner_availability_timeout_ms``, and had to (KIP-794).

    Times are seconds of the runtime's clock.
    """

    def __init__(self, config: ProducerConfig) -> None:
        self._timeout = config.partitioner_availability_timeout_ms / 1000
        self._since: dict[int, tuple[float, float]] = {}

    def tried(self, broker: int, now: float, *, sent: bool) -> None:
        """Batches were due for this broker, and were ``sent``, or could not be: no connection, too much in flight."""
        if sent:
            self._since.pop(broker, None)
        else:
            first, _ = self._since.get(broker, (now, now))
            self._since[broker] = first, now

    def __contains__(self, broker: int) -> bool:
        first, last = self._since.get(broker, (0.0, 0.0))
        return 0 < self._timeout < last - first


# --- the others ----------------------------------------------------------------------------------------


class RoundRobin:
    """Each record to the next partition that is available, with or without a key."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def choose(self, topic: str, key: bytes | None, available: Sequence[int], count: int, size: int, /) -> int:
        """As :class:`Choose` says."""
        number = self._next.get(topic, 0)
        self._next[topic] = number + 1
        return available[number % len(available)] if available else number % count


def _at_random(chance: Random) -> Choose:
    def choose(topic: str, key: bytes | None, available: Sequence[int], count: int, size: int, /) -> int:
        return available[chance.randrange(len(available))] if available else chance.randrange(count)

    return choose


def _by_key_alone(by_key: ByKey) -> Choose:
    """No key counts as an empty one: all of these records go to one partition."""

    def choose(topic: str, key: bytes | None, available: Sequence[int], count: int, size: int, /) -> int:
        return by_key(key or b"", count)

    return choose


def _users_own(function: Partitioner) -> Choose:
    name = getattr(function, "__qualname__", None) or repr(function)

    def choose(topic: str, key: bytes | None, available: Sequence[int], count: int, size: int, /) -> int:
        chosen = function(topic, key, available, range(count))
        if not isinstance(chosen, int) or isinstance(chosen, bool) or not 0 <= chosen < count:
            partitions = f"topic {topic!r} has partitions 0 to {count - 1}"
            raise UsageError(f"the partitioner {name} gave {chosen!r}, and {partitions}")
        return chosen

    return choose


def make_partitioner(config: ProducerConfig, chance: Random, queues: Queues) -> Partitioning:
    """What ``config.partitioner`` names.

    - ``default``: Java's. By murmur2; without a key, or with ``partitioner_ignore_keys``, as :class:`UniformSticky`.
    - ``murmur2``, ``consistent`` (CRC-32), ``fnv1a``: librdkafka's. By that hash; no key is an empty key.
    - The same with ``_random``: no key as :class:`UniformSticky`; with ``consistent_random`` an empty key too.
    - ``random``: each record by itself, with a key or without.
    - ``round_robin``: :class:`RoundRobin`.
    - A function of the user's own: what it raises goes on as it is; UsageError if it gives no partition.

    Keys go where the hash says, whether that partition has a leader or not.
    """
    name = config.partitioner
    if not isinstance(name, str):
        return Partitioning(_users_own(name))
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
            turns=sticky.turns,
        )
    return Partitioning(
        choose, hashes_keys=hashes_keys and not spreads_all, ignores_keys=spreads_all, turns=sticky.turns
    )
