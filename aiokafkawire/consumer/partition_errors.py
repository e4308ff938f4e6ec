"""What goes wrong with each partition and for how long, and what the user has to hear of."""

from collections.abc import Collection, Iterable

from ..cluster.retry import remedy
from ..errors import KafkaError, OffsetOutOfRange, RequestTimeout
from ..types import TopicPartition
from .subscription_state import PartitionState, SubscriptionState, format_partitions

__all__ = ("PartitionErrors",)


class PartitionErrors:
    """Keeps errors back while a retry may mend them, but no longer than ``limit`` seconds.

    1. Trouble is timed for each partition: what one leader sends says nothing about another.
    2. Trouble that goes on is told again after as long.
    3. Of each partition the newest error is kept, and none of a place that was left meanwhile.
    """

    def __init__(self, positions: SubscriptionState, limit: float) -> None:
        self._positions, self._limit = positions, limit
        self._since: dict[TopicPartition, float] = {}
        self._said: dict[TopicPartition, KafkaError] = {}
        self._untold: dict[TopicPartition, tuple[PartitionState, int, KafkaError]] = {}

    def clear(self, partition: TopicPartition) -> None:
        """The partition gave an answer that is none."""
        self._since.pop(partition, None)
        self._said.pop(partition, None)

    def get(self, partition: TopicPartition) -> KafkaError | None:
        """What the partition is in trouble with now."""
        return self._said.get(partition)

    def clear_all(self, partitions: Collection[TopicPartition]) -> None:
        """These have no news, which is an answer too."""
        if self._since or self._said:
            for partition in partitions:
                self.clear(partition)

    def forget_all_but(self, wanted: Iterable[TopicPartition]) -> None:
        """Partitions that nobody reads now cannot be in trouble."""
        kept = set(wanted)
        self._since = {partition: since for partition, since in self._since.items() if partition in kept}
        self._said = {partition: error for partition, error in self._said.items() if partition in kept}

    def failed(self, states: list[PartitionState], error: KafkaError, began: float, now: float) -> None:
        """Asking for these places since ``began`` ended in an error: told at once unless a retry may mend it."""
        if not states:
            return
        for state in states:
            self._said[state.partition] = error
        # A position that is out of range is looked up anew, so that is a retry as well.
        if not (remedy(error).retry or isinstance(error, OffsetOutOfRange)):
            self.report(states[0], error)
            return
        for state in states:
            self._since.setdefault(state.partition, began)
        lasting = [state for state in states if now - self._since[state.partition] >= self._limit]
        if lasting:
            some = format_partitions([state.partition for state in lasting])
            limit = f"{self._limit:g} s (default_api_timeout_ms)"
            timeout = RequestTimeout(f"nothing could be fetched of {some} for {limit}: {error}")
            timeout.__cause__ = error
            self.report(lasting[0], timeout)
            for state in lasting:
                del self._since[state.partition]

    def report(self, state: PartitionState, error: KafkaError) -> None:
        """The user must hear of this."""
        self._said[state.partition] = error
        self._untold[state.partition] = state, state.epoch, error

    def next(self) -> KafkaError | None:
        """An error that the user has not heard of yet."""
        while self._untold:
            state, epoch, error = self._untold.pop(next(iter(self._untold)))
            if self._positions.is_current(state, epoch):
                return error
        return None
