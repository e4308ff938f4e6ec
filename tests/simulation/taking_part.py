"""Topics, and clients whose settings come from the seed, readers that read on and on, and what is in the logs."""

from collections import Counter
from collections.abc import Iterable
from random import Random

import anyio
import attrs
from histories.checking import History
from histories.events import ReaderOpened, RecordRead, SendAcknowledged

from aiokafkawire import Client, Consumer, Delivery, KafkaError, RecordMetadata, TopicPartition
from aiokafkawire.config import ConsumerOptions, ProducerOptions
from aiokafkawire.records.batch import AnyReader
from aiokafkawire.testing.simulation import Simulation

from .checks import Logs

__all__ = (
    "Reader",
    "client_of",
    "logs_of",
    "logs_of_topics",
    "note_acknowledgement",
    "pace_of",
    "read_until",
    "topics_of",
)


def topics_of(sim: Simulation) -> list[TopicPartition]:
    """Up to three new topics with up to four partitions each: their partitions."""
    chance = sim.random
    topics = ["flights", "delays", "gates"][: chance.randint(1, 3)]
    partitions = [TopicPartition(topic, index) for topic in topics for index in range(chance.randint(1, 4))]
    for topic in topics:
        sim.broker.create_topic(topic, partitions=sum(where.topic == topic for where in partitions))
    return partitions


def pace_of(chance: Random) -> ProducerOptions:
    """How a producer gathers batches, and how long it waits for what."""
    options = ProducerOptions(
        linger_ms=chance.choice((0, 5, 100)),
        batch_size=chance.choice((100, 1_000, 16_384)),
        compression_type=chance.choice(("none", "none", "gzip", "lz4")),
        delivery_timeout_ms=chance.choice((2_000, 10_000, 120_000)),
        max_in_flight_requests_per_connection=chance.randint(1, 5),
    )
    if chance.random() < 0.5:
        options["request_timeout_ms"] = chance.choice((500, 2_000, 30_000))
    return options


def client_of(sim: Simulation, name: str, *, client_id: str = "aiokafkawire") -> Client:
    """A client for someone of this name, whose settings are always the same."""
    chance = sim.chance(f"settings of {name}")
    return sim.client(
        name,
        client_id=client_id,
        request_timeout_ms=chance.choice((1_000, 5_000, 30_000)),
        metadata_max_age_ms=chance.choice((3_000, 300_000)),
        connections_max_idle_ms=chance.choice((5_000, 540_000)),
        bootstrap_timeout_ms=60_000,
    )


def logs_of(sim: Simulation, partitions: list[TopicPartition]) -> Logs:
    """The records of each partition, whoever may see them."""
    logs: dict[TopicPartition, list[tuple[int, bytes | None]]] = {}
    for where in partitions:
        records = logs.setdefault(where, [])
        for batch in sim.broker.log(*where).batches():
            if not batch.header.is_control:
                reader: AnyReader[bytes, bytes] = batch.records(*where)
                records.extend((record.offset, record.raw_value) for record in reader)
    return logs


def logs_of_topics(sim: Simulation, names: Iterable[str]) -> Logs:
    """Return the records of each partition that these topics have by now, whoever may see them."""
    counts = {name: len(sim.broker._topic(name).partitions) for name in names}
    return logs_of(sim, [TopicPartition(name, index) for name, count in counts.items() for index in range(count)])


def note_acknowledgement(history: History, delivery: Delivery, value: bytes) -> None:
    """Note where the record is written once that is known, unless it fails."""

    def known(written: RecordMetadata | None, _: KafkaError | None) -> None:
        if written is not None:
            history.add(SendAcknowledged(value, TopicPartition(written.topic, written.partition), written.offset))

    delivery.add_callback(known)


@attrs.define(eq=False)
class Reader:
    """Reads all partitions on and on, with clients that come and go, and loops that are cancelled."""

    sim: Simulation
    history: History
    number: int
    partitions: list[TopicPartition]
    is_committed: bool = False
    """Whether it reads committed records alone."""
    next: dict[TopicPartition, int] = attrs.field(factory=dict)
    """The offset after the last record that was read."""
    count: Counter[TopicPartition] = attrs.field(factory=Counter)
    """How many records were read."""
    _seeks: Random = attrs.field(init=False)
    _seeks_each: float = 0.0
    """How often it seeks to the position that it has."""

    @property
    def name(self) -> str:
        """What the network calls its client."""
        return f"reader-{self.number}"

    async def read(self) -> None:
        """Read until it is cancelled."""
        self.history.add(ReaderOpened(self.name, tuple(self.partitions), self.is_committed))
        chance = self.sim.chance(f"reader {self.number}")
        options = ConsumerOptions(
            auto_offset_reset="earliest",
            isolation_level="read_committed" if self.is_committed else "read_uncommitted",
            fetch_max_wait_ms=chance.choice((500, 900)),
            fetch_max_bytes=chance.choice((1_000, 52_428_800)),
            max_partition_fetch_bytes=chance.choice((500, 1_048_576)),
        )
        longest, impatience = chance.choice((5.0, 1_000.0)), chance.choice((0.02, 1.0, 1_000.0))
        self._seeks = self.sim.chance(f"seeks of reader {self.number}")
        self._seeks_each = self._seeks.choice((0.0, 0.02))
        while True:
            try:
                async with client_of(self.sim, self.name) as client:
                    consumer = client.consumer(**options)
                    with anyio.move_on_after(chance.uniform(1.0, longest)):
                        async with consumer:
                            await self._read_on(consumer, impatience)
            except KafkaError as error:
                self.sim.note(f"reader {self.number} gives up: {error}")

    async def _read_on(self, consumer: Consumer[bytes, bytes], impatience: float) -> None:
        consumer.assign({where: self.next.get(where, 0) for where in self.partitions})
        while True:
            try:
                with anyio.move_on_after(impatience) as scope:
                    async for record in consumer:
                        where = TopicPartition(record.topic, record.partition)
                        self.history.add(RecordRead(self.name, where, record.offset, record.raw_value))
                        self.next[where] = record.offset + 1
                        self.count[where] += 1
                        if impatience < 1 and self.sim.random.random() < 0.1:
                            scope.cancel()  # which must not cost the next record
                        if self._seeks.random() < self._seeks_each:
                            consumer.seek(where, record.offset + 1)  # to where it is, mostly within a batch
            except KafkaError as error:
                self.sim.note(f"a reader is told: {error}")


async def read_until(readers: list[Reader], logs: Logs, seconds: int) -> None:
    """Wait until every reader has read so many records as there are, but no longer than this."""
    for _ in range(seconds):
        if all(reader.count[where] >= len(log) for reader in readers for where, log in logs.items()):
            break
        await anyio.sleep(1)
