"""How far a transactional producer is, and what it has to ask next (KIP-98, KIP-360, KIP-447, KIP-588, KIP-890).

The rules:

1. One request at a time: :meth:`TransactionMachine.due` gives it, and gives no other before its end was told.
2. In a transaction of version 1 a partition is written to once the coordinator has taken it, and a group's offsets
   are sent once it has taken the group. With version 2 the brokers see to that.
3. The first error decides: from an abortable one on, nothing is asked but the end, an abort. From a fatal one on,
   nothing at all.
4. What the coordinator cannot know of has no end to ask for.
5. After a transaction of version 1 of which something may still be under way, the epoch is bumped, so that it comes
   too late; and so it is before the first one of version 2. With version 2 every end brings a new epoch.
6. With the identity of another producer, its open transaction is written to, and begins and ends elsewhere.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final
from uuid import UUID

from ..errors import KafkaError, TransactionAborted, UnknownTopicId, UsageError, copy_for_reraise
from ..protocol.messages.transactions import EndTxnRequest, InitProducerIdRequest
from ..protocol.primitives import ZERO_UUID
from ..protocol.schema import Versions
from ..types import GroupMetadata, OffsetAndMetadata, ProducerIdentity, TopicPartition
from .open_transaction import Begun, OffsetsCommit, OpenTransaction
from .transaction_errors import Consequence, after_batch, after_refusal, commit_failed, explained, leaves_doubt
from .transaction_requests import PRODUCE_V1, PRODUCE_V2, Ask, end, init_producer_id

__all__ = ("PRODUCE_V1", "PRODUCE_V2", "Ask", "OffsetsCommit", "TransactionMachine", "TransactionState")


class TransactionState(Enum):
    """How far it is."""

    STARTING = "waiting for its producer id, or for the next epoch"
    READY = "ready for a transaction to begin"
    OPEN = "in a transaction"
    COMMITTING = "committing a transaction"
    ABORTING = "aborting a transaction"
    FAILED = "of no use any more"


_STARTING, _READY, _OPEN = TransactionState.STARTING, TransactionState.READY, TransactionState.OPEN
_COMMITTING, _ABORTING, _FAILED = TransactionState.COMMITTING, TransactionState.ABORTING, TransactionState.FAILED
_NEXT: Final[Mapping[TransactionState, tuple[TransactionState, ...]]] = {
    _STARTING: (_READY, _FAILED),
    _READY: (_OPEN,),
    _OPEN: (_COMMITTING, _ABORTING, _FAILED),
    _COMMITTING: (_READY, _STARTING, _OPEN, _FAILED),
    _ABORTING: (_READY, _STARTING, _FAILED),
    _FAILED: (),
}
"""What may come after what. A commit that cannot be goes back to OPEN, for an abort."""


class TransactionMachine:
    """The transactions of one producer, one after the other.

    Whoever drives it asks coordinators for what is :meth:`due`, tries again what may be tried again, and tells of the
    end by :meth:`answered` or :meth:`refused`. A commit has come to its end when the state is no longer COMMITTING:
    in READY and STARTING the transaction is committed, in OPEN it can only be aborted, as ``error`` says.

    Args:
        transactional_id: the name under which transactions are made.
        timeout_ms: how long a transaction may be open.
        identity: of the producer into whose open transaction to write; None to make transactions.
    """

    def __init__(self, transactional_id: str, timeout_ms: int, identity: ProducerIdentity | None = None) -> None:
        self.transactional_id: str = transactional_id
        self._timeout_ms, self._injected = timeout_ms, identity is not None
        self.state: TransactionState = _STARTING
        self.error: KafkaError | None = None
        """Why the open transaction can only be aborted; in FAILED, why nothing can be done, and what to do."""
        self.producer_id: int = -1
        self.producer_epoch: int = -1
        self.generation: int = 0
        """Grows with every change of the producer id or epoch: sequences begin anew."""
        self.version: int = 0
        """The ``transaction.version`` of the latest transaction: 1 or 2; 0 before the first."""
        self._transaction = OpenTransaction()
        self._asked: Ask | None = None
        self._epoch_spoke_v1 = False
        if identity is not None:
            self.version = 2 if identity.transaction_version >= 2 else 1
            self._identify(identity.producer_id, identity.producer_epoch)
            self._enter(_READY)

    @property
    def identity(self) -> ProducerIdentity:
        """For another producer to write into the open transaction."""
        return ProducerIdentity(self.transactional_id, self.producer_id, self.producer_epoch, self.version)

    @property
    def produce_versions(self) -> Versions:
        """The versions of Produce that the open transaction takes."""
        return PRODUCE_V1 if self.version < 2 else PRODUCE_V2

    @property
    def has_failed(self) -> bool:
        """Whether nothing can be done any more."""
        return self.state is _FAILED

    def share(self) -> ProducerIdentity:
        """The identity, for another producer to write into the open transaction: nobody here knows what it does.

        Its numbers begin at 0, so the next transaction needs another epoch. With version 2 it always has one.
        """
        self._transaction.begins(Begun.PERHAPS)
        self._transaction.bump = self._transaction.bump or self.version < 2
        return self.identity

    # --- what the user does ------------------------------------------------------------------------------

    def begin(self, version: int) -> None:
        """Open a transaction; ``version`` is the brokers' finalised ``transaction.version``, 0 where there is none.

        Raises:
            UsageError: the producer has no id yet, or a transaction is open.
            KafkaError: why the open transaction can only be aborted, or the producer has failed.
        """
        self._require(_READY, "a transaction cannot begin")
        self._transaction = OpenTransaction()
        if not self._injected:
            # A partition that the brokers have from version 1 in this epoch would not be added by version 2.
            upgrades = version >= 2 and self._epoch_spoke_v1
            self.version = 2 if version >= 2 and not upgrades else 1
            self._transaction.bump = upgrades
            self._epoch_spoke_v1 |= self.version < 2
        self._enter(_OPEN)

    def add(self, where: TopicPartition) -> None:
        """A record for this partition is about to be taken.

        Raises:
            UsageError: no transaction is open.
            KafkaError: why it can only be aborted, or the producer has failed.
        """
        if self.state is _OPEN and self.error is None and where in self._transaction.known:
            return
        self._require(_OPEN, "no record can be sent")
        self._transaction.add(where, self.version)

    def may_send(self, where: TopicPartition) -> bool:
        """Whether a batch of the partition may go now. To be asked before each goes: then the transaction has begun.

        It may with ``error``, too: what was sent before may be sent again, to learn what became of it.
        """
        if self.state not in (_OPEN, _COMMITTING) or where not in self._transaction.taken:
            return False
        self._transaction.begins(Begun.YES)
        return True

    def add_offsets(self, group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> OffsetsCommit:
        """Commit offsets with the transaction. The last word on a partition counts; no offsets are done at once.

        Raises:
            UsageError: no transaction is open.
            KafkaError: why it can only be aborted, or the producer has failed.
        """
        self._require(_OPEN, "no offsets can be committed")
        return self._transaction.add_offsets(group, offsets) if offsets else OffsetsCommit(done=True)

    def must_abort(self, error: KafkaError) -> None:
        """Refuse to commit, for a reason that the brokers do not know.

        Raises:
            UsageError: no transaction is open.
            KafkaError: why it can only be aborted already, or the producer has failed.
        """
        self._require(_OPEN, "no offsets can be committed")
        self._can_only_abort(error, in_doubt=False)

    def commit(self) -> None:
        """Commit, once the offsets are in. No batch of the transaction is left.

        Raises:
            UsageError: no transaction is open.
            KafkaError: why it can only be aborted, or the producer has failed.
        """
        self._require(_OPEN, "nothing can be committed")
        self._transaction.forget_partitions()
        self._enter(_COMMITTING)
        self._settle()

    def abort(self) -> None:
        """Abort, once what is asked has an answer. No batch of the transaction is on its way, and none will be.

        Raises:
            UsageError: no transaction is open.
            KafkaError: why the producer has failed.
        """
        if self.state is not _OPEN:  # an error alone does not hinder it
            self._require(_OPEN, "nothing can be aborted")
        self._transaction.end_offsets(TransactionAborted("the transaction was aborted before the offsets were in"))
        self._enter(_ABORTING)
        self._settle()

    def _require(self, state: TransactionState, refusal: str) -> None:
        if self.error is not None:
            raise copy_for_reraise(self.error)
        if self.state is not state:
            whose = f"the producer with transactional_id {self.transactional_id!r}"
            raise UsageError(f"{refusal}: {whose} is {self.state.value}, not {state.value}")

    # --- what the brokers say ----------------------------------------------------------------------------

    def batch_failed(self, where: TopicPartition, error: KafkaError, *, sent: bool = True) -> None:
        """A batch got no acknowledgement and will not be sent any more, for whatever reason; ``sent``: it was, once.

        Outside of a transaction nothing follows from it.
        """
        if self.state not in (_OPEN, _COMMITTING, _ABORTING):
            return
        if after_batch(error) is Consequence.FAIL:
            self._fail(explained(self.transactional_id, error))
        else:
            self._records_lost(error, in_doubt=sent)

    def _records_lost(self, error: KafkaError, *, in_doubt: bool) -> None:
        if self._asked is not None and isinstance(self._asked.request, EndTxnRequest):
            self._transaction.in_doubt |= in_doubt  # how it ends has been asked
        else:
            self._can_only_abort(error, in_doubt=in_doubt)

    def batch_written(self, topic: str, topic_id: UUID) -> None:
        """Note that a batch was acknowledged by the topic that had this id."""
        self._transaction.topic_ids.setdefault(topic, topic_id)

    def leave_old_topics(self, topic_id: Callable[[str], UUID]) -> None:
        """Have the transaction aborted if a topic that it has written to has another id now."""
        if self.state not in (_OPEN, _COMMITTING) or self.error is not None:
            return
        for topic, written in self._transaction.topic_ids.items():
            if ZERO_UUID not in (written, topic_id(topic)) and written != topic_id(topic):
                why = "deleted and made again during the transaction, and records of the transaction are lost with it"
                self._records_lost(UnknownTopicId(f"topic {topic!r} was {why}"), in_doubt=False)
                return

    def due(self) -> Ask | None:
        """The request to send now, if there is one. Its end has to be told before there is another."""
        if self._asked is not None:
            return None
        self._asked = self._next()
        return self._asked

    def _next(self) -> Ask | None:
        if self.state is _STARTING:
            return init_producer_id(self.identity, self._timeout_ms)
        if self.state is _ABORTING:
            return end(self.identity, commit=False)
        if self.state not in (_OPEN, _COMMITTING) or self.error is not None:
            return None
        ask = self._transaction.next(self.identity)
        return end(self.identity, commit=True) if ask is None and self.state is _COMMITTING else ask

    def answered(self, ask: Ask, response: Any) -> None:
        """The coordinator has done it; ``ask.check`` finds no error in its answer.

        Raises:
            UsageError: this was not the request to send.
        """
        self._take_back(ask)
        if self.state is _FAILED:
            return
        if isinstance(ask.request, InitProducerIdRequest):
            self._identify(response.producer_id, response.producer_epoch)
            self._enter(_READY)
        elif isinstance(ask.request, EndTxnRequest):
            if response.producer_id >= 0:  # from v5 on
                self._identify(response.producer_id, response.producer_epoch)
            self._close()
        else:
            self._transaction.told(ask)
            self._settle()

    def refused(self, ask: Ask, error: KafkaError) -> None:
        """The coordinator has not done it, or nobody knows: the error that was left when no retry was.

        Raises:
            UsageError: this was not the request to send.
        """
        self._take_back(ask)
        if self.state is _FAILED:
            return
        found = after_refusal(ask.request, error)
        if found is Consequence.NO_TRANSACTION and self._transaction.begun is not Begun.YES:
            self._close()
        elif found is Consequence.ABORT:
            self._can_only_abort(commit_failed(ask.request, error), in_doubt=leaves_doubt(error))
        else:
            self._fail(explained(self.transactional_id, error, ask.request))

    def _take_back(self, ask: Ask) -> None:
        if ask is not self._asked:
            raise UsageError("the end of a request was told that is not on its way")
        self._asked = None

    # --- what follows ------------------------------------------------------------------------------------

    def _enter(self, state: TransactionState) -> None:
        assert state in _NEXT[self.state], f"from {self.state.name} to {state.name}"
        self.state = state

    def _identify(self, producer_id: int, producer_epoch: int) -> None:
        if (producer_id, producer_epoch) != (self.producer_id, self.producer_epoch):
            self.producer_id, self.producer_epoch = producer_id, producer_epoch
            self.generation += 1
            self._epoch_spoke_v1 = False

    def _settle(self) -> None:
        """End the transaction here, if nothing has to be asked for it."""
        transaction = self._transaction
        if self.state not in (_COMMITTING, _ABORTING) or self._asked is not None or transaction.has_waiting_offsets:
            return
        if self._injected or transaction.begun is Begun.NO:
            self._close()

    def _close(self) -> None:
        """The transaction has ended."""
        ended, error = self._transaction, self.error
        self._transaction, self.error = OpenTransaction(), None
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
        if self.state is _ABORTING:
            self._settle()
            return
        if self.error is None:
            self.error = error
        if self.state is _COMMITTING:
            self._enter(_OPEN)
        self._transaction.end_offsets(error)

    def _fail(self, error: KafkaError) -> None:
        self.error = error
        self._transaction.end_offsets(error)
        self._enter(_FAILED)
