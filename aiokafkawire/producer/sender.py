"""Sends ready batches to the leaders of their partitions, and passes the responses on to be handled."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio.abc import TaskGroup

from ..cluster.cluster import Cluster
from ..cluster.metadata import Node, Snapshot
from ..config import ProducerConfig
from ..errors import (
    AuthenticationFailed,
    ConfigError,
    ConnectionLost,
    KafkaError,
    UnsupportedVersion,
    as_kafka_error,
    copy_for_reraise,
)
from ..network.connection import OVERDUE_SECONDS, Connection
from ..protocol.messages.produce import ProduceRequest, ProduceResponse
from ..protocol.schema import Versions
from ..records.compression import Codec
from ..runtime import Worker
from ..types import Event, TopicPartition
from ._implementation import BatchEvent
from .accumulator import NO_LEADER, NOT_READY, NOTHING_READY, ReadyRequests, RecordAccumulator
from .batch import ProducerBatch
from .batch_completion import BatchCompletion
from .idempotence import SequenceNumbers
from .in_flight_requests import InFlightRequest
from .legacy_message_format import FIRST_WITH_BATCHES, check_codec, magic_of
from .partitioner import BrokerAvailability
from .produce_request import ProduceRequestEncoder, accepted_versions
from .producer_id import ProducerIdManager

if TYPE_CHECKING:  # most producers make no transactions
    from .transaction_manager import TransactionManager

__all__ = ("Sender",)

_LOOK_SECONDS: Final = 1.0
"""The seconds between two looks at whether other brokers lead the partitions of an overdue request."""
_TOGETHER: Final = 0.001
"""The minimum seconds to wait, after a connection has opened, for others that are being opened, to use all at once."""
_TOGETHER_PER_CONNECTION: Final = 0.000_02
"""The seconds to wait for each connection that is being opened, if the sum exceeds ``_TOGETHER``."""


class Sender:
    """The sender of one producer's batches. The sender calls ``on_stop`` when nothing can be sent any more.

    A batch is assigned to a broker only once the connection to that broker is open, so it goes to the current leader.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ProducerConfig,
        lane: str,
        on_stop: Callable[[], None],
        transactions: "TransactionManager | None" = None,
    ) -> None:
        self._cluster, self._config, self._on_stop = cluster, config, on_stop
        self.lane: str = lane
        """The producer's name, which its connections have as well."""
        self._transaction = None
        if transactions is not None:
            transactions.on_change = self.wake
            self._transaction = transactions.state
        self._clock = cluster.runtime.now
        sequences = SequenceNumbers() if config.idempotent else None
        self.accumulator: RecordAccumulator = RecordAccumulator(config, self._new_event, sequences)
        self.completion: BatchCompletion = BatchCompletion(cluster, config, lane, self.accumulator, self._transaction)
        self.fatal: KafkaError | None = None
        """The error after which nothing can be sent any more; None before."""
        self._producer_ids = ProducerIdManager(cluster, config, self.accumulator)
        timeout_ms = config.request_timeout_ms or cluster.config.request_timeout_ms
        self._request_timeout = timeout_ms / 1000
        self._codec, self._acks = Codec.parse(config.compression_type), config.required_acks
        self._encoder = ProduceRequestEncoder(
            acks=self._acks,
            timeout_ms=timeout_ms,
            transactional_id=config.transactional_id,
            requires_idempotence=bool(config.enable_idempotence),
        )
        self._in_flight = self.accumulator.in_flight
        self._idle: anyio.Event | None = None
        self._generation = -1
        self._flushing = 0
        # The next _step starts tasks for these: connecting, compressing, and writing requests with acks=0.
        self._unopened: dict[int, Node] = {}
        self._to_compress: list[ProducerBatch] = []
        self._unacknowledged: list[InFlightRequest] = []
        self._no_leader = False
        self._opening: set[int] = set()
        self._gathers_opened = False
        # The connections for the requests being drained, by node id.
        self._connections: dict[int, Connection] = {}
        # Leader and connection of partitions, found since the metadata changed; valid until the connection fails.
        self._routes: dict[TopicPartition, tuple[int, Connection]] = {}
        self._draining = False
        self._next_step = self._next_ready_at = float("inf")
        # The time of the current drain, and when the first throttled connection that it met may be used again.
        self._drain_at, self._resumes_at = float("-inf"), float("inf")
        self._availability = BrokerAvailability(config)
        self._worker = Worker(self._step, self._fail_unfinished)

    def _new_event(self) -> Event:
        """Return a new event for the client's event loop: on asyncio a :class:`BatchEvent`, which is faster."""
        self._cluster.owner.require_own_loop()
        loop = asyncio._get_running_loop()  # None under trio
        return anyio.Event() if loop is None else BatchEvent(loop)

    @property
    def has_ended(self) -> bool:
        """Whether the sender has ended, by :meth:`close` or after an error."""
        return self._worker.has_ended

    def wake(self) -> None:
        """Call :meth:`_step` soon, since there may be work to do."""
        self._worker.wake()

    async def run(self) -> None:
        """Send batches until :meth:`close`."""
        self.completion.clock = self._clock = self._cluster.runtime.clock()
        await self._worker.run()

    # --- what the partitioner asks ---------------------------------------------------------------------

    def has_room(self, partition: TopicPartition, size: int) -> bool:
        """Return whether the partition's open batch has room, as :class:`~.partitioner.QueueSizes` says."""
        return self.accumulator.has_room(partition, size)

    def queue_lengths(self, topic: str) -> dict[int, int]:
        """Return the number of waiting batches, as :class:`~.partitioner.QueueSizes` says."""
        return self.accumulator.queue_lengths(topic)

    def unavailable(self, topic: str) -> list[int]:
        """Return the partitions whose leader is unavailable, as :class:`~.partitioner.QueueSizes` says."""
        known = self._cluster.metadata.snapshot.topics.get(topic)
        partitions = known.partitions if known is not None else ()
        return [
            partition.index
            for partition in partitions
            if partition.leader is not None and self._availability.is_unavailable(partition.leader)
        ]

    def leaders_in_rack(self, topic: str, rack: str) -> Collection[int]:
        """Return the partitions whose leader is in the rack, as :class:`~.partitioner.QueueSizes` says."""
        snapshot = self._cluster.metadata.snapshot
        known = snapshot.topics.get(topic)
        nearby = {node.node_id for node in snapshot.nodes.values() if node.rack == rack}
        return [partition.index for partition in known.partitions if partition.leader in nearby] if known else []

    # --- sending ---------------------------------------------------------------------------------------

    def _step(self, tasks: TaskGroup) -> float | None:
        """Send ready batches and start slow work; return the seconds to the next call, None to wait for a wake-up."""
        now = self._clock()
        self.completion.fail_expired(now)
        self._fail_unsendable()
        self._send_ready(now)
        waits = [*self._start_slow_work(tasks, now), *self._close_silent(tasks, now)]
        moment = self.accumulator.deadline(now)
        if moment is not None:
            waits.append(moment - now)
        if self._resumes_at < float("inf"):
            waits.append(self._resumes_at - now)
        wait = min(waits, default=None)
        self._next_step = float("inf") if wait is None else now + wait
        return wait

    def send_ready(self) -> None:
        """Send the batches that are ready, and wake the background task if there is other work."""
        now = self._clock()
        self._send_ready(now)
        if self._needs_step(now):
            self.wake()

    def _send_ready(self, now: float) -> None:
        ready, connections = self._submit_ready(now)
        for connection in connections:
            connection.transmit_soon()
        self._record_sent(ready, now)

    def send_immediately(self) -> Coroutine[Any, Any, None] | None:
        """Send the ready batches now or soon; return a coroutine or None, as :class:`~._pure.Sends` says."""
        if self._in_flight:
            self.wake()
            return None
        now = self.accumulator.last_batch_at
        ready, connections = self._submit_ready(now)
        unwritten = [connection for connection in connections if not connection.transmit_at_once()]
        self._record_sent(ready, now)
        # A waiting batch may be lingering: then _step ends its wait.
        if self._needs_step(now) or self.accumulator.has_waiting:
            self.wake()
        return self._transmit(unwritten) if unwritten else None

    async def _transmit(self, connections: list[Connection]) -> None:
        for connection in connections[1:]:
            connection.transmit_soon()
        with suppress(Exception):  # after an error the connection is closed, and its requests fail with that error
            await connections[0].transmit()

    def _submit_ready(self, now: float) -> tuple[ReadyRequests, list[Connection]]:
        """Submit every request that is ready; return the drain's result, and the connections that must transmit."""
        if self._draining or self._worker.has_ended:
            return NOTHING_READY, []
        self._drain_at, self._resumes_at = now, float("inf")
        self._draining = True
        try:
            snapshot = self._cluster.metadata.snapshot
            if snapshot.generation != self._generation:
                self._generation = snapshot.generation
                self._routes.clear()
                self.completion.use_snapshot(snapshot)
                self._fail_unsendable()
            if self._transaction is not None:
                self._producer_ids.follow(self._transaction)
            ready = self.accumulator.drain(partial(self._route, snapshot), now, flushing=self._flushing > 0)
            connections: list[Connection] = []
            for request in ready.requests:
                connection = self._connections[request.broker]
                request.sender, request.snapshot, request.connection = self, snapshot, connection
                self._submit(request, connection, now)
                if connection not in connections:
                    connections.append(connection)
        finally:
            self._draining = False
        return ready, connections

    def _submit(self, request: InFlightRequest, connection: Connection, now: float) -> None:
        """Put a request into its connection's queue, without transmitting it."""
        try:
            for batch in request.batches:
                batch.topic_id = request.snapshot.topic_id(batch.partition.topic)
            request.version = version = connection.choose(ProduceRequest, self._accepted_versions(request))
            if self._codec:
                release = connection.known.release if connection.known is not None else None
                check_codec(self._codec, connection.versions[ProduceRequest.api_key], connection.broker, release)
            if version < FIRST_WITH_BATCHES and not self._drop_unsupported(request, connection):
                return
            body = self._encoder.encode(version, request.batches)
            slot = request if self._acks else None
            connection.submit_encoded(ProduceRequest, version, body, slot, now)
        except Exception as error:  # the request is not in the connection's queue
            self._end_request(request, as_kafka_error(error, f"producing to {connection.broker}"), sent=False)
        else:
            if slot is None:
                self._unacknowledged.append(request)

    def _accepted_versions(self, request: InFlightRequest) -> Versions:
        accepted = accepted_versions(request.batches)
        if self._transaction is None:
            return accepted
        allowed = self._transaction.produce_versions
        return Versions(max(accepted.first, allowed.first), min(accepted.last, allowed.last))

    def _drop_unsupported(self, request: InFlightRequest, connection: Connection) -> bool:
        """Remove from the request the batches that an old broker does not support; return whether any batch is left."""
        for batch, error in self._encoder.unsupported(request.version, list(request.batches), connection.broker):
            self._in_flight.remove_batch(request, batch)
            self.completion.unsupported(batch, error)
            self.wake()  # for the partition's next batches, which no response causes to be sent
        if not request.batches:
            self._remove(request)
        return bool(request.batches)

    def _record_sent(self, ready: ReadyRequests, now: float) -> None:
        """Record a drain's sent requests and other work; called after the transmission, in order not to delay it."""
        if ready is NOTHING_READY:
            return
        for broker in ready.full:
            self._availability.record_attempt(broker, now, sent=False)
        for request in ready.requests:
            self._availability.record_attempt(request.broker, now, sent=True)
            self._cluster.metadata.track_topics([batch.partition.topic for batch in request.batches], now)
        self._next_ready_at = ready.next_ready_at
        self._to_compress += ready.to_compress
        self._no_leader = self._no_leader or ready.no_leader

    def _needs_step(self, now: float) -> bool:
        """Return whether :meth:`_step` must run before its scheduled time, to start work or to end a wait in time."""
        if self._unopened or self._to_compress or self._unacknowledged or self._no_leader or self._wants_producer_id:
            return True
        if min(self._next_ready_at, self._resumes_at) < self._next_step:
            return True
        soonest = min(self._request_timeout, self._config.delivery_timeout_ms / 1000)
        return bool(self._in_flight or self.accumulator.has_waiting) and self._next_step > now + soonest

    @property
    def _wants_producer_id(self) -> bool:
        return self._transaction is None and self.fatal is None and self.accumulator.needs_producer_id

    # --- responses -------------------------------------------------------------------------------------

    def response_received(self, request: InFlightRequest, frame: bytes, position: int) -> None:
        """Complete the request's batches with its response, whose body begins at ``position`` of ``frame``."""
        connection: Connection = request.connection
        try:
            response = connection.decode(ProduceResponse, request.version, frame, position)
        except KafkaError as error:
            self._end_request(request, error)
            return
        connection.heed_throttle(response, request.version)
        self._remove(request)
        if not self.completion.response_received(request, response):
            self.wake()
        self._continue_sending()

    def request_failed(self, request: InFlightRequest, error: KafkaError) -> None:
        """Retry or fail the batches of a request that gets no response."""
        self._end_request(request, error)

    def _end_request(self, request: InFlightRequest, error: KafkaError, *, sent: bool = True) -> None:
        self._remove(request)
        self.completion.request_failed(request, error, sent=sent)
        self.wake()
        self._continue_sending()

    def _remove(self, request: InFlightRequest) -> None:
        self._in_flight.remove(request)
        if self._idle is not None and not self._in_flight:
            self._idle.set()
            self._idle = None

    def _continue_sending(self) -> None:
        if self.accumulator.has_waiting:
            self.send_ready()

    async def _wait_for_wire(self, request: InFlightRequest) -> None:
        """Complete a request with acks=0 once it is written, so that the backpressure of writing slows the producer."""
        connection: Connection = request.connection
        try:
            connection.transmit_soon()
            await connection.written()
        except Exception as error:
            self._end_request(request, as_kafka_error(error, f"producing to {connection.broker}"))
        else:
            self._remove(request)
            self.completion.written_unacknowledged(request)
            self._continue_sending()

    def _close_silent(self, tasks: TaskGroup, now: float) -> Iterator[float]:
        """Close each connection whose oldest request has timed out; for the others, yield the seconds to the next look.

        A broker that is frozen keeps its connections, while others take over its partitions: then do not wait as long.
        """
        for request in self._in_flight.oldest():
            # A broker reads no request of a throttled connection.
            began = max(request.sent_at, request.connection.throttled_until)
            # As differences from now, so that the clock moves by each wait, however small.
            left, until_overdue = began + self._request_timeout - now, began + OVERDUE_SECONDS - now
            if left > 0 and until_overdue > 0:
                yield min(left, until_overdue)
            elif left > 0 and not self._has_moved(request):
                self._cluster.metadata.mark_stale(self._cluster.metadata.snapshot)
                yield min(left, _LOOK_SECONDS)
            else:
                connection: Connection = request.connection
                silent = f"left Produce unanswered for {now - began:.3g} s"
                why = "request_timeout_ms" if left <= 0 else "it leads the partitions no more"
                tasks.start_soon(connection.close, ConnectionLost(f"{connection.broker} {silent} ({why})"))

    def _has_moved(self, request: InFlightRequest) -> bool:
        """Return whether other brokers lead all partitions of the request by now."""
        snapshot = self._cluster.metadata.snapshot
        leaders = (snapshot.leader(batch.partition) for batch in request.batches)
        return all(leader is not None and leader.node_id != request.broker for leader in leaders)

    # --- work in tasks of its own ----------------------------------------------------------------------

    def _start_slow_work(self, tasks: TaskGroup, now: float) -> Iterator[float]:
        """Start tasks for slow work, such as connecting; after a failure, yield the seconds to wait before a retry."""
        if self._wants_producer_id and self.accumulator.has_waiting:
            self._producer_ids.start_request(tasks, self)
        to_compress, self._to_compress = self._to_compress, []
        for batch in to_compress:
            tasks.start_soon(self._compress, batch)
        unacknowledged, self._unacknowledged = self._unacknowledged, []
        for request in unacknowledged:
            tasks.start_soon(self._wait_for_wire, request)
        unopened, self._unopened = self._unopened, {}
        for node in unopened.values():
            retry_at = self._cluster.brokers.retry_at(node.address, self.lane)
            if retry_at > now:
                # Another broker may become the leader long before this broker is back, or its backoff ends.
                self._cluster.metadata.mark_stale(self._cluster.metadata.snapshot)
                yield min(retry_at - now, self._cluster.config.retry_backoff_ms / 1000)
            elif node.node_id not in self._opening:
                self._opening.add(node.node_id)
                tasks.start_soon(self._open, node)
        if self._no_leader:
            self._no_leader = False
            self._cluster.metadata.track_topics(
                dict.fromkeys(batch.partition.topic for batch in self.accumulator.unfinished)
            )
            self._cluster.metadata.mark_stale(self._cluster.metadata.snapshot)
            yield self._cluster.config.retry_backoff_ms / 1000

    def _route(self, snapshot: Snapshot, partition: TopicPartition) -> int:
        if self.accumulator.needs_producer_id:
            return NOT_READY
        if self._transaction is not None and not self._transaction.may_send(partition):
            return NOT_READY
        route = self._routes.get(partition)
        if route is not None and route[1].failure is None:
            self._connections[route[0]] = route[1]
            return route[0] if route[1].throttled_until <= self._drain_at else self._not_before(route[1])
        if route is not None and not self._acks:
            # With acks=0 a broker closes the connection at any error: the metadata may be wrong, so wait for a refresh.
            return NO_LEADER
        node = snapshot.leader(partition)
        if node is None:
            return NO_LEADER
        connection = self._cluster.brokers.opened(node.address, self.lane)
        if connection is None:
            self._unopened[node.node_id] = node
            self._availability.record_attempt(node.node_id, self._clock(), sent=False)
            return NOT_READY
        self._connections[node.node_id] = connection
        self._routes[partition] = node.node_id, connection
        return node.node_id if connection.throttled_until <= self._drain_at else self._not_before(connection)

    def _not_before(self, connection: Connection) -> int:
        """Return NOT_READY, and have the next step run when the broker throttles the connection no longer (KIP-219)."""
        self._resumes_at = min(self._resumes_at, connection.throttled_until)
        return NOT_READY

    async def _open(self, node: Node) -> None:
        snapshot = self._cluster.metadata.snapshot
        try:
            # Another broker may become the leader before this one lets the client connect.
            with self._cluster.metadata.on_update(self.wake):
                await self._cluster.brokers.connection(node.address, self.lane)
        except Exception as error:
            # A broker that cannot be reached may not be the leader any more.
            self._cluster.metadata.mark_stale(snapshot)
            cause = as_kafka_error(error, f"connecting to {node.address}")
            snapshot = self._cluster.metadata.snapshot
            if isinstance(cause, AuthenticationFailed | ConfigError):  # a retry would fail as well
                self.completion.fail_waiting(
                    lambda batch: copy_for_reraise(cause) if _leads(snapshot, node, batch.partition) else None
                )
            else:
                self.accumulator.record_error(cause, lambda batch: _leads(snapshot, node, batch.partition))
        finally:
            self._opening.discard(node.node_id)
        await self._wake_for_opened()

    async def _wake_for_opened(self) -> None:
        """Wake the background task once for all connections that open at about the same time."""
        if self._opening:
            if self._gathers_opened:
                return
            self._gathers_opened = True
            await anyio.sleep(max(_TOGETHER, len(self._opening) * _TOGETHER_PER_CONNECTION))
            self._gathers_opened = False
        self.wake()

    async def _compress(self, batch: ProducerBatch) -> None:
        try:
            await self._cluster.runtime.offload(self._compression(batch))
            batch.compressed = True
        except UnsupportedVersion:
            batch.compressed = True  # sending it raises the same error again
        except Exception as error:
            failed = as_kafka_error(error, f"compressing records for {batch.partition}")
            self.completion.fail_waiting(lambda waiting: failed if waiting is batch else None)
        finally:
            batch.compressing = False
            self.wake()

    def _compression(self, batch: ProducerBatch) -> Callable[[], object]:
        """Return a function for a thread: it compresses the batch or, for an old leader, encodes a message set."""
        leader = self._cluster.metadata.snapshot.leader(batch.partition)
        connection = self._cluster.brokers.opened(leader.address, self.lane) if leader is not None else None
        if connection is not None:
            version = connection.choose(ProduceRequest)
            if version < FIRST_WITH_BATCHES:
                return partial(batch.encode, magic_of(version))
        return batch.builder.compress

    # --- flushing and closing --------------------------------------------------------------------------

    async def flush(self) -> None:
        """Wait until every accepted record has a result, and raise as :meth:`Producer.flush`."""
        await self.wait_until_complete()
        failed = self.completion.failures.take()
        if failed is not None:
            raise failed

    async def wait_until_complete(self) -> None:
        """Wait until every record accepted so far is acknowledged or has failed; raise no error for failed records."""
        with self.flushing():
            for batch in self.accumulator.unfinished:
                await batch.result.wait_until_complete()

    async def wait_until_idle(self) -> None:
        """Wait until no request is in flight; batches may still wait to be sent."""
        while self._in_flight:
            self._idle = self._idle or anyio.Event()
            await self._idle.wait()

    @contextmanager
    def flushing(self) -> Iterator[None]:
        """Send batches without lingering while the returned context is open."""
        self._flushing += 1
        self.wake()
        try:
            yield
        finally:
            self._flushing -= 1

    def stop_at_failure(self) -> None:
        """Call :meth:`stop` with the error of the first batch that fails."""
        self.completion.on_failure = self.stop

    def stop(self, error: KafkaError) -> None:
        """Refuse new records, and fail the batches that are not in flight, because of ``error``; ignore later calls."""
        if self.fatal is None:
            self.fatal = error
            self._on_stop()
            self.wake()
            self._fail_unsendable()

    def _fail_unsendable(self) -> None:
        """Fail the waiting batches if their transaction can only be aborted, or the producer has failed.

        While the transaction can still be aborted, a batch that may have been written is sent again, to find this out.
        """
        state, fatal = self._transaction, self.fatal
        if fatal is not None:
            self.completion.fail_waiting(lambda batch: copy_for_reraise(fatal))
        elif state is not None and state.error is not None:
            error, failed = state.error, state.has_failed
            self.completion.fail_waiting(
                lambda batch: copy_for_reraise(error) if failed or not batch.in_doubt else None
            )

    def _fail_unfinished(self) -> None:
        """Fail every batch that has no result; this is called when the sender ends, for any reason."""
        self._on_stop()
        why = "the producer was closed before the record was acknowledged; it may have been written"
        unfinished = self.accumulator.unfinished
        self.accumulator.take_waiting(lambda batch: True)  # a batch that is left there would fail once more by a purge
        for batch in unfinished:
            if not batch.result.completed:
                self.completion.fail(batch, ConnectionLost(f"{batch.partition}: {why}"))

    async def close(self) -> None:
        """Stop sending. Unfinished batches fail; the broker may have written those in flight."""
        await self._worker.stop()
        await self._cluster.brokers.close_lanes(self.lane)


def _leads(snapshot: Snapshot, node: Node, partition: TopicPartition) -> bool:
    leader = snapshot.leader(partition)
    return leader is not None and leader.node_id == node.node_id
