"""The private attributes of aiokafka's consumer that frameworks and instrumentations read."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .consumer import AIOKafkaConsumer

__all__ = ("CoordinatorView", "SubscriptionView")


class SubscriptionView:
    """The attributes of ``consumer._subscription`` that others read.

    Args:
        consumer: the consumer.
    """

    def __init__(self, consumer: "AIOKafkaConsumer[Any, Any]") -> None:
        self._consumer = consumer

    @property
    def topics(self) -> frozenset[str]:
        """The topics subscribed to."""
        return self._consumer.subscription()

    def assigned_partitions(self) -> frozenset[object]:
        """Return the assigned partitions."""
        return frozenset(self._consumer.assignment())

    async def wait_for_assignment(self) -> None:
        """Wait for the assignment, if one is in progress."""
        session = self._consumer._session
        if session is not None:
            await session.wait_until_assigned()


class CoordinatorView:
    """The attributes of ``consumer._coordinator`` that others read.

    Args:
        consumer: the consumer.
    """

    def __init__(self, consumer: "AIOKafkaConsumer[Any, Any]") -> None:
        self._consumer = consumer

    @property
    def group_id(self) -> str | None:
        """The group's id; None without a group."""
        return self._consumer._group_id

    @property
    def member_id(self) -> str:
        """The member's id; empty outside the group."""
        session = self._consumer._session
        commits = None if session is None else session.consumer._commits
        return "" if commits is None else commits.group.member_id

    @property
    def generation(self) -> int:
        """The generation of the membership; -1 outside the group."""
        session = self._consumer._session
        commits = None if session is None else session.consumer._commits
        return -1 if commits is None else commits.group.generation_id
