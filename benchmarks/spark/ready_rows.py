"""A source whose rows are ready before they are asked for, and a sink that counts rows: what Spark itself costs."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)

from aiokafkawire.spark.schema import arrow_schema
from benchmarks.spark.arms import PARTITIONS, VALUE_SIZE

__all__ = ("BATCHES", "ReadyRows")

BATCHES: Final = 60
_ROWS: Final = 16_384
"""The rows of an Arrow record batch, as many as those of the measured source."""


class ReadyRows(DataSource):
    """Has ``rows`` rows in a batch, or in each of ``BATCHES`` micro-batches, for a task of each partition."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "ready"

    def schema(self) -> str:
        """Return the columns of a Kafka source."""
        return (
            "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, "
            "timestampType INT"
        )

    def reader(self, schema: Any) -> DataSourceReader:
        """Return the reader of a batch."""
        return _Reader(int(self.options["rows"]))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802  # Spark's name
        """Return the reader of micro-batches."""
        return _StreamReader(int(self.options["rows"]))

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:
        """Return the sink."""
        return _Writer()


class _Reader(DataSourceReader):
    def __init__(self, rows: int) -> None:
        self._rows = rows

    def partitions(self) -> Sequence[InputPartition]:
        return _tasks()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _rows_of_a_task(self._rows)


class _StreamReader(DataSourceStreamReader):
    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._end = 0

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  # Spark's name
        return {"batch": 0}

    def latestOffset(self, *start_and_limit: Any) -> dict[str, int]:  # noqa: N802  # Spark's name
        self._end = min(self._end + 1, BATCHES)
        return {"batch": self._end}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return _tasks()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _rows_of_a_task(self._rows)


class _Writer(DataSourceArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        sum(batch.num_rows for batch in iterator)
        return WriterCommitMessage()


def _tasks() -> Sequence[InputPartition]:
    return [InputPartition(number) for number in range(PARTITIONS)]


def _rows_of_a_task(rows: int) -> Iterator[pa.RecordBatch]:
    for first in range(0, rows // PARTITIONS, _ROWS):
        yield _ready().slice(0, min(_ROWS, rows // PARTITIONS - first))


@cache
def _ready() -> pa.RecordBatch:
    columns = (None, b"x" * VALUE_SIZE, "ready", 0, 0, 0, 0)
    fields = zip(columns, arrow_schema(headers=False), strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array([value] * _ROWS, field.type) for value, field in fields], schema=arrow_schema(headers=False)
    )
