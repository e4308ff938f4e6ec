"""The present values of producers and consumers, which metrics and the labels of pushed metrics have."""

from .._lazy_classes import frozen
from ..types import TopicPartition

__all__ = ("MemberValues", "PartitionValues", "ProducerValues")


@frozen
class ProducerValues:
    """A producer."""

    state: str
    """``"new"``, ``"open"``, ``"closing"`` or ``"closed"``."""
    transactional_id: str | None
    buffer_total: int
    buffer_used: int


@frozen
class MemberValues:
    """A consumer or share consumer, also one without a group."""

    state: str
    """``"new"``, ``"open"``, ``"closing"`` or ``"closed"``."""
    client_rack: str
    group_id: str | None
    group_instance_id: str | None
    member_id: str | None
    assigned: int
    """The number of assigned partitions."""
    polled_at: float | None
    """When it last received records, in seconds of the runtime's clock; of a share consumer, when it was last called
    for some, within 10 ms. None for never."""


@frozen
class PartitionValues:
    """A consumer's partition."""

    group: str
    """The consumer's group; "" without one."""
    partition: TopicPartition
    lag: int | None
    """The number of records to read; None if it is not known yet."""
    lead: int | None
    """The number of records between the beginning of the log and the position; None if it is not known."""
    replica: int
    """The replica that is read instead of the leader; -1 if the leader is read."""
