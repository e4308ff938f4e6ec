"""Handles the end of produce requests: acknowledges, retries, splits, renumbers or fails their batches."""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from ..cluster.cluster import Cluster
from ..cluster.metadata import Node, Snapshot
from ..cluster.retry import Backoff, retry_action
from ..config import ProducerConfig
from ..errors import (
    ErrorCode,
    KafkaError,
    MessageTooLarge,
    RecordsPurged,
    Refresh,
    RequestTimeout,
    TopicNotReady,
    UnknownTopicId,
    UnknownTopicOrPartition,
    WireError,
    broker_error,
    copy_for_reraise,
)
from ..event_log import EventLog, TroubleLog
from ..observe import BatchEnded
from ..protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from ..records.compression import Codec
from ..types import Address, TopicPartition
from .accumulator import RecordAccumulator
from .batch import ProducerBatch
from .idempotence import SequenceAction, classify
from .in_flight_requests import InFlightRequest
from .produce_request import BatchResponse, batch_responses, single_response
from .unreported_failures import UnreportedFailures

if TYPE_CHECKING:
    from .transaction_state_machine import TransactionStateMachine

__all__ = ("BatchCompletion",)

_NOT_APPENDED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)
"""The errors with which a leader refuses a batch without appending it, unless the response has an offset."""

_log = EventLog("aiokafkawire.producer")


