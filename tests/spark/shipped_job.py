"""A driver whose executors get the package in another way: it reads a batch and a stream, and writes rows.

``python shipped_job.py MASTER BOOTSTRAP TASKS [CONF=VALUE ...]``; the tasks are ``register,batch,write,stream``.
"""

import sys
from typing import Any

from pyspark.sql import SparkSession


def main(master: str, bootstrap: str, tasks: str, *settings: str) -> None:
    builder: Any = SparkSession.builder
    builder = builder.master(master).config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
    for setting in settings:
        builder = builder.config(*setting.split("=", 1))
    spark = builder.getOrCreate()
    kafka = {"kafka.bootstrap.servers": bootstrap}
    read = kafka | {"subscribe": "flights", "startingOffsets": "earliest"}
    for task in tasks.split(","):
        if task == "register":
            from aiokafkawire.spark.source import register

            register(spark)
        elif task == "batch":
            print("batch", spark.read.format("aiokafkawire").options(**read).load().count())
        elif task == "write":
            rows = spark.range(10).selectExpr("string(id) value")
            rows.write.format("aiokafkawire").options(**kafka, topic="copies").mode("append").save()
            print("written")
        else:
            source = spark.readStream.format("aiokafkawire").options(**read).load()
            query = source.writeStream.format("noop").trigger(availableNow=True).start()
            query.awaitTermination()
            print("stream", sum(progress.numInputRows for progress in query.recentProgress))


if __name__ == "__main__":
    main(*sys.argv[1:])
