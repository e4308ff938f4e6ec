"""Deserializes acquired records, with deserializers that know the record, before the user may take them."""

import anyio
import anyio.lowlevel

from ..errors import DeserializationError, KafkaError
from ..records.deserialization import FailureHandler, RecordDeserializer
from ..runtime import is_being_cancelled, stray_cancellation
from ..serialization import run_steps
from .acknowledgements import Acknowledge
from .acquired_partition import Delivered

__all__ = ("deserialize",)

_YIELD_EVERY = 100
"""The number of records after which other tasks run."""


async def deserialize(delivered: Delivered, deserializer: RecordDeserializer, failures: FailureHandler | None) -> None:
    """Deserialize the records of a fetch in place, in their order.

    A record that cannot be deserialized is released, and the user gets the error; or ``failures`` takes the record,
    which is then rejected, unless only what its deserializer needs has failed.
    """
    records, counts = delivered.records, delivered.counts
    delivered.records, delivered.counts = [], []
    for index, (record, count) in enumerate(zip(records, counts, strict=True), 1):
        kind = Acknowledge.RELEASE
        try:
            delivered.records.append(await run_steps(deserializer.steps(record)))
            delivered.counts.append(count)
        except DeserializationError as error:
            if failures is None or error.retriable:
                delivered.errors.append(error)
            else:
                kind = await _left_out(error, failures, delivered)
            delivered.add(record.offset, record.offset, kind)
        except anyio.get_cancelled_exc_class() as cancelled:
            if is_being_cancelled():
                raise
            delivered.errors.append(stray_cancellation("a deserializer", cancelled))
            delivered.add(record.offset, record.offset, kind)
        if index % _YIELD_EVERY == 0:
            await anyio.lowlevel.checkpoint()
    delivered.acknowledged.sort(key=lambda part: part.first)


async def _left_out(error: DeserializationError, failures: FailureHandler, delivered: Delivered) -> Acknowledge:
    """Let ``failures`` take a record, and return its acknowledgement: it is released if they could not take it."""
    try:
        waiting = failures.handle(error)
        if waiting is not None:
            await waiting
    except KafkaError as failed:
        delivered.errors.append(failed)
        return Acknowledge.RELEASE
    return Acknowledge.REJECT
