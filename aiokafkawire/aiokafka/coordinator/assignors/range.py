"""The range assignor, under aiokafka's interface."""

from .own_assignor import OwnAssignor

__all__ = ("RangePartitionAssignor",)


class RangePartitionAssignor(OwnAssignor):
    """The range assignor; it assigns as Java's."""

    name = kind = "range"
