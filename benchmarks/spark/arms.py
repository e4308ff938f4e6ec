"""The cases, each with its arms, of which the first is ours."""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OURS: Final = "aiokafkawire"
JVM: Final = "kafka"
READY: Final = "ready"
"""A Python source or sink that does nothing else; see ``ready_rows.py``."""
PARTITIONS: Final = 4
VALUE_SIZE: Final = 100
BATCH_ROWS: Final = 500_000
"""Of a micro-batch."""


@dataclass(frozen=True)
class Place:
    """Where an arm works."""

    bootstrap: str
    topic: str
    records: int


@dataclass(frozen=True)
class Arm:
    """One source or sink, used in one way."""

    source: str
    words: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Its name in the report."""
        return " ".join(filter(None, (self.source, self.words)))


@dataclass(frozen=True)
class Case:
    """A task, and who does it."""

    name: str
    title: str
    work: Callable[["SparkSession", Arm, Place], None]
    arms: tuple[Arm, ...]
    writes: bool = False


def read(spark: "SparkSession", arm: Arm, place: Place) -> None:
    """Read all records of the topic, and discard them."""
    given = {"rows": str(place.records)} if arm.source == READY else _reading(place)
    frame = spark.read.format(arm.source).options(**given, **arm.options).load()
    frame.write.format("noop").mode("overwrite").save()


def stream(spark: "SparkSession", arm: Arm, place: Place) -> None:
    """Read all records in micro-batches, and discard them."""
    limit = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": str(BATCH_ROWS)}
    frame = spark.readStream.format(arm.source).options(**_reading(place), **limit, **arm.options).load()
    with tempfile.TemporaryDirectory() as folder:
        writer = frame.writeStream.format("noop").option("checkpointLocation", str(Path(folder) / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        rows = sum(progress.numInputRows for progress in query.recentProgress)
    if rows != place.records:
        raise RuntimeError(f"{arm.label} has streamed {rows} records of {place.records}")


def write(spark: "SparkSession", arm: Arm, place: Place) -> None:
    """Write rows that Spark generates, each with a key."""
    rows = spark.range(0, place.records, 1, PARTITIONS)
    frame = rows.selectExpr("string(id) key", f"lpad(string(id), {VALUE_SIZE}, 'x') value")
    given = {"kafka.bootstrap.servers": place.bootstrap, "topic": place.topic}
    frame.write.format(arm.source).options(**given, **arm.options).mode("append").save()


def _reading(place: Place) -> dict[str, str]:
    return {"kafka.bootstrap.servers": place.bootstrap, "subscribe": place.topic}


_TUNED: Final = {"kafka.linger.ms": "5", "kafka.batch.size": "131072"}
CASES: Final = {
    one.name: one
    for one in (
        Case("read", "a batch, read to noop", read, (Arm(OURS), Arm(JVM), Arm(READY, "rows"))),
        Case("stream", f"AvailableNow, {BATCH_ROWS:,} rows a batch, to noop", stream, (Arm(OURS), Arm(JVM))),
        Case(
            "write",
            "rows with keys, made by Spark",
            write,
            (Arm(OURS), Arm(JVM), Arm(JVM, "linger 5 ms, batches of 128 KiB", _TUNED), Arm(READY, "counter")),
            writes=True,
        ),
    )
}
