"""The errors of partitions, and when they are raised to the user."""

from collections.abc import Collection, Iterable

from ..cluster.retry import retry_action
from ..errors import KafkaError, OffsetOutOfRange, RequestTimeout
from ..types import TopicPartition
from .subscription_state import PartitionState, SubscriptionState, format_partitions

__all__ = ("PendingErrors",)


class PendingErrors:
    """Holds retriable errors back, but no longer than ``limit`` seconds.

    1. Errors are timed per partition: a response of one leader says nothing about another.
    2. An error that persists is reported again after the same time.
    3. Only the newest error of a partition is kept, and none after a seek or a revocation.
    """

    def __init__(self, positions: SubscriptionState, limit: float) -> None:
        self._positions, self._limit = positions, limit
        self._since: dict[TopicPartition, float] = {}
        self._current: dict[TopicPartition, KafkaError] = {}
        self._pending: dict[TopicPartition, tuple[PartitionState, int, KafkaError]] = {}

    def clear(self, partition: TopicPartition) -> None:
        """Clear the partition's error: it has responded without one."""
        self._since.pop(partition, None)
        self._current.pop(partition, None)

    def get(self, partition: TopicPartition) -> KafkaError | None:
        """Return the partition's current error."""
        return self._current.get(partition)

    def clear_all(self, partitions: Collection[TopicPartition]) -> None:
        """Clear the errors of these partitions: their broker has responded without news."""
        if self._since or self._current:
            for partition in partitions:
                self.clear(partition)

    def forget_all_but(self, wanted: Iterable[TopicPartition]) -> None:
        """Clear the errors of all other partitions, which are not read now."""
        kept = set(wanted)
        self._since = {partition: since for partition, since in self._since.items() if partition in kept}
        self._current = {partition: error for partition, error in self._current.items() if partition in kept}

    def failed(self, states: list[PartitionState], error: KafkaError, began: float, now: float) -> None:
        """Record the error of requests for these partitions begun at ``began``; report it unless it is retriable."""
        if not states:
            return
        for state in states:
            self._current[state.partition] = error
        # An out-of-range position is looked up again, which is a retry as well.
        if not (retry_action(error).retry or isinstance(error, OffsetOutOfRange)):
            self.report(states[0], error)
            return
        for state in states:
            self._since.setdefault(state.partition, began)
        lasting = [state for state in states if now - self._since[state.partition] >= self._limit]
        if lasting:
            some = format_partitions([state.partition for state in lasting])
            limit = f"{self._limit:g} s (default_api_timeout_ms)"
            timeout = RequestTimeout(f"cannot fetch {some} for {limit}: {error}")
            timeout.__cause__ = error
            self.report(lasting[0], timeout)
            for state in lasting:
                del self._since[state.partition]

    def report(self, state: PartitionState, error: KafkaError) -> None:
        """Report an error to the user."""
        self._current[state.partition] = error
        self._pending[state.partition] = state, state.epoch, error

    def next(self) -> KafkaError | None:
        """Return an error that was not raised to the user yet."""
        while self._pending:
            state, epoch, error = self._pending.pop(next(iter(self._pending)))
            if self._positions.is_current(state, epoch):
                return error
        return None
