"""A service that handles orders: eight at a time, in order for each customer, with retries and a dead-letter topic.

python examples/process_orders.py                    # on a broker in this process
python examples/process_orders.py localhost:9092
"""

import json
import sys
from collections import Counter
from uuid import uuid4

import anyio

from aiokafkawire import Client, ConsumerRecord, ProcessSummary, Retry
from aiokafkawire.testing import Broker

ORDERS, ORDERS_COUNT = f"orders-{uuid4().hex}", 300
DEAD = f"{ORDERS}.dead"


async def main(bootstrap: str) -> None:
    turnover: Counter[str] = Counter()
    failing = {"order-20", "order-90"}  # which succeed at the second attempt
    done = anyio.Event()

    async def handle(record: ConsumerRecord[str, dict[str, int | str]]) -> None:
        order = record.value
        assert order is not None
        await anyio.sleep(0.002)  # a database, or a request to another service
        if order["id"] in failing:
            failing.discard(str(order["id"]))
            raise ConnectionError("the database is away")
        if int(order["amount"]) < 0:
            raise ValueError(f"{order['id']} has a negative amount")  # never succeeds
        turnover[record.key or "unknown"] += int(order["amount"])

    def print_progress(summary: ProcessSummary) -> None:
        print(f"{summary.processed} processed, {summary.running} running")
        if summary.processed + summary.dead_lettered == ORDERS_COUNT:
            done.set()  # a service goes on until SIGTERM

    async with Client(bootstrap) as kafka:
        await kafka.admin.create_topics({ORDERS: 3, DEAD: 1})
        async with kafka.producer() as producer:
            for number in range(ORDERS_COUNT):
                order = {"id": f"order-{number}", "amount": -1 if number == 50 else number}
                await producer.enqueue(ORDERS, json.dumps(order).encode(), key=b"customer-%d" % (number % 9))
        summary = await kafka.process(
            ORDERS,
            handle,
            group_id=f"billing-{uuid4().hex}",
            concurrency=8,
            retry=Retry(attempts=3, backoff_ms=10, on=(ConnectionError, TimeoutError)),
            dead_letter_topic=DEAD,
            handler_timeout=10,
            key_deserializer=bytes.decode,
            value_deserializer=json.loads,
            handle_signals=True,
            stop=done,
            on_progress=print_progress,
        )
    print(f"{summary.processed} processed, {summary.retried} retried, {summary.dead_lettered} dead letters")
    print(f"{turnover.total()} in all, of {len(turnover)} customers")


async def on_a_broker_of_our_own() -> None:
    async with Broker() as broker:
        await main(broker.bootstrap)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        anyio.run(main, sys.argv[1])
    else:
        anyio.run(on_a_broker_of_our_own)
