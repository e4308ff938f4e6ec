"""Background jobs: programs enqueue calls of functions, and workers take them from a share group, as from a queue.

python examples/background_jobs.py                    # on a broker in this process
python examples/background_jobs.py localhost:9092     # Kafka 4.2 or later
"""

import sys
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import anyio

from aiokafkawire import Client, ConfigResource, Producer, Retry
from aiokafkawire.json_serialization import JsonDeserializer, JsonSerializer
from aiokafkawire.testing import Broker

JOBS, WORKERS = f"jobs-{uuid4().hex}", f"workers-{uuid4().hex}"
done = anyio.Event()
sent: list[str] = []


async def send_mail(to: str) -> None:
    sent.append(to)
    if len(sent) == 20:
        done.set()  # a worker goes on until SIGTERM: handle_signals=True


FUNCTIONS: dict[str, Callable[..., Awaitable[None]]] = {"send_mail": send_mail}


async def enqueue(producer: Producer[Any, Any], function: Callable[..., Awaitable[None]], **arguments: Any) -> None:
    await producer.send(JOBS, {"function": function.__name__, "arguments": arguments})


async def run(record: Any) -> None:
    await FUNCTIONS[record.value["function"]](**record.value["arguments"])


async def main(bootstrap: str) -> None:
    async with Client(bootstrap) as kafka, kafka.producer(value_serializer=JsonSerializer()) as producer:
        await kafka.admin.create_topics({JOBS: 1, f"{JOBS}.dead": 1})
        earliest = {"share.auto.offset.reset": "earliest"}  # jobs from before the first worker are done as well
        await kafka.admin.incremental_alter_configs({ConfigResource.group(WORKERS): earliest})
        for number in range(20):
            await enqueue(producer, send_mail, to=f"user-{number}@example.org")
        summary = await kafka.process(
            JOBS, run, group_id=WORKERS, share=True, concurrency=8, retry=Retry(attempts=3), stop=done,
            dead_letter_topic=f"{JOBS}.dead", handler_timeout=60, value_deserializer=JsonDeserializer(),
        )  # fmt: skip
    print(f"{summary.processed} jobs are done")


async def on_a_broker_of_our_own() -> None:
    async with Broker() as broker:
        await main(broker.bootstrap)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1]) if len(sys.argv) > 1 else anyio.run(on_a_broker_of_our_own)
