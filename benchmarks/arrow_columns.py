"""Arrow columns in and out, without a network: an appender that only encodes, and batches that become Arrow's."""

from array import array
from collections.abc import Sequence
from random import Random
from typing import Any, cast

from aiokafkawire.config import ProducerConfig
from aiokafkawire.errors import BufferFull, KafkaError
from aiokafkawire.producer._implementation import Appender, BufferSpace, OpenBatch, OpenTopic
from aiokafkawire.producer.many_records import many_records
from aiokafkawire.producer.partitioner import make_partitioner
from aiokafkawire.producer.record_checks import YIELD_EVERY
from aiokafkawire.producer.record_columns import RecordColumns
from aiokafkawire.records.arrow import record_batch
from aiokafkawire.records.batch import AnyReader, BatchBuilder
from aiokafkawire.records.delivery_result import DeliveryResult
from aiokafkawire.types import Header

__all__ = ("PARTITIONS", "Encoder", "to_arrow")

PARTITIONS = 4
_SPACE = 2**31 - 1


class _NoQueues:
    """The sizes of queues that are always empty."""

    def has_room(self, partition: object, size: int) -> bool:
        return False

    def queue_lengths(self, topic: str) -> dict[int, int]:
        return {}

    def unavailable(self, topic: str) -> Sequence[int]:
        return ()

    def leaders_in_rack(self, topic: str, rack: str) -> Sequence[int]:
        return ()


class _NoSender:
    """A sender that sends nothing."""

    def wake(self) -> None:
        pass

    def send_immediately(self) -> None:
        return None


class Encoder(Appender[bytes, bytes]):
    """An appender that encodes records into batches, builds each batch, checksum included, and drops it."""

    def __init__(self, batch_size: int) -> None:
        self._limit = batch_size
        self._full: list[BatchBuilder] = []
        config = ProducerConfig(batch_size=batch_size)
        partitioning = make_partitioner(config, Random(1), _NoQueues())
        self._used = BufferSpace(_SPACE)
        super().__init__(_NoSender(), self._used, _SPACE, partitioning, lambda: 1_700_000_000_000)

    def encode(self, values: Any, keys: Any) -> None:
        """Encode all records of two Arrow arrays, and build their batches."""
        records = many_records(values, keys, None, None, (), raw=True)
        self._used.used = 0
        for first in range(0, len(records), YIELD_EVERY):
            part = cast("RecordColumns", records.rows(first, YIELD_EVERY))
            done = 0
            while done < part.count:
                done = self._append_columns("t", part, done, part.count)
        for builder in self._full:
            builder.build()
        self._full.clear()
        self._invalidate_topics()

    def _open_topic(self, topic: str) -> OpenTopic:
        return OpenTopic(topic, PARTITIONS, tuple(range(PARTITIONS)), None)

    def _open_batch(
        self,
        topic: str,
        partition: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
    ) -> tuple[OpenBatch, int]:
        builder = BatchBuilder(limit=self._limit)
        self._full.append(builder)
        batch = OpenBatch(builder, cast("DeliveryResult", None), array("q"))
        return batch, batch.append(self._used, timestamp, key, value, headers)

    def _no_space(self, topic: str, size: int) -> KafkaError:
        return BufferFull(f"{size} bytes")


def to_arrow(reader: AnyReader[Any, Any]) -> object:
    """Return the records of a batch as an Arrow record batch."""
    return record_batch(reader.columns(), "t", 0)
