"""Write records and read them back, on asyncio and then on trio: the code is the same.

python examples/produce_and_consume.py                   # starts an in-process broker
python examples/produce_and_consume.py localhost:9092    # uses your cluster
"""

import sys
from importlib.util import find_spec
from uuid import uuid4

import anyio

from aiokafkawire import Client
from aiokafkawire.testing import Broker

FLIGHTS = 1000


async def produce_and_consume(bootstrap: str) -> None:
    topic = f"example-{uuid4().hex}"
    async with Client(bootstrap) as kafka:
        await kafka.admin.create_topics({topic: 3})

        async with kafka.producer(linger_ms=5) as producer:
            # send() waits for the acknowledgement, and returns the record's partition and offset.
            where = await producer.send(topic, b"on time", key=b"UA1545")
            print(f"  the first record is in partition {where.partition} at offset {where.offset}")

            # For many records use enqueue() and flush(): the producer sends whole batches.
            for number in range(1, FLIGHTS):
                await producer.enqueue(topic, b"on time", key=b"UA%d" % number)
            await producer.flush()  # raises DeliveryFailed if any record failed

        # Without a group, a consumer of a topic reads all of its partitions.
        count = 0
        async with kafka.consumer(topic, auto_offset_reset="earliest") as consumer:
            with anyio.fail_after(30):
                async for record in consumer:
                    assert record.value == b"on time"
                    count += 1
                    if count == FLIGHTS:
                        break
        print(f"  {count} records came back")
        await kafka.admin.delete_topics([topic])


async def main() -> None:
    if len(sys.argv) > 1:
        await produce_and_consume(sys.argv[1])
        return
    async with Broker() as broker:
        await produce_and_consume(broker.bootstrap)


if __name__ == "__main__":
    for backend in ("asyncio", "trio"):
        if find_spec(backend) is not None:
            print(f"on {backend}:")
            anyio.run(main, backend=backend)
