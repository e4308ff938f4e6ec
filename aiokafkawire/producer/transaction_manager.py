"""Sends the requests of a producer's transactions to their coordinators."""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio
from anyio.abc import TaskGroup

from ..cluster.cluster import Cluster
from ..cluster.retry import Backoff, Deadline
from ..config import ProducerConfig
from ..errors import KafkaError, RequestTimeout, UsageError, as_kafka_error, copy_for_reraise
from ..event_log import EventLog
from ..observe import TransactionEnded
from ..plain_values import error_text
from ..protocol.messages.transactions import TxnOffsetCommitRequest
from ..protocol.schema import Request
from ..runtime import Worker
from ..types import CoordinatorType, ProducerIdentity, TopicPartition
from .health import TransactionHealth
from .open_transaction import OpenTransaction
from .transaction_requests import check_topic_ids, with_topic_ids
from .transaction_state_machine import TransactionPhase, TransactionRequest, TransactionStateMachine

__all__ = ("TransactionManager",)

_log = EventLog("aiokafkawire.producer")

_FEATURE = "transaction.version"
_FIRST_BACKOFF = 0.02
"""The seconds before the first retry: for a few ms, brokers still write the markers of the previous transaction."""


class TransactionManager:
    """The sender of the requests that the state machine ``state`` asks for.

    Tasks can wait for a phase of ``state`` (:meth:`wait_until`). ``on_change`` is called after every request's result.
    """

    def __init__(
        self, cluster: Cluster, config: ProducerConfig, transactional_id: str, identity: ProducerIdentity | None
    ) -> None:
        timeout_ms = config.transaction_timeout_ms
        self.state: TransactionStateMachine = TransactionStateMachine(transactional_id, timeout_ms, identity)
        self.on_change: Callable[[], None] = lambda: None
        self._cluster, self._config = cluster, config
        cluster.log_coordinator(CoordinatorType.TRANSACTION, transactional_id)
        self._changed = anyio.Event()
        self._commit_by: Deadline | None = None
        self._abort_scheduled = self._takes_records = False
        self._failure_logged = False
        self._began = 0.0
        self._reported = (0, 0)
        self._trouble: KafkaError | None = None
        self._worker = Worker(self._step, self._notify)

    async def run(self) -> None:
        """Send requests until stopped."""
        await self._worker.run()

    async def stop(self) -> None:
        """Send no more requests. May be called again."""
        await self._worker.stop()

    def wake(self) -> None:
        """Call :meth:`_step` soon, since there may be a request to send."""
        self._worker.wake()

    def _step(self, tasks: TaskGroup) -> None:
        self._log_failure()
        request = self.state.next_request()
        if request is not None:
            tasks.start_soon(self._send, request)

    async def _send(self, request: TransactionRequest) -> None:
        config = self._cluster.config
        backoff = Backoff(_FIRST_BACKOFF, config.retry_backoff_max_ms / 1000, self._cluster.runtime.chance)
        metadata = self._cluster.metadata
        sent = with_topic_ids(request, metadata.snapshot.topic_id)
        if isinstance(sent.request, TxnOffsetCommitRequest):
            metadata.track_topics(topic.name for topic in sent.request.topics)

        def newer() -> Request[Any]:
            check_topic_ids(sent, metadata.snapshot.topic_id, metadata.snapshot.topic_error)
            return sent.request

        try:
            response = await self._cluster.ask_coordinator(
                sent.coordinator_type,
                sent.key,
                sent.request,
                self._commit_by or self._deadline(),
                wanted=sent.versions,
                check=sent.check,
                newer=newer,
                backoff=backoff,
                failed=self._attempt_failed,
            )
        except Exception as error:
            name = type(request.request).__name__.removesuffix("Request")
            failed = as_kafka_error(error, f"{name} of {self.state.transactional_id!r}")
            self.state.failed(request, failed)
            message = "transactional id %(transactional_id)r: %(api)s failed: %(error)s"
            _log.debug(message, transactional_id=self.state.transactional_id, api=name, error=failed)
        else:
            self._succeeded(request, response)
        self._trouble = None
        self._notify()
        self.wake()

    def _attempt_failed(self, error: KafkaError) -> None:
        self._trouble = error

    def health(self, now: float) -> TransactionHealth:
        """Return the state of the transactions; ``now`` is the time in seconds of the runtime's clock."""
        state, request = self.state, self.state.pending
        node = self._cluster.known_coordinator(CoordinatorType.TRANSACTION, state.transactional_id)
        is_open = state.phase in (TransactionPhase.OPEN, TransactionPhase.COMMITTING, TransactionPhase.ABORTING)
        return TransactionHealth(
            transactional_id=state.transactional_id,
            phase=state.phase.value,
            producer_id=state.producer_id,
            producer_epoch=state.producer_epoch,
            open_for=now - self._began if is_open else None,
            coordinator=node.address if node is not None else None,
            request=type(request.request).__name__.removesuffix("Request") if request is not None else None,
            trouble=error_text(self._trouble),
            error=error_text(state.error),
        )

    def _succeeded(self, done: TransactionRequest, response: Any) -> None:
        state = self.state
        generation, starting = state.generation, state.phase is TransactionPhase.STARTING
        state.succeeded(done, response)
        if state.generation == generation:
            return
        # With transaction.version 2, EndTxn brings a new epoch after each transaction, and fences no other producer.
        level = logging.INFO if starting else logging.DEBUG
        _log.log(
            level,
            "transactional id %(transactional_id)r: producer id %(producer_id)d, epoch %(producer_epoch)d",
            transactional_id=state.transactional_id,
            producer_id=state.producer_id,
            producer_epoch=state.producer_epoch,
            client_id=self._cluster.config.client_id,
        )

    def _log_failure(self) -> None:
        state = self.state
        if state.has_failed and not self._failure_logged:
            self._failure_logged = True
            message = "transactional id %(transactional_id)r: the producer can send nothing more: %(error)s"
            _log.warning(message, transactional_id=state.transactional_id, error=state.error)

    def _deadline(self) -> Deadline:
        return self._cluster.deadline(self._config.max_block_ms / 1000)

    def _notify(self) -> None:
        self._report_end()
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
        self.on_change()

    def _report_end(self) -> None:
        """Report the transaction that has ended since the last call, if there is one, to the observers."""
        state, before = self.state, self._reported
        self._reported = state.commits, state.aborts
        if self._reported != before and (notify := self._cluster.observers.transaction_ended) is not None:
            seconds, is_committed = self._cluster.runtime.now() - self._began, state.commits > before[0]
            notify(
                TransactionEnded(transactional_id=state.transactional_id, is_committed=is_committed, seconds=seconds)
            )

    @property
    def has_ended(self) -> bool:
        """Whether the background task has ended, by :meth:`stop` or after an error."""
        return self._worker.has_ended

    async def wait_until(self, reached: Callable[[], bool], what: str) -> None:
        """Wait until ``reached`` returns True; ``what`` describes the wait in error messages.

        Raises:
            RequestTimeout: the wait took longer than ``max_block_ms``.
            UsageError: the producer was closed meanwhile.
            KafkaError: the producer has failed with this error.
        """
        self.wake()
        limit = self._config.max_block_ms / 1000
        with anyio.move_on_after(limit):
            while not reached():
                if self.state.phase is TransactionPhase.FAILED:
                    self.raise_failure()
                if self._worker.ended.is_set():
                    raise UsageError(f"the producer was closed while {what}")
                await self._changed.wait()
            return
        self.raise_failure()  # the request's own time was over at the same moment, and its error says more
        told = f"{what} took longer than {limit:g} s (max_block_ms){self._why_waiting()}"
        raise RequestTimeout(told) from self._trouble

    def _why_waiting(self) -> str:
        """Return the last error of the request in flight or, without one, who has not answered it, for a message."""
        request, trouble = self.state.pending, self._trouble
        if trouble is not None:
            return f"; at last {type(trouble).__name__}: {trouble}"
        if request is None:
            return ""
        name = type(request.request).__name__.removesuffix("Request")
        node = self._cluster.known_coordinator(request.coordinator_type, request.key)
        return f"; {name} is not answered by {node.address}" if node is not None else f"; {name} has no coordinator yet"

    def raise_failure(self) -> None:
        """Raise the error with which the producer has failed, if it has."""
        if self.state.phase is TransactionPhase.FAILED and self.state.error is not None:
            raise copy_for_reraise(self.state.error)

    def add_partition(self, partition: TopicPartition) -> None:
        """Add the partition of a record to the transaction. Raises as :meth:`TransactionStateMachine.add_partition`."""
        state = self.state
        if not (state.phase is TransactionPhase.OPEN and self._takes_records) and state.error is None:
            raise UsageError("a producer with a transactional_id sends inside 'async with producer.transaction()'")
        state.add_partition(partition)
        if state.version < 2:
            self.wake()  # the coordinator has to add the partition

    def refuse_records(self) -> None:
        """Take no more records into the open transaction, which is about to be committed."""
        self._takes_records = False

    def has_open(self) -> bool:
        """Return whether a transaction is open that may be committed."""
        return self.state.phase is TransactionPhase.OPEN and self.state.error is None

    def is_ready(self) -> bool:
        """Return whether a transaction may begin."""
        return self.state.phase is TransactionPhase.READY

    async def commit(self) -> None:
        """Commit the transaction within ``max_block_ms``; then the phase and error of ``state`` show the result."""
        message = "transactional id %(transactional_id)r: committing the transaction"
        _log.debug(message, transactional_id=self.state.transactional_id)
        self.state.commit()
        self._report_end()
        # All requests of the commit share one deadline, so that it ends in time.
        self._commit_by = self._deadline()
        self.wake()
        while self.state.phase is TransactionPhase.COMMITTING:
            if self._worker.ended.is_set():
                raise UsageError("the producer was closed during the commit")
            await self._changed.wait()

    @property
    def is_aborting(self) -> bool:
        """Whether an abort is in progress or scheduled."""
        return self._abort_scheduled or self.state.phase is TransactionPhase.ABORTING

    def abort(self, finish_batches: Callable[[], Awaitable[None]]) -> None:
        """Start to abort the transaction in the background; first await ``finish_batches``, which ends all batches."""
        message = "transactional id %(transactional_id)r: aborting the transaction"
        _log.debug(message, transactional_id=self.state.transactional_id)
        self._abort_scheduled = True
        self._cluster.owner.spawn(self._abort, self.state.transaction, finish_batches)

    async def _abort(self, transaction: OpenTransaction, finish_batches: Callable[[], Awaitable[None]]) -> None:
        try:
            # If the caller was cancelled in a commit, wait for the commit's end, and abort only if the commit fails.
            while self._is_committing(transaction):
                if self._worker.ended.is_set():
                    return
                await self._changed.wait()
            if self.state.transaction is not transaction:
                return  # the transaction is committed, and the next one may be open already
            await finish_batches()
            if self.state.phase is TransactionPhase.OPEN:
                self._commit_by = None  # the abort has time of its own, even if the commit has used up its time
                self.state.abort()
        finally:
            self._abort_scheduled = False
            self._notify()
            self.wake()

    async def end_open(self, finish_batches: Callable[[], Awaitable[None]]) -> None:
        """Wait for the end of a commit or abort in progress; abort a transaction that is open otherwise.

        The brokers would keep a transaction that is left open for ``transaction_timeout_ms``, and readers of committed
        records would wait as long. Return without an error if the end takes longer than ``max_block_ms``.
        """
        if self.has_ended:
            return  # the client was closed before
        if self.state.phase is TransactionPhase.OPEN and not self.is_aborting:
            self.abort(finish_batches)
        with suppress(KafkaError):
            await self.wait_until(self._has_no_open, "ending the transaction")

    def _has_no_open(self) -> bool:
        return not self.is_aborting and self.state.phase not in (TransactionPhase.OPEN, TransactionPhase.COMMITTING)

    def _is_committing(self, transaction: OpenTransaction) -> bool:
        return self.state.transaction is transaction and self.state.phase is TransactionPhase.COMMITTING

    async def begin(self) -> None:
        """Open a transaction, once the previous one has ended and the producer id is known.

        Raises as :meth:`wait_until`.
        """
        if self._worker.ended.is_set():
            raise UsageError("the producer is closed: use it inside its 'async with'")
        await self.wait_until(self.is_ready, "waiting for the producer id, or for the end of the previous transaction,")
        self._commit_by, self._began = None, self._cluster.runtime.now()
        self.state.begin(self._cluster.metadata.features.get(_FEATURE, 0))
        self._takes_records = True
        message = "transactional id %(transactional_id)r: beginning a transaction, epoch %(producer_epoch)d"
        _log.debug(message, transactional_id=self.state.transactional_id, producer_epoch=self.state.producer_epoch)
