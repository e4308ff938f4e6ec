"""What becomes of the answer for each partition."""

from typing import Final, NamedTuple

from ..cluster.metadata import Snapshot
from ..cluster.retry import remedy
from ..errors import KafkaError, OffsetOutOfRange, RecordTooLarge, Refresh, UnknownLeaderEpoch
from ..types import TopicPartition
from .fetch import AT_LEAST_ONE_SINCE, CompletedFetch, PartitionFetch
from .partition_errors import PartitionErrors
from .preferred_replica import source
from .subscription_state import SubscriptionState

__all__ = ("FetchBuffer", "FetchContext", "FetchOutcome")

_SIZE_AT: Final = 8
_BODY_AT: Final = 12
_ENVELOPE: Final = 1024
"""More than what is around the records of one partition in an answer."""


class FetchContext(NamedTuple):
    """When and in which version of Fetch an answer came: ``began`` and ``now`` are in seconds."""

    snapshot: Snapshot
    began: float
    now: float
    version: int


class FetchOutcome(NamedTuple):
    """What an answer leads to."""

    failed: bool = False
    """The broker rests for the backoff."""
    outdated: bool = False
    """The snapshot was wrong."""
    told: bool = False
    """The iteration must look again."""
    moved: bool = False
    """The next fetch for the partition is another, and no reason to wait."""


class FetchBuffer:
    """Keeps what came until the user reaches it, and does what errors ask for.

    Args:
        replica_age: for how long a closer replica is read, in seconds.
        largest: the largest answer that is accepted, in bytes (``receive_message_max_bytes``).
    """

    def __init__(
        self, positions: SubscriptionState, troubles: PartitionErrors, *, replica_age: float, largest: int
    ) -> None:
        self._positions, self._troubles = positions, troubles
        self._replica_age, self._largest = replica_age, max(1, largest - _ENVELOPE)
        self.unread: dict[TopicPartition, CompletedFetch] = {}
        """Fetched data by partition, in the order in which it came."""
        self.ahead: dict[TopicPartition, CompletedFetch] = {}
        """What comes after that."""
        self._served = 0

    def drop_stale(self) -> None:
        """What was fetched for a place that is gone would keep its partition out of every fetch."""
        for kept in (self.unread, self.ahead):
            stale = [
                where for where, one in kept.items() if not self._positions.is_current(one.ask.place, one.ask.epoch)
            ]
            for where in stale:
                del kept[where]

    def has_much(self, where: TopicPartition) -> bool:
        """Whether there is so much unread that what comes after it can be asked for."""
        fetched = self.unread.get(where)
        return fetched is not None and fetched.end is not None

    def used_up(self, fetched: CompletedFetch) -> bool:
        """The user has read it, or cannot: whether what comes after it is here, and is unread now."""
        where = fetched.ask.place.where
        if self.unread.get(where) is not fetched:
            return False
        del self.unread[where]
        following = self.ahead.pop(where, None)
        if following is None or not self.is_next(following.ask):
            return False
        self.unread[where] = following
        return True

    def is_next(self, ask: PartitionFetch) -> bool:
        """Whether what was asked for is what the user reads next."""
        return self._positions.is_current(ask.place, ask.epoch) and ask.place.position == ask.offset

    def take(self, ask: PartitionFetch, answer: CompletedFetch | KafkaError, came: FetchContext) -> FetchOutcome:
        """What one partition's answer brings. Nothing, if someone sought elsewhere meanwhile."""
        if not self._positions.is_current(ask.place, ask.epoch):
            return FetchOutcome()
        if isinstance(answer, CompletedFetch):
            return self._data(ask, answer, came)
        return self._error(ask, answer, came)

    def _data(self, ask: PartitionFetch, answer: CompletedFetch, came: FetchContext) -> FetchOutcome:
        place = ask.place
        if answer.preferred_replica is not None and not answer.records:
            place.replica, place.replica_until = answer.preferred_replica, came.now + self._replica_age
            chosen = source(came.snapshot, place, came.now)
            if chosen is not None and chosen.node_id == place.replica:
                return FetchOutcome(moved=True)
            # The leader knows of a broker that we do not.
            place.replica = None
            return FetchOutcome(failed=True, outdated=True)
        # The leader checked its epoch, and so what it gave is of a log that goes with it.
        place.validated = ask.leader_epoch
        place.high_watermark = answer.high_watermark
        if came.version < AT_LEAST_ONE_SINCE and _is_cut(answer):
            return self._cut_short(ask, answer)
        self._troubles.over(place.where)
        if not answer.records:
            return FetchOutcome()
        place.fetch_bytes = None
        self._served += 1
        place.served = self._served
        if place.where in self.unread:
            self.ahead[place.where] = answer
            return FetchOutcome()
        if not self.is_next(ask):  # what is before it could not be read
            return FetchOutcome(moved=True)
        self.unread[place.where] = answer
        return FetchOutcome(told=True)

    def _cut_short(self, ask: PartitionFetch, answer: CompletedFetch) -> FetchOutcome:
        """Before KIP-74 a message that is larger than what was asked for never came: ask for more."""
        place, data = ask.place, answer.records
        size = _BODY_AT + int.from_bytes(data[_SIZE_AT:_BODY_AT], "big") if len(data) >= _BODY_AT else None
        # A broker that cuts off what would fit has a limit of its own.
        needed = size if size is not None and size > ask.max_bytes else 2 * ask.max_bytes
        if ask.max_bytes >= self._largest or (size is not None and size > self._largest):
            place.lost = True
            told = f"of {size} bytes" if size is not None else f"of more than {ask.max_bytes} bytes"
            why = f"{place.where} at offset {ask.offset} has a message {told}, too large for receive_message_max_bytes"
            self._troubles.report(place, RecordTooLarge(f"{why}; raise that, or seek beyond it"))
            return FetchOutcome(told=True)
        place.fetch_bytes = min(needed, self._largest)
        return FetchOutcome(moved=True)

    def _error(self, ask: PartitionFetch, error: KafkaError, came: FetchContext) -> FetchOutcome:
        place = ask.place
        place.replica = None
        outdated = remedy(error).refresh is Refresh.METADATA or isinstance(error, UnknownLeaderEpoch)
        if not self.is_next(ask):  # once the user gets there it is told, if it still is so
            return FetchOutcome(failed=True, outdated=outdated)
        # A follower may lag behind, or be ahead in what it deleted: the leader is asked then.
        if isinstance(error, OffsetOutOfRange) and ask.from_leader and not self._positions.reset(place):
            place.lost = True
            told = OffsetOutOfRange(f"{error}; auto_offset_reset is 'none', so seek elsewhere")
            self._troubles.report(place, told)
            return FetchOutcome(told=True)
        # After a reset as well: a broker that finds every offset out of range is not asked for ever without a word.
        self._troubles.failed([place], error, came.began, came.now)
        return FetchOutcome(failed=True, outdated=outdated, told=True)


def _is_cut(answer: CompletedFetch) -> bool:
    """Whether what came is less than the first message, though there is one."""
    data = answer.records
    if len(data) < _BODY_AT:
        return answer.ask.offset < answer.high_watermark
    return _BODY_AT + int.from_bytes(data[_SIZE_AT:_BODY_AT], "big") > len(data)
