"""Producers that are other clients: without idempotence, in old formats, with any codec, null keys and null values."""

from collections.abc import Sequence
from itertools import count
from random import Random
from typing import Final, NoReturn

import anyio
import attrs
from histories.checking import History
from histories.events import ProducerOpened, RecordSent, SendAcknowledged
from support.raw_client import produce_request

from aiokafkawire import TopicPartition
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.records.batch import BatchBuilder
from aiokafkawire.records.compression import Codec
from aiokafkawire.records.message_set_writer import encode_message_set
from aiokafkawire.testing.cluster.releases import versions_of
from aiokafkawire.testing.simulation import Simulation

from .foreign_connections import UNREACHABLE, ForeignConnections

__all__ = ("ForeignProducer",)

_BATCHES_SINCE: Final = 3  # of Produce
_ZSTD_SINCE: Final = 7
_LARGEST: Final = 1 << 20
_PATIENCE: Final = 5.0


@attrs.define(eq=False)
class ForeignProducer:
    """Writes values with numbers, and gives up what is not acknowledged.

    ``version`` is that of its Produce requests. librdkafka and kafka-python send 2, with message sets of magic 1, if
    they are told that brokers are of Kafka 0.10; aiokafka 0.14 and kafka-python 2.0 send 7, with acks=1 by default.
    """

    sim: Simulation
    history: History
    name: str
    partitions: Sequence[TopicPartition]
    version: int
    codecs: Sequence[Codec]
    acks: int

    @classmethod
    def of(
        cls,
        sim: Simulation,
        history: History,
        name: str,
        partitions: Sequence[TopicPartition],
        release: str,
        fetch: int,
    ) -> "ForeignProducer":
        """Return one of those that there may be, for brokers of a release and consumers of these versions of Fetch."""
        chance, served = sim.chance(f"settings of {name}"), versions_of(release)[ApiKey.PRODUCE]
        is_old = release < "4" and chance.random() < 0.5
        version = 2 if is_old else chance.choice((3, 7, min(served.last, 12)))
        codecs = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]
        if version >= _ZSTD_SINCE and fetch >= 10:  # KIP-110: older consumers get UNSUPPORTED_COMPRESSION_TYPE
            codecs.append(Codec.ZSTD)
        return cls(sim, history, name, partitions, version, codecs, chance.choice((1, -1)))

    async def write(self) -> NoReturn:
        """Write until it is cancelled."""
        chance, numbers = self.sim.chance(self.name), count()
        self.history.add(ProducerOpened(self.name, is_idempotent=False, is_durable=self.acks == -1, is_ordered=True))
        async with ForeignConnections(self.sim, self.name) as connections:
            while True:
                where = chance.choice(self.partitions)
                values: list[bytes | None] = [
                    b"%s/%d" % (self.name.encode(), next(numbers)) for _ in range(chance.randint(1, 5))
                ]
                if where == self.partitions[0] and chance.random() < 0.3:
                    values.append(None)  # nothing tells one from another, so they are all in one partition
                await self._send(connections, where, values, chance)
                await anyio.sleep(chance.uniform(0, 1))

    async def _send(
        self, connections: ForeignConnections, where: TopicPartition, values: Sequence[bytes | None], chance: Random
    ) -> None:
        for value in values:
            self.history.add(RecordSent(self.name, value, partition=where))
        request = produce_request(where.topic, self._encoded(values, chance), partition=where.partition, acks=self.acks)
        try:
            answer = await connections.ask(
                self.sim.broker.leader(*where),
                "records",
                lambda client: client.ask(request, self.version),
                within=_PATIENCE,
            )
        except UNREACHABLE as error:
            self.sim.note(f"{self.name} does not know whether {values[0]!r} is written: {type(error).__name__}")
            return
        (one,) = answer.responses[0].partition_responses
        for index, value in enumerate(values) if not one.error_code else ():
            if value is not None:
                self.history.add(SendAcknowledged(value, where, one.base_offset + index))

    def _encoded(self, values: Sequence[bytes | None], chance: Random) -> bytes:
        codec, now = chance.choice(self.codecs), self.sim.wall_ms()
        keys = [chance.choice((None, b"", b"key")) for _ in values]
        if self.version < _BATCHES_SINCE:
            contents = [(now, key, value, ()) for key, value in zip(keys, values, strict=True)]
            return encode_message_set(contents, 1, codec)
        builder = BatchBuilder(limit=_LARGEST, codec=codec)
        for key, value in zip(keys, values, strict=True):
            builder.append(now, key, value)
        return builder.build()
