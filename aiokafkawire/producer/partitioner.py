"""Which partition a record goes to: by its key as Kafka's Java client does, or without a key to one that is filling."""

from collections.abc import Sequence
from struct import unpack

from ..types import Chance

__all__ = ("Sticky", "murmur2", "partition_for_key")

_SEED = 0x9747B28C
_MIX = 0x5BD1E995
_WORD = 0xFFFFFFFF


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


def partition_for_key(key: bytes, partitions: int) -> int:
    """The partition that Java's default partitioner gives this key, so that all clients agree."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class Sticky:
    """Records without a key: all to one partition until its batch is full, then to another (KIP-480).

    Fuller batches than turn by turn gives, and even in the long run.
    """

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._current: dict[str, int] = {}

    def current(self, topic: str) -> int | None:
        """The partition that records of ``topic`` go to now; None before the first."""
        return self._current.get(topic)

    def move_on(self, topic: str, available: Sequence[int]) -> int:
        """Choose another of the ``available`` partitions, if there is one: a batch is full, or a leader is gone."""
        before = self._current.get(topic)
        others = [partition for partition in available if partition != before] or available
        chosen = self._current[topic] = others[self._chance.randrange(len(others))]
        return chosen
