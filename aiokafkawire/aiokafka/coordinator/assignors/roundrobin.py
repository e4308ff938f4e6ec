"""The roundrobin assignor, under aiokafka's interface."""

from .own_assignor import OwnAssignor

__all__ = ("RoundRobinPartitionAssignor",)


class RoundRobinPartitionAssignor(OwnAssignor):
    """The roundrobin assignor; it assigns as Java's."""

    name = kind = "roundrobin"
