"""Drives a transaction machine against its coordinators."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from anyio.abc import TaskGroup

from ..cluster.cluster import Cluster
from ..cluster.retry import Backoff, Deadline
from ..config import ProducerConfig
from ..errors import RequestTimeout, UsageError, as_kafka_error, copy_for_reraise
from ..runtime import Worker
from ..types import CoordinatorType, ProducerIdentity, TopicPartition
from .transaction import Ask, TransactionMachine, TransactionState

__all__ = ("Transactor",)

_log = logging.getLogger("aiokafkawire.producer")

_FEATURE = "transaction.version"
_FIRST_BACKOFF = 0.02
"""Brokers take some ms to write the markers of the transaction before, and answer CONCURRENT_TRANSACTIONS meanwhile."""


class Transactor:
    """Asks for what the machine says is due, and lets tasks wait for its states.

    ``on_change`` hears of every answer.
    """

    def __init__(
        self, cluster: Cluster, config: ProducerConfig, transactional_id: str, identity: ProducerIdentity | None
    ) -> None:
        self.machine: TransactionMachine = TransactionMachine(transactional_id, config.transaction_timeout_ms, identity)
        self.on_change: Callable[[], None] = lambda: None
        self._cluster, self._config = cluster, config
        cluster.log_coordinator(CoordinatorType.TRANSACTION, transactional_id)
        self._changed = anyio.Event()
        self._commit_by: Deadline | None = None
        self._before_abort = False
        self._failure_logged = False
        self._worker = Worker(self._step, self._tell)

    async def run(self) -> None:
        """Ask until stopped."""
        await self._worker.run()

    async def stop(self) -> None:
        """Ask nothing more. May be called again."""
        await self._worker.stop()

    def wake(self) -> None:
        """The machine may have something to ask."""
        self._worker.wake()

    def _step(self, tasks: TaskGroup) -> None:
        self._log_failure()
        ask = self.machine.due()
        if ask is not None:
            tasks.start_soon(self._ask, ask)

    async def _ask(self, ask: Ask) -> None:
        config = self._cluster.config
        backoff = Backoff(_FIRST_BACKOFF, config.retry_backoff_max_ms / 1000, self._cluster.runtime.chance)
        try:
            answer = await self._cluster.ask_coordinator(
                ask.kind,
                ask.key,
                ask.request,
                self._commit_by or self._deadline(),
                wanted=ask.wanted,
                check=ask.check,
                backoff=backoff,
            )
        except Exception as error:
            name = type(ask.request).__name__.removesuffix("Request")
            failed = as_kafka_error(error, f"{name} of {self.machine.transactional_id!r}")
            self.machine.refused(ask, failed)
            _log.debug("transactional id %r: %s failed: %s", self.machine.transactional_id, name, failed)
        else:
            self._answered(ask, answer)
        self._tell()
        self.wake()

    def _answered(self, ask: Ask, answer: Any) -> None:
        machine = self.machine
        generation, starting = machine.generation, machine.state is TransactionState.STARTING
        machine.answered(ask, answer)
        if machine.generation == generation:
            return
        told = "transactional id %r: producer id %d, epoch %d"
        # EndTxn of transaction.version 2 brings a new epoch after each transaction, which fences nobody.
        level = logging.INFO if starting else logging.DEBUG
        _log.log(level, told, machine.transactional_id, machine.producer_id, machine.producer_epoch)

    def _log_failure(self) -> None:
        machine = self.machine
        if machine.has_failed and not self._failure_logged:
            self._failure_logged = True
            told = "transactional id %r: the producer can send nothing more: %s"
            _log.warning(told, machine.transactional_id, machine.error)

    def _deadline(self) -> Deadline:
        return self._cluster.deadline(self._config.max_block_ms / 1000)

    def _tell(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
        self.on_change()

    async def until(self, reached: Callable[[], bool], what: str) -> None:
        """Wait until the machine is so far; it is woken first.

        Raises:
            RequestTimeout: not within ``max_block_ms``.
            KafkaError: why the machine has failed.
        """
        self.wake()
        limit = self._config.max_block_ms / 1000
        with anyio.move_on_after(limit):
            while not reached():
                if self.machine.state is TransactionState.FAILED:
                    self.require()
                if self._worker.ended.is_set():
                    raise UsageError(f"the producer was closed while {what}")
                await self._changed.wait()
            return
        raise RequestTimeout(f"{what} took longer than {limit:g} s (max_block_ms)")

    def require(self) -> None:
        """Raise why the machine has failed, if it has."""
        if self.machine.state is TransactionState.FAILED and self.machine.error is not None:
            raise copy_for_reraise(self.machine.error)

    def add(self, where: TopicPartition) -> None:
        """A record for this partition is about to be taken.

        Raises:
            UsageError: no transaction is open.
            KafkaError: why it can only be aborted, or the producer has failed.
        """
        machine = self.machine
        if machine.state is not TransactionState.OPEN and machine.error is None:
            raise UsageError("a producer with a transactional_id sends inside 'async with producer.transaction()'")
        machine.add(where)
        if machine.version < 2:
            self.wake()  # for the coordinator to take the partition

    def has_open(self) -> bool:
        """Whether a transaction is open that may be committed."""
        return self.machine.state is TransactionState.OPEN and self.machine.error is None

    def is_ready(self) -> bool:
        """Whether a transaction may begin."""
        return self.machine.state is TransactionState.READY

    async def commit(self) -> None:
        """Commit, within ``max_block_ms``; what came of it is the machine's to say."""
        _log.debug("transactional id %r: committing the transaction", self.machine.transactional_id)
        self.machine.commit()
        # All that is asked for it shares one deadline, so it ends in time, and its end is known here.
        self._commit_by = self._deadline()
        self.wake()
        while self.machine.state is TransactionState.COMMITTING:
            if self._worker.ended.is_set():
                raise UsageError("the producer was closed during the commit")
            await self._changed.wait()

    @property
    def is_aborting(self) -> bool:
        """Whether an abort is under way, or will be as soon as it can."""
        return self._before_abort or self.machine.state is TransactionState.ABORTING

    def abort(self, quiet: Callable[[], Awaitable[None]]) -> None:
        """Abort in the background, once ``quiet`` says that no batch is on its way."""
        _log.debug("transactional id %r: aborting the transaction", self.machine.transactional_id)
        self._before_abort = True
        self._cluster.owner.spawn(self._abort, quiet)

    async def _abort(self, quiet: Callable[[], Awaitable[None]]) -> None:
        try:
            # Whoever was cancelled in a commit waits no more for its end: if it is refused, this is what is left to do.
            if self.machine.state is TransactionState.COMMITTING:
                while self.machine.state is TransactionState.COMMITTING and not self._worker.ended.is_set():
                    await self._changed.wait()
                if self.machine.error is None:
                    return  # it was committed; the next one may be open already
            await quiet()
            if self.machine.state is TransactionState.OPEN:
                self.machine.abort()
        finally:
            self._before_abort = False
            self._tell()
            self.wake()

    async def begin(self) -> None:
        """Open a transaction, once the one before is over and the producer id is known.

        Raises:
            UsageError: the producer is closed.
            KafkaError: why that cannot be.
        """
        if self._worker.ended.is_set():
            raise UsageError("the producer is closed: use it inside its 'async with'")
        await self.until(self.is_ready, "waiting for the producer id, or for the end of the transaction before,")
        self._commit_by = None
        self.machine.begin(self._cluster.features.get(_FEATURE, 0))
        told = "transactional id %r: beginning a transaction, epoch %d"
        _log.debug(told, self.machine.transactional_id, self.machine.producer_epoch)
