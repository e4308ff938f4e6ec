"""``aiokafkawire demo --spark``: streams flights to a topic while Spark reads, joins and sums them."""

import csv
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
from anyio.from_thread import start_blocking_portal

from .. import blocking
from ..config import CompressionType
from ..errors import KafkaError
from ..spark.foreach_batch import to_topic
from ..testing.broker import Broker
from ..types import OffsetSpec, TopicPartition
from .exit_status import CommandFailed
from .flights import CarrierDelay, Flight, data_folder, key_of, read_airlines, read_flights
from .report import Report
from .spark_session import check_java, check_pyspark, running_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from ..spark.listener import CommitsToGroup

__all__ = ("SparkDemoOptions", "run_spark_demo")

PARTITIONS: Final = 4
_AT_ONCE: Final = 1_000
_PATIENCE: Final = 600.0
"""The timeout in seconds for Spark to read the flights, and again to report the query's end."""
_FLIGHT: Final = "time_hour TIMESTAMP, carrier STRING, tailnum STRING, arr_delay DOUBLE"


@attrs.frozen(kw_only=True)
class SparkDemoOptions:
    """The arguments of the demo with Spark."""

    bootstrap: str | None = None
    compression: CompressionType = "none"
    limit: int | None = None
    keep_topic: bool = False
    timeout: float = 10.0


def run_spark_demo(options: SparkDemoOptions) -> int:
    """Run the demo with Spark, and return the exit status.

    Raises:
        CommandFailed: Java is missing, Spark has failed, or its counts differ from the sent flights.
        KafkaError: the cluster cannot be reached, or answers with an error.
        FileNotFoundError: the package with the flights is not installed.
    """
    check_java()
    limits = check_pyspark() >= (4, 2)
    folder, report = data_folder(), Report()
    # In the file October follows January, but a watermark needs ascending times.
    flights = sorted(read_flights(folder, options.limit), key=lambda flight: str(flight["time_hour"]))
    with (
        _cluster(options.bootstrap) as bootstrap,
        blocking.Client(bootstrap, bootstrap_timeout_ms=int(options.timeout * 1000)) as kafka,
        _topics(kafka, options, report) as (source, target),
        tempfile.TemporaryDirectory() as scratch,
    ):
        report.say(f"{len(flights):,} flights through topic {source} at {bootstrap}, Spark, and topic {target}")
        pipeline = _Pipeline(bootstrap, source, target, folder, Path(scratch), limits)
        began = time.monotonic()
        with running_spark() as spark:
            send = partial(_send, kafka, source, flights, options.compression)
            listener, group = pipeline.run(spark, send)
        seconds = time.monotonic() - began
        carriers = _read_totals(kafka, target)
        _show(report, kafka, carriers, read_airlines(folder), group, seconds)
        _check(carriers, flights, listener)
    report.say("Check passed: every flight was counted once, and the group's offsets are at the topic's ends.")
    return 0


@contextmanager
def _cluster(bootstrap: str | None) -> Iterator[str]:
    if bootstrap is not None:
        yield bootstrap
        return
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Broker()) as broker:
        yield broker.bootstrap


@contextmanager
def _topics(kafka: blocking.Client, options: SparkDemoOptions, report: Report) -> Iterator[tuple[str, str]]:
    stamp = time.time_ns() // 1_000_000
    source, target = f"flights-{stamp}", f"delays-{stamp}"
    kafka.admin.create_topics({source: PARTITIONS, target: 1})
    try:
        yield source, target
    finally:
        if options.bootstrap is not None and not options.keep_topic:
            try:
                kafka.admin.delete_topics([source, target])
            except KafkaError as error:
                report.say(f"Topics {source} and {target} were not deleted: {error}")


