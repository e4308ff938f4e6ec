"""The driver's half of the exactly-once sink: one transaction for each micro-batch. It knows nothing of Spark.

1. Opening the producer ends what a driver before it has left open, and fences that driver's tasks (KIP-98).
2. A batch is asked for before it is written: its mark is an offset that was committed in its own transaction, so both
   are there or neither is.
3. Others write into the transaction with the producer's id and epoch. Whatever fails, all of it is aborted, and what is
   written again has another epoch: nothing that comes late gets in.
"""

import logging
from collections.abc import Callable
from typing import Final

from .. import blocking
from ..errors import ConfigError, InvalidProducerEpoch, InvalidTxnState, KafkaError, ProducerFenced
from ..types import OffsetAndMetadata, ProducerIdentity, TopicPartition
from .batch_markers import group_of, is_unknown, is_written, mark_of
from .options import WriteOptions

__all__ = ("BatchTransactions",)

_log = logging.getLogger("aiokafkawire.spark")

_TIMEOUT_MS: Final = 600_000
"""``transaction.timeout.ms`` where nothing else is said: a batch takes as long as a Spark job; brokers allow 900000."""


class BatchTransactions:
    """Writes micro-batches, each in a transaction of its own. It opens with the first one; :meth:`close` it.

    Args:
        options: the sink's; the option ``topic`` is needed.
        transactional_id: the query's own, and the same after a restart.
        tries: how often a batch is written before its error is raised.

    Raises:
        ConfigError: there is no topic, or a setting is wrong.
    """

    def __init__(self, options: WriteOptions, transactional_id: str, *, tries: int = 3) -> None:
        if options.topic is None:
            raise ConfigError("the option topic is needed: all records of an exactly-once sink go to one topic")
        if tries < 1:
            raise ConfigError(f"tries must be 1 at least, got {tries}")
        self._options, self._transactional_id, self._tries = options, transactional_id, tries
        # An offset needs a partition that is there; nobody reads from this one by it.
        self._where = TopicPartition(options.topic, 0)
        self._group = group_of(transactional_id)
        self._kafka: blocking.Client | None = None
        self._producer: blocking.Producer[bytes, bytes] | None = None
        self._followed: str | None = None  # the query whose batches this driver knows of itself

    def write(self, query: str, batch_id: int, work: Callable[[ProducerIdentity], object]) -> bool:
        """Write a batch, unless it was written before: then ``work`` is not called. Returns whether it was.

        ``work`` has all of the batch's records written with the identity it is given; no two producers with it may
        write to one partition. If it raises what is no KafkaError, it is called again for a new transaction.

        Raises:
            ProducerFenced, InvalidProducerEpoch, InvalidTxnState: the transaction was open for too long, or another
                driver has taken over; nothing of the batch will be seen.
            KafkaError: it cannot be committed; if nobody knows whether it was, the next driver does.
        """
        producer = self._open()
        for left in reversed(range(self._tries)):
            mark = self._mark()
            if is_written(mark, query, batch_id):
                _log.info("batch %d of query %s was written before: it is left out", batch_id, query)
                return False
            if query != self._followed:
                self._tell_if_unknown(mark, query, batch_id)
            try:
                self._write_once(producer, mark_of(query, batch_id), work)
                return True
            except (ProducerFenced, InvalidProducerEpoch, InvalidTxnState) as error:
                error.add_note(
                    f"batch {batch_id} was not written: its transaction was open for longer than "
                    "kafka.transaction.timeout.ms, or another query has this transactional id; start the query again"
                )
                raise
            except KafkaError:
                raise
            except Exception as error:
                if not left:
                    raise
                _log.warning("batch %d of query %s was aborted, and is written again: %s", batch_id, query, error)
        raise AssertionError("the last try returns or raises")

    def partitions(self) -> tuple[int, ...]:
        """The topic's partitions. Raises TopicNotReady if it is not there."""
        return self._open().partitions_for(self._where.topic)

    def close(self) -> None:
        """Abort what is open, and close the connections. May be called again."""
        kafka, self._kafka, producer, self._producer = self._kafka, None, self._producer, None
        try:
            if producer is not None:
                producer.close()
        finally:
            if kafka is not None:
                kafka.close()

    def _write_once(
        self,
        producer: blocking.Producer[bytes, bytes],
        mark: OffsetAndMetadata,
        work: Callable[[ProducerIdentity], object],
    ) -> None:
        with producer.transaction() as transaction:
            work(producer.identity)
            transaction.commit_offsets({self._where: mark}, group=self._group)

    def _tell_if_unknown(self, mark: OffsetAndMetadata | None, query: str, batch_id: int) -> None:
        if is_unknown(mark, query, batch_id):
            _log.warning(
                "group %s has no mark of query %s, or no longer (offsets.retention.minutes): batch %d is written, and "
                "if a driver before has written it and was killed before Spark knew, it is there twice",
                self._group,
                query,
                batch_id,
            )
        self._followed = query

    def _mark(self) -> OffsetAndMetadata | None:
        assert self._kafka is not None
        admin = self._kafka.asynchronous.admin
        found = self._kafka.loop.call(
            admin.list_consumer_group_offsets, self._group, [self._where], require_stable=True
        )
        return found.get(self._where)

    def _open(self) -> blocking.Producer[bytes, bytes]:
        if self._producer is None:
            settings = self._options.settings
            asked = settings.producer.copy()
            asked.setdefault("transaction_timeout_ms", _TIMEOUT_MS)
            asked["transactional_id"] = self._transactional_id
            self._kafka = blocking.Client(settings.bootstrap_servers, **settings.client).open()
            try:
                self._producer = self._kafka.producer(**asked).__enter__()
            except BaseException:
                self.close()
                raise
        return self._producer
