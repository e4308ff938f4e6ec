"""aiokafka's partitioner."""

import random
from collections.abc import Sequence

from ..producer.partitioner import murmur2, partition_for_key

__all__ = ("DefaultPartitioner", "murmur2")


class DefaultPartitioner:
    """Chooses the partition by the key's murmur2 hash, as Java does, and a random one for a record without a key."""

    @classmethod
    def __call__(cls, key: bytes | None, all_partitions: Sequence[int], available: Sequence[int]) -> int:
        """Return the partition of a record.

        Args:
            key: the serialized key; None if the record has none.
            all_partitions: all partitions of the topic, in order.
            available: the partitions that have a leader.
        """
        if key is None:
            return random.choice(available or all_partitions)  # noqa: S311, no secret
        return all_partitions[partition_for_key(key, len(all_partitions))]
