"""Checks the arguments of aiokafka's consumer; the errors are of aiokafka's types."""

from collections.abc import Collection, Iterable, Mapping

from ...argument_checks import shown
from ..structs import OffsetAndMetadata, TopicPartition

__all__ = ("check_partition_arguments", "checked_offsets", "checked_partitions", "checked_topics")


def checked_topics(topics: object) -> tuple[str, ...]:
    """Return the names of topics, each once.

    Raises:
        TypeError: they are no collection of text.
    """
    if isinstance(topics, str) or not isinstance(topics, Collection):
        raise TypeError(f"topics must be a list of names, got {shown(topics)}")
    for topic in topics:
        if not isinstance(topic, str):
            raise TypeError(f"a topic's name must be text, got {shown(topic)}")
    return tuple(dict.fromkeys(topics))


def check_partition_arguments(partitions: Iterable[object]) -> None:
    """Check the arguments of a method that takes partitions one by one: a list of some would name none.

    Raises:
        ValueError: one is no TopicPartition.
    """
    for partition in partitions:
        if not isinstance(partition, TopicPartition):
            raise ValueError(f"each argument must be a TopicPartition, got {shown(partition)}")


def checked_partitions(partitions: Iterable[object]) -> list[TopicPartition]:
    """Return a list of partitions.

    Raises:
        TypeError: one is no TopicPartition.
    """
    checked: list[TopicPartition] = []
    for partition in partitions:
        if not isinstance(partition, TopicPartition):
            raise TypeError(f"partitions must be TopicPartition instances, got {shown(partition)}")
        checked.append(partition)
    return checked


def checked_offsets(offsets: object) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the offsets to commit, each with its text.

    Raises:
        ValueError: there are none, or one is no offset.
        TypeError: a key is no TopicPartition, or a text is no string.
    """
    if not offsets or not isinstance(offsets, Mapping):
        raise ValueError(f"offsets must be a dict of partitions and offsets, got {shown(offsets)}")
    found: dict[TopicPartition, OffsetAndMetadata] = {}
    for partition, given in offsets.items():
        if not isinstance(partition, TopicPartition):
            raise TypeError(f"Key should be TopicPartition instance, got {shown(partition)}")
        offset, metadata = (given, "") if isinstance(given, int) else _pair(partition, given)
        if not isinstance(metadata, str):
            raise TypeError(f"Metadata should be a string, got {shown(metadata)}")
        if not isinstance(offset, int) or offset < 0:
            raise ValueError(f"the offset of {partition} must be an integer, 0 or above, got {shown(offset)}")
        found[partition] = OffsetAndMetadata(offset, metadata)
    return found


def _pair(partition: TopicPartition, given: object) -> tuple[object, object]:
    if isinstance(given, tuple | list) and len(given) == 2:
        return given[0], given[1]
    raise ValueError(f"the offset of {partition} must be an integer, or an integer and a text, got {shown(given)}")
