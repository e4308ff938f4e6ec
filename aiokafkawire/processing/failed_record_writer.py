"""Writes records whose handler has failed to retry topics and dead-letter topics."""

import traceback
from collections.abc import Sequence
from typing import Any, Final

import attrs

from ..errors import KafkaError, MessageTooLarge, RecordTooLarge
from ..producer.producer import Producer
from ..records.batch import Delivery
from ..share._implementation import ShareRecord
from .failures import Failure, failure_of, with_failure
from .retry_topics import RetryTopics

__all__ = ("FailedRecordWriter", "describe_failure")


_NOTE_LIMIT: Final = 500
"""The size in characters to which the note of a write that has failed is shortened."""
_SHORT_TEXT: Final = 200
"""The size in characters of the message and the stack of a record that is too large with longer ones."""


class FailedRecordWriter:
    """The writer of records that have failed.

    Args:
        producer: sends the records.
        group: the group whose handler fails.
        retry_topics: the topics whose records have failed before; headers of a failure in other records were copied
            from there, and describe no failure of these.
    """

    def __init__(self, producer: Producer[Any, Any], group: str, retry_topics: RetryTopics | None = None) -> None:
        self._producer, self._group = producer, group
        self._retry_topics = RetryTopics() if retry_topics is None else retry_topics

    async def write(
        self, topic: str, records: Sequence[Any], attempts: int, error: Exception, *, not_before_ms: int = 0
    ) -> None:
        """Write the records with their keys, values and headers as they were read; wait until they are acknowledged.

        The text of the failure is shortened if a record is too large for the topic with all of it.

        Raises:
            KafkaError: the records are not written; a note has the error of the handler.
        """
        try:
            await self._write(topic, records, attempts, error, not_before_ms)
        except KafkaError as refused:
            first = records[0]
            refused.add_note(
                f"{first.topic}-{first.partition} offset {first.offset} was not written to {topic!r}; "
                f"it has failed with {type(error).__name__}: {_text_of(error)}"[:_NOTE_LIMIT]
            )
            raise

    async def _write(
        self, topic: str, records: Sequence[Any], attempts: int, error: Exception, not_before_ms: int
    ) -> None:
        deliveries = []
        for record in records:
            before = failure_of(record.headers) if record.topic in self._retry_topics else None
            failure = describe_failure(record, before, self._group, attempts, error, not_before_ms)
            try:
                deliveries.append((record, failure, await self._enqueue(topic, record, failure)))
            except RecordTooLarge:
                deliveries.append((record, failure, await self._enqueue(topic, record, _shortened(failure))))
        for record, failure, delivery in deliveries:
            try:
                await delivery
            except MessageTooLarge:
                await (await self._enqueue(topic, record, _shortened(failure)))

    async def _enqueue(self, topic: str, record: Any, failure: Failure) -> Delivery:
        headers = with_failure(record.headers, failure)
        return await self._producer.enqueue(topic, record.raw_value, key=record.raw_key, headers=headers)


def _shortened(failure: Failure) -> Failure:
    return attrs.evolve(failure, message=failure.message[:_SHORT_TEXT], stack=failure.stack[-_SHORT_TEXT:])


def describe_failure(
    record: Any, before: Failure | None, group: str, attempts: int, error: Exception, not_before_ms: int = 0
) -> Failure:
    """Return the failure of a record, with the origin and the attempts of the one ``before``, in a retry topic."""
    kind = type(error)
    if before is None:
        topic, partition, offset, timestamp_ms = record.topic, record.partition, record.offset, _timestamp_of(record)
    else:
        topic, partition, offset, timestamp_ms = before.topic, before.partition, before.offset, before.timestamp_ms
        attempts += before.attempts
    return Failure(
        topic=topic,
        partition=partition,
        offset=offset,
        timestamp_ms=timestamp_ms,
        group=group,
        attempts=attempts,
        error=f"{kind.__module__}.{kind.__qualname__}",
        message=_text_of(error),
        stack="".join(traceback.format_exception(error)),
        not_before_ms=not_before_ms,
    )


def _text_of(error: Exception) -> str:
    try:
        return str(error)
    except Exception as failed:  # of the user's exception
        return f"its text cannot be read: {type(failed).__name__}"


def _timestamp_of(record: Any) -> int:
    timestamp: int = record.timestamp_ms if isinstance(record, ShareRecord) else record.timestamp
    return timestamp
