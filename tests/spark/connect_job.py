"""A client of Spark Connect, with a server of its own: it reads, writes and streams; run by test_connect.py.

Arguments: the bootstrap servers, a folder. The topic flights has a hundred records in each of two partitions.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from support import spark as support


def main(bootstrap: str, folder: Path) -> None:
    os.environ["PYTHONPATH"] = os.pathsep.join([support.tree(), os.environ.get("PYTHONPATH", "")])
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    spark: Any = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    reading = {"kafka.bootstrap.servers": bootstrap, "subscribe": "flights", "startingOffsets": "earliest"}
    writing = {"kafka.bootstrap.servers": bootstrap, "topic": "copies"}

    flights = spark.read.format("aiokafkawire").options(**reading).load()
    print("read", flights.count())

    flights.select("key", "value").write.format("aiokafkawire").options(**writing).mode("append").save()
    print("written", spark.read.format("aiokafkawire").options(**{**reading, "subscribe": "copies"}).load().count())

    stream = spark.readStream.format("aiokafkawire").options(**reading).load()
    writer = stream.writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination(300)
    print("streamed", spark.read.parquet(str(folder / "out")).count())

    from aiokafkawire.spark.exactly_once import ExactlyOnceSink

    once = {**writing, "topic": "once"}
    sink = ExactlyOnceSink(once, "once-sink", query="connect")
    writer = stream.select("key", "value").writeStream.foreachBatch(sink.write)
    query = writer.option("checkpointLocation", str(folder / "once")).trigger(availableNow=True).start()
    query.awaitTermination(300)
    committed = {**reading, "subscribe": "once", "kafka.isolation.level": "read_committed"}
    print("once", spark.read.format("aiokafkawire").options(**committed).load().count())
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
