"""Checks the arguments of aiokafka's consumer; the errors are of aiokafka's types."""

from collections.abc import Collection, Iterable

from ...argument_checks import shown
from ..structs import TopicPartition

__all__ = ("check_partition_arguments", "checked_partitions", "checked_topics", "like_partitions")


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


def like_partitions(partitions: Iterable[object]) -> list[TopicPartition]:
    """Return partitions, each of which may be another named tuple of a topic and a partition, such as Faust's.

    Raises:
        TypeError: one is no tuple of two.
    """
    return checked_partitions(
        TopicPartition(*one) if isinstance(one, tuple) and len(one) == 2 else one for one in partitions
    )
