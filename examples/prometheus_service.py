"""A service with metrics for Prometheus: it produces orders and consumes them in a group, and serves /metrics.

    python examples/prometheus_service.py                    # starts an in-process broker, and ends after 5 s
    python examples/prometheus_service.py localhost:9092 --port 9400 --seconds 3600

Let Prometheus scrape the port, and import docs/dashboards/prometheus.json in Grafana.
"""

import argparse
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import anyio
from prometheus_client import REGISTRY, start_http_server

from aiokafkawire import Client
from aiokafkawire.errors import TopicAlreadyExists
from aiokafkawire.prometheus import KafkaCollector
from aiokafkawire.testing import Broker

TOPIC = "shop-orders"


@contextmanager
def metrics_of(kafka: Client, port: int) -> Iterator[int]:
    """Serve the metrics of a client, and of the Python process, on a thread; yield the port."""
    collector = KafkaCollector(kafka)
    REGISTRY.register(collector)
    server, thread = start_http_server(port, addr="127.0.0.1")
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        REGISTRY.unregister(collector)


async def take_orders(kafka: Client) -> None:
    async with kafka.producer(linger_ms=20) as producer:
        number = 0
        while True:
            await producer.send_many(TOPIC, [b"order %d" % (number + each) for each in range(20)])
            number += 20
            await anyio.sleep(0.02)


async def ship_orders(kafka: Client) -> None:
    async with kafka.consumer(TOPIC, group_id="shipping", auto_commit_interval_ms=500) as consumer:
        async for _ in consumer:
            await anyio.sleep(0.001)  # ship the order


async def serve(bootstrap: str, name: str, port: int, seconds: float) -> None:
    async with Client(bootstrap, client_id=name) as kafka:
        with suppress(TopicAlreadyExists):
            await kafka.admin.create_topics({TOPIC: 6})
        with metrics_of(kafka, port) as found:
            print(f"metrics are at http://127.0.0.1:{found}/metrics for {seconds:g} s", flush=True)
            with anyio.move_on_after(seconds):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(take_orders, kafka)
                    tasks.start_soon(ship_orders, kafka)
                    # Leave the group at once when the service is stopped, so that others take over its partitions.
                    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                        await anext(signals)
                    tasks.cancel_scope.cancel()


async def main() -> None:
    parser = argparse.ArgumentParser(description="A service with metrics for Prometheus.")
    parser.add_argument("bootstrap", nargs="?", help="brokers; without them an in-process broker is started")
    parser.add_argument("--port", type=int, default=0, help="the port of /metrics; 0 for any that is free")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long the service runs")
    parser.add_argument("--name", default="shop", help="the client id, which is a label of every metric")
    given = parser.parse_args()
    if given.bootstrap is not None:
        await serve(given.bootstrap, given.name, given.port, given.seconds)
        return
    async with Broker() as broker:
        await serve(broker.bootstrap, given.name, given.port, given.seconds)


if __name__ == "__main__":
    anyio.run(main)
