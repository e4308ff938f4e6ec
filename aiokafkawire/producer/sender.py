"""Takes ready batches to their leaders, and every answer back to the batches."""

import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
from anyio.abc import TaskGroup

from ..cluster.cluster import Cluster
from ..cluster.metadata import Node, Snapshot
from ..config import ProducerConfig
from ..errors import (
    ClusterAuthorizationFailed,
    ConnectionLost,
    KafkaError,
    UnsupportedVersion,
    again,
    as_kafka_error,
    broker_error,
)
from ..network.connection import Connection
from ..protocol.messages.produce import ProduceResponse
from ..protocol.primitives import ZERO_UUID
from ..protocol.schema import Versions
from ..runtime import Worker
from ..types import TopicPartition
from .accumulator import NO_LEADER, NOT_NOW, Accumulator
from .batch import Batch
from .flight import Flight, message
from .idempotence import Sequences
from .outcomes import Outcomes, recreated
from .partitioner import Stalls

if TYPE_CHECKING:  # many a producer makes no transactions
    from ..protocol.messages.transactions import InitProducerIdResponse
    from .transactor import Transactor

__all__ = ("Sender",)

_log = logging.getLogger("aiokafkawire")

# Record batches v2 need v3; topics have no names from v13 on (KIP-516), so without their ids v12 is the last.
_ANY: Final = Versions.parse("3+")
_BY_NAME: Final = Versions.parse("3-12")
_NO_TRANSACTIONS: Final = 2**31 - 1
"""The transaction timeout of a producer that makes none, as Java's says it."""


