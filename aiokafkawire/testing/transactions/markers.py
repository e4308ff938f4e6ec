"""The completion of decided transactions: a marker is written to every partition (KIP-98)."""

from collections.abc import Callable

from ...types import TopicPartition
from ..cluster.api_error import ApiError
from ..cluster.replicas import NO_LEADER, HostedPartition
from ..cluster.topics import OFFSETS_TOPIC, TopicStore
from ..groups.committed import CommittedOffsets
from .transaction import State, TransactionRecord

__all__ = ("Completion",)


class Completion:
    """The completion of decided transactions: the markers to write, and the transactions that wait for them.

    1. A partition gets its marker when it has a leader and enough in-sync replicas, and is done when the marker is
       replicated. If the marker is lost with the leader, it is written again. A deleted partition needs none.
    2. A group's offsets get no marker: they are committed or discarded at once.
    3. If a partition has a newer epoch and rejects the marker, the transaction stays incomplete, as in Apache Kafka.

    Args:
        topics: the topics whose partitions get the markers.
        committed: the groups' offsets.
        clock: returns the time in ms since the epoch, for the markers.
        changed: called with every partition that got a marker.
    """

    def __init__(
        self,
        topics: TopicStore,
        committed: CommittedOffsets,
        clock: Callable[[], int],
        changed: Callable[[HostedPartition], None],
    ) -> None:
        self._topics = topics
        self._committed = committed
        self._clock = clock
        self._changed = changed
        self._pending: list[TransactionRecord] = []
        self._held: set[str] = set()
        self._busy = False
        self._again = False

    def begin(self, transaction: TransactionRecord) -> None:
        """Add a decided transaction; :meth:`resume` completes it."""
        self._pending.append(transaction)

    def clear(self) -> None:
        """Remove all transactions, because the state of their coordinators was deleted."""
        self._pending.clear()

    def hold(self, transactional_id: str) -> None:
        """Withhold the markers of a transactional id until :meth:`release`."""
        self._held.add(transactional_id)

    def release(self, transactional_id: str) -> None:
        """Allow the markers of a transactional id again, from the next :meth:`resume` on."""
        self._held.discard(transactional_id)

    def resume(self, coordinator: Callable[[TransactionRecord], HostedPartition | None]) -> None:
        """Write the markers that can be written.

        ``coordinator`` returns the partition whose leader coordinates a transaction; None if no leader is ready.
        """
        self._again = bool(self._pending)
        if self._busy:
            return
        self._busy = True
        try:
            while self._again:
                self._again = False
                for transaction in list(self._pending):
                    coordinated = coordinator(transaction)
                    if coordinated is not None and transaction.transactional_id not in self._held:
                        self._complete(transaction, coordinated.leader_epoch)
        finally:
            self._busy = False

    def _complete(self, transaction: TransactionRecord, coordinator_epoch: int) -> None:
        for topic_partition, offset in list(transaction.partitions.items()):
            if self._is_done(transaction, topic_partition, offset, coordinator_epoch):
                del transaction.partitions[topic_partition]
        if not transaction.partitions and transaction in self._pending:
            self._pending.remove(transaction)
            transaction.complete()

    def _is_done(
        self,
        transaction: TransactionRecord,
        topic_partition: TopicPartition,
        offset: int | None,
        coordinator_epoch: int,
    ) -> bool:
        try:
            partition = self._topics.partition(topic_partition.topic, topic_partition.partition)
        except ApiError:
            return True  # the partition was deleted
        if offset is not None and not partition.log.has_marker(transaction.producer_id, offset):
            transaction.partitions[topic_partition] = offset = None  # the marker was lost with its leader
        if offset is None:
            if partition.leader == NO_LEADER or partition.lacks_replicas:
                return False
            commit = transaction.state is State.PREPARE_COMMIT
            if topic_partition.topic == OFFSETS_TOPIC:
                self._committed.complete(transaction.producer_id, commit=commit)
                return True
            try:
                offset = self._mark(transaction, partition, commit, coordinator_epoch)
            except ApiError:
                return False
            transaction.partitions[topic_partition] = offset
        return partition.log.high_watermark > offset

    def _mark(
        self, transaction: TransactionRecord, partition: HostedPartition, commit: bool, coordinator_epoch: int
    ) -> int:
        offset = partition.log.append_marker(
            transaction.producer_id,
            transaction.epoch,
            commit,
            coordinator_epoch,
            timestamp=self._clock(),
            leader_epoch=partition.leader_epoch,
            version=2 if transaction.bumps else 0,
        )
        partition.replicate()
        self._changed(partition)
        return offset
