"""The state of a transactional producer, which decides its next request (KIP-98, KIP-360, KIP-447, KIP-588, KIP-890).

The rules:

1. One request at a time: :meth:`TransactionStateMachine.next_request` returns None while a request is in flight.
2. In a transaction of version 1, a partition's batches are sent once the coordinator has added the partition, and a
   group's offsets once the coordinator has added the group. In a transaction of version 2 the brokers add both.
3. After an abortable error the only further request is the abort; after a fatal error there is none.
4. A transaction that has not started at the coordinator ends without a request.
5. If a broker may still write a batch of an ended transaction of version 1, the epoch is bumped, so that the broker
   refuses the batch. The epoch is also bumped before the first transaction of version 2, and at the end of each such
   transaction, by its EndTxn request.
6. With the identity of another producer, records are written into the other producer's open transaction, and only the
   other producer begins and ends this transaction.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from ..errors import KafkaError, TransactionAborted, UnknownTopicId, UsageError, copy_for_reraise
from ..protocol.messages.transactions import EndTxnRequest, InitProducerIdRequest
from ..protocol.primitives import ZERO_UUID
from ..protocol.schema import Versions
from ..types import GroupMetadata, OffsetAndMetadata, ProducerIdentity, TopicPartition
from .open_transaction import OffsetsCommit, OpenTransaction, TransactionStarted
from .transaction_errors import (
    TransactionErrorAction,
    action_after_batch,
    action_after_request,
    commit_failed,
    explained,
    leaves_doubt,
)
from .transaction_requests import PRODUCE_V1, PRODUCE_V2, TransactionRequest, end_transaction, init_producer_id

__all__ = (
    "PRODUCE_V1",
    "PRODUCE_V2",
    "TransactionRequest",
    "OffsetsCommit",
    "TransactionStateMachine",
    "TransactionPhase",
)


class TransactionPhase(Enum):
    """The phase of a transactional producer."""

    STARTING = "waiting for its producer id, or for the next epoch"
    READY = "ready for a transaction to begin"
    OPEN = "in a transaction"
    COMMITTING = "committing a transaction"
    ABORTING = "aborting a transaction"
    FAILED = "unusable"


_STARTING, _READY, _OPEN = TransactionPhase.STARTING, TransactionPhase.READY, TransactionPhase.OPEN
_COMMITTING, _ABORTING, _FAILED = TransactionPhase.COMMITTING, TransactionPhase.ABORTING, TransactionPhase.FAILED
_NEXT: Final[Mapping[TransactionPhase, tuple[TransactionPhase, ...]]] = {
    _STARTING: (_READY, _FAILED),
    _READY: (_OPEN,),
    _OPEN: (_COMMITTING, _ABORTING, _FAILED),
    _COMMITTING: (_READY, _STARTING, _OPEN, _FAILED),
    _ABORTING: (_READY, _STARTING, _FAILED),
    _FAILED: (),
}
"""The phases that may follow each phase. A commit that fails returns to OPEN, for an abort."""


class TransactionStateMachine:
    """The state of one transactional producer: its phase, its open transaction and its request in flight.

    The transaction manager sends the request that :meth:`next_request` returns, retries it within its deadline, and
    passes the result to :meth:`succeeded` or :meth:`failed`. A commit has ended when the phase is no longer COMMITTING.
    If the phase is READY or STARTING then, the transaction is committed. If it is OPEN, the commit has failed with
    ``error``, and the transaction can only be aborted. If it is FAILED, the outcome is unknown because of ``error``.

    Args:
        transactional_id: the producer's transactional id.
        timeout_ms: how long a transaction may be open.
        identity: the identity of the producer whose open transaction gets the records; None to begin own transactions.
    """

    def __init__(self, transactional_id: str, timeout_ms: int, identity: ProducerIdentity | None = None) -> None:
        self.transactional_id: str = transactional_id
        self._timeout_ms, self._injected = timeout_ms, identity is not None
        self.phase: TransactionPhase = _STARTING
        self.error: KafkaError | None = None
        """The error that allows only an abort of the open transaction or, in FAILED, made the producer unusable."""
        self.producer_id: int = -1
        self.producer_epoch: int = -1
        self.generation: int = 0
        """The number of changes of the producer id or epoch; after each, sequence numbers restart."""
        self.commits: int = 0
        self.aborts: int = 0
        """How many transactions were committed and aborted, of those that this producer began."""
        self.version: int = 0
        """The ``transaction.version`` of the latest transaction: 1 or 2; 0 before the first."""
        self._transaction = OpenTransaction()
        self._in_flight: TransactionRequest | None = None
        self._epoch_used_v1 = False
        if identity is not None:
            self.version = 2 if identity.transaction_version >= 2 else 1
            self._set_producer_id(identity.producer_id, identity.producer_epoch)
            self._enter(_READY)

    @property
    def identity(self) -> ProducerIdentity:
        """The identity with which another producer writes into the open transaction."""
        return ProducerIdentity(self.transactional_id, self.producer_id, self.producer_epoch, self.version)

    @property
    def produce_versions(self) -> Versions:
        """The versions of Produce that the open transaction allows."""
        return PRODUCE_V1 if self.version < 2 else PRODUCE_V2

    @property
    def pending(self) -> TransactionRequest | None:
        """The request in flight, if there is one."""
        return self._in_flight

    @property
    def has_failed(self) -> bool:
        """Whether the producer is unusable."""
        return self.phase is _FAILED

    def share(self) -> ProducerIdentity:
        """Return :attr:`identity`, with which another producer may write into the open transaction from now on.

        The other producer's sequence numbers begin at 0, so this producer's next transaction must have another epoch.
        In version 2 every transaction has its own epoch; in version 1 the epoch is bumped for this reason.
        """
        self._transaction.mark_started(TransactionStarted.MAYBE)
        self._transaction.bump = self._transaction.bump or self.version < 2
        return self.identity

    # --- the user's calls --------------------------------------------------------------------------------

    def begin(self, version: int) -> None:
        """Open a transaction; ``version`` is the brokers' finalised ``transaction.version``, 0 where there is none.

        Raises:
            UsageError: the producer has no id yet, or a transaction is open.
            KafkaError: the open transaction can only be aborted, or the producer has failed, because of this error.
        """
        self._require(_READY, "a transaction cannot begin")
        self._transaction = OpenTransaction()
        if not self._injected:
            # Brokers do not add a partition to a transaction of version 2 if version 1 was used in the same epoch.
            upgrades = version >= 2 and self._epoch_used_v1
            self.version = 2 if version >= 2 and not upgrades else 1
            self._transaction.bump = upgrades
            self._epoch_used_v1 |= self.version < 2
        self._enter(_OPEN)

    @property
    def transaction(self) -> OpenTransaction:
        """The open transaction; if none is open, the next one."""
        return self._transaction

    def add_partition(self, partition: TopicPartition) -> None:
        """Add the partition of a record to the transaction.

        Raises:
            UsageError: no transaction is open.
            KafkaError: the transaction can only be aborted, or the producer has failed, because of this error.
        """
        if self.phase is _OPEN and self.error is None and partition in self._transaction.partitions:
            return
        self._require(_OPEN, "no record can be sent")
        self._transaction.add(partition, self.version)

    def has_added(self, partition: TopicPartition) -> bool:
        """Return whether batches of the partition belong to the transaction at the brokers, and may be sent now."""
        return self.phase in (_OPEN, _COMMITTING) and partition in self._transaction.added

    def may_send(self, partition: TopicPartition) -> bool:
        """Return whether a batch of the partition may be sent now; if so, count the transaction as started.

        A batch may be sent after an error, too: if it may have been written, another attempt finds out whether it was.
        """
        if not self.has_added(partition):
            return False
        self._transaction.mark_started(TransactionStarted.YES)
        return True

    def add_offsets(
        self,
        group: GroupMetadata,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        topic_ids: Mapping[str, UUID] = MappingProxyType({}),
    ) -> OffsetsCommit:
        """Commit offsets with the transaction; of several offsets for one partition, the last is committed.

        ``topic_ids`` are the ids of the topics that the offsets belong to, as far as they are known. The returned
        commit is done at once if there are no offsets. Raises as :meth:`add_partition`.
        """
        self._require(_OPEN, "no offsets can be committed")
        return self._transaction.add_offsets(group, offsets, topic_ids) if offsets else OffsetsCommit(done=True)

    def must_abort(self, error: KafkaError) -> None:
        """Allow only an abort from now on, because of ``error``. Raises as :meth:`add_partition`."""
        self._require(_OPEN, "no offsets can be committed")
        self._can_only_abort(error, in_doubt=False)

    def commit(self) -> None:
        """Commit the transaction, once its offsets are sent. All its batches must be complete.

        Raises as :meth:`add_partition`.
        """
        self._require(_OPEN, "nothing can be committed")
        self._transaction.drop_new_partitions()
        self._enter(_COMMITTING)
        self._close_if_done()

    def abort(self) -> None:
        """Abort the transaction, whose batches must not be sent any more, once the request in flight has a result.

        Raises:
            UsageError: no transaction is open.
            KafkaError: the producer has failed with this error.
        """
        if self.phase is not _OPEN:  # an error does not prevent an abort
            self._require(_OPEN, "nothing can be aborted")
        self._transaction.fail_offsets(
            TransactionAborted("the transaction was aborted before the offsets were committed")
        )
        self._enter(_ABORTING)
        self._close_if_done()

    def _require(self, phase: TransactionPhase, refusal: str) -> None:
        if self.error is not None:
            raise copy_for_reraise(self.error)
        if self.phase is not phase:
            producer = f"the producer with transactional_id {self.transactional_id!r}"
            raise UsageError(f"{refusal}: {producer} is {self.phase.value}, not {phase.value}")

    # --- results from brokers ----------------------------------------------------------------------------

    def batch_failed(self, partition: TopicPartition, error: KafkaError, *, sent: bool = True) -> None:
        """Record that a batch failed; if ``sent``, a broker may still write it. Do nothing without a transaction."""
        if self.phase not in (_OPEN, _COMMITTING, _ABORTING):
            return
        if action_after_batch(error) is TransactionErrorAction.FAIL:
            self._fail(explained(self.transactional_id, error))
        else:
            self._records_lost(error, in_doubt=sent)

    def _records_lost(self, error: KafkaError, *, in_doubt: bool) -> None:
        if self._in_flight is not None and isinstance(self._in_flight.request, EndTxnRequest):
            self._transaction.in_doubt |= in_doubt  # EndTxn is in flight already
        else:
            self._can_only_abort(error, in_doubt=in_doubt)

    def batch_written(self, topic: str, topic_id: UUID) -> None:
        """Record that a leader acknowledged a batch of ``topic``, which had this id."""
        self._transaction.topic_ids.setdefault(topic, topic_id)

    def check_topic_ids(self, topic_id: Callable[[str], UUID]) -> None:
        """Require an abort if a topic of the transaction was recreated; ``topic_id`` returns a topic's current id."""
        if self.phase not in (_OPEN, _COMMITTING) or self.error is not None:
            return
        for topic, written in self._transaction.topic_ids.items():
            if ZERO_UUID not in (written, topic_id(topic)) and written != topic_id(topic):
                why = "deleted and made again during the transaction, and records of the transaction are lost with it"
                self._records_lost(UnknownTopicId(f"topic {topic!r} was {why}"), in_doubt=False)
                return

    def next_request(self) -> TransactionRequest | None:
        """Return the request to send now, if any; None while a request is in flight."""
        if self._in_flight is not None:
            return None
        self._in_flight = self._next()
        return self._in_flight

    def _next(self) -> TransactionRequest | None:
        if self.phase is _STARTING:
            return init_producer_id(self.identity, self._timeout_ms)
        if self.phase is _ABORTING:
            return end_transaction(self.identity, commit=False)
        if self.phase not in (_OPEN, _COMMITTING) or self.error is not None:
            return None
        request = self._transaction.next_request(self.identity)
        needs_end = request is None and self.phase is _COMMITTING
        return end_transaction(self.identity, commit=True) if needs_end else request

    def succeeded(self, done: TransactionRequest, response: Any) -> None:
        """Change the state after the request ``done`` got a response without an error.

        Raises:
            UsageError: ``done`` is not the request in flight.
        """
        self._end_request(done)
        if self.phase is _FAILED:
            return
        if isinstance(done.request, InitProducerIdRequest):
            self._set_producer_id(response.producer_id, response.producer_epoch)
            self._enter(_READY)
        elif isinstance(done.request, EndTxnRequest):
            if response.producer_id >= 0:  # from v5 on
                self._set_producer_id(response.producer_id, response.producer_epoch)
            self._close()
        else:
            self._transaction.succeeded(done)
            self._close_if_done()

    def failed(self, refused: TransactionRequest, error: KafkaError) -> None:
        """Change the state after the request ``refused`` failed and is not retried any more; it may have taken effect.

        Raises as :meth:`succeeded`.
        """
        self._end_request(refused)
        if self.phase is _FAILED:
            return
        action = action_after_request(refused.request, error)
        if action is TransactionErrorAction.NO_TRANSACTION and self._transaction.started is not TransactionStarted.YES:
            self._close()
        elif action is TransactionErrorAction.ABORT:
            self._can_only_abort(commit_failed(refused.request, error), in_doubt=leaves_doubt(error))
        else:
            self._fail(explained(self.transactional_id, error, refused.request))

    def _end_request(self, request: TransactionRequest) -> None:
        if request is not self._in_flight:
            raise UsageError("received a result for a request that is not in flight")
        self._in_flight = None

    # --- transitions -------------------------------------------------------------------------------------

    def _enter(self, phase: TransactionPhase) -> None:
        assert phase in _NEXT[self.phase], f"from {self.phase.name} to {phase.name}"
        self.phase = phase

    def _set_producer_id(self, producer_id: int, producer_epoch: int) -> None:
        if (producer_id, producer_epoch) != (self.producer_id, self.producer_epoch):
            self.producer_id, self.producer_epoch = producer_id, producer_epoch
            self.generation += 1
            self._epoch_used_v1 = False

    def _close_if_done(self) -> None:
        """Close the transaction if its commit or abort needs no request; do nothing if neither is in progress."""
        transaction = self._transaction
        if self.phase not in (_COMMITTING, _ABORTING) or self._in_flight is not None or transaction.has_waiting_offsets:
            return
        if self._injected or transaction.started is TransactionStarted.NO:
            self._close()

    def _close(self) -> None:
        """Discard the transaction, which has ended, and enter the next phase."""
        ended, error = self._transaction, self.error
        self._transaction, self.error = OpenTransaction(), None
        if not self._injected:
            self.commits += self.phase is _COMMITTING
            self.aborts += self.phase is _ABORTING
        if self._injected and (error is not None or ended.in_doubt):
            why = "what this producer wrote is incomplete: the producer that began the transaction has to abort it"
            self.error = TransactionAborted(f"transactional_id {self.transactional_id!r}: {why}")
            self.error.__cause__ = error
            self._enter(_FAILED)
        elif not self._injected and (ended.bump or (ended.in_doubt and self.version < 2)):
            self._enter(_STARTING)
        else:
            self._enter(_READY)

    def _can_only_abort(self, error: KafkaError, *, in_doubt: bool) -> None:
        self._transaction.in_doubt |= in_doubt
        if self.phase is _ABORTING:
            self._close_if_done()
            return
        if self.error is None:
            self.error = error
        if self.phase is _COMMITTING:
            self._enter(_OPEN)
        self._transaction.fail_offsets(error)

    def _fail(self, error: KafkaError) -> None:
        self.error = error
        self._transaction.fail_offsets(error)
        self._enter(_FAILED)
