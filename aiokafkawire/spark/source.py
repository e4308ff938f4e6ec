"""The data source: ``format("aiokafkawire")`` of ``spark.read``, ``readStream``, ``df.write`` and ``writeStream``."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import attrs
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
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from .. import blocking
from ..errors import ConfigError
from .input_partitions import Part, parts_of, read_part
from .lookup import batch_ranges
from .options import ReadOptions, WriteOptions, read_options, reading_options, write_options
from .pushed_filters import Operator, PushedFilters
from .sink_topic import check_topic
from .stream import LIMITS, StreamReader, SupportsTriggerAvailableNow
from .value_format import ValueFormat, read_value_format

try:  # Spark 4.1 and later
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
except ImportError:
    DataSourceStreamArrowWriter = None  # type: ignore[assignment, misc]

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter

__all__ = ("KafkaSource", "register", "spark_schema")


def spark_schema(*, headers: bool) -> StructType:
    """Return the Spark schema with the JVM source's columns; ``headers`` is the option ``includeHeaders``."""
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


def ddl(values: ValueFormat, *, headers: bool) -> str:
    """Return the schema of a source with the option ``valueFormat`` in Spark's DDL."""
    fields = spark_schema(headers=headers).fields
    types = {field.name: field.dataType.simpleString() for field in fields} | {"value": f"STRUCT<{values.fields}>"}
    return ", ".join(f"{name} {kind}" for name, kind in types.items())