class Sender:
    """One producer's way to the brokers. ``on_room`` is called whenever memory became free.

    Batches go to connections that are open, so what waits for one to open follows its leader wherever that moves.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ProducerConfig,
        lane: str,
        on_room: Callable[[], None],
        transactor: "Transactor | None" = None,
    ) -> None:
        self._cluster, self._config, self._lane = cluster, config, lane
        self._transaction = None
        if transactor is not None:
            transactor.on_change = self.wake
            self._transaction = transactor.machine
        self._clock = cluster.runtime.now
        self._sequences = Sequences() if config.idempotent else None
        self.accumulator: Accumulator = Accumulator(config, anyio.Event, self._sequences)
        self.outcomes: Outcomes = Outcomes(cluster, config, self.accumulator, on_room, self.wake, self._transaction)
        self.fatal: KafkaError | None = None
        """Why nothing can be sent any more."""
        timeout = config.request_timeout_ms or cluster.config.request_timeout_ms
        self._timeout_ms, self._timeout = timeout, timeout / 1000
        self._generation = 0
        self._seen = -1
        self._flushing = 0
        self._flights: dict[int, deque[Flight]] = {}
        self._quiet = anyio.Event()
        # What a step has to begin: connections, producer ids, threads, and waits for the wire.
        self._unopened: dict[int, Node] = {}
        self._opening: set[int] = set()
        self._identifying = False
        self._heavy: list[Batch] = []
        self._posted: list[Flight] = []
        self._unled = False
        self._draining = False
        self._next_step = self._soonest = float("inf")
        self._stalls = Stalls(config)
        self._worker = Worker(self._step, self._give_up)

    @property
    def has_ended(self) -> bool:
        """Whether nothing is sent any more."""
        return self._worker.ended.is_set()

    def wake(self) -> None:
        """There is something to send, or to wait for."""
        self._worker.wake()

    async def run(self) -> None:
        """Send until closed."""
        await self._worker.run()

    def takes(self, where: TopicPartition, size: int) -> bool:
        """As :class:`~aiokafkawire.producer.partitioner.Queues` says."""
        return self.accumulator.takes(where, size)

    def waiting(self, topic: str) -> dict[int, int]:
        """As :class:`~aiokafkawire.producer.partitioner.Queues` says."""
        return self.accumulator.waiting(topic)

    def stalled(self, topic: str) -> list[int]:
        """As :class:`~aiokafkawire.producer.partitioner.Queues` says."""
        known = self._cluster.snapshot.topics.get(topic)
        partitions = known.partitions if known is not None else ()
        return [one.index for one in partitions if one.leader is not None and one.leader in self._stalls]

    def _give_up(self) -> None:
        """Whatever ended the sending, no batch is left without an outcome."""
        why = "the producer was closed before the record was acknowledged; it may have been written"
        for batch in self.accumulator.unfinished:
            if not batch.result.settled:
                self.outcomes.fail(batch, ConnectionLost(f"{batch.where}: {why}"))

    # --- what is due -----------------------------------------------------------------------------------

    def _step(self, tasks: TaskGroup) -> float | None:
        """Send what is due. How long nothing else will be, in seconds; None until something happens."""
        now = self._clock()
        self.outcomes.expire(now)
        self._leave_old_topics()
        self._leave_failed_transaction()
        for connection in self._send_what_is_due(now):
            connection.transmit_soon()
        waits = [*self._begin(tasks, now), *self._end_silence(tasks, now)]
        moment = self.accumulator.deadline(now)
        if moment is not None:
            waits.append(moment - now)
        wait = min(waits, default=None)
        self._next_step = float("inf") if wait is None else now + wait
        return wait

    def _begin(self, tasks: TaskGroup, now: float) -> Iterator[float]:
        """Begin what takes longer than a step, and say how long to wait before more can be begun."""
        if self._needs_identity() and not self._identifying and self.accumulator.has_waiting:
            self._identifying = True
            tasks.start_soon(self._identify)
        heavy, self._heavy = self._heavy, []
        for batch in heavy:
            tasks.start_soon(self._compress, batch)
        posted, self._posted = self._posted, []
        for flight in posted:
            tasks.start_soon(self._wait_for_the_wire, flight)
        unopened, self._unopened = self._unopened, {}
        for node in unopened.values():
            retry_at = self._cluster.brokers.retry_at(node.address, self._lane)
            if retry_at > now:
                # Another may lead long before this one is back, or is dialled again.
                self._cluster.outdated(self._cluster.snapshot)
                yield min(retry_at - now, self._cluster.config.retry_backoff_ms / 1000)
            elif node.node_id not in self._opening:
                self._opening.add(node.node_id)
                tasks.start_soon(self._open, node)
        if self._unled:
            self._unled = False
            self._cluster.use(dict.fromkeys(batch.where.topic for batch in self.accumulator.unfinished))
            self._cluster.outdated(self._cluster.snapshot)
            yield self._cluster.config.retry_backoff_ms / 1000

    def _end_silence(self, tasks: TaskGroup, now: float) -> Iterator[float]:
        """Leave brokers that do not answer."""
        for flights in self._flights.values():
            oldest = flights[0]
            left = oldest.sent_at + self._timeout - now
            if left > 0:
                yield left
                continue
            silent = f"left Produce unanswered for {self._timeout:g} s (request_timeout_ms)"
            tasks.start_soon(oldest.connection.close, ConnectionLost(f"{oldest.connection.where} {silent}"))

    def _send_what_is_due(self, now: float) -> list[Connection]:
        """Submit every request that can go now; the connections that have something to transmit."""
        if self._draining or self.has_ended:
            return []
        self._draining = True
        try:
            snapshot = self._cluster.snapshot
            self._follow_identity()
            drained = self.accumulator.drain(partial(self._route, snapshot), now, flushing=self._flushing > 0)
            connections = [self._submit(snapshot, node_id, batches, now) for node_id, batches in drained.requests]
        finally:
            self._draining = False
        for node_id in drained.full:
            self._stalls.tried(node_id, now, sent=False)
        for node_id, _ in drained.requests:
            self._stalls.tried(node_id, now, sent=True)
        self._soonest = drained.soonest
        self._heavy += drained.heavy
        self._unled = self._unled or drained.unled
        return list(dict.fromkeys(connections))

    def go(self) -> None:
        """Send what is due, as far as that needs no waiting; the rest is begun soon."""
        for connection in self._send_what_is_due(self._clock()):
            connection.transmit_soon()
        if self._needs_step():
            self.wake()

    async def go_now(self) -> None:
        """As :meth:`go`; the caller writes the requests itself, which saves a task switch."""
        connections = self._send_what_is_due(self._clock())
        if self._needs_step() or self.accumulator.has_waiting:  # which lingers: who waits for nothing else wakes nobody
            self.wake()
        for connection in connections[1:]:
            connection.transmit_soon()
        for connection in connections[:1]:
            with suppress(Exception):  # it is closed then, and what was on it is tried again
                await connection.transmit()

    def _needs_step(self) -> bool:
        """Whether there is something to begin, or to wait for, that the next step would find too late."""
        if self._unopened or self._heavy or self._posted or self._unled or self._needs_identity():
            return True
        if self._soonest < self._next_step:
            return True
        soonest = min(self._timeout, self._config.delivery_timeout_ms / 1000)
        return bool(self._flights or self.accumulator.has_waiting) and self._next_step > self._clock() + soonest

    # --- identity --------------------------------------------------------------------------------------

    def _follow_identity(self) -> None:
        """Number on under the id and epoch that the transaction has now."""
        machine, sequences = self._transaction, self._sequences
        if machine is not None and sequences is not None and machine.generation != self._generation:
            self._generation = machine.generation
            sequences.begin_anew(machine.producer_id, machine.producer_epoch)

    def _needs_identity(self) -> bool:
        return self._transaction is None and self._sequences is not None and self._sequences.needs_identity

    async def _identify(self) -> None:
        """Ask any broker for a producer id; those of before Kafka 0.11 have none."""
        from ..protocol.messages.transactions import InitProducerIdRequest

        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TRANSACTIONS)
        deadline = self._cluster.deadline(self._config.delivery_timeout_ms / 1000)
        try:
            answer = await self._cluster.ask(self._cluster.least_loaded, request, deadline, check=_check_identity)
            if self._sequences is not None:
                self._sequences.identify(answer.producer_id, answer.producer_epoch)
        except (UnsupportedVersion, ClusterAuthorizationFailed) as error:
            if self._config.enable_idempotence:
                self._fail_for_good(error)
            else:
                _log.warning("records are sent without idempotence, so retries may double them: %s", error)
                self._sequences = None
                self.accumulator.stop_numbering()
        except KafkaError as error:
            self.accumulator.blame(error, lambda batch: True)
        except Exception as error:
            self._fail_for_good(as_kafka_error(error, "asking for a producer id"))
        finally:
            self._identifying = False
            self.wake()

    def _leave_old_topics(self) -> None:
        snapshot = self._cluster.snapshot
        if snapshot.generation != self._seen:
            self._seen = snapshot.generation
            self.outcomes.drop(lambda batch: recreated(batch, snapshot))

    def _leave_failed_transaction(self) -> None:
        """What was never sent never will be, if its transaction can only be aborted or the producer has failed."""
        machine = self._transaction
        if machine is not None and machine.error is not None:
            error, failed = machine.error, machine.has_failed
            self.outcomes.drop(lambda batch: again(error) if failed or batch.base_sequence < 0 else None)

    def _fail_for_good(self, error: KafkaError) -> None:
        self.fatal = error
        self.outcomes.drop(lambda batch: error)

    # --- routing ---------------------------------------------------------------------------------------

    def _route(self, snapshot: Snapshot, where: TopicPartition) -> int:
        if self._sequences is not None and self._sequences.needs_identity:
            return NOT_NOW
        if self._transaction is not None and not self._transaction.may_send(where):
            return NOT_NOW
        node = snapshot.leader(where)
        if node is None:
            return NO_LEADER
        if self._cluster.brokers.opened(node.address, self._lane) is None:
            self._unopened[node.node_id] = node
            self._stalls.tried(node.node_id, self._clock(), sent=False)
            return NOT_NOW
        return node.node_id

    async def _open(self, node: Node) -> None:
        snapshot = self._cluster.snapshot
        try:
            await self._cluster.brokers.connection(node.address, self._lane)
        except Exception as error:
            # Who cannot be reached may lead no more.
            self._cluster.outdated(snapshot)
            cause = as_kafka_error(error, f"connecting to {node.address}")
            self.accumulator.blame(cause, lambda batch: _leads(self._cluster.snapshot, node, batch.where))
        finally:
            self._opening.discard(node.node_id)
            self.wake()

    async def _compress(self, batch: Batch) -> None:
        try:
            await self._cluster.runtime.offload(batch.builder.compress)
            batch.compressed = True
        except Exception as error:
            failed = as_kafka_error(error, f"compressing records for {batch.where}")
            self.outcomes.drop(lambda one: failed if one is batch else None)
        finally:
            batch.compressing = False
            self.wake()

    # --- requests --------------------------------------------------------------------------------------

    def _submit(self, snapshot: Snapshot, node_id: int, batches: list[Batch], now: float) -> Connection:
        connection = self._cluster.brokers.opened(snapshot.nodes[node_id].address, self._lane)
        assert connection is not None  # or it had not been routed there
        flight = Flight(node_id, batches, snapshot, connection, now, self._arrived, self._lost)
        self._flights.setdefault(node_id, deque()).append(flight)
        try:
            for batch in batches:
                batch.topic_id = snapshot.topic_id(batch.where.topic)
            request = message(
                batches,
                acks=self._config.required_acks,
                timeout_ms=self._timeout_ms,
                transactional_id=self._config.transactional_id,
            )
            slot = flight if request.acks else None
            flight.version = connection.submit(request, slot, wanted=self._wanted(batches))
        except Exception as error:
            self._lost(flight, as_kafka_error(error, f"producing to {connection.where}"))
        else:
            if slot is None:
                self._posted.append(flight)
        return connection

    def _wanted(self, batches: list[Batch]) -> Versions:
        wanted = _BY_NAME if any(batch.topic_id == ZERO_UUID for batch in batches) else _ANY
        if self._transaction is None:
            return wanted
        allowed = self._transaction.produce_versions
        return Versions(max(wanted.first, allowed.first), min(wanted.last, allowed.last))

    def _arrived(self, flight: Flight, frame: bytes, position: int) -> None:
        try:
            response = flight.connection.decode(ProduceResponse, flight.version, frame, position)
        except KafkaError as error:
            self._lost(flight, error)
        else:
            self._over(flight)
            self.outcomes.answered(flight, response)
            self._go_on()

    def _lost(self, flight: Flight, error: KafkaError) -> None:
        self._over(flight)
        self.outcomes.lost(flight, error)
        self._go_on()

    async def _wait_for_the_wire(self, flight: Flight) -> None:
        """Without an answer the wire must slow us down: else all there is would wait in line there."""
        try:
            flight.connection.transmit_soon()
            await flight.connection.written()
        except Exception as error:
            self._lost(flight, as_kafka_error(error, f"producing to {flight.connection.where}"))
        else:
            self._over(flight)
            self.outcomes.posted(flight)
            self._go_on()

    def _over(self, flight: Flight) -> None:
        flights = self._flights[flight.node_id]
        flights.remove(flight)
        if not flights:
            del self._flights[flight.node_id]
        if not self._flights:
            quiet, self._quiet = self._quiet, anyio.Event()
            quiet.set()
        self.accumulator.request_done(flight.node_id)

    def _go_on(self) -> None:
        if self.accumulator.has_waiting:
            self.go()

    # --- flushing and closing --------------------------------------------------------------------------

    async def flush(self) -> None:
        """Wait until everything handed over so far has an outcome.

        Raises:
            DeliveryFailed: records failed since the last flush that nobody awaited.
        """
        await self.settled()
        failed = self.outcomes.failures.take()
        if failed is not None:
            raise failed

    async def settled(self) -> None:
        """Wait until everything handed over so far has an outcome, whatever it is."""
        with self.hurry():
            for batch in self.accumulator.unfinished:
                await batch.result.finished()

    async def quiet(self) -> None:
        """Wait until no request is on its way, whatever waits."""
        while self._flights and not self.has_ended:
            await self._quiet.wait()

    @contextmanager
    def hurry(self) -> Iterator[None]:
        """Someone waits for what is here to be gone: meanwhile nothing lingers."""
        self._flushing += 1
        self.wake()
        try:
            yield
        finally:
            self._flushing -= 1

    async def close(self) -> None:
        """Stop sending. What has no outcome fails; the broker may have written what was in flight."""
        await self._worker.stop()
        await self._cluster.brokers.close_lanes(self._lane)


def _leads(snapshot: Snapshot, node: Node, where: TopicPartition) -> bool:
    leader = snapshot.leader(where)
    return leader is not None and leader.node_id == node.node_id


def _check_identity(response: "InitProducerIdResponse") -> None:
    if response.error_code:
        raise broker_error(response.error_code, "asking for a producer id")
