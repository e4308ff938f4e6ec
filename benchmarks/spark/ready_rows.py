"""A streaming source whose rows are ready before they are asked for, to measure what Spark itself does with them."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from aiokafkawire.spark.schema import arrow_schema
from benchmarks.spark.arms import PARTITIONS, VALUE_SIZE

__all__ = ("BATCHES", "ReadyRows")

BATCHES: Final = 60
_ROWS: Final = 16_384
"""The rows of an Arrow record batch, as many as those of the measured source."""


class ReadyRows(DataSource):
    """Has ``BATCHES`` micro-batches of as many tasks as the topics of the benchmark, each of ``rows`` rows in all."""

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

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802  # Spark's name
        """Return the reader."""
        return _Reader(int(self.options.get("rows", "0")) // PARTITIONS)


class _Reader(DataSourceStreamReader):
    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._end = 0

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  # Spark's name
        return {"batch": 0}

    def latestOffset(self, *start_and_limit: Any) -> dict[str, int]:  # noqa: N802  # Spark's name
        self._end = min(self._end + 1, BATCHES)
        return {"batch": self._end}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for first in range(0, self._rows, _ROWS):
            yield _ready().slice(0, min(_ROWS, self._rows - first))


@cache
def _ready() -> pa.RecordBatch:
    columns = (None, b"x" * VALUE_SIZE, "ready", 0, 0, 0, 0)
    fields = zip(columns, arrow_schema(headers=False), strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array([value] * _ROWS, field.type) for value, field in fields], schema=arrow_schema(headers=False)
    )
