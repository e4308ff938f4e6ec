"""The writer of Arrow record batches to topics, used by the sink's tasks."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from .. import blocking
from ..errors import KafkaError, UsageError
from ..types import ProducerIdentity
from .options import WriteOptions
from .worker_client import task_client

__all__ = ("check_columns", "write_batches")

_BATCH_SIZE: Final = 128 * 1024
"""The default of ``batch.size``: a task has many records, and the latency of the first does not matter."""
_LINGER_MS: Final = 5
"""The default of ``linger.ms``, as in Java since Kafka 4.0 (KIP-1030): fewer and fuller batches."""
_BYTES: Final = "a string or binary"
_NO_PAIR: Final = {"key": None, "value": None}
"""A null among the headers, which is refused as a header whose key is null is."""


def write_batches(
    options: WriteOptions, batches: Iterable["pa.RecordBatch"], *, identity: ProducerIdentity | None = None
) -> int:
    """Write the rows of all batches, wait until all are acknowledged, and return the number of rows.

    Delivery is at least once: a task that Spark retries writes all of its rows again. After a failure the task sends no
    further records, so the topic has only the records that were acknowledged or in flight at the failure. Rows of one
    partition keep their order. With another producer's ``identity``, rows are written in that producer's transaction.

    Raises:
        TransactionAborted, ProducerFenced, InvalidProducerEpoch: the transaction of the identity has ended.
        UsageError: a column is missing or of a wrong type, or a row has no topic.
        DeliveryFailed: records were not acknowledged within ``delivery.timeout.ms``, or a broker rejected them.
        TopicNotReady: a topic does not exist.
    """
    settings, rows = options.settings, 0
    producer_options = settings.producer.copy()
    producer_options.setdefault("batch_size", _BATCH_SIZE)
    producer_options.setdefault("linger_ms", _LINGER_MS)
    with (
        task_client(settings) as kafka,
        kafka.producer(identity=identity, **producer_options) as producer,
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
    """Discard unsent records when a record or the ``with`` block fails, and wait for requests in flight.

    Spark retries the task, so each record that is sent after the failure would be in the topic twice.
    """
    asynchronous = producer._producer
    kafka.loop.call_sync(asynchronous._stop_at_failure)
    try:
        yield
    except Exception as error:
        dropped = KafkaError(f"not sent: the task failed before that ({type(error).__name__})")
        kafka.loop.call(asynchronous._discard, dropped)
        raise


def check_columns(schema: "pa.Schema", options: WriteOptions) -> None:
    """Check that records can be made of rows with these columns.

    Raises:
        UsageError: a column is unknown, missing or of a wrong type; the message names the column and the valid types.
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
        raise UsageError(f"unknown column {', '.join(unknown)}; known columns: {', '.join(allowed)}")
    if "value" not in schema.names:
        raise UsageError("the column value is missing: it has the records' values")
    if "topic" not in schema.names and options.topic is None:
        raise UsageError("a topic is missing: set the option topic, or add a column topic")
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


def _is_text(column: "pa.DataType") -> bool:
    return bool(pa.types.is_string(column) or pa.types.is_large_string(column))


def _is_bytes(column: "pa.DataType") -> bool:
    is_binary = pa.types.is_binary(column) or pa.types.is_large_binary(column) or pa.types.is_null(column)
    return bool(_is_text(column) or is_binary)


def _is_headers(column: "pa.DataType") -> bool:
    is_list = pa.types.is_list(column) and pa.types.is_struct(column.value_type)
    return bool(is_list and [field.name for field in column.value_type] == ["key", "value"])


def _by_target(batch: "pa.RecordBatch", topic: str | None) -> Iterator[tuple[str, int | None, "pa.RecordBatch"]]:
    """Yield the rows grouped by topic and, if there is such a column, by partition; each group keeps its order."""
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
            raise UsageError("a row has null in the column topic, and the option topic is not set")
        yield target, group.get("partition"), _rows(batch, group)


def _rows(batch: "pa.RecordBatch", group: dict[str, object]) -> "pa.RecordBatch":
    mask = None
    for name, value in group.items():
        column = batch.column(name)
        same = pc.is_null(column) if value is None else pc.fill_null(pc.equal(column, value), False)
        mask = same if mask is None else pc.and_(mask, same)
    return batch.filter(mask)


def _send(producer: blocking.Producer[bytes, bytes], topic: str, partition: int | None, rows: "pa.RecordBatch") -> None:
    values = rows.column("value").cast(pa.binary())
    keys = rows.column("key").cast(pa.binary()) if "key" in rows.schema.names else None
    headers = rows.column("headers").to_pylist() if "headers" in rows.schema.names else []
    if not any(headers):
        producer.enqueue_many(topic, values, keys=keys, partition=partition)
        return
    # enqueue_many takes the same headers for all records, so send runs of rows with equal headers.
    first = 0
    for index in range(1, len(headers) + 1):
        if index == len(headers) or headers[index] != headers[first]:
            pairs: list[Any] = [tuple((pair or _NO_PAIR).values()) for pair in headers[first] or ()]
            run = slice(first, index)
            run_keys = None if keys is None else keys[run]
            producer.enqueue_many(topic, values[run], keys=run_keys, partition=partition, headers=pairs)
            first = index
