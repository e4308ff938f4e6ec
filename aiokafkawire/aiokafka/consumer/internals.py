"""The private attributes of aiokafka's consumer that frameworks and instrumentations read."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from ..structs import ConsumerRecord, TopicPartition

if TYPE_CHECKING:
    from .consumer import AIOKafkaConsumer

__all__ = ("CoordinatorView", "FetcherView", "SubscriptionView")


class PartitionView(NamedTuple):
    """The attributes of a partition's state that Faust reads; ``timestamp`` is that of the last answer, in ms."""

    highwater: int | None
    position: int | None
    timestamp: int | None


class AssignmentView:
    """The attributes of ``consumer._subscription.subscription.assignment`` that Faust reads.

    Args:
        consumer: the consumer.
    """

    def __init__(self, consumer: "AIOKafkaConsumer[Any, Any]") -> None:
        self._consumer = consumer

    @property
    def assignment(self) -> "AssignmentView":
        """This object, which stands for the subscription as well."""
        return self

    @property
    def active(self) -> bool:
        """Whether partitions are assigned."""
        return bool(self._consumer.assignment())

    def state_value(self, partition: TopicPartition) -> PartitionView | None:
        """Return the state of a partition; None if it is not assigned."""
        consumer = self._consumer
        session = consumer._session
        if session is None or partition not in session.partitions:
            return None
        position = session.consumer.position(partition)
        return PartitionView(consumer.highwater(partition), position, consumer.last_poll_timestamp(partition))


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

    @property
    def subscription(self) -> AssignmentView:
        """The subscription, with its assignment."""
        return AssignmentView(self._consumer)

    def fetch_context(self) -> AbstractContextManager[None]:
        """Return a context for a request of records; it does nothing."""
        return nullcontext()

    def assigned_partitions(self) -> frozenset[object]:
        """Return the assigned partitions."""
        return frozenset(self._consumer.assignment())

    async def wait_for_assignment(self) -> None:
        """Wait for the assignment, if one is in progress."""
        session = self._consumer._session
        if session is not None:
            await session.wait_until_assigned()


class FetcherView:
    """The attributes of ``consumer._fetcher`` that Faust uses.

    Args:
        consumer: the consumer.
    """

    def __init__(self, consumer: "AIOKafkaConsumer[Any, Any]") -> None:
        self._consumer = consumer

    @property
    def _closed(self) -> bool:
        return bool(self._consumer._closed)

    @property
    def _subscriptions(self) -> SubscriptionView:
        return self._consumer._subscription

    async def fetched_records(
        self, partitions: Iterable[tuple[str, int]] | None, timeout: float | None = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord[Any, Any]]]:
        """Return fetched records by partition, as ``getmany()``; ``timeout`` is in seconds."""
        wanted = [TopicPartition(*partition) for partition in partitions or ()]
        return await self._consumer.getmany(*wanted, timeout_ms=1000 * (timeout or 0), max_records=max_records)


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

    @property
    def _metadata_snapshot(self) -> dict[str, int]:
        """The number of partitions of each topic subscribed to."""
        known = {topic: self._consumer.partitions_for_topic(topic) for topic in self._consumer.subscription()}
        return {topic: len(partitions) for topic, partitions in known.items() if partitions}

    async def close(self) -> None:
        """Do nothing: ``stop()`` of the consumer leaves the group."""
