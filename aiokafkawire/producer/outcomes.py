"""What becomes of batches: written, tried again, split, numbered anew, or failed."""

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
    Refresh,
    RequestTimeout,
    TopicNotReady,
    UnknownTopicId,
    UnknownTopicOrPartition,
    WireError,
    broker_error,
)
from ..protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from ..types import Address, TopicPartition
from .accumulator import Accumulator
from .batch import Batch
from .failures import Failures
from .flight import Answered, Flight
from .idempotence import Verdict, judge

if TYPE_CHECKING:
    from .transaction import TransactionMachine

__all__ = ("Outcomes",)

_REFUSED: Final = frozenset(
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
"""Errors that a leader finds before it appends a batch, unless the answer has an offset."""

_log = logging.getLogger("aiokafkawire.producer")


class Outcomes:
    """Decides on each batch whose request has ended, and keeps what flush has to report.

    ``on_room`` is called whenever memory became free, ``on_retry`` when a batch has to be tried again.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ProducerConfig,
        accumulator: Accumulator,
        on_room: Callable[[], None],
        on_retry: Callable[[], None],
        transaction: "TransactionMachine | None",
    ) -> None:
        self.failures: Failures = Failures()
        self.on_failure: Callable[[KafkaError], None] | None = None
        """Called after a batch has failed, with its error."""
        self._cluster, self._config, self._accumulator = cluster, config, accumulator
        self._on_room, self._on_retry, self._transaction = on_room, on_retry, transaction
        self._clock = cluster.runtime.now
        self._backoffs: dict[TopicPartition, Backoff] = {}

    # --- the end of a request --------------------------------------------------------------------------

    def answered(self, flight: Flight, response: ProduceResponse) -> None:
        """Every batch of the request has an answer, or should have."""
        alone = flight.answer(response)
        if alone is not None and not alone.error_code:
            self._written(flight.batches[0], alone)
            return
        answers = list(flight.answers(response))
        if any(answer is not None and answer.error_code for _, answer in answers):
            self._use_leaders(flight, response, answers)
        for batch, answer in answers:
            if answer is None:
                batch.in_doubt = True
                self._ended(batch, WireError(f"the answer to Produce lacks {batch.where}, which was sent"), flight)
            elif answer.error_code == ErrorCode.NONE:
                self._written(batch, answer)
            else:
                batch.in_doubt = batch.in_doubt or not _is_refusal(answer)
                self._ended(batch, broker_error(answer.error_code, _said(batch, answer)), flight)

    def _written(self, batch: Batch, answer: PartitionProduceResponse) -> None:
        self._accumulator.arrived(batch)
        if self._transaction is not None:
            self._transaction.batch_written(batch.where.topic, batch.topic_id)
        if not batch.result.settled:
            self.finish(batch, answer.base_offset, answer.log_append_time_ms)

    def lost(self, flight: Flight, error: KafkaError, *, sent: bool = True) -> None:
        """No answer will come; what was ``sent`` may have been written."""
        for batch in flight.batches:
            batch.in_doubt = batch.in_doubt or sent
            self._ended(batch, error, flight)

    def refused(self, batch: Batch, error: KafkaError) -> None:
        """It was not sent: its leader is too old for something in it. The records without that go on by themselves."""
        self._accumulator.arrived(batch)
        if batch.result.settled:  # it became too late meanwhile
            pass
        elif batch.count > 1 and not batch.transactional:
            self._accumulator.put_back_halved(batch)
        else:
            self.fail(batch, error)
        self._on_retry()  # for what is behind it, too: no answer will come that has it sent

    def posted(self, flight: Flight) -> None:
        """It is on the wire, and no answer was asked for."""
        for batch in flight.batches:
            self._accumulator.arrived(batch)
            if not batch.result.settled:
                self.finish(batch, -1, -1)

    def _ended(self, batch: Batch, error: KafkaError, flight: Flight) -> None:
        """Try the batch again if the error allows it and time is left; else it has failed."""
        accumulator = self._accumulator
        verdict, first = None, accumulator.is_first(batch)
        if batch.base_sequence >= 0:
            verdict = judge(error, first=first, transactional=batch.transactional)
        accumulator.arrived(batch)
        retry, refresh = retry_action(error)
        if refresh is Refresh.METADATA and not self._knows_better(batch, flight):
            self._cluster.mark_stale(flight.snapshot)
        if batch.result.settled:  # it became too late meanwhile
            return
        again = batch.tries <= self._config.retries
        if verdict in (Verdict.RENUMBER, Verdict.RENEW):
            # Tried again or not: those that come after it would be refused as well.
            accumulator.restart(batch.where, verdict)
        gone = _lost_with_old_topic(batch, self._cluster.snapshot)
        if verdict is Verdict.WRITTEN:
            self.finish(batch, -1, -1)
        elif gone is not None:
            self.fail(batch, gone)
        elif verdict is not None and again:
            self._try_again(batch, error, self._not_before(batch, verdict))
        elif isinstance(error, MessageTooLarge) and batch.count > 1:
            accumulator.put_back_halved(batch)
            self._on_retry()
        elif retry and again:
            # Those behind the first wait for it, and not for their own sake.
            wait = self._backoff(batch.where) if first and not self._knows_better(batch, flight) else 0.0
            self._try_again(batch, error, self._clock() + wait)
        else:
            self.fail(batch, error)

    def _try_again(self, batch: Batch, error: KafkaError, not_before: float) -> None:
        if _log.isEnabledFor(logging.DEBUG):
            delay = max(0.0, not_before - self._clock()) * 1000
            told = "retrying a batch of %d records for %s in %.0f ms (try %d): %s"
            _log.debug(told, batch.count, batch.where, delay, batch.tries + 1, error)
        self._accumulator.put_back(batch, error, not_before)
        self._on_retry()

    def _not_before(self, batch: Batch, verdict: Verdict) -> float:
        # What waits for those before it, or gets another number, has not failed; but a broker that refuses the
        # number again and again is not to be asked in a tight loop.
        return self._clock() + (0.0 if verdict is Verdict.BEHIND or batch.tries < 2 else self._backoff(batch.where))

    def _backoff(self, where: TopicPartition) -> float:
        backoff = self._backoffs.get(where)
        if backoff is None:
            backoff = self._backoffs[where] = self._cluster.backoff()
        return backoff.next()

    def _use_leaders(self, flight: Flight, response: ProduceResponse, answers: Sequence[Answered]) -> None:
        """New leaders that the answer names need not be asked for (KIP-951)."""
        leaders = {}
        for batch, answer in answers:
            if answer is not None and answer.error_code and answer.current_leader.leader_id >= 0:
                leaders[batch.where] = (answer.current_leader.leader_id, answer.current_leader.leader_epoch)
        if leaders:
            nodes = [Node(one.node_id, Address(one.host, one.port), one.rack) for one in response.node_endpoints]
            before = self._cluster.snapshot
            self._cluster.use_leaders(leaders, nodes)
            if flight.snapshot is before:
                flight.snapshot = self._cluster.snapshot  # what it does not tell is as old as it was

    def _knows_better(self, batch: Batch, flight: Flight) -> bool:
        """Whether the leader is another already than the one that was asked."""
        node = self._cluster.snapshot.leader(batch.where)
        return node is not None and node.node_id != flight.node_id

    # --- the end of a batch ----------------------------------------------------------------------------

    def finish(self, batch: Batch, base_offset: int, log_append_time: int) -> None:
        """The batch is written, at -1 where nobody says where."""
        self._backoffs.pop(batch.where, None)
        self._accumulator.acknowledged(batch)
        batch.result.resolve(base_offset, log_append_time)
        self._on_room()

    def fail(self, batch: Batch, error: KafkaError) -> None:
        """The batch will not be sent any more."""
        self._backoffs.pop(batch.where, None)
        self._accumulator.finish(batch)
        batch.result.fail(error)
        _log.debug("failed to send %d records to %s: %s", batch.count, batch.where, error)
        self.failures.add(batch.result)
        if self._transaction is not None:
            self._transaction.batch_failed(batch.where, error, sent=batch.base_sequence >= 0)
            self._on_retry()  # for the others, which will not be sent any more
        self._on_room()
        if self.on_failure is not None:
            self.on_failure(error)

    def expire(self, now: float) -> None:
        """Fail what has waited for too long, and what was on its way to a topic that is gone."""
        for batch in [*self._accumulator.overdue(now), *self._accumulator.expired(now)]:
            self.fail(batch, self._too_late(batch))

    def drop(self, why: Callable[[Batch], KafkaError | None]) -> None:
        """Fail those of the waiting batches for which ``why`` gives an error."""
        for batch, error in self._accumulator.take_waiting(why):
            self.fail(batch, error)

    def leave_old_topics(self, snapshot: Snapshot) -> None:
        """Send what waits to the topics of this snapshot; fail what may be in one that was deleted."""
        if self._transaction is not None:
            self._transaction.leave_old_topics(snapshot.topic_id)
        self.drop(lambda batch: _lost_with_old_topic(batch, snapshot))
        self._accumulator.leave_old_topics(snapshot.topic_id)

    def _too_late(self, batch: Batch) -> KafkaError:
        seconds = self._config.delivery_timeout_ms / 1000
        last = batch.last_error
        snapshot = self._cluster.snapshot
        if last is None and snapshot.leader(batch.where) is None:
            known = snapshot.topics.get(batch.where.topic)
            code = known.error if known is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            told = f"{batch.where} had no leader for {seconds:g} s (delivery_timeout_ms)"
            return TopicNotReady(f"{told}: {broker_error(code)}" if code else told)
        told = "; it was sent, and not answered" if batch.tries else ""
        if last is not None:
            tried = f"tried {batch.tries} times" if batch.tries else "those before it were tried"
            told = f"; {tried}, at last {type(last).__name__}: {last}"
        error = RequestTimeout(f"{batch.where} took no records for {seconds:g} s (delivery_timeout_ms){told}")
        error.__cause__ = last
        return error


def _lost_with_old_topic(batch: Batch, snapshot: Snapshot) -> KafkaError | None:
    """Return the error of a batch that a topic which was deleted and created anew has no place for.

    A broker may have written it to the old topic, or the new topic has no such partition.
    """
    topic = snapshot.topics.get(batch.where.topic)
    if topic is None or not batch.went_to_another_topic(topic.topic_id):
        return None
    if batch.in_doubt:
        why = "a broker may have written them to the old topic, so the producer does not send them to the new one"
        told = f"topic {topic.name!r} was deleted and made again while records were on their way"
        return UnknownTopicId(f"{told}: {why}")
    if topic.error == ErrorCode.NONE and len(topic.partitions) <= batch.where.partition:
        told = f"topic {topic.name!r} was deleted and made again with {len(topic.partitions)} partitions"
        return UnknownTopicOrPartition(f"{told}: there is no {batch.where} to send the records to")
    return None


def _is_refusal(answer: PartitionProduceResponse) -> bool:
    """Return whether this error proves that the request did not write the batch."""
    return answer.base_offset < 0 and answer.error_code in _REFUSED


def _said(batch: Batch, answer: PartitionProduceResponse) -> str:
    """What was asked, and what the broker said of it and of single records (KIP-467)."""
    told = f"Produce to {batch.where}"
    if answer.error_message:
        told += f": {answer.error_message}"
    for one in answer.record_errors[:3]:
        told += f"; record {one.batch_index} of the batch" + (
            f": {one.batch_index_error_message}" if one.batch_index_error_message else ""
        )
    return told
