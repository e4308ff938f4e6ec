"""What goes wrong with each partition and for how long, and what the user has to hear of."""

from collections.abc import Collection, Iterable

from ..cluster.retry import remedy
from ..errors import KafkaError, OffsetOutOfRange, RequestTimeout
from ..types import TopicPartition
from .subscription_state import PartitionState, SubscriptionState, some_of

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

    def over(self, where: TopicPartition) -> None:
        """The partition gave an answer that is none."""
        self._since.pop(where, None)
        self._said.pop(where, None)

    def of(self, where: TopicPartition) -> KafkaError | None:
        """What the partition is in trouble with now."""
        return self._said.get(where)

    def all_over(self, partitions: Collection[TopicPartition]) -> None:
        """These have no news, which is an answer too."""
        if self._since or self._said:
            for where in partitions:
                self.over(where)

    def forget_all_but(self, wanted: Iterable[TopicPartition]) -> None:
        """Partitions that nobody reads now cannot be in trouble."""
        kept = set(wanted)
        self._since = {where: since for where, since in self._since.items() if where in kept}
        self._said = {where: error for where, error in self._said.items() if where in kept}

    def failed(self, places: list[PartitionState], error: KafkaError, began: float, now: float) -> None:
        """Asking for these places since ``began`` ended in an error: told at once unless a retry may mend it."""
        if not places:
            return
        for place in places:
            self._said[place.where] = error
        # A position that is out of range is looked up anew, so that is a retry as well.
        if not (remedy(error).retry or isinstance(error, OffsetOutOfRange)):
            self.report(places[0], error)
            return
        for place in places:
            self._since.setdefault(place.where, began)
        lasting = [place for place in places if now - self._since[place.where] >= self._limit]
        if lasting:
            some = some_of([place.where for place in lasting])
            limit = f"{self._limit:g} s (default_api_timeout_ms)"
            timeout = RequestTimeout(f"nothing could be fetched of {some} for {limit}: {error}")
            timeout.__cause__ = error
            self.report(lasting[0], timeout)
            for place in lasting:
                del self._since[place.where]

    def report(self, place: PartitionState, error: KafkaError) -> None:
        """The user must hear of this."""
        self._said[place.where] = error
        self._untold[place.where] = place, place.epoch, error

    def next(self) -> KafkaError | None:
        """An error that the user has not heard of yet."""
        while self._untold:
            place, epoch, error = self._untold.pop(next(iter(self._untold)))
            if self._positions.is_current(place, epoch):
                return error
        return None
