"""Reads a producer's current health from its queues, its requests in flight and its transactions."""

from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from ..cluster.cluster import Cluster
from ..config import ProducerConfig
from ..plain_values import error_text
from .batch import ProducerBatch
from .health import ProducerHealth, RecordWait, UnacknowledgedRecords, why_waiting
from .in_flight_requests import InFlightRequest

if TYPE_CHECKING:  # few programs ask for a producer's health, and most producers make no transactions
    from .sender import Sender
    from .transaction_manager import TransactionManager

__all__ = ("producer_health",)


def producer_health(
    cluster: Cluster,
    config: ProducerConfig,
    sender: "Sender",
    transactions: "TransactionManager | None",
    state: str,
    topics: Mapping[str, int],
) -> ProducerHealth:
    """Return a producer's current health.

    Args:
        cluster: the cluster that it sends to.
        config: its settings.
        sender: its sender.
        transactions: the manager of its transactions, if it has any.
        state: whether it is open, as in :attr:`ProducerHealth.state`.
        topics: the number of calls that wait for the metadata of a topic.
    """
    accumulator = sender.accumulator
    unfinished = [batch for batch in accumulator.unfinished if not batch.result.completed]
    now = cluster.runtime.now() if unfinished or transactions is not None else 0.0
    queues = _Queues(cluster, config, sender, transactions, now)
    partitions = {
        partition: queues.health(list(batches)) for partition, batches in groupby(unfinished, lambda one: one.partition)
    }
    transaction = transactions.health(now) if transactions is not None else None
    failed = _why_failed(sender, transactions) if state == "open" else None
    blocked = accumulator.blocked
    why, stalled = why_waiting(partitions, transaction, failed=failed, blocked=blocked, topics=topics)
    return ProducerHealth(
        name=sender.lane,
        state=state,
        oldest=max((health.age for health in partitions.values()), default=None),
        records=sum(health.records for health in partitions.values()),
        buffered=accumulator.space.used,
        buffer_memory=accumulator.space.limit,
        blocked=blocked,
        waiting_for_topics=dict(topics),
        in_flight=len(queues.requests),
        partitions=partitions,
        transaction=transaction,
        why=why,
        stalled=stalled,
        failed=failed,
    )


def _why_failed(sender: "Sender", transactions: "TransactionManager | None") -> str | None:
    if transactions is not None and transactions.state.has_failed:
        return error_text(transactions.state.error)
    if sender.fatal is not None:
        return error_text(sender.fatal)
    if sender.has_ended or (transactions is not None and transactions.has_ended):
        return "a background task of the producer has ended; the log has its error (aiokafkawire.runtime)"
    return None


class _Queues:
    """The reasons why the batches of a producer wait, at one moment."""

    def __init__(
        self,
        cluster: Cluster,
        config: ProducerConfig,
        sender: "Sender",
        transactions: "TransactionManager | None",
        now: float,
    ) -> None:
        self._cluster, self._sender, self._now = cluster, sender, now
        self._linger = config.linger_ms / 1000
        self._transaction = transactions.state if transactions is not None else None
        self.requests: list[InFlightRequest] = sender.accumulator.in_flight.all_requests()
        self._request_of = {id(batch): request for request in self.requests for batch in request.batches}

    def health(self, batches: list[ProducerBatch]) -> UnacknowledgedRecords:
        """Return the health of a partition with these batches, the oldest first."""
        first, now = batches[0], self._now
        leader = self._cluster.metadata.snapshot.leader(first.partition)
        broker = leader.address if leader is not None else None
        request = self._request_of.get(id(first))
        sent = left = None
        if request is not None:
            waits_for, sent = RecordWait.ANSWER, now - request.sent_at
            node = self._cluster.metadata.snapshot.nodes.get(first.sent_to)
            broker = node.address if node is not None else broker
        else:
            waits_for, until = self._before_sending(first)
            left = max(0.0, until - now) if until is not None else None
        return UnacknowledgedRecords(
            records=sum(batch.count for batch in batches),
            size=sum(batch.builder.size for batch in batches),
            age=max(0.0, now - min(batch.created_at for batch in batches)),
            waits_for=waits_for,
            attempts=first.attempts,
            broker=broker,
            sent=sent,
            left=left,
            error=error_text(first.last_error),
            stall_after=self._cluster.config.stall_report_ms / 1000,
        )

    def _before_sending(self, batch: ProducerBatch) -> tuple[RecordWait, float | None]:
        """Return what a batch that is not in flight waits for, and until when, in the order in which it is checked."""
        partition, accumulator = batch.partition, self._sender.accumulator
        if batch.not_before > self._now:
            return RecordWait.BACKOFF, batch.not_before
        if batch.compressing:
            return RecordWait.COMPRESSION, None
        if accumulator.in_flight.batches(partition):
            return RecordWait.EARLIER_REQUESTS, None
        if accumulator.needs_producer_id:
            return RecordWait.PRODUCER_ID, None
        if self._transaction is not None and not self._transaction.has_added(partition):
            return RecordWait.TRANSACTION, None
        leader = self._cluster.metadata.snapshot.leader(partition)
        if leader is None:
            return RecordWait.LEADER, None
        connection = self._cluster.brokers.opened(leader.address, self._sender.lane)
        if connection is None:
            return RecordWait.CONNECTION, None
        if connection.throttled_until > self._now:
            return RecordWait.THROTTLE, connection.throttled_until
        lingers_until = batch.created_at + self._linger
        if lingers_until <= self._now and accumulator.in_flight.requests(leader.node_id):
            return RecordWait.EARLIER_REQUESTS, None
        return RecordWait.LINGER, lingers_until
