"""What follows once a transaction is decided: markers into every partition of it, and then it is complete (KIP-98)."""

from collections.abc import Callable

from ...types import TopicPartition
from ..cluster.api_error import ApiError
from ..cluster.replicas import NO_LEADER, HostedPartition
from ..cluster.topics import OFFSETS_TOPIC, TopicStore
from ..groups.committed import CommittedOffsets
from .transaction import State, TransactionRecord

__all__ = ("Completion",)


class Completion:
    """The decided transactions that are not complete.

    1. A partition gets its marker as soon as it has a leader and enough replicas in sync, and is done with once the
       marker is replicated. It gets another if that one was lost with its leader. One that is gone needs none.
    2. A group's offsets get none: what the transaction committed counts from then on, or is forgotten.
    3. Where a newer producer's marker is in the way, the transaction stays as it is, as it does in Apache Kafka.

    Args:
        topics: where the partitions are.
        committed: the groups' offsets.
        clock: the time in ms since the epoch, for the markers.
        changed: is told of every partition that got a marker.
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
        """Take over a transaction that was decided; :meth:`resume` does the rest."""
        self._pending.append(transaction)

    def clear(self) -> None:
        """Forget all: their coordinators have."""
        self._pending.clear()

    def hold(self, transactional_id: str) -> None:
        """Write no markers for it until it is released."""
        self._held.add(transactional_id)

    def release(self, transactional_id: str) -> None:
        """Write them again, with the next :meth:`resume`."""
        self._held.discard(transactional_id)

    def resume(self, coordinator: Callable[[TransactionRecord], HostedPartition | None]) -> None:
        """Go on with what can go on. ``coordinator`` gives the partition of who may; None while nobody may."""
        self._again = bool(self._pending)
        if self._busy:
            return
        self._busy = True
        try:
            while self._again:
                self._again = False
                for transaction in list(self._pending):
                    by = coordinator(transaction)
                    if by is not None and transaction.transactional_id not in self._held:
                        self._go_on(transaction, by.leader_epoch)
        finally:
            self._busy = False

    def _go_on(self, transaction: TransactionRecord, coordinator_epoch: int) -> None:
        for where, offset in list(transaction.partitions.items()):
            if self._is_done(transaction, where, offset, coordinator_epoch):
                del transaction.partitions[where]
        if not transaction.partitions and transaction in self._pending:
            self._pending.remove(transaction)
            transaction.complete()

    def _is_done(
        self, transaction: TransactionRecord, where: TopicPartition, offset: int | None, coordinator_epoch: int
    ) -> bool:
        try:
            partition = self._topics.partition(where.topic, where.partition)
        except ApiError:
            return True  # it was deleted
        if offset is not None and not partition.log.has_marker(transaction.producer_id, offset):
            transaction.partitions[where] = offset = None  # its leader had it, and the next one has not
        if offset is None:
            if partition.leader == NO_LEADER or len(partition.in_sync_replicas) < partition.min_insync_replicas:
                return False
            commit = transaction.state is State.PREPARE_COMMIT
            if where.topic == OFFSETS_TOPIC:
                self._committed.complete(transaction.producer_id, commit=commit)
                return True
            try:
                offset = self._mark(transaction, partition, commit, coordinator_epoch)
            except ApiError:
                return False
            transaction.partitions[where] = offset
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
