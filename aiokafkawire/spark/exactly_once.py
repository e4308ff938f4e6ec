"""An exactly-once sink for ``foreachBatch``, experimental: one transaction for each micro-batch; see docs/spark.md."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from ..errors import ConfigError, UsageError
from ..types import ProducerIdentity
from .options import WriteOptions, write_options
from .partition_writer import check_columns, write_batches
from .row_partitioner import Placing
from .transactions import BatchTransactions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ("ExactlyOnceSink",)

_WRITTEN: Final = StructType([StructField("partition", IntegerType()), StructField("rows", LongType())])


class ExactlyOnceSink:
    """An exactly-once sink: consumers of committed records see each micro-batch once and atomically. Experimental.

        with ExactlyOnceSink(options, "delays-sink") as sink:
            query = delays.writeStream.foreachBatch(sink.write).option("checkpointLocation", ...).start()
            query.awaitTermination()

    The driver begins a transaction for each batch. Rows are grouped by partition, and one task writes each partition
    with the driver's producer id and epoch. Batches that Spark repeats after a restart are recognised and skipped. A
    failed task is not retried alone: the sink aborts the transaction and writes the whole batch again.

    Args:
        options: the options of the data source's sink: ``kafka.bootstrap.servers``, ``topic`` and other ``kafka.*``.
            ``kafka.transaction.timeout.ms`` (by default 600000) must be longer than a batch takes.
        transactional_id: an id that is unique to the query and the same after every restart; another query with the
            same id fences this query.
        query: a name that distinguishes successive queries with this transactional id; by default Spark's id of the
            query, which the checkpoint keeps.
        tries: the maximum number of attempts to write a batch before its error ends the query.

    Raises:
        ConfigError: an option is wrong, or the topic is missing.
    """

    def __init__(
        self, options: Mapping[str, str], transactional_id: str, *, query: str | None = None, tries: int = 3
    ) -> None:
        self._options = write_options(options)
        self._arguments = (transactional_id, tries)
        self._query = query
        self._transactions = self._made()

    def _made(self) -> BatchTransactions:
        transactional_id, tries = self._arguments
        return BatchTransactions(self._options, transactional_id, tries=tries)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the driver's producer after the query has ended. This method may be called several times."""
        self._transactions.close()

    def write(self, batch: "DataFrame", batch_id: int) -> None:
        """Write a micro-batch unless it was written before; pass this method to ``foreachBatch``.

        Raises:
            UsageError: a column is missing or of a wrong type, or Spark's settings allow two attempts of a task.
            ConfigError: the query's id is not known; set ``query``.
            ProducerFenced, InvalidProducerEpoch, InvalidTxnState: the transaction was open for too long, or another
                query has this transactional id.
            KafkaError: the batch cannot be committed.
        """
        spark = batch.sparkSession
        _check_attempts(spark.conf)
        check_columns(to_arrow_schema(batch.schema), self._options)
        query = self._query or _query_of(spark)
        partitions = len(self._transactions.partitions())
        gathered = _gathered(batch, partitions)

        def work(identity: ProducerIdentity) -> int:
            found = gathered.mapInArrow(_Writing(self._options, identity), _WRITTEN).collect()
            return sum(row.rows for row in found)

        self._transactions.write(query, batch_id, work)

    def __getstate__(self) -> dict[str, Any]:
        # Spark Connect pickles the sink for another process, before the first batch.
        return {**self.__dict__, "_transactions": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._transactions = self._made()


def _check_attempts(conf: Any) -> None:
    """Raise UsageError if Spark may attempt a task twice: leaders would confuse the two attempts' sequence numbers."""
    if str(conf.get("spark.speculation", "false")).lower() == "true":
        raise UsageError("an exactly-once sink needs spark.speculation=false: only one task may write a partition")
    master = str(conf.get("spark.master", "local"))
    is_local = master == "local" or master.startswith("local[")
    # Each attempt of a stage counts its tasks' attempts from 0, so a task cannot detect a second attempt of its stage.
    if not is_local and str(conf.get("spark.stage.maxConsecutiveAttempts", "4")) != "1":
        why = "Spark would retry a stage that lost an executor's data within one transaction"
        raise UsageError(f"an exactly-once sink needs spark.stage.maxConsecutiveAttempts=1: {why}")


def _query_of(spark: Any) -> str:
    """Return Spark's id of the query that runs in this thread."""
    try:
        found = spark.sparkContext.getLocalProperty("sql.streaming.queryId")
    except Exception:  # Spark Connect has no context, and each version raises a different error
        found = None
    if not found:
        raise ConfigError("Spark does not give the query's id: set ExactlyOnceSink(..., query='a unique name')")
    return str(found)


def _gathered(batch: "DataFrame", partitions: int) -> "DataFrame":
    """Return the batch's rows, each with its Kafka partition; one Spark task gets all rows of a Kafka partition."""
    named = [field for field in batch.schema if field.name not in ("topic", "partition")]
    kept = [StructField(field.name, field.dataType) for field in named]  # nullable, as all fields of Arrow
    schema = StructType([*kept, StructField("partition", IntegerType())])
    rows = batch.drop("topic")
    return rows.mapInArrow(Placing(partitions), schema).repartition(partitions, "partition")


class _Writing:
    """A function for ``mapInArrow`` that writes a task's rows in the transaction; Spark pickles it for every task."""

    def __init__(self, options: WriteOptions, identity: ProducerIdentity) -> None:
        self._options, self._identity = options, identity

    def __call__(self, batches: Iterable["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        context = TaskContext.get()
        if context is not None and context.attemptNumber() > 0:
            # Leaders would confuse the sequence numbers of two attempts.
            raise UsageError("a task of a transaction cannot be retried: the sink aborts the batch and writes it again")
        remaining = iter(batches)
        first = next((batch for batch in remaining if batch.num_rows), None)
        rows = 0
        if first is not None:
            rows = write_batches(self._options, chain([first], remaining), identity=self._identity)
        partition = None if context is None else context.partitionId()
        yield pa.record_batch({"partition": pa.array([partition], pa.int32()), "rows": pa.array([rows], pa.int64())})
