"""A checkpoint goes from the JVM source to ours and back; run by test_jvm_source.py, for jars come with a JVM's start.

Arguments: the bootstrap servers, a topic of two partitions, a folder, the jars.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from aiokafkawire import blocking

SERVERS, TOPIC, FOLDER, JARS = sys.argv[1:5]
TURNS = ("kafka", "aiokafkawire", "kafka", "aiokafkawire", "kafka")


def fill(turn: int) -> None:
    with blocking.Client(SERVERS) as kafka, kafka.producer() as producer:
        for partition in (0, 1):
            values = [b"%d" % one for one in range(100 * turn, 100 * turn + 100)]
            producer.enqueue_many(TOPIC, values, keys=values, partition=partition)
        producer.send(TOPIC, None, partition=0, headers=[("x", b"1"), ("x", None)])


def options(**more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": SERVERS, "subscribe": TOPIC, "includeHeaders": "true", **more}


def stream(spark: SparkSession, source: str) -> None:
    given = options(startingOffsets="earliest", maxOffsetsPerTrigger="70")
    frame = spark.readStream.format(source).options(**given).load()
    out, checkpoint = str(Path(FOLDER) / "out"), str(Path(FOLDER) / "checkpoint")
    writer = frame.writeStream.format("parquet").option("path", out).option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    print(source, [progress.numInputRows for progress in query.recentProgress])


def main() -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.jars", JARS).config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for turn, source in enumerate(TURNS):
        fill(turn)
        stream(spark, source)
    ours, theirs = (spark.read.format(source).options(**options()).load() for source in ("aiokafkawire", "kafka"))
    assert ours.schema == theirs.schema, (ours.schema, theirs.schema)
    assert ours.exceptAll(theirs).count() == theirs.exceptAll(ours).count() == 0
    streamed = spark.read.parquet(str(Path(FOLDER) / "out"))
    assert streamed.exceptAll(theirs).count() == theirs.exceptAll(streamed).count() == 0
    print("rows", streamed.count())
    spark.stop()


if __name__ == "__main__":
    main()
