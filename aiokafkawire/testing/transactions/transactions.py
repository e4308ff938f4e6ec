"""The transaction coordinators of a cluster: every transactional id, and the timeouts of what they left open."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from ...errors import ErrorCode
from ...types import TopicPartition
from ..cluster.api_error import ApiError
from ..cluster.replicas import NO_LEADER, HostedPartition
from ..cluster.timers import Timer, Timers
from ..cluster.topics import TRANSACTIONS_TOPIC
from .end_txn import is_over, is_over_bumping
from .markers import Completion
from .transaction import Ids, State, TransactionRecord

__all__ = ("Transactions",)

_PATIENCE = 1.0  # seconds until a timeout is looked at again that no coordinator was there for
_LONGEST_PATTERN = 1000  # Kafka's patterns take linear time, ours may not


class Transactions:
    """All transactional ids, whoever coordinates them: a coordinator that moves keeps what was known.

    Args:
        max_timeout_ms: the longest that a transaction may be open, ``transaction.max.timeout.ms``.
        timers: for timeouts, and for the loading of a coordinator.
        clock: the time in ms since the epoch.
        new_producer_id: gives ids that nobody has had.
        coordinator: the partition whose leader coordinates a transactional id.
        completion: writes the markers.
    """

    def __init__(
        self,
        max_timeout_ms: int,
        timers: Timers,
        clock: Callable[[], int],
        new_producer_id: Callable[[], int],
        coordinator: Callable[[str], HostedPartition],
        completion: Completion,
    ) -> None:
        self._max_timeout_ms = max_timeout_ms
        self._timers = timers
        self._clock = clock
        self._new_producer_id = new_producer_id
        self._coordinator = coordinator
        self._completion = completion
        self._by_id: dict[str, TransactionRecord] = {}
        self._leaders: dict[HostedPartition, int] = {}
        self._loading: dict[HostedPartition, Timer] = {}
        self._loading_takes = 0.0

    # --- where it is coordinated ---------------------------------------------------------------------------------

    def check(self, transactional_id: str, node_id: int | None = None) -> None:
        """Whether a broker coordinates a transactional id, or if none is named, whether any does.

        Raises:
            Refused: NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS.
        """
        partition = self._coordinator(transactional_id)
        if node_id is None and partition.leader == NO_LEADER:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if node_id is not None and node_id != partition.leader:
            raise ApiError(ErrorCode.NOT_COORDINATOR)
        if partition in self._loading:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    def partition_changed(self, partition: HostedPartition) -> None:
        """A partition has another leader, other replicas in sync, or more that is committed."""
        if partition.log.topic == TRANSACTIONS_TOPIC:
            self._coordinator_changed(partition)
        self.resume()

    def resume(self) -> None:
        """Write the markers that can be written; what is left of a transaction may have been deleted."""
        self._completion.resume(self._led)

    def clear(self) -> None:
        """Forget all transactional ids: ``__transaction_state`` is gone. What is open in partitions stays open."""
        for timer in (*self._loading.values(), *(found.timer for found in self._by_id.values())):
            if timer is not None:
                timer.cancel()
        self._loading.clear()
        self._leaders.clear()
        self._by_id.clear()
        self._completion.clear()

    @contextmanager
    def loading_for(self, seconds: float) -> Iterator[None]:
        """Inside, a new coordinator takes this long to read what was written."""
        self._loading_takes = seconds
        try:
            yield
        finally:
            self._loading_takes = 0.0

    def start(self) -> None:
        """The brokers start, perhaps again: what is open gets its time anew, and nobody loads."""
        for loading in self._loading.values():
            loading.cancel()
        self._loading.clear()
        for found in self._by_id.values():
            if found.timer is not None:
                found.timer.cancel()
            if found.state is State.ONGOING:
                found.began = self._timers.now()
                self._watch(found)

    def hold_markers(self, transactional_id: str) -> None:
        """Leave its transactions decided and not complete, until they are released."""
        self._completion.hold(transactional_id)

    def release_markers(self, transactional_id: str) -> None:
        """Complete them after all."""
        self._completion.release(transactional_id)
        self.resume()

    def _coordinator_changed(self, partition: HostedPartition) -> None:
        before = self._leaders.get(partition, partition.replicas[0])
        self._leaders[partition] = partition.leader
        if partition.leader in (before, NO_LEADER) or self._loading_takes <= 0:
            return
        loading = self._loading.pop(partition, None)
        if loading is not None:
            loading.cancel()
        self._loading[partition] = self._timers.after(self._loading_takes, lambda: self._loaded(partition))

    def _loaded(self, partition: HostedPartition) -> None:
        del self._loading[partition]
        self.resume()

    def _led(self, found: TransactionRecord) -> HostedPartition | None:
        """The partition of the coordinator, if there is one that has loaded it."""
        partition = self._coordinator(found.transactional_id)
        return None if partition.leader == NO_LEADER or partition in self._loading else partition

    # --- producers -----------------------------------------------------------------------------------------------

    def check_timeout(self, timeout_ms: int) -> None:
        """Whether a transaction may be open for so long.

        Raises:
            Refused: INVALID_TRANSACTION_TIMEOUT, it is not above 0, or above ``transaction.max.timeout.ms``.
        """
        if not 0 < timeout_ms <= self._max_timeout_ms:
            raise ApiError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)

    def initialize(self, transactional_id: str, timeout_ms: int, expected: Ids | None = None) -> Ids:
        """A producer's id and epoch. An open transaction of the producer before is aborted first.

        Raises:
            Refused: CONCURRENT_TRANSACTIONS, ask again: the transaction before is not complete; PRODUCER_FENCED.
        """
        found = self._by_id.get(transactional_id)
        if found is None:
            found = TransactionRecord(transactional_id, self._new_producer_id(), timeout_ms)
            self._by_id[transactional_id] = found
        if expected is not None:
            found.check_expected(expected)
        if found.is_deciding:
            raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if found.state is State.ONGOING:
            self._fence(found)
            raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
        return found.initialize(timeout_ms, expected, self._new_producer_id)

    def add(
        self, transactional_id: str, ids: Ids, partitions: Sequence[TopicPartition], *, bumps: bool = False
    ) -> None:
        """Take partitions into the transaction, which begins with them if none is open.

        Raises:
            Refused: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
        """
        found = self._of_producer(transactional_id, ids)
        if found.state is State.ONGOING and all(where in found.partitions for where in partitions):
            return
        if found.add(partitions, self._clock(), bumps=bumps):
            found.began = self._timers.now()
            self._watch(found)

    def verify(self, transactional_id: str, ids: Ids, where: TopicPartition) -> None:
        """Whether a partition is in the transaction (KIP-890).

        Raises:
            Refused: as :meth:`add`; TRANSACTION_ABORTABLE, it is not.
        """
        if where not in self._of_producer(transactional_id, ids).partitions:
            raise ApiError(ErrorCode.TRANSACTION_ABORTABLE)

    def _of_producer(self, transactional_id: str, ids: Ids) -> TransactionRecord:
        found = self._by_id.get(transactional_id)
        if found is None or found.producer_id != ids[0]:
            raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if found.epoch != ids[1]:
            raise ApiError(ErrorCode.PRODUCER_FENCED)
        if found.is_deciding:
            raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
        return found

    # --- ending --------------------------------------------------------------------------------------------------

    def end(self, transactional_id: str, ids: Ids, *, commit: bool, bumps: bool) -> Ids:
        """Commit or abort; the id and epoch to go on with, which are other ones with transaction.version 2.

        Raises:
            Refused: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE.
        """
        found = self._by_id.get(transactional_id)
        if found is None:
            raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        over = is_over_bumping(found, ids, commit) if bumps else is_over(found, ids, commit)
        if over:
            return found.producer_id, found.epoch
        return self._decide(found, commit, bumps=bumps)

    def _decide(self, found: TransactionRecord, commit: bool, *, bumps: bool) -> Ids:
        found.decide(commit, self._clock(), self._new_producer_id, bumps=bumps)
        then = found.after_completion()
        self._completion.begin(found)
        self.resume()
        return then

    def _fence(self, found: TransactionRecord) -> None:
        """Abort what is open, with an epoch that its producer does not have."""
        self._decide(found, commit=False, bumps=True)

    def _watch(self, found: TransactionRecord) -> None:
        seconds = found.timeout_ms / 1000
        if found.timer is not None and found.timer.pending:
            if found.timer.due <= found.began + seconds:
                return  # it looks again when it finds that it is too early
            found.timer.cancel()
        found.timer = self._timers.after(seconds, lambda: self._timed_out(found))

    def _timed_out(self, found: TransactionRecord) -> None:
        if found.state is not State.ONGOING:
            return
        left = found.began + found.timeout_ms / 1000 - self._timers.now()
        if left <= 0 and self._led(found) is not None:
            self._fence(found)
        else:
            found.timer = self._timers.after(left if left > 0 else _PATIENCE, lambda: self._timed_out(found))

    def expire(self, transactional_id: str) -> None:
        """Forget a transactional id, as after ``transactional.id.expiration.ms``.

        Raises:
            KeyError: it is not known.
            ValueError: its transaction is open or not complete.
        """
        found = self._by_id[transactional_id]
        if found.state is State.ONGOING or found.is_deciding:
            raise ValueError(f"{transactional_id} is {found.state}, and expires only when its transaction is over")
        del self._by_id[transactional_id]

    # --- looking -------------------------------------------------------------------------------------------------

    def describe(self, transactional_id: str) -> TransactionRecord:
        """What is known of a transactional id.

        Raises:
            Refused: TRANSACTIONAL_ID_NOT_FOUND.
        """
        found = self._by_id.get(transactional_id)
        if found is None:
            raise ApiError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return found

    def coordinated_by(self, node_id: int) -> list[TransactionRecord]:
        """All that a broker coordinates.

        Raises:
            Refused: COORDINATOR_LOAD_IN_PROGRESS, it has not loaded all of them.
        """
        if any(partition.leader == node_id for partition in self._loading):
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return [found for found in self._by_id.values() if self._coordinator(found.transactional_id).leader == node_id]

    def select(
        self,
        among: Iterable[TransactionRecord],
        *,
        states: Sequence[str] = (),
        producer_ids: Sequence[int] = (),
        longer_than_ms: int = -1,
        pattern: str | None = None,
    ) -> list[TransactionRecord]:
        """Those that pass every filter (KIP-664, KIP-994, KIP-1152); an empty one lets all pass.

        Raises:
            Refused: INVALID_REGULAR_EXPRESSION.
        """
        if len(pattern or "") > _LONGEST_PATTERN:
            raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION)
        try:
            matches = re.compile(pattern or ".*", 0 if pattern else re.DOTALL).fullmatch
        except (re.error, OverflowError, RecursionError) as fault:
            raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION) from fault
        now = self._clock()
        return [
            each
            for each in among
            if (not producer_ids or each.producer_id in producer_ids)
            and (not states or each.state in states)
            and (longer_than_ms < 0 or now - each.started_ms > longer_than_ms)
            and matches(each.transactional_id)
        ]