@attrs.frozen
class _Pipeline:
    bootstrap: str
    source: str
    target: str
    data: Path
    scratch: Path
    limits: bool
    """Whether Spark supports limits of micro-batches, as 4.2 and later do."""

    def run(self, spark: "SparkSession", send: Callable[[], None]) -> "tuple[CommitsToGroup, str]":
        """Send the flights, wait until Spark has read them all, and return the query's listener and its group's id."""
        from ..spark.listener import CommitsToGroup

        group = f"spark-{self.source}"
        with ExitStack() as stack:
            listener = CommitsToGroup(self.bootstrap, group)
            spark.streams.addListener(listener)
            stack.callback(spark.streams.removeListener, listener)
            query = self._started(spark)
            stack.callback(query.stop)
            send()  # Spark reads the topic at the same time
            _wait_for(query)
            listener.wait(_PATIENCE)
        return listener, group

    def _started(self, spark: "SparkSession") -> "StreamingQuery":
        options = {"kafka.bootstrap.servers": self.bootstrap, "subscribe": self.source, "startingOffsets": "earliest"}
        if self.limits:
            options["maxOffsetsPerTrigger"] = "50000"
        read = spark.readStream.format("aiokafkawire").options(**options).load()
        # Python sinks do not support output mode update, but foreachBatch does.
        write = to_topic({"kafka.bootstrap.servers": self.bootstrap, "topic": self.target})
        writer = self._totals(spark, read).writeStream.outputMode("update").foreachBatch(write)
        return writer.option("checkpointLocation", str(self.scratch / "checkpoint")).start()

    def _totals(self, spark: "SparkSession", read: "DataFrame") -> "DataFrame":
        """Return a query that sums flights, delays and seats by carrier and hour, with the columns key and value."""
        flights = read.selectExpr(f"from_json(string(value), '{_FLIGHT}') flight").select("flight.*")
        joined = flights.withWatermark("time_hour", "7 days").join(self._table(spark, "airlines"), "carrier", "left")
        joined = joined.join(self._table(spark, "planes"), "tailnum", "left")
        sums = joined.selectExpr(
            "carrier", "name", "time_hour", "1 flights", "int(arr_delay is not null) arrived", "arr_delay", "seats"
        )
        totals = sums.groupBy("carrier", "name", "time_hour").agg(
            {"flights": "sum", "arrived": "sum", "arr_delay": "sum", "seats": "sum"}
        )
        named = totals.selectExpr(
            "carrier",
            "name",
            "time_hour hour",
            "`sum(flights)` flights",
            "`sum(arrived)` arrived",
            "`sum(arr_delay)` minutes",
            "`sum(seats)` seats",
        )
        return named.selectExpr("concat(carrier, ' ', string(hour)) key", "to_json(struct(*)) value")

    def _table(self, spark: "SparkSession", name: str) -> "DataFrame":
        """Read a small table, and mark it for broadcast: otherwise Spark would shuffle the flights to join it."""
        from pyspark.sql.functions import broadcast

        with (self.data / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        if name == "airlines":
            carriers = [(row["carrier"], row["name"]) for row in rows]
            return broadcast(spark.createDataFrame(carriers, "carrier STRING, name STRING"))
        planes = [(row["tailnum"], int(row["seats"])) for row in rows]
        return broadcast(spark.createDataFrame(planes, "tailnum STRING, seats INT"))


def _wait_for(query: "StreamingQuery") -> None:
    """Wait until the query has read all flights, and stop it.

    ``processAllAvailable`` has no timeout, and Ctrl-C would break its connection to Spark, so another thread calls it.
    """
    from pyspark.errors import StreamingQueryException

    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(query.processAllAvailable)
        try:
            read.result(_PATIENCE)
        except TimeoutError:
            raise CommandFailed(f"Spark has not read all flights within {_PATIENCE:g} s") from None
        except StreamingQueryException as error:
            raise CommandFailed(f"Spark has failed: {error}") from error
        finally:
            query.stop()  # then processAllAvailable() returns, too


def _send(kafka: blocking.Client, topic: str, flights: list[Flight], compression: CompressionType) -> None:
    with kafka.producer(linger_ms=5, batch_size=65_536, compression_type=compression) as producer:
        for first in range(0, len(flights), _AT_ONCE):
            chunk = flights[first : first + _AT_ONCE]
            values = [json.dumps(flight).encode() for flight in chunk]
            producer.enqueue_many(topic, values, keys=[key_of(flight) for flight in chunk])


# --- the results -----------------------------------------------------------------------------------------------------


def _read_totals(kafka: blocking.Client, topic: str) -> list[CarrierDelay]:
    """Return the flights and mean delays by carrier, summed from Spark's output topic.

    For each carrier and hour, Spark writes a record with the new totals at every update; only the last record is used.
    """
    partition, last = TopicPartition(topic, 0), dict[bytes, dict[str, Any]]()
    with kafka.consumer() as consumer:
        end = consumer.offsets({partition: OffsetSpec.LATEST})[partition]
        consumer.assign({partition: OffsetSpec.EARLIEST})
        while end is not None and (consumer.position(partition) or 0) < end.offset:
            records = consumer.poll(10_000, timeout=10.0)
            if not records:
                raise CommandFailed(f"no more records of {partition} for 10 s, before its end at {end.offset}")
            for record in records:
                last[record.key or b""] = json.loads(record.value or b"{}")
    sums: dict[str, list[float]] = {}
    for total in last.values():
        found = sums.setdefault(total["carrier"], [0, 0, 0])
        for index, name in enumerate(("flights", "arrived", "minutes")):
            found[index] += total.get(name) or 0
    rows = [
        CarrierDelay(carrier, int(count), minutes / arrived if arrived else None)
        for carrier, (count, arrived, minutes) in sums.items()
    ]
    return sorted(rows, key=lambda row: (row.mean_delay is None, -(row.mean_delay or 0), row.carrier))


def _show(
    report: Report,
    kafka: blocking.Client,
    carriers: list[CarrierDelay],
    names: dict[str, str],
    group: str,
    seconds: float,
) -> None:
    known = [row for row in carriers if row.mean_delay is not None]
    count = sum(row.flights for row in carriers)
    mean = sum(row.flights * (row.mean_delay or 0) for row in known) / max(1, sum(row.flights for row in known))
    report.carriers(carriers, CarrierDelay("", count, mean if known else None), names)
    committed = kafka.admin.list_consumer_group_offsets(group)
    lag = sum(kafka.admin.consumer_group_lag(group).values())
    ends = ", ".join(f"{partition.partition}: {offset.offset:,}" for partition, offset in sorted(committed.items()))
    report.say(f"{seconds:.1f} s with Spark's start. Committed offsets of group {group}: {ends}; lag {lag:,}.")


def _check(carriers: list[CarrierDelay], flights: list[Flight], listener: "CommitsToGroup") -> None:
    counted, committed = sum(row.flights for row in carriers), sum(listener.committed.values())
    if counted != len(flights):
        raise CommandFailed(f"the check failed: {len(flights):,} flights were sent, but Spark counted {counted:,}")
    if committed != len(flights):
        raise CommandFailed(f"the check failed: {len(flights):,} flights were sent, but {committed:,} are committed")
