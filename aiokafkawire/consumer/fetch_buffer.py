"""Buffers fetched data, and handles the result of each partition."""

from typing import Final, NamedTuple

from ..cluster.metadata import Snapshot
from ..cluster.retry import retry_action
from ..errors import KafkaError, OffsetOutOfRange, RecordTooLarge, Refresh, UnknownLeaderEpoch
from ..types import TopicPartition
from .completed_fetch import CompletedFetch, PartitionFetch
from .fetch_planner import AT_LEAST_ONE_SINCE
from .pending_errors import PendingErrors
from .read_replica import select_read_replica
from .subscription_state import SubscriptionState

__all__ = ("FetchBuffer", "FetchContext", "FetchOutcome")

_SIZE_AT: Final = 8
_BODY_AT: Final = 12
_ENVELOPE: Final = 1024
"""The space reserved for the fields of a response besides its records."""


class FetchContext(NamedTuple):
    """A fetch's metadata snapshot, when the fetch began and ended in seconds, and the version of its request."""

    snapshot: Snapshot
    began: float
    now: float
    version: int


class FetchOutcome(NamedTuple):
    """The consequences of one partition's result for the fetcher."""

    failed: bool = False
    """Whether the next fetch from the broker waits for a backoff."""
    outdated: bool = False
    """Whether the metadata is outdated."""
    notify: bool = False
    """Whether there is data or an error for the iteration."""
    moved: bool = False
    """Whether the partition's next fetch has another broker, offset or limit, so that it need not wait."""


