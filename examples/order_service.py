"""A web service (FastAPI) that takes orders, and invoices them in the background, with probes and metrics.

    python examples/order_service.py                   # on a broker in this process, for 1 s
    python examples/order_service.py localhost:9092 --port 8000 --seconds 3600
    KAFKA=localhost:9092 uvicorn --app-dir examples order_service:app

    curl localhost:8000/orders -H 'content-type: application/json' -d '{"number": 1, "customer": "ann", "amount": 5}'
    curl localhost:8000/health/ready
    curl localhost:8000/metrics

After SIGTERM uvicorn answers the requests that it has; then the worker finishes the orders that it has begun, and
commits them; then the producer sends what it has.
"""

import argparse
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Any

import anyio
import uvicorn
from fastapi import Depends, FastAPI, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from pydantic import BaseModel

from aiokafkawire import Client, ConsumerRecord, Producer, Retry
from aiokafkawire.asgi import KafkaLifespan
from aiokafkawire.errors import TopicAlreadyExists
from aiokafkawire.json_serialization import JsonDeserializer, JsonSerializer
from aiokafkawire.probes import HealthApp
from aiokafkawire.prometheus import KafkaCollector
from aiokafkawire.testing import Broker

ORDERS, INVOICES, DEAD = "service-orders", "service-invoices", "service-orders.dead"


class Order(BaseModel):
    number: int
    customer: str
    amount: int


def make_client() -> Client:
    return Client(os.environ.get("KAFKA", "localhost:9092"), client_id="order-service")


def make_producer(client: Client) -> Producer[str, Any]:
    return client.producer(key_serializer=str.encode, value_serializer=JsonSerializer())


def stop_server(error: Exception) -> None:
    """Let uvicorn shut down as after SIGTERM: a service without its worker would take orders in vain."""
    signal.raise_signal(signal.SIGTERM)


kafka = KafkaLifespan(make_client, make_producer, on_failure=stop_server)
registry = CollectorRegistry()


@kafka.worker
async def invoice_orders(client: Client, stop: anyio.Event) -> None:
    async def invoice(record: ConsumerRecord[str, Any]) -> None:
        order = record.value
        assert order is not None
        await kafka.producer.send(INVOICES, {"order": order["number"], "total": order["amount"]}, key=record.key)

    await client.process(
        ORDERS,
        invoice,
        group_id="invoicing",
        retry=Retry(attempts=3),
        dead_letter_topic=DEAD,
        key_deserializer=bytes.decode,
        value_deserializer=JsonDeserializer(),
        stop=stop,
    )


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with kafka(app):
        for topic in (ORDERS, INVOICES, DEAD):
            with suppress(TopicAlreadyExists):
                await kafka.client.admin.create_topics({topic: 3})
        collector = KafkaCollector(kafka.client)
        registry.register(collector)
        try:
            yield
        finally:
            registry.unregister(collector)


app = FastAPI(lifespan=lifespan)
app.mount("/health", HealthApp(kafka))


def get_producer() -> Producer[str, Any]:
    return kafka.producer


@app.post("/orders", status_code=202)
async def take_order(order: Order, producer: Annotated[Producer[str, Any], Depends(get_producer)]) -> dict[str, int]:
    metadata = await producer.send(ORDERS, order.model_dump(), key=order.customer)
    return {"partition": metadata.partition, "offset": metadata.offset}


@app.get("/metrics")
async def metrics() -> Response:
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


async def serve(bootstrap: str, port: int, seconds: float) -> None:
    os.environ["KAFKA"] = bootstrap
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning")
    server, listener = uvicorn.Server(config), config.bind_socket()
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/docs is there for {seconds:g} s", flush=True)
    async with anyio.create_task_group() as tasks:

        async def end() -> None:
            await anyio.sleep(seconds)
            server.should_exit = True

        tasks.start_soon(end)
        await server.serve(sockets=[listener])
        tasks.cancel_scope.cancel()


async def main() -> None:
    parser = argparse.ArgumentParser(description="A web service that takes orders.")
    parser.add_argument("bootstrap", nargs="?", help="brokers; without them an in-process broker is started")
    parser.add_argument("--port", type=int, default=0, help="the port; 0 for any that is free")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long the service runs")
    given = parser.parse_args()
    if given.bootstrap is not None:
        await serve(given.bootstrap, given.port, given.seconds)
        return
    async with Broker() as broker:
        await serve(broker.bootstrap, given.port, given.seconds)


if __name__ == "__main__":
    anyio.run(main)
