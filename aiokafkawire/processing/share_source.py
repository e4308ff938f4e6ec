"""Processes the records of a share group's member: acquires, renews and acknowledges them."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import anyio

from ..errors import AcknowledgementFailed, DeserializationError, RequestTimeout
from ..event_log import EventLog, TroubleLog
from ..records.batch import ConsumerRecord
from ..records.deserialization import RecordDeserializer
from ..runtime import is_being_cancelled
from ..serialization import AnyDeserializer, SerializationContext, knows_record
from ..share._implementation import ShareRecord
from ..share.acknowledgements import Acknowledge
from ..share.share_consumer import ShareConsumer
from ..types import TopicPartition
from .lanes import Lanes, Work
from .processing_run import ProcessingRun
from .undeserializable_records import deserialize_again
from .unreadable_record import Undeserialized, UnreadableRecord

__all__ = ("ShareSource", "lenient")

_log = EventLog("aiokafkawire.processing")

_COMMIT_SECONDS: Final = 10.0
"""Seconds that the last acknowledgements may take."""


class ShareSource:
    """The records of a member of a share group, of which each is acknowledged by itself.

    Args:
        consumer: acquires the records.
        group: the share group.
        lanes: has the records to handle.
        deserializer: converts the records that could not be converted when they were read.
        max_in_hand: the largest number of records that are acquired and not acknowledged.
        now: the clock, in seconds.
    """

    def __init__(
        self,
        consumer: ShareConsumer[Any, Any],
        group: str,
        lanes: Lanes[Any],
        *,
        deserializer: RecordDeserializer,
        max_in_hand: int,
        now: Callable[[], float],
    ) -> None:
        self._consumer, self._group, self._lanes, self._max_in_hand = consumer, group, lanes, max_in_hand
        self._deserializer, self._trouble = deserializer, TroubleLog(_log, now)
        self._in_hand = 0
        self._refill_at = max_in_hand - max(1, max_in_hand // 4)
        self._changed = anyio.Event()
        self._run: ProcessingRun | None = None

    async def open(self, run: ProcessingRun) -> None:
        """Start to acquire records for this run."""
        self._run = run
        # The records of a handler's call have a span, not those of a poll.
        self._consumer._tracing = None
        # An acquired record is locked, and other members may be free to handle it.
        self._consumer._fetcher.acquires_ahead = False
        run.start(self._read)

    async def _read(self) -> None:
        assert self._run is not None  # which has started this
        while True:
            with self._consumer._staying():
                while self._in_hand > self._refill_at:
                    await self._changed.wait()
            records = await self._consumer.poll(self._max_in_hand - self._in_hand)
            self._tell_refusals()
            for record in records:
                self._in_hand += 1
                self._consumer._begin(record)
                unreadable = _unreadable(record)
                partition = TopicPartition(record.topic, record.partition)
                self._lanes.add(partition, None, unreadable or record, alone=unreadable is not None)
            self._run.pool.start()

    def _tell_refusals(self) -> None:
        """Log acknowledgements that brokers have refused, as of locks that had ended: others get the records again."""
        try:
            self._consumer._fetcher.queue.results.take()
        except AcknowledgementFailed as error:
            message = "group %(group)r: records that were handled may be handled again: %(error)s"
            self._trouble.failed("acknowledgements", message, group=self._group, error=error)

    async def read_again(self, record: UnreadableRecord) -> Any:
        """Return the record with its key and value deserialized, in the place of the one that was acquired."""
        given: ShareRecord[Any, Any] = record.given
        found = await deserialize_again(record, self._deserializer)
        read = ShareRecord(found, given.delivery_count, given.acquisition, given.owner)
        self._consumer._fetcher.locks.replace(given, read)
        return read

    def finished(self, work: Work[Any]) -> None:
        """Accept the records of a work, unless the handler has rejected them."""
        # A handler may have returned since the call is cancelled: then the consumer releases the records.
        if not is_being_cancelled():
            self._acknowledge(work, Acknowledge.ACCEPT)

    def reject(self, work: Work[Any]) -> bool:
        """Reject the records of a work."""
        for record in work.records:
            if record.acknowledged is None:
                self._consumer.acknowledge(record, Acknowledge.REJECT)
        return True

    def failed(self, work: Work[Any]) -> None:
        """Release the records of a work that has failed finally, so that a member gets them again."""
        self._acknowledge(work, Acknowledge.RELEASE)

    def _acknowledge(self, work: Work[Any], kind: Acknowledge) -> None:
        for record in work.records:
            given = record.given if isinstance(record, UnreadableRecord) else record
            if given.acknowledged is None:
                self._consumer.acknowledge(given, kind)
            self._in_hand -= 1  # also if the handler has acknowledged it, as by ``async with record``
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def close(self) -> None:
        """Send the acknowledgements; the consumer releases all other records when it is closed."""
        try:
            await self._consumer.commit(timeout=_COMMIT_SECONDS)
        except (AcknowledgementFailed, RequestTimeout) as error:
            _log.warning("group %(group)r: the last commit has failed: %(error)s", group=self._group, error=error)

    def status(self) -> Mapping[str, int]:
        """Return the numbers of a summary that this source knows."""
        return {"skipped": 0, "in_hand": self._in_hand, "waiting": 0}


def lenient(deserializer: Any) -> Any:
    """Return a deserializer that returns its error instead of raising it: a share consumer would release the record."""
    return None if deserializer is None else _Lenient(deserializer)


class _Lenient:
    """A deserializer that returns the error of another one instead of raising it."""

    def __init__(self, deserializer: AnyDeserializer[Any]) -> None:
        self._knows_record = knows_record(deserializer, "deserialize")
        self._call: Any = deserializer.deserialize if self._knows_record else deserializer  # type: ignore[union-attr]

    def deserialize(self, data: bytes, context: SerializationContext) -> Any:
        try:
            if not self._knows_record:
                return self._call(data)
            found = self._call(data, context)
        except BaseException as error:
            return _undeserialized(error)
        return _awaited(found) if isinstance(found, Awaitable) else found


async def _awaited(result: Awaitable[Any]) -> Any:
    try:
        return await result
    except BaseException as error:
        return _undeserialized(error)


def _undeserialized(error: BaseException) -> Undeserialized:
    """Return the place of what could not be deserialized; raise a cancellation."""
    if isinstance(error, anyio.get_cancelled_exc_class()):
        raise error
    return Undeserialized(error)


def _unreadable(record: Any) -> UnreadableRecord | None:
    """Return the record as one that cannot be read, if its key or value could not be deserialized.

    Raises:
        BaseException: what the deserializer has raised is no Exception, and ends the processing.
    """
    for failed, part in (("key", record.key), ("value", record.value)):
        if isinstance(part, Undeserialized):
            if not isinstance(part.error, Exception):
                raise part.error
            partition = TopicPartition(record.topic, record.partition)
            error = DeserializationError(
                f"the {failed} of {partition} at offset {record.offset} cannot be deserialized: {part.error!r:.200}",
                failed,
                partition,
                record.offset,
                record.raw_key,
                record.raw_value,
                record.headers,
                record.timestamp_ms,
            )
            error.__cause__ = part.error
            error._record = ConsumerRecord(
                record.topic,
                record.partition,
                record.offset,
                raw_key=record.raw_key,
                raw_value=record.raw_value,
                headers=record.headers,
                timestamp=record.timestamp_ms,
                timestamp_type=record.timestamp_type,
            )
            return UnreadableRecord(error, record)
    return None
