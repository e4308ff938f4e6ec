"""Writes partitions as the shell reads them: ``orders:0``."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...types import TopicPartition

__all__ = ("indexes_by_topic", "partition_text")


def partition_text(partition: "TopicPartition") -> str:
    """Return a partition as users write it. A topic's name has no colon, but perhaps a hyphen and a number."""
    return f"{partition.topic}:{partition.partition}"


def indexes_by_topic(partitions: "Iterable[TopicPartition]") -> dict[str, list[int]]:
    """Return the indexes of partitions by topic, sorted."""
    found: dict[str, list[int]] = {}
    for partition in sorted(partitions):
        found.setdefault(partition.topic, []).append(partition.partition)
    return found
