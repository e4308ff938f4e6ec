"""The errors of partitions, and when they are raised to the user."""

from collections.abc import Collection, Iterable

from ..cluster.retry import retry_action
from ..errors import KafkaError, OffsetOutOfRange, RequestTimeout
from ..types import TopicPartition
from .subscription_state import PartitionState, SubscriptionState, format_partitions

__all__ = ("PendingErrors",)


class PendingErrors:
    """The errors of one consumer's partitions. Retriable errors are raised only if they last ``limit`` seconds.

    1. Errors are timed per partition: a response of one leader says nothing about another leader.
    2. An error that persists is reported again after each further ``limit`` seconds.
    3. Only the newest error of a partition is kept, and none after a seek or a revocation.
    """

    def __init__(self, positions: SubscriptionState, limit: float) -> None:
        self._positions, self._limit = positions, limit
        self._since: dict[TopicPartition, float] = {}
        self._current: dict[TopicPartition, KafkaError] = {}
        self._pending: dict[TopicPartition, tuple[PartitionState, int, KafkaError]] = {}

    def clear(self, partition: TopicPartition) -> None:
        """Clear the partition's error, after a result without an error."""
        self._since.pop(partition, None)
        self._current.pop(partition, None)

    def get(self, partition: TopicPartition) -> KafkaError | None:
        """Return the partition's current error, if there is one."""
        return self._current.get(partition)

    def clear_all(self, partitions: Collection[TopicPartition]) -> None:
        """Clear the errors of these partitions: their broker's response had no error for them."""
        if self._since or self._current:
            for partition in partitions:
                self.clear(partition)

    def forget_all_but(self, wanted: Iterable[TopicPartition]) -> None:
        """Clear the errors of all partitions that are not in ``wanted``: they are not read now."""
        kept = set(wanted)
        self._since = {partition: since for partition, since in self._since.items() if partition in kept}
        self._current = {partition: error for partition, error in self._current.items() if partition in kept}

    def failed(self, states: list[PartitionState], error: KafkaError, began: float, now: float) -> None:
        """Record the error of a request for these partitions, which was sent at ``began``.

        Report it at once if it is not retriable, otherwise once it has lasted ``limit`` seconds.
        """
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
        """Keep an error for the user: :meth:`next` returns it, unless the partition has a seek or is revoked before."""
        self._current[state.partition] = error
        self._pending[state.partition] = state, state.epoch, error

    def next(self) -> KafkaError | None:
        """Return a reported error that was not raised to the user yet, if any."""
        while self._pending:
            state, epoch, error = self._pending.pop(next(iter(self._pending)))
            if self._positions.is_current(state, epoch):
                return error
        return None