class BatchCompletion:
    """The handler of ended requests: it completes their batches, or returns them to the accumulator for a retry.

    The handler also keeps the failures that flush() reports. The caller has removed the requests from those in flight.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ProducerConfig,
        lane: str,
        accumulator: RecordAccumulator,
        transaction: "TransactionStateMachine | None",
    ) -> None:
        self.failures: UnreportedFailures = UnreportedFailures()
        self.on_failure: Callable[[KafkaError], None] | None = None
        """A function that is called with the error of each batch that has failed."""
        self._cluster, self._config, self._lane, self._accumulator = cluster, config, lane, accumulator
        self._transaction = transaction
        self.clock: Callable[[], float] = cluster.runtime.now
        self._backoffs: dict[TopicPartition, Backoff] = {}
        self._retries = TroubleLog(_log, self.clock, first=logging.DEBUG)
        # No errors: the caller has the exception, and may send the records again.
        self._failures = TroubleLog(_log, self.clock)

    # --- the end of a request --------------------------------------------------------------------------

    def response_received(self, request: InFlightRequest, response: ProduceResponse) -> bool:
        """Handle the response to a request; return whether all its batches were written."""
        single = single_response(request, response)
        if single is not None and not single.error_code:
            self._written(request.batches[0], single)
            return True
        answers = list(batch_responses(request, response))
        if any(answer is not None and answer.error_code for _, answer in answers):
            self._use_leaders(request, response, answers)
        all_written = True
        for batch, answer in answers:
            if answer is not None and answer.error_code == ErrorCode.NONE:
                self._written(batch, answer)
                continue
            all_written = False
            if answer is None:
                batch.in_doubt = True
                error: KafkaError = WireError(f"the answer to Produce lacks {batch.partition}, which was sent")
            else:
                batch.in_doubt = batch.in_doubt or not _is_refusal(answer)
                error = broker_error(answer.error_code, _description(batch, answer))
            self._not_acknowledged(batch, error, request)
        return all_written

    def _written(self, batch: ProducerBatch, answer: PartitionProduceResponse) -> None:
        if self._transaction is not None:
            self._transaction.batch_written(batch.partition.topic, batch.topic_id)
        self._acknowledge(batch, answer.base_offset, answer.log_append_time_ms)

    def request_failed(self, request: InFlightRequest, error: KafkaError, *, sent: bool = True) -> None:
        """Handle a request without a response; if it was ``sent``, the broker may have written its batches."""
        for batch in request.batches:
            batch.in_doubt = batch.in_doubt or sent
            self._not_acknowledged(batch, error, request)

    def unsupported(self, batch: ProducerBatch, error: KafkaError) -> None:
        """Split or fail a batch that was not sent, because its leader does not support some of its records."""
        if batch.result.completed:  # it expired meanwhile
            self._accumulator.discard_expired(batch)
        elif batch.count > 1 and not batch.transactional:
            self._accumulator.requeue_split(batch)
        else:
            self.fail(batch, error)

    def written_unacknowledged(self, request: InFlightRequest) -> None:
        """Complete the batches of a request with ``acks=0``, once the request is written to the connection."""
        for batch in request.batches:
            self._acknowledge(batch, -1, -1)

    def _not_acknowledged(self, batch: ProducerBatch, error: KafkaError, request: InFlightRequest) -> None:
        """Handle a batch's error: retry, split, acknowledge (if it was written already) or fail the batch."""
        accumulator = self._accumulator
        action, first = None, accumulator.is_first(batch)
        if batch.base_sequence >= 0:
            action = classify(error, first=first, transactional=batch.transactional)
        retry, refresh = retry_action(error)
        if refresh is Refresh.METADATA and not self._has_new_leader(batch, request):
            self._cluster.metadata.mark_stale(request.snapshot)
        if batch.result.completed:  # it expired meanwhile
            accumulator.discard_expired(batch)
            return
        may_retry = batch.attempts <= self._config.retries
        if action in (SequenceAction.RENUMBER, SequenceAction.NEW_PRODUCER_ID):
            # Even if this batch is not retried: the leader would refuse the partition's later batches as well.
            accumulator.restart(batch.partition, action)
        lost = _lost_with_topic(batch, self._cluster.metadata.snapshot)
        if action is SequenceAction.WRITTEN:
            self._acknowledge(batch, -1, -1)
        elif lost is not None:
            self.fail(batch, lost)
        elif action in (SequenceAction.RENUMBER, SequenceAction.NEW_PRODUCER_ID) and batch.split_in_doubt:
            self._fail_parts(batch, error)
        elif action is not None and may_retry:
            self._retry(batch, error, self._retry_time(batch, action))
        elif isinstance(error, MessageTooLarge) and batch.count > 1:
            accumulator.requeue_split(batch)
        elif retry and may_retry:
            # The partition's later batches wait for its first one, and need no backoff of their own.
            wait = self._backoff(batch.partition) if first and not self._has_new_leader(batch, request) else 0.0
            self._retry(batch, error, self.clock() + wait)
        else:
            self.fail(batch, error)

    def _fail_parts(self, batch: ProducerBatch, error: KafkaError) -> None:
        """Fail a part of a split batch, and the parts after it: under other numbers they might be in the log twice."""
        doubt = "a broker may have written the records before another one found their batch too large"
        failed = type(error)(f"{error}; {doubt}")
        failed.__cause__ = error
        self.fail(batch, failed)
        self.fail_waiting(lambda waiting: copy_for_reraise(failed) if waiting.order[0] == batch.order[0] else None)

    def _retry(self, batch: ProducerBatch, error: KafkaError, not_before: float) -> None:
        delay = max(0.0, not_before - self.clock())
        message = "retrying a batch of %(records)d records for %(partition)s in %(delay).3f s: %(error)s"
        partition = batch.partition
        self._retries.failed(partition, message, partition=partition, records=batch.count, delay=delay, error=error)
        self._accumulator.requeue(batch, error, not_before)

    def _retry_time(self, batch: ProducerBatch, action: SequenceAction) -> float:
        # A batch that waits for earlier ones or gets another number needs no backoff; but a broker that refuses the
        # number again and again must not receive it in a tight loop.
        at_once = action is SequenceAction.RETRY_BEHIND or batch.attempts < 2
        return self.clock() + (0.0 if at_once else self._backoff(batch.partition))

    def _backoff(self, partition: TopicPartition) -> float:
        backoff = self._backoffs.get(partition)
        if backoff is None:
            backoff = self._backoffs[partition] = self._cluster.backoff()
        return backoff.next()

    def _use_leaders(
        self, request: InFlightRequest, response: ProduceResponse, answers: Sequence[BatchResponse]
    ) -> None:
        """Update the metadata with the new leaders that the response names (KIP-951)."""
        leaders = {}
        for batch, answer in answers:
            if answer is not None and answer.error_code and answer.current_leader.leader_id >= 0:
                leaders[batch.partition] = (answer.current_leader.leader_id, answer.current_leader.leader_epoch)
        if leaders:
            endpoints = response.node_endpoints
            nodes = [Node(node.node_id, Address(node.host, node.port), node.rack) for node in endpoints]
            before = self._cluster.metadata.snapshot
            self._cluster.metadata.use_leaders(leaders, nodes)
            if request.snapshot is before:
                request.snapshot = self._cluster.metadata.snapshot  # only these leaders have changed

    def _has_new_leader(self, batch: ProducerBatch, request: InFlightRequest) -> bool:
        """Return whether the batch's partition now has another leader than the broker that got the request."""
        node = self._cluster.metadata.snapshot.leader(batch.partition)
        return node is not None and node.node_id != request.broker

    # --- the end of a batch ----------------------------------------------------------------------------

    def _acknowledge(self, batch: ProducerBatch, base_offset: int, log_append_time: int) -> None:
        """Complete a written batch; ``base_offset`` is -1 if unknown."""
        if batch.result.completed:  # it expired meanwhile
            self._accumulator.discard_expired(batch)
            return
        self._backoffs.pop(batch.partition, None)
        for trouble in (self._retries, self._failures):
            if trouble:
                trouble.ended(batch.partition, "%(partition)s takes records again", partition=batch.partition)
        self._accumulator.acknowledge(batch)
        batch.result.resolve(base_offset, log_append_time)
        self._report(batch, None if base_offset < 0 else base_offset, None)

    def fail(
        self, batch: ProducerBatch, error: KafkaError, *, is_abort: bool = False, is_reported: bool = True
    ) -> None:
        """Fail a batch with this error, and do not send it again.

        Args:
            batch: the batch.
            error: what its deliveries raise.
            is_abort: whether the user asked for it: by aborting the batch's transaction, or by purging.
            is_reported: whether the next flush reports the records that no caller awaits.
        """
        self._backoffs.pop(batch.partition, None)
        self._accumulator.remove(batch)
        batch.result.fail(error)
        self._report(batch, None, error)
        message = "failed to send %(records)d records to %(partition)s: %(error)s"
        if is_abort:
            _log.debug(message, partition=batch.partition, records=batch.count, error=error)
        else:
            self._failures.failed(batch.partition, message, partition=batch.partition, records=batch.count, error=error)
        if is_reported:
            self.failures.add(batch.result)
        if self._transaction is not None:
            self._transaction.batch_failed(batch.partition, error, sent=batch.base_sequence >= 0)
        if self.on_failure is not None:
            self.on_failure(error)

    def _report(self, batch: ProducerBatch, offset: int | None, error: KafkaError | None) -> None:
        observers = self._cluster.observers
        if observers.note_batch is None and observers.batch_ended is None:
            return
        now, builder, first = self.clock(), batch.opened.builder, batch.first_sent_at
        created_at, sent_at = batch.created_at, now if first is None else first
        records, size, compressed, attempts = builder.count, builder.size, len(batch.encoded or b""), batch.attempts
        topic = batch.partition.topic
        if (note := observers.note_batch) is not None:
            failed = error is not None
            note((topic, records, size, compressed or size, attempts, created_at, sent_at, failed, now))
        if (notify := observers.batch_ended) is not None:
            notify(
                BatchEnded(
                    lane=self._lane,
                    transactional_id=self._config.transactional_id,
                    topic=topic,
                    partition=batch.partition.partition,
                    records=records,
                    size=size,
                    compressed_size=compressed,
                    codec=Codec(builder.codec).name.lower(),
                    seconds=now - created_at,
                    queued_seconds=sent_at - created_at,
                    attempts=attempts,
                    offset=offset,
                    error=error,
                )
            )

    def fail_expired(self, now: float) -> None:
        """Fail the batches that are older than ``delivery_timeout_ms``."""
        for batch in self._accumulator.take_expired(now):
            self.fail(batch, self._expired(batch))

    def fail_waiting(self, error_of: Callable[[ProducerBatch], KafkaError | None], *, is_abort: bool = False) -> None:
        """Fail each waiting batch for which ``error_of`` returns an error, as :meth:`fail`."""
        for batch, error in self._accumulator.take_waiting(error_of):
            self.fail(batch, error, is_abort=is_abort)

    def purge(self) -> int:
        """Fail all waiting batches with RecordsPurged, which no flush reports; return the number of their records."""
        count = 0
        for batch, error in self._accumulator.take_waiting(_purged):
            count += batch.count
            self.fail(batch, error, is_abort=True, is_reported=False)
        return count

    def use_snapshot(self, snapshot: Snapshot) -> None:
        """Handle topics that this snapshot shows as recreated: fail lost batches, and restart sequence numbers."""
        if self._transaction is not None:
            self._transaction.check_topic_ids(snapshot.topic_id)
        self.fail_waiting(lambda batch: _lost_with_topic(batch, snapshot))
        self._accumulator.restart_recreated(snapshot.topic_id)

    def _expired(self, batch: ProducerBatch) -> KafkaError:
        seconds = self._config.delivery_timeout_ms / 1000
        last = batch.last_error
        snapshot = self._cluster.metadata.snapshot
        if last is None and snapshot.leader(batch.partition) is None:
            known = snapshot.topics.get(batch.partition.topic)
            code = known.error if known is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            message = f"{batch.partition} had no leader for {seconds:g} s (delivery_timeout_ms)"
            return TopicNotReady(f"{message}: {broker_error(code)}" if code else message)
        why = "; it was sent, and not answered" if batch.attempts else ""
        if last is not None:
            tried = f"tried {batch.attempts} times" if batch.attempts else "those before it were tried"
            why = f"; {tried}, at last {type(last).__name__}: {last}"
        error = RequestTimeout(f"{batch.partition} took no records for {seconds:g} s (delivery_timeout_ms){why}")
        error.__cause__ = last
        return error


