"""The input partitions of Spark tasks, for batch queries and streams."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from .offsets import OffsetRange
from .options import ReadOptions
from .planning import split_up

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ("Part", "parts_of", "read_part")


class Part(InputPartition):
    """The input partition of one Spark task: the offset range to read, which Spark pickles for the task."""

    def __init__(self, value: OffsetRange | None) -> None:
        super().__init__(value)


def parts_of(options: ReadOptions, ranges: Sequence[OffsetRange]) -> list[Part]:
    """Split the ranges by ``minPartitions`` and ``maxRecordsPerPartition``, and return the input partitions."""
    split = split_up(ranges, min_partitions=options.min_partitions, max_records=options.max_records_per_partition)
    return [Part(offsets) for offsets in split]


def read_part(options: ReadOptions, part: Part | None) -> Iterator["pa.RecordBatch"]:
    """Yield the records of a part; none if the query is empty: its part has no range, or is None before Spark 4.2."""
    if part is not None and part.value is not None:
        from .partition_reader import read_range  # planners do without it

        yield from read_range(options, part.value)
