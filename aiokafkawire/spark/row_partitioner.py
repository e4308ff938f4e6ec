"""The choice of each row's partition before the rows are written."""

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

from ..errors import UsageError
from ..producer.partitioner import partition_for_key

__all__ = ("Placing", "placed")

_COLUMN: Final = "partition"


class Placing:
    """A function for ``mapInArrow`` that fills the column ``partition``. Spark pickles it for every task.

    Args:
        partitions: the topic's number of partitions.
    """

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions

    def __call__(self, batches: Iterable["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        """Yield the same rows, each with its partition."""
        for number, batch in enumerate(batches):
            yield placed(batch, self._partitions, number)


def placed(batch: "pa.RecordBatch", partitions: int, turn: int) -> "pa.RecordBatch":
    """Return the rows, each with a partition.

    A row keeps its own partition. Otherwise its key determines the partition, as in Java's client. Rows with neither
    get the partitions in turn, beginning at partition ``turn``.

    Raises:
        UsageError: a row has a partition that the topic does not have.
    """
    names = batch.schema.names
    count = batch.num_rows
    named = batch.column(_COLUMN).to_pylist() if _COLUMN in names else [None] * count
    keys = batch.column("key").cast(pa.binary()).to_pylist() if "key" in names else [None] * count
    chosen = []
    for row, (partition, key) in enumerate(zip(named, keys, strict=True)):
        if partition is None:
            partition = (turn + row) % partitions if key is None else partition_for_key(key, partitions)
        elif not 0 <= partition < partitions:
            raise UsageError(f"a row has partition {partition}, but the topic has {partitions} partitions")
        chosen.append(partition)
    columns = {name: batch.column(name) for name in names if name != _COLUMN}
    return pa.record_batch({**columns, _COLUMN: pa.array(chosen, pa.int32())})
