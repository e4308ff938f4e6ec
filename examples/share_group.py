"""Five workers share the records of one partition, and acknowledge each; some records need a second try.

python examples/share_group.py                    # on a broker in this process
python examples/share_group.py localhost:9092     # Kafka 4.2 or later
"""

import sys
from collections import Counter
from uuid import uuid4

import anyio

from aiokafkawire import Client, ConfigResource, Reject, ShareConsumer
from aiokafkawire.testing import Broker

TOPIC, GROUP, RECORDS = f"orders-{uuid4().hex}", f"workers-{uuid4().hex}", 200


async def work(consumer: ShareConsumer[bytes, bytes], name: str, done: Counter[str]) -> None:
    async for record in consumer:
        try:
            async with record:
                number = int(record.value or b"")
                await anyio.sleep(0.002)  # the work
                if number % 50 == 0:
                    raise Reject("an order that nobody can process")
                if number % 9 == 0 and record.delivery_count == 1:
                    raise OSError("the warehouse does not answer")
        except OSError:
            done["released"] += 1
            continue
        done[name] += 1
        if sum(done.values()) - done["released"] == RECORDS:
            print(f"the brokers have taken note of {await consumer.commit()}")
            await consumer.close()  # ends the other workers' loops


async def main(bootstrap: str) -> None:
    done: Counter[str] = Counter()
    async with Client(bootstrap) as kafka:
        await kafka.admin.create_topics({TOPIC: 1})
        # Without this config a new group begins at the end of the log.
        await kafka.admin.incremental_alter_configs(
            {ConfigResource.group(GROUP): {"share.auto.offset.reset": "earliest"}}
        )
        async with kafka.producer() as producer:
            for number in range(RECORDS):
                await producer.enqueue(TOPIC, b"%d" % number)
        async with kafka.share_consumer(TOPIC, group_id=GROUP) as consumer, anyio.create_task_group() as tasks:
            for name in ("anna", "ben", "cleo", "dora", "emil"):
                tasks.start_soon(work, consumer, name, done)
    print(f"{RECORDS} records are finished:")
    for name, count in sorted(done.items()):
        print(f"  {name}: {count}")


async def on_a_broker_of_our_own() -> None:
    async with Broker() as broker:
        await main(broker.bootstrap)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        anyio.run(main, sys.argv[1])
    else:
        anyio.run(on_a_broker_of_our_own)
