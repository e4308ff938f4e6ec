"""The time that a consumer of a group takes to stop after a kill -9 of its only broker, on a real Kafka."""

import argparse
import asyncio
import logging
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import suppress

import anyio

from aiokafkawire import Client
from benchmarks.arguments import names_of, positive, require_installed
from benchmarks.cluster import create_topics, kafka_to_kill
from benchmarks.machine import describe
from benchmarks.progress import tell

TOPIC, GROUP = "closing", "closing"
LIMIT = 60.0
"""Seconds after which the benchmark abandons a client, if it can."""


def ours(bootstrap: str, kill: Callable[[], None]) -> float:
    async def run() -> float:
        async with Client(bootstrap) as client, client.producer() as producer:
            async with client.consumer(TOPIC, group_id=GROUP, auto_offset_reset="earliest") as consumer:
                await producer.send(TOPIC, b"1")
                await anext(consumer)
                kill()
                began = time.perf_counter()
            return time.perf_counter() - began

    return anyio.run(run)


def aiokafka(bootstrap: str, kill: Callable[[], None]) -> float:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def run() -> float:
        consumer = AIOKafkaConsumer(TOPIC, bootstrap_servers=bootstrap, group_id=GROUP, auto_offset_reset="earliest")
        await consumer.start()
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            await producer.send_and_wait(TOPIC, b"1")
        await consumer.getone()
        kill()
        began = time.perf_counter()
        with suppress(TimeoutError):
            await asyncio.wait_for(consumer.stop(), LIMIT)
        return time.perf_counter() - began

    return asyncio.run(run())


def confluent(bootstrap: str, kill: Callable[[], None]) -> float:
    from confluent_kafka import Consumer, Producer

    quiet = {"bootstrap.servers": bootstrap, "log_level": 0}
    producer = Producer(quiet)
    producer.produce(TOPIC, b"1")
    producer.flush()
    consumer = Consumer({**quiet, "group.id": GROUP, "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    while consumer.poll(1.0) is None:
        pass
    kill()
    began = time.perf_counter()
    consumer.close()
    return time.perf_counter() - began


CLIENTS = {"ours": ours, "confluent": confluent, "aiokafka": aiokafka}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=positive, default=3, help="of each client, a fresh broker each (3)")
    parser.add_argument(
        "--clients", type=names_of(CLIENTS), default=tuple(CLIENTS), help=f"some of {','.join(CLIENTS)}"
    )
    options = parser.parse_args()
    require_installed(parser, options.clients)
    logging.disable()  # the loss of the broker is expected
    for name, value in describe(sys.argv).items():
        print(f"{name}: {value}")
    taken: dict[str, list[float]] = {name: [] for name in options.clients}
    for number in range(options.rounds):
        for name, seconds in taken.items():
            with kafka_to_kill() as (bootstrap, kill):
                create_topics(bootstrap, [TOPIC], 1)
                seconds.append(CLIENTS[name](bootstrap, kill))
            tell(f"{name} round {number + 1}: {seconds[-1]:.2f} s")
    for name, seconds in taken.items():
        given_up = " (given up)" if max(seconds) >= LIMIT else ""
        print(f"{name:10} {statistics.median(seconds):6.2f} s  [{min(seconds):.2f}-{max(seconds):.2f}]{given_up}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