def _has_required(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(not field.nullable or _has_required(field.dataType) for field in kind)
    if isinstance(kind, ArrayType):
        return not kind.containsNull or _has_required(kind.elementType)
    return isinstance(kind, MapType) and (not kind.valueContainsNull or _has_required(kind.valueType))


def with_struct(options: ReadOptions, schema: StructType) -> ReadOptions:
    """Return the options with the Arrow type of the values, whose schema Spark has parsed.

    Raises:
        ConfigError: ``valueSchema`` has a type that Arrow does not have.
    """
    from pyspark.sql.pandas.types import to_arrow_type

    kind = schema["value"].dataType
    if _has_required(kind):
        raise ConfigError("valueSchema: leave NOT NULL out, since any field of a value may be absent")
    try:
        try:
            struct = to_arrow_type(kind, timezone="UTC")
        except TypeError:  # Spark before 4.3 has times of UTC only
            struct = to_arrow_type(kind)
    except Exception as error:
        raise ConfigError(f"valueSchema: {error}") from error
    return attrs.evolve(options, value_struct=struct)


def register(spark: Any) -> None:
    """Register ``format("aiokafkawire")`` with a session. Spark discovers installed packages without this call."""
    spark.dataSource.register(KafkaSource)


class KafkaSource(DataSource):
    """The data source for topics. Options, schema and semantics are those of the JVM source; see docs/spark.md."""

    @classmethod
    def name(cls) -> str:
        """Return the name for ``format()``."""
        return "aiokafkawire"

    def schema(self) -> StructType | str:
        """Return the JVM source's columns; the column ``value`` is a struct with the option ``valueFormat``.

        Raises:
            ConfigError: an option is unknown, or an option of the values is wrong.
        """
        given = reading_options(self.options)
        headers = given.get("includeheaders", "false").strip().lower() == "true"
        values = read_value_format(given)
        return spark_schema(headers=headers) if values is None else ddl(values, headers=headers)

    def reader(self, schema: StructType) -> "ArrowBatchReader":
        """Return the reader of a batch query. Raise ConfigError for wrong options."""
        options = self._read_options(schema, streaming=False)
        return FilteringBatchReader(options) if options.push_filters else ArrowBatchReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's names
        """Return the reader of a streaming query; for wrong options its methods raise ConfigError."""
        try:
            options = self._read_options(schema, streaming=True)
            if not LIMITS and (options.max_offsets_per_trigger or options.min_offsets_per_trigger):
                raise ConfigError("maxOffsetsPerTrigger and minOffsetsPerTrigger need Spark 4.2 or later")
        except ConfigError as error:
            # Spark hides an error raised here behind an UnboundLocalError, but shows errors of the reader's methods.
            return _Refused(error)
        return StreamReader(options)

    def writer(self, schema: StructType, overwrite: bool) -> "BatchWriter":
        """Return the sink of a batch query.

        Raises:
            ConfigError: an option is wrong.
            BrokerError: the option ``topic`` names a topic that does not exist.
        """
        if overwrite:
            raise ConfigError("a topic cannot be overwritten: use mode('append')")
        options = write_options(self.options)
        check_topic(options)
        return BatchWriter(options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> "StreamWriter":  # noqa: N802
        """Return the sink of a streaming query; in output mode complete, the sink appends all rows of every batch.

        Raises:
            ConfigError: an option is wrong, or Spark is older than 4.1.
            BrokerError: the option ``topic`` names a topic that does not exist.
        """
        if DataSourceStreamArrowWriter is None:
            raise ConfigError("writing a stream needs Spark 4.1 or later; with older versions use foreachBatch")
        options = write_options(self.options)
        check_topic(options)
        return StreamWriter(options)

    def _read_options(self, schema: StructType, *, streaming: bool) -> ReadOptions:
        options = read_options(self.options, streaming=streaming)
        expected = spark_schema(headers=options.include_headers)
        if options.values is None and schema.simpleString() != expected.simpleString():
            raise ConfigError(f"leave .schema() out, the source has its own schema: {expected.simpleString()}")
        return options if options.values is None else with_struct(options, schema)


class _Refused(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of a streaming query with wrong options: each method raises the error."""

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
    """The reader of a batch query; it resolves the ranges before any task runs."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._pushed: PushedFilters | None = None

    def partitions(self) -> list[Part]:
        """Return the input partitions of the tasks. Raise as :func:`~.lookup.batch_ranges`."""
        settings = self._options.settings
        with blocking.Client(settings.bootstrap_servers, **settings.client) as kafka:
            ranges = kafka.loop.call(batch_ranges, kafka.asynchronous, self._options, self._pushed)
        return parts_of(self._options, ranges)

    def read(self, partition: Part) -> Iterator["pa.RecordBatch"]:  # type: ignore[override]
        """Yield the records of a task's input partition."""
        return read_part(self._options, partition)


_OPERATORS: Final[dict[str, Operator]] = {
    "EqualTo": "=",
    "In": "in",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
"""How Spark's classes of filters compare."""


class FilteringBatchReader(ArrowBatchReader):
    """The reader of a batch query with the option ``pushFilters``. Spark before 4.1 passes it no filters.

    A class of its own, since Spark refuses each reader with ``pushFilters`` unless its setting
    ``spark.sql.python.filterPushdown.enabled`` is true.
    """

    def pushFilters(self, filters: "list[Filter]") -> "Iterable[Filter]":  # noqa: N802 - Spark's name
        """Limit what is read by conditions on topic, partition, offset and time; return those that Spark checks."""
        self._pushed = pushed = PushedFilters()
        return [each for each in filters if not _push(pushed, each)]


def _push(pushed: PushedFilters, given: "Filter") -> bool:
    operator = _OPERATORS.get(type(given).__name__)
    column: tuple[str, ...] = getattr(given, "attribute", ())
    return operator is not None and len(column) == 1 and pushed.push(column[0], operator, given.value)  # type: ignore[attr-defined]


def _written(options: WriteOptions, batches: Iterator["pa.RecordBatch"]) -> WriterCommitMessage:
    from .partition_writer import write_batches  # imported late, since processes that only read do not need it

    write_batches(options, batches)
    return WriterCommitMessage()


class BatchWriter(DataSourceArrowWriter):
    """The sink of a batch query, with at-least-once delivery."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator["pa.RecordBatch"]) -> WriterCommitMessage:
        """Write the rows of a task."""
        return _written(self._options, iterator)


if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter as _StreamSink
else:  # before Spark 4.1 there is no such class, and streamWriter() raises ConfigError
    _StreamSink = DataSourceStreamArrowWriter or DataSourceArrowWriter


class StreamWriter(_StreamSink):
    """The sink of a streaming query, with at-least-once delivery."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator["pa.RecordBatch"]) -> WriterCommitMessage:
        """Write the rows of a task."""
        return _written(self._options, iterator)
