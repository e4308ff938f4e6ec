"""Reads of explicit offset ranges, as with RDDs: the driver plans the ranges, and tasks read without a data source."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from .. import blocking
from .lookup import batch_ranges
from .offsets import OffsetRange
from .options import ReadOptions, read_options
from .partition_reader import read_range
from .planning import split_up
from .source import ddl, spark_schema, with_struct

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ("OffsetRange", "plan_ranges", "read_ranges")


def plan_ranges(options: Mapping[str, str]) -> list[OffsetRange]:
    """Return the ranges that a batch query with these options would read, one for each task.

    Args:
        options: the options of the data source: ``kafka.bootstrap.servers``, ``subscribe``, ``startingOffsets``,
            ``startingTimestamp``, ``minPartitions`` and so on.

    Raises:
        ConfigError: an option is wrong.
        DataLost: the options name offsets that do not exist.
        KafkaError: the cluster cannot be reached, or a topic does not exist.
    """
    read = read_options(options, streaming=False)
    with blocking.Client(read.settings.bootstrap_servers, **read.settings.client) as kafka:
        ranges = kafka.loop.call(batch_ranges, kafka.asynchronous, read)
    return split_up(ranges, min_partitions=read.min_partitions, max_records=read.max_records_per_partition)


def read_ranges(spark: "SparkSession", ranges: Sequence[OffsetRange], options: Mapping[str, str]) -> "DataFrame":
    """Read the records of the ranges, with the data source's columns and one task for each range.

    The data source need not be registered. Of the options of :func:`plan_ranges` only ``kafka.*``,
    ``includeHeaders``, ``failOnDataLoss``, ``kafkaConsumer.pollTimeoutMs``, and ``valueFormat`` with the options beside
    it are used.

    Raises:
        ConfigError: an option is wrong.
    """
    # The ranges replace the options that select topics.
    topics = {"subscribe": ",".join(sorted({offsets.topic for offsets in ranges})) or "none"}
    given = {
        key: text for key, text in options.items() if key.lower() not in ("subscribe", "subscribepattern", "assign")
    }
    read = read_options({**given, **topics}, streaming=False)
    schema = spark_schema(headers=read.include_headers)
    if read.values is not None:
        from pyspark.sql.types import DataType

        schema = cast("StructType", DataType.fromDDL(ddl(read.values, headers=read.include_headers)))
        read = with_struct(read, schema)
    # Each task has one row, the index of its range.
    tasks = spark.range(0, len(ranges), 1, max(1, len(ranges)))
    reading = _Reading(tuple(ranges), read)
    return tasks.mapInArrow(reading, schema)


class _Reading:
    """A function for ``mapInArrow`` that reads a task's range; Spark pickles it for every task."""

    def __init__(self, ranges: tuple[OffsetRange, ...], options: ReadOptions) -> None:
        self._ranges, self._options = ranges, options

    def __call__(self, batches: Iterable["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                yield from read_range(self._options, self._ranges[index])
