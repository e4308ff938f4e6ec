"""The orders in which Java keeps strings and partitions, where they decide what an assignor does.

Java's assignors go through hash maps of member ids and topics, and where there is no other reason, the first they meet
wins. Whoever leads a group decides for all of it, so a group whose leader changes from a Java client to this one, or
back, keeps what it has only if both go the same way.
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
"""Smaller tables are doubled as well when a bucket has more keys than ``_FULL_BUCKET``; larger ones never are."""


def string_hash(text: str) -> int:
    """What Java's ``String.hashCode`` gives, as an unsigned number of 32 bits."""
    value = 0
    if text.isascii():
        for byte in text.encode():
            value = 31 * value + byte & _WORD
        return value
    data = sort_key(text)
    for index in range(0, len(data), 2):
        value = 31 * value + (data[index] << 8 | data[index + 1]) & _WORD
    return value


def partition_hash(where: TopicPartition, topic_hash: int) -> int:
    """What the hash of Java's ``TopicPartition`` is, given its topic's."""
    return 31 * (31 + where.partition) + topic_hash & _WORD


def sort_key(text: str) -> bytes:
    """Sorts strings as Java does: by UTF-16 units. Python's own order differs for what is beyond 16 bits."""
    return text.encode("utf-16-be", "surrogatepass")


class HashOrder(Generic[K]):
    """Keys in the order of a Java ``HashMap`` that they were put into, one after another.

    A bucket lists its keys as they came. That of more than eight keys in a table of 64 buckets or more, a tree in Java,
    is not followed: no hash makes one by chance.
    """

    def __init__(self) -> None:
        self._hashes: dict[K, int] = {}
        self._buckets = _SMALLEST

    def add(self, key: K, key_hash: int) -> None:
        """Put a key in; one that is there already stays where it is."""
        if key in self._hashes:
            return
        mixed = key_hash ^ key_hash >> 16
        self._hashes[key] = mixed
        if len(self._hashes) > _FULL_BUCKET and self._buckets < _CROWDED_UNTIL:
            bucket = mixed & self._buckets - 1
            if sum(one & self._buckets - 1 == bucket for one in self._hashes.values()) > _FULL_BUCKET:
                self._buckets *= 2
        if 4 * len(self._hashes) > 3 * self._buckets:
            self._buckets *= 2

    def remove(self, key: K) -> None:
        """Take a key out. The table keeps its size, as Java's does.

        Raises:
            KeyError: it is not there.
        """
        del self._hashes[key]

    def first(self) -> K:
        """The first key in order; there must be one."""
        return min(self._hashes, key=self._bucket)

    def __len__(self) -> int:
        return len(self._hashes)

    def __iter__(self) -> Iterator[K]:
        return iter(sorted(self._hashes, key=self._bucket))

    def _bucket(self, key: K) -> int:
        return self._hashes[key] & self._buckets - 1


def hash_ordered(names: Iterable[str]) -> list[str]:
    """Strings in the order of a Java ``HashMap`` or ``HashSet`` that they were put into in the order given."""
    order: HashOrder[str] = HashOrder()
    for name in names:
        order.add(name, string_hash(name))
    return list(order)
