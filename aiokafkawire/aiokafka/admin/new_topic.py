"""A topic to create, with aiokafka's names."""

from collections.abc import Mapping, Sequence

from ..errors import IllegalArgumentError

__all__ = ("NewTopic",)


class NewTopic:
    """A topic to create.

    Args:
        name: the topic's name.
        num_partitions: the number of partitions; -1 with ``replica_assignments``.
        replication_factor: the number of replicas; -1 with ``replica_assignments``.
        replica_assignments: the brokers of each partition.
        topic_configs: the topic's configs; a value may be a number, or True or False.

    Raises:
        IllegalArgumentError: the numbers and the assignments are both given, or both missing.
    """

    def __init__(
        self,
        name: str,
        num_partitions: int,
        replication_factor: int,
        replica_assignments: Mapping[int, Sequence[int]] | None = None,
        topic_configs: Mapping[str, str | float | None] | None = None,
    ) -> None:
        if (num_partitions == -1 or replication_factor == -1) == (replica_assignments is None):
            raise IllegalArgumentError(
                "give either num_partitions and replication_factor, or -1 for both and replica_assignments"
            )
        self.name = name
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.replica_assignments: Mapping[int, Sequence[int]] = replica_assignments or {}
        self.topic_configs: Mapping[str, str | float | None] = topic_configs or {}
