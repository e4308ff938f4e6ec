"""The sticky assignor, under aiokafka's interface."""

from ..own_assignor import OwnAssignor

__all__ = ("StickyPartitionAssignor",)


class StickyPartitionAssignor(OwnAssignor):
    """The sticky assignor, which leaves members the partitions that they have; it assigns as Java's."""

    name = kind = "sticky"
