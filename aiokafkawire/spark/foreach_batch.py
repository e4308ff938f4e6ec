"""Functions for ``foreachBatch``: write micro-batches to a topic at least once, and list a batch's offsets."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from .offsets import OffsetRange
from .options import write_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ("ranges_in", "to_topic")


def to_topic(options: Mapping[str, str]) -> "Callable[[DataFrame, int], None]":
    """Return a function for ``foreachBatch`` that writes each micro-batch at least once, as the sink does.

        totals.writeStream.outputMode("update").foreachBatch(to_topic({...})).start()

    Use this function where Spark has no Python sink: for output mode update, and for all streams before Spark 4.1.

    Args:
        options: the options of the sink: ``kafka.bootstrap.servers``, ``topic``, other ``kafka.*``.

    Raises:
        ConfigError: an option is wrong; raised before the first batch.
    """
    write_options(options)
    given = dict(options)

    def write(batch: "DataFrame", batch_id: int) -> None:
        batch.write.format("aiokafkawire").options(**given).mode("append").save()

    return write


def ranges_in(batch: "DataFrame") -> list[OffsetRange]:
    """Return the sorted offset ranges of a micro-batch, from each partition's first record to after its last record.

    The function reads the columns ``topic``, ``partition`` and ``offset`` of the whole batch. If the batch is
    used again, call its method ``persist`` before.
    """
    ends = batch.selectExpr("topic", "partition", "offset", "offset + 1 end").groupBy("topic", "partition")
    found = ends.agg({"offset": "min", "end": "max"}).selectExpr("topic", "partition", "`min(offset)`", "`max(end)`")
    return sorted((OffsetRange(*row) for row in found.collect()), key=lambda offsets: offsets.where)
