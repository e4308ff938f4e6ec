"""The iteration order of Java's hash maps and the sort order of its strings, for assignors.

Java's assignors iterate over hash maps of member ids and topics, and the order of iteration breaks ties. The leader
assigns for the whole group, so when the leader changes between a Java client and this one, a group keeps its assignment
only if both use the same order.
"""

from collections.abc import Hashable, Iterable, Iterator
from typing import Final, Generic, TypeVar

from ..types import TopicPartition

__all__ = ("HashOrder", "hash_ordered", "partition_hash", "sort_key", "string_hash")

K = TypeVar("K", bound=Hashable)

_WORD: Final = 0xFFFFFFFF
_SMALLEST: Final = 16
_FULL_BUCKET: Final = 8
_CROWDED_UNTIL: Final = 64
"""Tables with fewer buckets are doubled also if a bucket has more than ``_FULL_BUCKET`` keys; larger tables are not."""


def string_hash(text: str) -> int:
    """Return Java's ``String.hashCode``, as an unsigned 32-bit integer."""
    value = 0
    if text.isascii():
        for byte in text.encode():
            value = 31 * value + byte & _WORD
        return value
    data = sort_key(text)
    for index in range(0, len(data), 2):
        value = 31 * value + (data[index] << 8 | data[index + 1]) & _WORD
    return value


def partition_hash(partition: TopicPartition, topic_hash: int) -> int:
    """Return the hash code of Java's ``TopicPartition``, given the hash code of its topic."""
    return 31 * (31 + partition.partition) + topic_hash & _WORD


def sort_key(text: str) -> bytes:
    """Return a key that sorts strings as Java does, by UTF-16 units; Python sorts by code points."""
    return text.encode("utf-16-be", "surrogatepass")


class HashOrder(Generic[K]):
    """Keys in the order of a Java ``HashMap`` after the same insertions.

    A bucket lists its keys in insertion order. Java turns buckets of more than eight keys into trees in tables of 64
    buckets or more; this class does not, as such buckets do not occur by chance.
    """

    def __init__(self) -> None:
        self._hashes: dict[K, int] = {}
        self._buckets = _SMALLEST

    def add(self, key: K, key_hash: int) -> None:
        """Add a key; one that is present keeps its position."""
        if key in self._hashes:
            return
        mixed = key_hash ^ key_hash >> 16
        self._hashes[key] = mixed
        if len(self._hashes) > _FULL_BUCKET and self._buckets < _CROWDED_UNTIL:
            bucket = mixed & self._buckets - 1
            if sum(other & self._buckets - 1 == bucket for other in self._hashes.values()) > _FULL_BUCKET:
                self._buckets *= 2
        if 4 * len(self._hashes) > 3 * self._buckets:
            self._buckets *= 2

    def remove(self, key: K) -> None:
        """Remove a key. The table keeps its size, as Java's does.

        Raises:
            KeyError: the key is not present.
        """
        del self._hashes[key]

    def first(self) -> K:
        """Return the first key in order; the table must not be empty."""
        return min(self._hashes, key=self._bucket)

    def __len__(self) -> int:
        return len(self._hashes)

    def __iter__(self) -> Iterator[K]:
        return iter(sorted(self._hashes, key=self._bucket))

    def _bucket(self, key: K) -> int:
        return self._hashes[key] & self._buckets - 1


def hash_ordered(names: Iterable[str]) -> list[str]:
    """Return strings in the order of a Java ``HashMap`` or ``HashSet`` after inserting them in the given order."""
    order: HashOrder[str] = HashOrder()
    for name in names:
        order.add(name, string_hash(name))
    return list(order)
