"""Three members of a group share a topic of six partitions; one leaves, and the others take over its partitions.

python examples/group.py                    # on a broker in this process
python examples/group.py localhost:9092
"""

import sys
from uuid import uuid4

import anyio

from aiokafkawire import Client, TopicPartition
from aiokafkawire.testing import Broker

TOPIC, GROUP, RECORDS = f"flights-{uuid4().hex}", f"delays-{uuid4().hex}", 3_000


async def member(kafka: Client, name: str, read: dict[str, int], leaves_after: int) -> None:
    def print_assignment(partitions: tuple[TopicPartition, ...]) -> None:
        print(f"{name} reads partitions {sorted(partition.partition for partition in partitions)} now")

    consumer = kafka.consumer(
        group_id=GROUP,
        auto_offset_reset="earliest",
        partition_assignment_strategy=["cooperative-sticky"],
        heartbeat_interval_ms=200,
    )
    async with consumer:
        consumer.subscribe(TOPIC, on_assigned=print_assignment)
        while sum(read.values()) < RECORDS and read[name] < leaves_after:
            records = await consumer.poll(50, timeout=0.2)
            read[name] += len(records)
            await consumer.commit()
    print(f"{name} leaves after {read[name]} records")


async def main(bootstrap: str) -> None:
    async with Client(bootstrap) as kafka:
        await kafka.admin.create_topics({TOPIC: 6})
        async with kafka.producer() as producer:
            for number in range(RECORDS):
                await producer.enqueue(TOPIC, b"%d minutes late" % number, key=b"UA%d" % (number % 100))
        names = ["anna", "ben", "cleo"]
        read = dict.fromkeys(names, 0)
        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(member, kafka, name, read, 100 if name == "cleo" else RECORDS)
        print(f"{sum(read.values())} of {RECORDS} records read; committed:")
        for where, offset in sorted((await kafka.admin.list_consumer_group_offsets(GROUP)).items()):
            print(f"  {where}: {offset.offset}")


async def on_a_broker_of_our_own() -> None:
    async with Broker() as broker:
        await main(broker.bootstrap)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        anyio.run(main, sys.argv[1])
    else:
        anyio.run(on_a_broker_of_our_own)