def _purged(batch: ProducerBatch) -> RecordsPurged:
    doubt = "; a broker may have written it, since it was sent before and not answered" if batch.in_doubt else ""
    return RecordsPurged(f"the record for {batch.partition} was dropped by purge(){doubt}")


def _lost_with_topic(batch: ProducerBatch, snapshot: Snapshot) -> KafkaError | None:
    """Return the error of a batch that cannot be sent again, since its topic was recreated; None for other batches.

    There are two reasons: a broker may have written it to the old topic, or the new topic lacks the partition.
    """
    topic = snapshot.topics.get(batch.partition.topic)
    if topic is None or not batch.has_other_topic(topic.topic_id):
        return None
    if batch.in_doubt:
        why = "a broker may have written them to the old topic, so the producer does not send them to the new one"
        happened = f"topic {topic.name!r} was deleted and made again while records were on their way"
        return UnknownTopicId(f"{happened}: {why}")
    if topic.error == ErrorCode.NONE and len(topic.partitions) <= batch.partition.partition:
        happened = f"topic {topic.name!r} was deleted and made again with {len(topic.partitions)} partitions"
        return UnknownTopicOrPartition(f"{happened}: there is no {batch.partition} to send the records to")
    return None


def _is_refusal(answer: PartitionProduceResponse) -> bool:
    """Return whether ``answer``, an error, proves that this request did not write the batch."""
    return answer.base_offset < 0 and answer.error_code in _NOT_APPENDED


def _description(batch: ProducerBatch, answer: PartitionProduceResponse) -> str:
    """Return an error's text: the partition, and the broker's messages on the batch and on single records (KIP-467)."""
    text = f"Produce to {batch.partition}"
    if answer.error_message:
        text += f": {answer.error_message}"
    for record in answer.record_errors[:3]:
        text += f"; record {record.batch_index} of the batch" + (
            f": {record.batch_index_error_message}" if record.batch_index_error_message else ""
        )
    return text
