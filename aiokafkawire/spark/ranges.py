"""Ranges of offsets by hand: planned by the driver, read without a data source, as RDDs of ranges used to be."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from .. import blocking
from .lookup import batch_ranges
from .offsets import OffsetRange
from .options import ReadOptions, read_options
from .partition_reader import read_range
from .planning import split_up
from .source import spark_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ("OffsetRange", "plan_ranges", "read_ranges")


def plan_ranges(options: Mapping[str, str]) -> list[OffsetRange]:
    """What a batch query with these options would read, each range for a task of its own.

    Args:
        options: of the data source: ``kafka.bootstrap.servers``, ``subscribe``, ``startingOffsets``,
            ``startingTimestamp``, ``minPartitions`` and so on.

    Raises:
        ConfigError: an option is wrong.
        DataLost: offsets that were asked for are not there.
        KafkaError: the cluster cannot be asked, or lacks a topic.
    """
    read = read_options(options, streaming=False)
    with blocking.Client(read.settings.bootstrap_servers, **read.settings.client) as kafka:
        ranges = kafka.loop.call(batch_ranges, kafka.asynchronous, read)
    return split_up(ranges, min_partitions=read.min_partitions, max_records=read.max_records_per_partition)


def read_ranges(spark: "SparkSession", ranges: Sequence[OffsetRange], options: Mapping[str, str]) -> "DataFrame":
    """The records of the ranges, with the data source's columns and one task for each range.

    It needs no registered data source. ``options`` are those of :func:`plan_ranges`; used are ``kafka.*``,
    ``includeHeaders``, ``failOnDataLoss`` and ``kafkaConsumer.pollTimeoutMs``.

    Raises:
        ConfigError: an option is wrong.
    """
    # What is read is said by the ranges.
    topics = {"subscribe": ",".join(sorted({one.topic for one in ranges})) or "none"}
    said = {
        key: text for key, text in options.items() if key.lower() not in ("subscribe", "subscribepattern", "assign")
    }
    read = read_options({**said, **topics}, streaming=False)
    # A row for each task, which is the range's index.
    tasks = spark.range(0, len(ranges), 1, max(1, len(ranges)))
    reading = _Reading(tuple(ranges), read)
    return tasks.mapInArrow(reading, spark_schema(headers=read.include_headers))


class _Reading:
    """What the tasks call; it is pickled for them."""

    def __init__(self, ranges: tuple[OffsetRange, ...], options: ReadOptions) -> None:
        self._ranges, self._options = ranges, options

    def __call__(self, batches: Iterable["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                yield from read_range(self._options, self._ranges[index])
