"""The data source: ``format("aiokafkawire")`` of ``spark.read``, ``readStream``, ``df.write`` and ``writeStream``."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    WriterCommitMessage,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from .. import blocking
from ..errors import ConfigError
from .input_partitions import Part, parts_of, read_part
from .lookup import batch_ranges
from .options import ReadOptions, WriteOptions, read_options, write_options
from .stream import LIMITS, StreamReader, SupportsTriggerAvailableNow

try:  # Spark 4.1 and later
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
except ImportError:
    DataSourceStreamArrowWriter = None  # type: ignore[assignment, misc]

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ("KafkaSource", "register", "spark_schema")


def spark_schema(*, headers: bool) -> StructType:
    """The columns of the JVM source; ``headers`` with the option ``includeHeaders``."""
    pair = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
    columns = [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
    return StructType([*columns, StructField("headers", ArrayType(pair))] if headers else columns)


def register(spark: Any) -> None:
    """Make ``format("aiokafkawire")`` known to a session; where the package is installed, Spark finds it by itself."""
    spark.dataSource.register(KafkaSource)


class KafkaSource(DataSource):
    """Reads and writes topics. Options, schema and meaning are those of Spark's own Kafka source; see docs/spark.md."""

    @classmethod
    def name(cls) -> str:
        """What ``format()`` takes."""
        return "aiokafkawire"

    def schema(self) -> StructType:
        """The JVM source's columns."""
        headers = str(self.options.get("includeHeaders", "false")).strip().lower() == "true"
        return spark_schema(headers=headers)

    def reader(self, schema: StructType) -> "ArrowBatchReader":
        """A batch query. Raises ConfigError."""
        self._check(schema)
        return ArrowBatchReader(read_options(self.options, streaming=False))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's names
        """A streaming query; what it returns for wrong options raises ConfigError when Spark calls it."""
        try:
            self._check(schema)
            options = read_options(self.options, streaming=True)
            if not LIMITS and (options.max_offsets_per_trigger or options.min_offsets_per_trigger):
                raise ConfigError("maxOffsetsPerTrigger and minOffsetsPerTrigger need Spark 4.2: it reads all there is")
        except ConfigError as error:
            # Spark hides what is raised here behind an UnboundLocalError of its own, but not what its calls raise.
            return _Refused(error)
        return StreamReader(options)

    def writer(self, schema: StructType, overwrite: bool) -> "BatchWriter":
        """A batch query's sink. Raises ConfigError."""
        if overwrite:
            raise ConfigError("a topic cannot be overwritten: use mode('append')")
        return BatchWriter(write_options(self.options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> "StreamWriter":  # noqa: N802
        """A streaming query's sink; output mode complete appends, too. Raises ConfigError."""
        if DataSourceStreamArrowWriter is None:
            raise ConfigError("writing a stream needs Spark 4.1; before it, write each batch in foreachBatch")
        return StreamWriter(write_options(self.options))

    def _check(self, schema: StructType) -> None:
        wanted = self.schema().simpleString()
        if schema.simpleString() != wanted:
            raise ConfigError(f"the source has a schema of its own, so leave .schema() out: {wanted}")


class _Refused(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming query with wrong options: each call raises the error."""

    def __init__(self, error: ConfigError) -> None:
        self._error = error

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        raise self._error

    def latestOffset(self, *_: Any) -> dict[str, Any]:  # noqa: N802
        raise self._error

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        raise self._error

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Part]:
        raise self._error

    def read(self, partition: Part) -> Iterator["pa.RecordBatch"]:  # type: ignore[override]
        raise self._error


class ArrowBatchReader(DataSourceReader):
    """A batch query: its ranges are settled before any task runs."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> list[Part]:
        """The tasks. Raises as :func:`~.lookup.batch_ranges`."""
        settings = self._options.settings
        with blocking.Client(settings.bootstrap_servers, **settings.client) as kafka:
            ranges = kafka.loop.call(batch_ranges, kafka.asynchronous, self._options)
        return parts_of(self._options, ranges)

    def read(self, partition: Part) -> Iterator["pa.RecordBatch"]:  # type: ignore[override]
        """What a task does."""
        return read_part(self._options, partition)


def _written(options: WriteOptions, batches: Iterator["pa.RecordBatch"]) -> WriterCommitMessage:
    from .partition_writer import write_batches  # a process that only reads is the sooner ready without it

    write_batches(options, batches)
    return WriterCommitMessage()


class BatchWriter(DataSourceArrowWriter):
    """A batch query's sink: at least once."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator["pa.RecordBatch"]) -> WriterCommitMessage:
        """What a task does."""
        return _written(self._options, iterator)


if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter as _StreamSink
else:  # before Spark 4.1 nobody is given one
    _StreamSink = DataSourceStreamArrowWriter or DataSourceArrowWriter


class StreamWriter(_StreamSink):
    """A streaming query's sink: at least once."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator["pa.RecordBatch"]) -> WriterCommitMessage:
        """What a task does."""
        return _written(self._options, iterator)
