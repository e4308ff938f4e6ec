"""The transaction coordinators of a cluster: all transactional ids, and their timeouts."""

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

_RETRY_SECONDS = 1.0  # before a timed-out transaction without a coordinator is checked again
_LONGEST_PATTERN = 1000  # Kafka's patterns take linear time, Python's may not


class Transactions:
    """All transactional ids of a cluster; an id keeps its state if another broker becomes its coordinator.

    Args:
        max_timeout_ms: the longest transaction timeout, ``transaction.max.timeout.ms``.
        timers: the timers of timeouts and of loading coordinators.
        clock: returns the time in ms since the epoch.
        new_producer_id: returns new producer ids.
        coordinator: returns the partition whose leader coordinates a transactional id.
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

    # --- coordinators --------------------------------------------------------------------------------------------

    def check(self, transactional_id: str, node_id: int | None = None) -> None:
        """Check that a broker coordinates a transactional id; without ``node_id``, that any broker does.

        Raises:
            ApiError: NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS.
        """
        partition = self._coordinator(transactional_id)
        if node_id is None and partition.leader == NO_LEADER:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if node_id is not None and node_id != partition.leader:
            raise ApiError(ErrorCode.NOT_COORDINATOR)
        if partition in self._loading:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    def _check_writable(self, transactional_id: str) -> None:
        """Check that the coordinator can write a change of this id to its log.

        Raises:
            ApiError: COORDINATOR_NOT_AVAILABLE, too few replicas of its partition are in sync.
        """
        if self._coordinator(transactional_id).lacks_replicas:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def partition_changed(self, partition: HostedPartition) -> None:
        """Handle a partition's new leader, in-sync replicas or high watermark."""
        if partition.log.topic == TRANSACTIONS_TOPIC:
            self._coordinator_changed(partition)
        self.resume()

    def resume(self) -> None:
        """Write the markers that can be written, and complete the transactions that need no further markers."""
        self._completion.resume(self._led)

    def clear(self) -> None:
        """Delete all transactional ids after ``__transaction_state`` was deleted; logs keep their open transactions."""
        for timer in (*self._loading.values(), *(found.timer for found in self._by_id.values())):
            if timer is not None:
                timer.cancel()
        self._loading.clear()
        self._leaders.clear()
        self._by_id.clear()
        self._completion.clear()

    @contextmanager
    def loading_for(self, seconds: float) -> Iterator[None]:
        """Let every coordinator that is elected while the context is open take ``seconds`` to load its state."""
        self._loading_takes = seconds
        try:
            yield
        finally:
            self._loading_takes = 0.0

    def start(self) -> None:
        """Restart the timeouts of open transactions and end all loading, because the cluster was opened."""
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
        """Keep the transactions of this id incomplete after their decision, until :meth:`release_markers`."""
        self._completion.hold(transactional_id)

    def release_markers(self, transactional_id: str) -> None:
        """Complete the transactions that :meth:`hold_markers` kept incomplete."""
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
        """Return the partition whose leader coordinates a transaction; None if no leader is ready."""
        partition = self._coordinator(found.transactional_id)
        return None if partition.leader == NO_LEADER or partition in self._loading else partition

    # --- producers -----------------------------------------------------------------------------------------------

    def check_timeout(self, timeout_ms: int) -> None:
        """Check that a producer may use a transaction timeout.

        Raises:
            ApiError: INVALID_TRANSACTION_TIMEOUT, the timeout is below 1, or above ``transaction.max.timeout.ms``.
        """
        if not 0 < timeout_ms <= self._max_timeout_ms:
            raise ApiError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)

    def initialize(self, transactional_id: str, timeout_ms: int, expected: Ids | None = None) -> Ids:
        """Return the producer id and a new epoch for a transactional id, if its last transaction is complete.

        An open transaction is aborted, and the client must retry.

        Raises:
            ApiError: CONCURRENT_TRANSACTIONS, the last transaction is not complete; PRODUCER_FENCED, ``expected`` is
                neither the current producer id and epoch nor the previous ones; COORDINATOR_NOT_AVAILABLE.
        """
        found = self._by_id.get(transactional_id)
        if found is None:
            self._check_writable(transactional_id)
            found = TransactionRecord(transactional_id, self._new_producer_id(), timeout_ms)
            self._by_id[transactional_id] = found
        if expected is not None:
            found.check_expected(expected)
        if found.is_deciding:
            raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
        self._check_writable(transactional_id)
        if found.state is State.ONGOING:
            self._fence(found)
            raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
        return found.initialize(timeout_ms, expected, self._new_producer_id)

    def add(
        self, transactional_id: str, ids: Ids, partitions: Sequence[TopicPartition], *, bumps: bool = False
    ) -> None:
        """Add partitions to a producer's transaction, and begin a transaction if none is open.

        Raises:
            ApiError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, COORDINATOR_NOT_AVAILABLE.
        """
        found = self._of_producer(transactional_id, ids)
        if found.state is State.ONGOING and all(partition in found.partitions for partition in partitions):
            return
        self._check_writable(transactional_id)
        if found.add(partitions, self._clock(), bumps=bumps):
            found.began = self._timers.now()
            self._watch(found)

    def verify(self, transactional_id: str, ids: Ids, partition: TopicPartition) -> None:
        """Check that a partition is in the transaction (KIP-890).

        Raises:
            ApiError: as :meth:`add`; TRANSACTION_ABORTABLE, the partition is not in the transaction.
        """
        if partition not in self._of_producer(transactional_id, ids).partitions:
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

    # --- end -----------------------------------------------------------------------------------------------------

    def end(self, transactional_id: str, ids: Ids, *, commit: bool, bumps: bool) -> Ids:
        """Commit or abort a transaction; return the producer id and epoch for the next one.

        With ``bumps`` (transaction.version 2) the epoch is a new one (KIP-890).

        Raises:
            ApiError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE,
                COORDINATOR_NOT_AVAILABLE.
        """
        found = self._by_id.get(transactional_id)
        if found is None:
            raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        over = is_over_bumping(found, ids, commit) if bumps else is_over(found, ids, commit)
        if over:
            return found.producer_id, found.epoch
        self._check_writable(transactional_id)
        return self._decide(found, commit, bumps=bumps)

    def _decide(self, found: TransactionRecord, commit: bool, *, bumps: bool) -> Ids:
        found.decide(commit, self._clock(), self._new_producer_id, bumps=bumps)
        then = found.after_completion()
        self._completion.begin(found)
        self.resume()
        return then

    def _fence(self, found: TransactionRecord) -> None:
        """Abort the open transaction, with an epoch that fences its producer."""
        self._decide(found, commit=False, bumps=True)

    def _watch(self, found: TransactionRecord) -> None:
        seconds = found.timeout_ms / 1000
        if found.timer is not None and found.timer.pending:
            if found.timer.due <= found.began + seconds:
                return  # if the timer ends too early, _timed_out starts it again
            found.timer.cancel()
        found.timer = self._timers.after(seconds, lambda: self._timed_out(found))

    def _timed_out(self, found: TransactionRecord) -> None:
        if found.state is not State.ONGOING:
            return
        left = found.began + found.timeout_ms / 1000 - self._timers.now()
        led = self._led(found)
        if left <= 0 and led is not None and not led.lacks_replicas:
            self._fence(found)
        else:
            found.timer = self._timers.after(left if left > 0 else _RETRY_SECONDS, lambda: self._timed_out(found))

    def expire(self, transactional_id: str) -> None:
        """Delete a transactional id, as after ``transactional.id.expiration.ms``.

        Raises:
            KeyError: the id is unknown.
            ValueError: the id's transaction is open or not complete.
        """
        found = self._by_id[transactional_id]
        if found.state is State.ONGOING or found.is_deciding:
            raise ValueError(f"{transactional_id} is {found.state}; it can expire only after its transaction")
        del self._by_id[transactional_id]

    # --- descriptions --------------------------------------------------------------------------------------------

    def describe(self, transactional_id: str) -> TransactionRecord:
        """Return the state of a transactional id.

        Raises:
            ApiError: TRANSACTIONAL_ID_NOT_FOUND.
        """
        found = self._by_id.get(transactional_id)
        if found is None:
            raise ApiError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return found

    def coordinated_by(self, node_id: int) -> list[TransactionRecord]:
        """Return the state of all transactional ids that a broker coordinates.

        Raises:
            ApiError: COORDINATOR_LOAD_IN_PROGRESS, the broker is still loading a part of its transactional ids.
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
        """Return the records in ``among`` that pass all given filters (KIP-664, KIP-994, KIP-1152).

        Raises:
            ApiError: INVALID_REGULAR_EXPRESSION.
        """
        if len(pattern or "") > _LONGEST_PATTERN:
            raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION)
        try:
            matches = re.compile(pattern or ".*", 0 if pattern else re.DOTALL).fullmatch
        except (re.error, OverflowError, RecursionError) as fault:
            raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION) from fault
        now = self._clock()
        return [
            record
            for record in among
            if (not producer_ids or record.producer_id in producer_ids)
            and (not states or record.state in states)
            and (longer_than_ms < 0 or now - record.started_ms > longer_than_ms)
            and matches(record.transactional_id)
        ]
