"""A Structured Streaming job without a jar: it reads flights from a topic, and writes delays by carrier to another.

python examples/spark_pipeline.py                   # starts an in-process broker
python examples/spark_pipeline.py localhost:9092    # uses your cluster

It needs Java 17 and `pip install aiokafkawire[spark]`.
"""

import json
import os
import sys
import tempfile
from uuid import uuid4

from anyio.from_thread import start_blocking_portal
from pyspark.sql import SparkSession

from aiokafkawire import OffsetSpec, TopicPartition, blocking
from aiokafkawire.spark import CommitsToGroup, register, to_topic
from aiokafkawire.testing import Broker

FLIGHTS, DELAYS, GROUP = f"flights-{uuid4().hex}", f"delays-{uuid4().hex}", f"spark-{uuid4().hex}"
CARRIERS = ("UA", "AA", "B6")


def write_flights(kafka: blocking.Client) -> None:
    kafka.admin.create_topics({FLIGHTS: 3, DELAYS: 1})
    carriers = [CARRIERS[number % 3] for number in range(30_000)]
    values = [json.dumps({"carrier": one, "delay": number % 60}).encode() for number, one in enumerate(carriers)]
    with kafka.producer() as producer:
        producer.enqueue_many(FLIGHTS, values, keys=[one.encode() for one in carriers])


def stream(spark: SparkSession, bootstrap: str, checkpoint: str) -> CommitsToGroup:
    """Read the topic in micro-batches of 10,000, and write the sums after each."""
    listener = CommitsToGroup(bootstrap, GROUP)
    spark.streams.addListener(listener)
    flights = spark.readStream.format("aiokafkawire").options(
        **{
            "kafka.bootstrap.servers": bootstrap,
            "subscribe": FLIGHTS,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": "10000",
        }
    )
    parsed = flights.load().selectExpr("from_json(string(value), 'carrier STRING, delay INT') flight")
    totals = parsed.groupBy("flight.carrier").agg({"flight.delay": "avg"}).toDF("carrier", "delay")
    records = totals.selectExpr("carrier key", "to_json(struct(*)) value")

    # Spark has no update mode for Python sinks, but foreachBatch gets the updated rows.
    write = to_topic({"kafka.bootstrap.servers": bootstrap, "topic": DELAYS})
    query = records.writeStream.outputMode("update").foreachBatch(write)
    query.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
    listener.wait()
    return listener


def main(bootstrap: str) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    register(spark)
    with blocking.Client(bootstrap) as kafka, tempfile.TemporaryDirectory() as checkpoint:
        write_flights(kafka)
        listener = stream(spark, bootstrap, checkpoint)
        with kafka.consumer() as consumer:
            consumer.assign({TopicPartition(DELAYS, 0): OffsetSpec.EARLIEST})
            for record in consumer.poll(timeout=10):
                print(f"{record.value!r}")
        print(f"committed for group {GROUP}:")
        for where, offset in sorted(listener.committed.items()):
            print(f"  {where}: {offset}")
        print(f"lag: {sum(kafka.admin.consumer_group_lag(GROUP).values())}")
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(Broker()) as broker:
            main(broker.bootstrap)
