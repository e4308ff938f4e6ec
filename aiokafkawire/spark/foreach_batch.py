"""For ``foreachBatch``: micro-batches written to a topic at least once, and the offsets that one has."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from .offsets import OffsetRange
from .options import write_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ("ranges_in", "to_topic")


def to_topic(options: Mapping[str, str]) -> "Callable[[DataFrame, int], None]":
    """A function for ``foreachBatch`` that writes each micro-batch as the data source's sink does, at least once.

        totals.writeStream.outputMode("update").foreachBatch(to_topic({...})).start()

    For what Spark has no Python sink: streams in output mode update, and any stream before Spark 4.1.

    Args:
        options: of the sink: ``kafka.bootstrap.servers``, ``topic``, other ``kafka.*``.

    Raises:
        ConfigError: an option is wrong; now, and not with the first batch.
    """
    write_options(options)
    given = dict(options)

    def write(batch: "DataFrame", batch_id: int) -> None:
        batch.write.format("aiokafkawire").options(**given).mode("append").save()

    return write


def ranges_in(batch: "DataFrame") -> list[OffsetRange]:
    """What of each partition is in a micro-batch: from its first record to behind its last one, sorted.

    It reads the columns ``topic``, ``partition`` and ``offset`` of the whole batch: ``persist`` one that is used again.
    """
    ends = batch.selectExpr("topic", "partition", "offset", "offset + 1 end").groupBy("topic", "partition")
    found = ends.agg({"offset": "min", "end": "max"}).selectExpr("topic", "partition", "`min(offset)`", "`max(end)`")
    return sorted((OffsetRange(*row) for row in found.collect()), key=lambda one: one.where)
