"""More partitions of a topic, with aiokafka's names."""

from collections.abc import Sequence

__all__ = ("NewPartitions",)


class NewPartitions:
    """The number of partitions that a topic shall have.

    Args:
        total_count: the number of all partitions, those that exist included.
        new_assignments: the brokers of each new partition; None lets the controller choose.
    """

    def __init__(self, total_count: int, new_assignments: Sequence[Sequence[int]] | None = None) -> None:
        self.total_count = total_count
        self.new_assignments = new_assignments
