"""Takes ready batches to their leaders, and every answer back to the batches."""

from collections.abc import Callable, Coroutine, Iterator
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
from ..network.connection import Connection
from ..protocol.messages.produce import ProduceRequest
from ..runtime import Worker
from ..types import Event, TopicPartition
from .accumulator import NO_LEADER, NOT_NOW, NOTHING, Accumulator, Drained
from .batch import Batch
from .flights import Flights
from .idempotence import Sequences
from .identity import Identity
from .old_formats import NEWEST_MAGIC, magic_of
from .outcomes import Outcomes
from .partitioner import Stalls
from .waking import new_event

if TYPE_CHECKING:  # many a producer makes no transactions
    from .transactor import Transactor

__all__ = ("Sender",)

_TOGETHER: Final = 0.001
"""Seconds within which connections count as opened together, if more are still being opened."""
_TOGETHER_OF_EACH: Final = 0.000_02
"""The same for each of those, where that comes to more: a thousand take a second to open."""


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
        sequences = Sequences() if config.idempotent else None
        self.accumulator: Accumulator = Accumulator(config, self._new_event, sequences)
        self.outcomes: Outcomes = Outcomes(cluster, config, self.accumulator, on_room, self.wake, self._transaction)
        self._seen = -1
        self._flushing = 0
        self._identity = Identity(cluster, config, self.accumulator, sequences, self._transaction, self._identified)
        self._flights = Flights(cluster, config, self.accumulator, self.outcomes, self._transaction, self._go_on)
        # What a step has to begin: connections, producer ids, threads, and waits for the wire.
        self._unopened: dict[int, Node] = {}
        self._opening: set[int] = set()
        self._gathers_opened = False
        # Where what is drained goes, by node id: as it was found in the same step.
        self._routed: dict[int, Connection] = {}
        # Where partitions went since the snapshot changed, which holds as long as the connection does.
        self._routes: dict[TopicPartition, tuple[int, Connection]] = {}
        self._heavy: list[Batch] = []
        self._unled = False
        self._draining = False
        self._next_step = self._soonest = float("inf")
        self._stalls = Stalls(config)
        self._worker = Worker(self._step, self._give_up)
        self.on_end: Callable[[], None] = lambda: None
        """Called when nothing can be sent any more."""

    def _new_event(self) -> Event:
        """Make the event of a batch that a task of the client's event loop awaits, and no other."""
        self._cluster.owner.require_own_loop()
        return new_event()

    @property
    def has_ended(self) -> bool:
        """Whether nothing is sent any more."""
        return self._worker.has_ended

    @property
    def fatal(self) -> KafkaError | None:
        """Why nothing can be sent any more, if so."""
        return self._identity.refused

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

    def _identified(self) -> None:
        if self.fatal is not None:
            self.on_end()
        self.wake()

    def _give_up(self) -> None:
        """Whatever ended the sending, no batch is left without an outcome."""
        self.on_end()
        why = "the producer was closed before the record was acknowledged; it may have been written"
        for batch in self.accumulator.unfinished:
            if not batch.result.settled:
                self.outcomes.fail(batch, ConnectionLost(f"{batch.where}: {why}"))

    # --- what is due -----------------------------------------------------------------------------------

    def _step(self, tasks: TaskGroup) -> float | None:
        """Send what is due. How long nothing else will be, in seconds; None until something happens."""
        now = self._clock()
        self.outcomes.expire(now)
        self._leave_what_cannot_go()
        self._send_what_is_due(now)
        waits = [*self._begin(tasks, now), *self._flights.end_silence(tasks, now)]
        moment = self.accumulator.deadline(now)
        if moment is not None:
            waits.append(moment - now)
        wait = min(waits, default=None)
        self._next_step = float("inf") if wait is None else now + wait
        return wait

    def _begin(self, tasks: TaskGroup, now: float) -> Iterator[float]:
        """Begin what takes longer than a step, and say how long to wait before more can be begun."""
        if self.accumulator.has_waiting:
            self._identity.begin_asking(tasks)
        heavy, self._heavy = self._heavy, []
        for batch in heavy:
            tasks.start_soon(self._compress, batch)
        self._flights.begin_waiting(tasks)
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

    def _submit_what_is_due(self, now: float) -> tuple[Drained, list[Connection]]:
        """Submit every request that can go now; :meth:`_note` is to be told of it, and the connections to transmit."""
        if self._draining or self._worker.has_ended:
            return NOTHING, []
        self._draining = True
        try:
            snapshot = self._cluster.snapshot
            self._leave_old_topics(snapshot)
            self._identity.follow()
            drained = self.accumulator.drain(partial(self._route, snapshot), now, flushing=self._flushing > 0)
            connections: list[Connection] = []
            for node_id, batches in drained.requests:
                connection = self._routed[node_id]
                self._flights.submit(connection, snapshot, node_id, batches, now)
                if connection not in connections:
                    connections.append(connection)
        finally:
            self._draining = False
        return drained, connections

    def _note(self, drained: Drained, now: float) -> None:
        """What may be done when the requests are on the wire: brokers are at work on them meanwhile."""
        if drained is NOTHING:
            return
        for node_id in drained.full:
            self._stalls.tried(node_id, now, sent=False)
        for node_id, batches in drained.requests:
            self._stalls.tried(node_id, now, sent=True)
            self._cluster.use([batch.where.topic for batch in batches], now)
        self._soonest = drained.soonest
        self._heavy += drained.heavy
        self._unled = self._unled or drained.unled

    def _go_on(self) -> None:
        if self.accumulator.has_waiting:
            self.go()

    def go(self) -> None:
        """Send what is due, as far as that needs no waiting; the rest is begun soon."""
        now = self._clock()
        self._send_what_is_due(now)
        if self._needs_step(now):
            self.wake()

    def _send_what_is_due(self, now: float) -> None:
        drained, connections = self._submit_what_is_due(now)
        for connection in connections:
            connection.transmit_soon()
        self._note(drained, now)

    def go_now(self) -> Coroutine[Any, Any, None] | None:
        """As :meth:`~aiokafkawire.producer.door.Door.go_now` says."""
        if not self.accumulator.is_idle:
            self.wake()
            return None
        now = self.accumulator.begun_at
        drained, connections = self._submit_what_is_due(now)
        left = [connection for connection in connections if not connection.transmit_at_once()]
        self._note(drained, now)
        # What waits lingers: who waits for nothing else wakes nobody.
        if self._needs_step(now) or self.accumulator.has_waiting:
            self.wake()
        return self._transmit(left) if left else None

    async def _transmit(self, connections: list[Connection]) -> None:
        for connection in connections[1:]:
            connection.transmit_soon()
        with suppress(Exception):  # it is closed then, and what was on it is tried again
            await connections[0].transmit()

    def _needs_step(self, now: float) -> bool:
        """Whether there is something to begin, or to wait for, that the next step would find too late."""
        if self._unopened or self._heavy or self._flights.has_posted or self._unled or self._identity.is_wanted:
            return True
        if self._soonest < self._next_step:
            return True
        soonest = min(self._flights.timeout, self._config.delivery_timeout_ms / 1000)
        return bool(self._flights or self.accumulator.has_waiting) and self._next_step > now + soonest

    # --- what will not go ------------------------------------------------------------------------------

    def _leave_old_topics(self, snapshot: Snapshot) -> None:
        if snapshot.generation != self._seen:
            self._seen = snapshot.generation
            self._routes.clear()
            self.outcomes.leave_old_topics(snapshot)
            self._leave_what_cannot_go()

    def _leave_what_cannot_go(self) -> None:
        """Fail what waits, if its transaction can only be aborted or the producer has failed.

        A batch that may have been written goes out again in its transaction, which tells what became of it.
        """
        machine, refused = self._transaction, self._identity.refused
        if refused is not None:
            self.outcomes.drop(lambda batch: copy_for_reraise(refused))
        elif machine is not None and machine.error is not None:
            error, failed = machine.error, machine.has_failed
            self.outcomes.drop(lambda batch: copy_for_reraise(error) if failed or not batch.in_doubt else None)

    # --- routing ---------------------------------------------------------------------------------------

    def _route(self, snapshot: Snapshot, where: TopicPartition) -> int:
        if self._identity.is_missing:
            return NOT_NOW
        if self._transaction is not None and not self._transaction.may_send(where):
            return NOT_NOW
        known = self._routes.get(where)
        if known is not None and known[1].failure is None:
            self._routed[known[0]] = known[1]
            return known[0]
        if known is not None and not self._config.required_acks:
            # With acks=0 a broker closes the connection for any error, so the metadata may be wrong: wait for newer.
            return NO_LEADER
        node = snapshot.leader(where)
        if node is None:
            return NO_LEADER
        connection = self._cluster.brokers.opened(node.address, self._lane)
        if connection is None:
            self._unopened[node.node_id] = node
            self._stalls.tried(node.node_id, self._clock(), sent=False)
            return NOT_NOW
        self._routed[node.node_id] = connection
        self._routes[where] = node.node_id, connection
        return node.node_id

    async def _open(self, node: Node) -> None:
        snapshot = self._cluster.snapshot
        try:
            await self._cluster.brokers.connection(node.address, self._lane)
        except Exception as error:
            # Who cannot be reached may lead no more.
            self._cluster.outdated(snapshot)
            cause = as_kafka_error(error, f"connecting to {node.address}")
            snapshot = self._cluster.snapshot
            if isinstance(cause, AuthenticationFailed | ConfigError):  # which no retry mends
                self.outcomes.drop(
                    lambda batch: copy_for_reraise(cause) if _leads(snapshot, node, batch.where) else None
                )
            else:
                self.accumulator.blame(cause, lambda batch: _leads(snapshot, node, batch.where))
        finally:
            self._opening.discard(node.node_id)
        await self._wake_for_opened()

    async def _wake_for_opened(self) -> None:
        """What waits is looked at once for connections that open together, and not for each of a thousand."""
        if self._opening:
            if self._gathers_opened:
                return
            self._gathers_opened = True
            await anyio.sleep(max(_TOGETHER, len(self._opening) * _TOGETHER_OF_EACH))
            self._gathers_opened = False
        self.wake()

    async def _compress(self, batch: Batch) -> None:
        try:
            await self._cluster.runtime.offload(self._slow_part(batch))
            batch.compressed = True
        except UnsupportedVersion:
            batch.compressed = True  # it is refused when it is sent
        except Exception as error:
            failed = as_kafka_error(error, f"compressing records for {batch.where}")
            self.outcomes.drop(lambda one: failed if one is batch else None)
        finally:
            batch.compressing = False
            self.wake()

    def _slow_part(self, batch: Batch) -> Callable[[], object]:
        """What to do on a thread: compress, or where its leader takes message sets, make one of it."""
        leader = self._cluster.snapshot.leader(batch.where)
        connection = self._cluster.brokers.opened(leader.address, self._lane) if leader is not None else None
        if connection is not None:
            magic = magic_of(connection.choose(ProduceRequest))
            if magic < NEWEST_MAGIC:
                return partial(batch.seal, magic)
        return batch.builder.compress

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
        await self._flights.quiet()

    @contextmanager
    def hurry(self) -> Iterator[None]:
        """Someone waits for what is here to be gone: meanwhile nothing lingers."""
        self._flushing += 1
        self.wake()
        try:
            yield
        finally:
            self._flushing -= 1

    def stop_at_failure(self) -> None:
        """Call :meth:`stop` as soon as a batch has failed."""
        self.outcomes.on_failure = self.stop

    def stop(self, error: KafkaError) -> None:
        """Fail what is not in flight, and refuse records from now on: with this error, unless there is one already."""
        if self.fatal is None:
            self._identity.refused = error
            self._identified()
            self._leave_what_cannot_go()

    async def close(self) -> None:
        """Stop sending. What has no outcome fails; the broker may have written what was in flight."""
        await self._worker.stop()
        await self._cluster.brokers.close_lanes(self._lane)


def _leads(snapshot: Snapshot, node: Node, where: TopicPartition) -> bool:
    leader = snapshot.leader(where)
    return leader is not None and leader.node_id == node.node_id
