"""The driver's part of the exactly-once sink, without Spark: one transaction for each micro-batch.

1. Opening the producer aborts the transaction of a previous driver, and fences that driver's tasks (KIP-98).
2. The transaction of a batch also commits an offset, which marks the batch as written. Before writing a batch, the
   driver reads this marker to learn whether the batch was written before.
3. Tasks write into the transaction with the producer's id and epoch. After any failure the transaction is aborted, and
   the next attempt has a new epoch, so brokers reject late writes.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from .. import blocking
from ..errors import (
    ConfigError,
    InvalidProducerEpoch,
    InvalidTxnState,
    KafkaError,
    ProducerFenced,
    UnknownTopicOrPartition,
)
from ..event_log import EventLog
from ..types import OffsetAndMetadata, ProducerIdentity, TopicPartition
from .batch_markers import group_of, is_unknown, is_written, mark_of
from .options import WriteOptions

__all__ = ("BatchTransactions",)

_log = EventLog("aiokafkawire.spark")

_TIMEOUT_MS: Final = 600_000
"""The default of ``transaction.timeout.ms``: a batch takes as long as a Spark job; brokers allow 900000."""
_OVER: Final = (ProducerFenced, InvalidProducerEpoch, InvalidTxnState)
"""The errors after which the brokers take no more records of a transaction."""


class BatchTransactions:
    """The transactions of a query, one for each micro-batch.

    The first batch opens a producer, and so does the one after an error of Kafka; call :meth:`close` after the last.

    Args:
        options: the sink's options; ``topic`` is required.
        transactional_id: an id that is unique to the query and the same after every restart.
        tries: the maximum number of attempts to write a batch before its error is raised.

    Raises:
        ConfigError: the topic is missing, or a setting is wrong.
    """

    def __init__(self, options: WriteOptions, transactional_id: str, *, tries: int = 3) -> None:
        if options.topic is None:
            raise ConfigError("the option topic is required: an exactly-once sink writes all records to one topic")
        if tries < 1:
            raise ConfigError(f"tries must be at least 1, got {tries}")
        self._options, self._transactional_id, self._tries = options, transactional_id, tries
        # The partition of the markers' offsets must exist; no consumer starts at these offsets.
        self._partition = TopicPartition(options.topic, 0)
        self._group = group_of(transactional_id)
        self._kafka: blocking.Client | None = None
        self._producer: blocking.Producer[bytes, bytes] | None = None
        self._followed: str | None = None  # the query whose marker this driver has checked

    def write(self, query: str, batch_id: int, work: Callable[[ProducerIdentity], object]) -> bool:
        """Write a batch by calling ``work``, unless the batch was written before; return whether it was written now.

        ``work`` must write all of the batch's records with the given identity; only one producer with this identity may
        write to a partition. After an error other than KafkaError, ``work`` is called again in a new transaction.

        Raises:
            ProducerFenced, InvalidProducerEpoch, InvalidTxnState: the transaction was open for too long, or another
                driver has taken over; readers will not see the batch.
            KafkaError: the commit failed, or its outcome is unknown until the next driver opens its producer.
        """
        producer = self._open()
        for left in reversed(range(self._tries)):
            mark = self._mark()
            if is_written(mark, query, batch_id):
                message = "skipping batch %(batch_id)d of query %(query)s: it was written before"
                _log.info(message, batch_id=batch_id, query=query)
                return False
            if query != self._followed:
                self._warn_if_unknown(mark, query, batch_id)
            try:
                self._write_once(producer, mark_of(query, batch_id), work)
                return True
            except KafkaError as error:
                if isinstance(error, _OVER):
                    error.add_note(
                        f"batch {batch_id} was not written: its transaction was open for longer than "
                        "kafka.transaction.timeout.ms, or another query has this transactional id; restart the query"
                    )
                # This producer may be of no more use, and a query that is restarted may have the same sink.
                with suppress(KafkaError):
                    self.close()
                raise
            except Exception as error:
                if not left:
                    raise
                message = "retrying batch %(batch_id)d of query %(query)s, which was aborted: %(error)s"
                _log.warning(message, batch_id=batch_id, query=query, error=error)
        raise AssertionError("the last attempt returns or raises")

    def partitions(self) -> tuple[int, ...]:
        """Return the topic's present partitions. Raise TopicNotReady if the topic does not exist."""
        known = self._open().partitions_for(self._partition.topic)
        assert self._kafka is not None  # it is open
        try:
            return self._kafka.admin.partitions_of(self._partition.topic)  # the producer may not know the new ones yet
        except UnknownTopicOrPartition:  # nor may the broker that was asked
            return known

    def close(self) -> None:
        """Abort an open transaction, and close the connections. This method may be called several times."""
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
            transaction.commit_offsets({self._partition: mark}, group=self._group)

    def _warn_if_unknown(self, mark: OffsetAndMetadata | None, query: str, batch_id: int) -> None:
        if is_unknown(mark, query, batch_id):
            _log.warning(
                "group %(group)s has no marker of query %(query)s, which may have expired (offsets.retention.minutes): "
                "writing batch %(batch_id)d, which is duplicated if a previous driver wrote it and was killed before "
                "Spark's checkpoint",
                group=self._group,
                query=query,
                batch_id=batch_id,
            )
        self._followed = query

    def _mark(self) -> OffsetAndMetadata | None:
        assert self._kafka is not None
        admin = self._kafka.asynchronous.admin
        found = self._kafka.loop.call(
            admin.list_consumer_group_offsets, self._group, [self._partition], require_stable=True
        )
        return found.get(self._partition)

    def _open(self) -> blocking.Producer[bytes, bytes]:
        if self._producer is None:
            settings = self._options.settings
            producer_options = settings.producer.copy()
            producer_options.setdefault("transaction_timeout_ms", _TIMEOUT_MS)
            producer_options["transactional_id"] = self._transactional_id
            self._kafka = blocking.Client(settings.bootstrap_servers, **settings.client).open()
            try:
                self._producer = self._kafka.producer(**producer_options).__enter__()
            except BaseException:
                self.close()
                raise
        return self._producer
