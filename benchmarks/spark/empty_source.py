"""A streaming source without rows, to measure the micro-batches of Spark itself."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from benchmarks.spark.arms import PARTITIONS

__all__ = ("BATCHES", "EmptySource")

BATCHES: Final = 60


class EmptySource(DataSource):
    """Has ``BATCHES`` micro-batches of as many tasks as the topics of the benchmark, and no row."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "empty"

    def schema(self) -> str:
        """Return the columns of a Kafka source that are used."""
        return "key BINARY, value BINARY"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802  # Spark's name
        """Return the reader."""
        return _Reader()


class _Reader(DataSourceStreamReader):
    def __init__(self) -> None:
        self._end = 0

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  # Spark's name
        return {"batch": 0}

    def latestOffset(self, *start_and_limit: Any) -> dict[str, int]:  # noqa: N802  # Spark's name
        self._end = min(self._end + 1, BATCHES)
        return {"batch": self._end}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        return iter(())
