"""Each thread has an event loop and a client of its own; on a free-threaded CPython all run at the same time."""

from concurrent.futures import ThreadPoolExecutor

import anyio

from aiokafkawire import Client
from aiokafkawire.testing.background import BackgroundBroker
from aiokafkawire.types import TopicPartition

THREADS = 4
RECORDS = 1000


def test_clients_of_threads_write_and_read_beside_each_other() -> None:
    async def write_and_read(bootstrap: str, partition: int) -> list[bytes | None]:
        async with Client(bootstrap) as kafka:
            async with kafka.producer() as producer:
                for index in range(RECORDS):
                    await producer.enqueue("numbers", b"%d" % index, partition=partition)
            found: list[bytes | None] = []
            async with kafka.consumer(auto_offset_reset="earliest") as consumer:
                consumer.assign([TopicPartition("numbers", partition)])
                async for record in consumer:
                    found.append(record.value)
                    if len(found) == RECORDS:
                        break
        return found

    with BackgroundBroker() as kafka, ThreadPoolExecutor(THREADS) as pool:
        kafka.create_topic("numbers", partitions=THREADS)
        calls = [pool.submit(anyio.run, write_and_read, kafka.bootstrap, one) for one in range(THREADS)]
        for call in calls:
            assert call.result() == [b"%d" % index for index in range(RECORDS)]
