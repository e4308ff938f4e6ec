"""Handles records that cannot be deserialized: skips them, writes them to a dead-letter topic, or tries them again."""

from collections.abc import Callable
from typing import Any

import anyio

from ..errors import DeserializationError, KafkaError, UsageError
from ..event_log import EventLog, TroubleLog
from ..producer.producer import Producer
from ..records.batch import ConsumerRecord
from ..records.deserialization import RecordDeserializer
from ..runtime import stray_cancellation, was_cancelled
from ..serialization import run_steps
from ..types import TopicPartition
from .failed_record_writer import FailedRecordWriter
from .unreadable_record import UnreadableRecord

__all__ = ("DeadLetteredRecords", "SkippedRecords", "deserialize_again")

_log = EventLog("aiokafkawire.consumer")

_CLOSE_SECONDS = 1.0
"""How long closing may wait for a record that is being written; such a record is read again."""


class SkippedRecords:
    """Counts and logs the records that are skipped.

    Args:
        now: the clock, in seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._trouble = TroubleLog(_log, now)
        self.count: int = 0
        """The number of skipped records."""

    def handle(self, error: DeserializationError) -> None:
        """Skip a record."""
        self.count += 1
        self._trouble.failed(
            error.partition,
            "skipped the record at offset %(offset)d of %(topic)s-%(partition)d: its %(failed)s cannot be "
            "deserialized: %(error)s",
            text={"offset": error.offset, "failed": error.failed},
            partition=error.partition[1] if error.partition else None,
            topic=error.partition[0] if error.partition else None,
            error=error.__cause__,
        )

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""


class DeadLetteredRecords:
    """Writes records to a dead-letter topic, with a producer that it makes for the first of them.

    Args:
        topic: the dead-letter topic.
        group: the consumer's group; None without one.
        make_producer: makes a producer of raw keys and values, which waits for all replicas.
        now: the clock, in seconds.
    """

    def __init__(
        self,
        topic: str,
        group: str | None,
        make_producer: Callable[[], Producer[Any, Any]],
        now: Callable[[], float],
    ) -> None:
        self._topic, self._group, self._make_producer = topic, group, make_producer
        self._trouble = TroubleLog(_log, now)
        self._producer: Producer[Any, Any] | None = None
        self.count: int = 0
        """The number of records that are in the dead-letter topic."""

    async def handle(self, error: DeserializationError) -> None:
        """Write a record to the dead-letter topic, and wait until it is acknowledged.

        Raises:
            KafkaError: the record may not be in the dead-letter topic.
            UsageError: the record is of the dead-letter topic itself.
        """
        at = TopicPartition(*error.partition) if error.partition else TopicPartition("", -1)
        if at.topic == self._topic:
            raise UsageError(
                f"{error}; the consumer reads its own dead_letter_topic: read the topic with a consumer whose on_error "
                "is 'raise' or 'skip'"
            ) from error
        try:
            if self._producer is None:
                producer = self._make_producer()
                await producer.__aenter__()
                self._producer = producer
            writer = FailedRecordWriter(self._producer, self._group or "")
            await writer.write(self._topic, [UnreadableRecord(error)], 1, _cause(error))
        except KafkaError as failed:
            failed.add_note(f"while writing the record at {at}, offset {error.offset}, to the dead-letter topic")
            raise
        self.count += 1
        self._trouble.failed(
            at,
            "wrote the record at offset %(offset)d of %(topic)s-%(partition)d to topic %(dead_letters)r: its "
            "%(failed)s cannot be deserialized: %(error)s",
            text={"offset": error.offset, "failed": error.failed, "dead_letters": self._topic},
            partition=at.partition,
            topic=at.topic,
            error=error.__cause__,
        )

    async def close(self) -> None:
        """Close the producer. Whether its last record was written does not matter: it is read again."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with anyio.move_on_after(_CLOSE_SECONDS):
                try:
                    await producer.close()
                except KafkaError as error:
                    _log.debug("closing the producer of dead letters: %(error)s", error=error)


async def deserialize_again(record: UnreadableRecord, deserializer: RecordDeserializer) -> ConsumerRecord[Any, Any]:
    """Return the record with its key and value.

    Raises:
        DeserializationError: a deserializer has failed once more.
        KafkaError: it has raised a cancellation of its own.
    """
    try:
        return await run_steps(deserializer.steps(record.error._record))
    except anyio.get_cancelled_exc_class() as cancelled:
        if was_cancelled():
            raise
        raise stray_cancellation("a deserializer", cancelled) from cancelled


def _cause(error: DeserializationError) -> Exception:
    """Return the deserializer's exception."""
    return error.__cause__ if isinstance(error.__cause__, Exception) else error
