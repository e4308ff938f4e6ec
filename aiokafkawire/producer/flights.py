"""The produce requests that are on their way: sent, answered, lost, or left because their broker keeps silent."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import anyio
from anyio.abc import TaskGroup

from ..cluster.cluster import Cluster
from ..cluster.metadata import Snapshot
from ..config import ProducerConfig
from ..errors import ConnectionLost, KafkaError, UnsupportedVersion, as_kafka_error
from ..network.connection import Connection
from ..protocol.messages.produce import ProduceRequest, ProduceResponse
from ..protocol.schema import Versions
from ..records.compression import Codec
from .accumulator import Accumulator
from .batch import Batch
from .flight import Flight, message
from .lone import LoneRequests
from .old_formats import NEWEST_MAGIC, check_codec, magic_of
from .outcomes import Outcomes

if TYPE_CHECKING:
    from .transaction import TransactionMachine

__all__ = ("Flights",)

# Topics have no names from v13 on (KIP-516), so without their ids v12 is the last.
_ANY: Final = Versions.parse("0+")
_BY_NAME: Final = Versions.parse("0-12")


class Flights:
    """What is on its way to each broker. ``go_on`` is called after each that is over."""

    def __init__(
        self,
        cluster: Cluster,
        config: ProducerConfig,
        accumulator: Accumulator,
        outcomes: Outcomes,
        transaction: "TransactionMachine | None",
        go_on: Callable[[], None],
    ) -> None:
        self._config, self._accumulator, self._outcomes = config, accumulator, outcomes
        self._transaction, self._go_on = transaction, go_on
        self._codec = Codec.parse(config.compression_type)
        self._timeout_ms = config.request_timeout_ms or cluster.config.request_timeout_ms
        self.timeout: float = self._timeout_ms / 1000
        """How long a broker may keep silent, in seconds."""
        self._acks = config.required_acks
        self._lone = LoneRequests(
            acks=self._acks, timeout_ms=self._timeout_ms, transactional_id=config.transactional_id
        )
        self._by_node: dict[int, deque[Flight]] = {}
        self._quiet: anyio.Event | None = None
        self._posted: list[Flight] = []

    def __bool__(self) -> bool:
        return bool(self._by_node)

    @property
    def has_posted(self) -> bool:
        """Whether there are some without an answer to come whose wait for the wire was not begun yet."""
        return bool(self._posted)

    def begin_waiting(self, tasks: TaskGroup) -> None:
        """Begin to wait for the wire with those that will have no answer."""
        posted, self._posted = self._posted, []
        for flight in posted:
            tasks.start_soon(self._wait_for_the_wire, flight)

    def submit(
        self, connection: Connection, snapshot: Snapshot, node_id: int, batches: list[Batch], now: float
    ) -> None:
        """Put a request in the connection's line, for it to transmit."""
        flight = Flight(node_id, batches, snapshot, connection, now, self._arrived, self._lost)
        self._by_node.setdefault(node_id, deque()).append(flight)
        try:
            for batch in batches:
                batch.topic_id = snapshot.topic_id(batch.where.topic)
            wanted = self._wanted(batches)
            spoken = connection.choose(ProduceRequest, wanted)
            magic = magic_of(spoken)
            if self._codec:
                release = connection.known.release if connection.known is not None else None
                check_codec(self._codec, connection.versions[ProduceRequest.api_key], connection.broker, release)
            if magic < NEWEST_MAGIC and not self._sealed(flight, magic):
                return
            slot = flight if self._acks else None
            flight.version = spoken
            if len(flight.batches) == 1:
                batch = flight.batches[0]
                body = self._lone.encoded(spoken, batch.where, batch.topic_id, batch.seal(magic))
                connection.submit_encoded(ProduceRequest, spoken, body, slot, now)
            else:
                connection.submit(self._message(flight.batches, magic), slot, spoken=spoken, now=now)
        except Exception as error:  # nothing was put in the connection's line
            self._lost(flight, as_kafka_error(error, f"producing to {connection.broker}"), sent=False)
        else:
            if slot is None:
                self._posted.append(flight)

    def _message(self, batches: Sequence[Batch], magic: int) -> ProduceRequest:
        transactional_id = self._config.transactional_id
        return message(
            batches, acks=self._acks, timeout_ms=self._timeout_ms, transactional_id=transactional_id, magic=magic
        )

    def _sealed(self, flight: Flight, magic: int) -> bool:
        """Leave out what an old format has no place for; whether anything is left."""
        refused: list[tuple[Batch, UnsupportedVersion]] = []
        for batch in flight.batches:
            try:
                self._check_numbers(batch, flight.connection.broker)
                batch.seal(magic)
            except UnsupportedVersion as error:
                refused.append((batch, error))
        left = [batch for batch in flight.batches if all(batch is not one for one, _ in refused)]
        flight.batches = left
        if not left:
            self._over(flight)
        for batch, why in refused:
            self._outcomes.refused(batch, why)
        return bool(left)

    def _check_numbers(self, batch: Batch, where: str) -> None:
        if batch.base_sequence >= 0 and self._config.enable_idempotence:
            raise UnsupportedVersion(
                f"{where} is older than idempotence, which came with Kafka 0.11 (KIP-98): leave enable_idempotence out"
            )

    def _wanted(self, batches: list[Batch]) -> Versions:
        wanted = _ANY
        for batch in batches:
            if not batch.topic_id.int:
                wanted = _BY_NAME
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
            self._outcomes.answered(flight, response)
            self._go_on()

    def _lost(self, flight: Flight, error: KafkaError, *, sent: bool = True) -> None:
        self._over(flight)
        self._outcomes.lost(flight, error, sent=sent)
        self._go_on()

    async def _wait_for_the_wire(self, flight: Flight) -> None:
        """Without an answer the wire must slow us down: else all there is would wait in line there."""
        try:
            flight.connection.transmit_soon()
            await flight.connection.written()
        except Exception as error:
            self._lost(flight, as_kafka_error(error, f"producing to {flight.connection.broker}"))
        else:
            self._over(flight)
            self._outcomes.posted(flight)
            self._go_on()

    def _over(self, flight: Flight) -> None:
        flights = self._by_node[flight.node_id]
        flights.remove(flight)
        if not flights:
            del self._by_node[flight.node_id]
        if not self._by_node and self._quiet is not None:
            self._quiet.set()
            self._quiet = None
        self._accumulator.request_done(flight.node_id)

    def end_silence(self, tasks: TaskGroup, now: float) -> Iterator[float]:
        """Leave brokers that do not answer; how long the others may take to, in seconds."""
        for flights in self._by_node.values():
            oldest = flights[0]
            left = oldest.sent_at + self.timeout - now
            if left > 0:
                yield left
                continue
            silent = f"left Produce unanswered for {self.timeout:g} s (request_timeout_ms)"
            tasks.start_soon(oldest.connection.close, ConnectionLost(f"{oldest.connection.broker} {silent}"))

    async def quiet(self) -> None:
        """Wait until no request is on its way, whatever waits."""
        while self._by_node:
            self._quiet = self._quiet or anyio.Event()
            await self._quiet.wait()