class FetchBuffer:
    """The fetched data that the user has not read yet, and the handler of partitions' results.

    Args:
        replica_age: the seconds for which to read from a closer replica before reading from the leader again.
        largest: the largest response in bytes (``receive_message_max_bytes``).
    """

    def __init__(
        self, positions: SubscriptionState, errors: PendingErrors, *, replica_age: float, largest: int
    ) -> None:
        self._positions, self._errors = positions, errors
        self._replica_age, self._largest = replica_age, max(1, largest - _ENVELOPE)
        self.unread: dict[TopicPartition, CompletedFetch] = {}
        """Fetched data by partition, in the order of arrival."""
        self.ahead: dict[TopicPartition, CompletedFetch] = {}
        """The data that follows the unread data of the same partition."""
        self._served = 0

    def drop_stale(self) -> None:
        """Drop stale data, from before a seek or from an earlier assignment: it would prevent further fetches."""
        for kept in (self.unread, self.ahead):
            stale = [
                partition
                for partition, fetched in kept.items()
                if not self._positions.is_current(fetched.ask.state, fetched.ask.epoch)
            ]
            for partition in stale:
                del kept[partition]

    def has_much(self, partition: TopicPartition) -> bool:
        """Return whether the partition has so much unread data that more is fetched while the user reads."""
        fetched = self.unread.get(partition)
        return fetched is not None and fetched.end is not None

    def discard(self, fetched: CompletedFetch) -> bool:
        """Drop data that was read or is unusable; return whether data that was fetched ahead takes its place."""
        partition = fetched.ask.state.partition
        if self.unread.get(partition) is not fetched:
            return False
        del self.unread[partition]
        following = self.ahead.pop(partition, None)
        if following is None or not self.is_next(following.ask):
            return False
        self.unread[partition] = following
        return True

    def is_next(self, ask: PartitionFetch) -> bool:
        """Return whether the fetch begins at the partition's current position."""
        return self._positions.is_current(ask.state, ask.epoch) and ask.state.position == ask.offset

    def take(self, ask: PartitionFetch, answer: CompletedFetch | KafkaError, context: FetchContext) -> FetchOutcome:
        """Handle one partition's result; ignore it if the partition had a seek or was revoked since the request."""
        if not self._positions.is_current(ask.state, ask.epoch):
            return FetchOutcome()
        if isinstance(answer, CompletedFetch):
            return self._data(ask, answer, context)
        return self._error(ask, answer, context)

    def _data(self, ask: PartitionFetch, answer: CompletedFetch, context: FetchContext) -> FetchOutcome:
        state = ask.state
        if answer.preferred_replica is not None and not answer.records:
            state.replica, state.replica_until = answer.preferred_replica, context.now + self._replica_age
            chosen = select_read_replica(context.snapshot, state, context.now)
            if chosen is not None and chosen.node_id == state.replica:
                return FetchOutcome(moved=True)
            # The leader knows a broker that our metadata lacks.
            state.replica = None
            return FetchOutcome(failed=True, outdated=True)
        # The leader has checked its epoch, so the data belongs to the validated log.
        state.validated = ask.leader_epoch
        state.high_watermark, state.committed_end = answer.high_watermark, answer.committed_end
        state.log_start = answer.log_start
        if context.version < AT_LEAST_ONE_SINCE and _is_cut(answer):
            return self._cut_short(ask, answer)
        self._errors.clear(state.partition)
        if not answer.records:
            return FetchOutcome()
        state.fetch_bytes = None
        self._served += 1
        state.served = self._served
        if state.partition in self.unread:
            self.ahead[state.partition] = answer
            return FetchOutcome()
        if not self.is_next(ask):  # the data before it could not be read
            return FetchOutcome(moved=True)
        self.unread[state.partition] = answer
        return FetchOutcome(notify=True)

    def _cut_short(self, ask: PartitionFetch, answer: CompletedFetch) -> FetchOutcome:
        """Raise the limit of the partition's next fetch, or report a message that is too large for any limit.

        Brokers before KIP-74 cut off a message that is larger than the limit.
        """
        state, data = ask.state, answer.records
        size = _BODY_AT + int.from_bytes(data[_SIZE_AT:_BODY_AT], "big") if len(data) >= _BODY_AT else None
        # A broker that cuts off a message that would fit has a limit of its own: request twice as much.
        needed = size if size is not None and size > ask.max_bytes else 2 * ask.max_bytes
        if ask.max_bytes >= self._largest or (size is not None and size > self._largest):
            state.lost = True
            length = f"of {size} bytes" if size is not None else f"of more than {ask.max_bytes} bytes"
            what = f"{state.partition} at offset {ask.offset} has a message {length}"
            why = "too large for receive_message_max_bytes; raise that, or seek past the message"
            self._errors.report(state, RecordTooLarge(f"{what}, {why}"))
            return FetchOutcome(notify=True)
        state.fetch_bytes = min(needed, self._largest)
        return FetchOutcome(moved=True)

    def _error(self, ask: PartitionFetch, error: KafkaError, context: FetchContext) -> FetchOutcome:
        state = ask.state
        state.replica = None
        outdated = retry_action(error).refresh is Refresh.METADATA or isinstance(error, UnknownLeaderEpoch)
        if not self.is_next(ask):  # reported if it occurs again once the user has read the data before
            return FetchOutcome(failed=True, outdated=outdated)
        # A follower may lag behind, or have deleted more: after its error, the leader is read next.
        if isinstance(error, OffsetOutOfRange) and ask.from_leader and not self._positions.reset(state):
            state.lost = True
            reported = OffsetOutOfRange(f"{error}; auto_offset_reset is 'none', so call seek()")
            self._errors.report(state, reported)
            return FetchOutcome(notify=True)
        # Also after a reset, so that a broker that finds every offset out of range is reported at last.
        self._errors.failed([state], error, context.began, context.now)
        return FetchOutcome(failed=True, outdated=outdated, notify=True)


def _is_cut(answer: CompletedFetch) -> bool:
    """Return whether the first message is cut off, or is missing although the fetch began before the log's end."""
    data = answer.records
    if len(data) < _BODY_AT:
        return answer.ask.offset < answer.high_watermark
    return _BODY_AT + int.from_bytes(data[_SIZE_AT:_BODY_AT], "big") > len(data)
