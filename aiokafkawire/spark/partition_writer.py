"""Writes Arrow record batches to topics: what a task of the sink does."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from .. import blocking
from ..errors import KafkaError, UsageError
from ..types import ProducerIdentity
from .options import WriteOptions
from .worker_client import task_client

__all__ = ("check_columns", "write_batches")

_BATCH_SIZE: Final = 128 * 1024
"""``batch.size`` where nothing else is said: a task has many records at hand, and no one waits for the first."""
_LINGER_MS: Final = 5
"""``linger.ms`` where nothing else is said, Java's since Kafka 4.0 (KIP-1030): fewer and fuller batches."""
_BYTES: Final = "a string or binary"


def write_batches(
    options: WriteOptions, batches: Iterable["pa.RecordBatch"], *, identity: ProducerIdentity | None = None
) -> int:
    """Write the rows of all batches, and wait until they are acknowledged. Returns how many.

    Every row becomes a record once at least: a task that is tried again writes all of its rows again. Once the task
    fails, it sends nothing more: what remains in the topic is what was acknowledged or in flight then. Rows of one
    partition keep their order. With another producer's ``identity`` they are in the transaction that it has open.

    Raises:
        TransactionAborted, ProducerFenced, InvalidProducerEpoch: with an identity, whose transaction is over.
        UsageError: a column is missing or of another type, or a row has no topic.
        DeliveryFailed: records were not acknowledged within ``delivery.timeout.ms``, or were refused.
        TopicNotReady: a topic is not there.
    """
    settings, rows = options.settings, 0
    producing = settings.producer.copy()
    producing.setdefault("batch_size", _BATCH_SIZE)
    producing.setdefault("linger_ms", _LINGER_MS)
    with (
        task_client(settings) as kafka,
        kafka.producer(identity=identity, **producing) as producer,
        _stopping_at_failure(kafka, producer) if identity is None else producer.transaction(),
    ):
        for batch in batches:
            check_columns(batch.schema, options)
            for topic, partition, part in _by_target(batch, options.topic):
                _send(producer, topic, partition, part)
            rows += batch.num_rows
        producer.flush()
    return rows


@contextmanager
def _stopping_at_failure(kafka: blocking.Client, producer: blocking.Producer[bytes, bytes]) -> Iterator[None]:
    """Drop what was not sent as soon as a record or the block fails, and wait for what is in flight.

    Spark tries the task again, so each record that is sent from then on would be in the topic twice.
    """
    made = producer._producer
    kafka.loop.here(made._stop_at_failure)
    try:
        yield
    except Exception as error:
        dropped = KafkaError(f"not sent: the task failed before that ({type(error).__name__})")
        kafka.loop.call(made._discard, dropped)
        raise


def check_columns(schema: "pa.Schema", options: WriteOptions) -> None:
    """Refuse what has no place in a record.

    Raises:
        UsageError: the message names the column, and what it may be.
    """
    allowed = {
        "key": _BYTES,
        "value": _BYTES,
        "topic": "a string",
        "partition": "an int",
        "headers": "an array of pairs",
    }
    unknown = [name for name in schema.names if name not in allowed]
    if unknown:
        raise UsageError(f"no part of a record: column {', '.join(unknown)}; known are {', '.join(allowed)}")
    if "value" not in schema.names:
        raise UsageError("a column named value is needed, and a row becomes a record of it")
    if "topic" not in schema.names and options.topic is None:
        raise UsageError("a topic is needed: as the option topic, or as a column")
    fits = {
        "key": _is_bytes,
        "value": _is_bytes,
        "topic": _is_text,
        "partition": pa.types.is_int32,
        "headers": _is_headers,
    }
    for field in schema:
        if not fits[field.name](field.type):
            raise UsageError(f"the column {field.name} must be {allowed[field.name]}, and is {field.type}")


def _is_text(kind: "pa.DataType") -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_bytes(kind: "pa.DataType") -> bool:
    return bool(_is_text(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_null(kind))


def _is_headers(kind: "pa.DataType") -> bool:
    listed = pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)
    return bool(listed and [field.name for field in kind.value_type] == ["key", "value"])


def _by_target(batch: "pa.RecordBatch", topic: str | None) -> Iterator[tuple[str, int | None, "pa.RecordBatch"]]:
    """The rows by topic and by partition, if they say one, each in their order."""
    by = [] if topic is not None or "topic" not in batch.schema.names else ["topic"]
    by += ["partition"] if "partition" in batch.schema.names else []
    if not by:
        assert topic is not None
        yield topic, None, batch
        return
    groups = pa.table(batch.select(by).columns, names=by).group_by(by).aggregate([]).to_pylist()
    for group in groups:
        target = group.get("topic", topic)
        if target is None:
            raise UsageError("a row has null in the column topic, and there is no option topic")
        yield target, group.get("partition"), _rows(batch, group)


def _rows(batch: "pa.RecordBatch", group: dict[str, object]) -> "pa.RecordBatch":
    mask = None
    for name, wanted in group.items():
        column = batch.column(name)
        same = pc.is_null(column) if wanted is None else pc.fill_null(pc.equal(column, wanted), False)
        mask = same if mask is None else pc.and_(mask, same)
    return batch.filter(mask)


def _send(producer: blocking.Producer[bytes, bytes], topic: str, partition: int | None, rows: "pa.RecordBatch") -> None:
    values = rows.column("value").cast(pa.binary())
    keys = rows.column("key").cast(pa.binary()) if "key" in rows.schema.names else None
    headers = rows.column("headers").to_pylist() if "headers" in rows.schema.names else []
    if not any(headers):
        producer.enqueue_many(topic, values, keys=keys, partition=partition)
        return
    # Headers are the same for all that are handed over together: runs of rows that share theirs.
    first = 0
    for index in range(1, len(headers) + 1):
        if index == len(headers) or headers[index] != headers[first]:
            pairs = [(pair["key"], pair["value"]) for pair in headers[first] or ()]
            some = slice(first, index)
            theirs = None if keys is None else keys[some]
            producer.enqueue_many(topic, values[some], keys=theirs, partition=partition, headers=pairs)
            first = index
