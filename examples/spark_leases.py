"""Two drivers of Spark share a topic as one group: the group leases partitions to them, and each job commits its own.

python examples/spark_leases.py                   # starts an in-process broker
python examples/spark_leases.py localhost:9092    # uses your cluster

A driver holds its partitions while a job of Spark reads them. If its machine dies, the group gives them to the other
driver, which begins at the last commit. `kafka-consumer-groups --describe` shows owners and lag.
It needs Java 17 and `pip install aiokafkawire[spark]`.
"""

import os
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from uuid import uuid4

from anyio.from_thread import start_blocking_portal
from pyspark.sql import SparkSession

from aiokafkawire import OffsetSpec, TopicPartition, UsageError, blocking
from aiokafkawire.spark import OffsetRange, read_ranges
from aiokafkawire.testing import Broker

TOPIC, GROUP, RECORDS = f"flights-{uuid4().hex}", f"delays-{uuid4().hex}", 30_000


def drive(spark: SparkSession, bootstrap: str, name: str, read: Counter[str], done: threading.Event) -> None:
    """Read the partitions that the group leases to this driver, with one job of Spark after the other."""
    options = {"kafka.bootstrap.servers": bootstrap}
    with (
        blocking.Client(bootstrap) as kafka,
        kafka.consumer(
            TOPIC,
            group_id=GROUP,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            partition_assignment_strategy=["range"],  # a cooperative group takes those of which no record is held
            max_poll_interval_ms=3_600_000,  # the longest job
        ) as consumer,
    ):
        while not done.is_set():
            held = consumer.poll(1, timeout=0.5)  # the group takes no partition away while a record is held
            if not held:
                continue
            starts = {where: at.offset for where, at in consumer.positions().items()}
            starts[TopicPartition(held[0].topic, held[0].partition)] = held[0].offset
            ends = consumer.offsets(dict.fromkeys(starts, OffsetSpec.LATEST))
            ranges = [OffsetRange(*where, starts[where], end.offset) for where, end in ends.items() if end is not None]
            count = read_ranges(spark, [each for each in ranges if each.size], options).count()
            consumer.commit({each.where: each.end for each in ranges})
            for each in ranges:
                with suppress(UsageError):  # given up since the commit, at which its next owner begins
                    consumer.seek(each.where, each.end)
            read[name] += count
            print(f"{name} has read {count:,} records of {', '.join(str(each) for each in ranges)}", flush=True)
            if read.total() >= RECORDS:
                done.set()


def main(bootstrap: str) -> None:
    with blocking.Client(bootstrap) as kafka, kafka.producer() as producer:
        kafka.admin.create_topics({TOPIC: 4})
        producer.enqueue_many(TOPIC, [b"%d" % number for number in range(RECORDS)])
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    read, done = Counter[str](), threading.Event()
    with ThreadPoolExecutor() as drivers:
        running = [drivers.submit(drive, spark, bootstrap, name, read, done) for name in ("anna", "ben")]
        for each in as_completed(running):
            done.set()
            each.result()
    spark.stop()
    with blocking.Client(bootstrap) as kafka:
        committed = kafka.admin.list_consumer_group_offsets(GROUP)
    print(f"{read.total():,} of {RECORDS:,} records read; committed: {sum(at.offset for at in committed.values()):,}")
    assert read.total() == RECORDS


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(Broker()) as broker:
            main(broker.bootstrap)
