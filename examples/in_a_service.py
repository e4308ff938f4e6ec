"""One client for a whole service: opened at its start, shared by every request, closed at its end.

    python examples/in_a_service.py                   # starts an in-process broker
    python examples/in_a_service.py localhost:9092    # uses your cluster

Many tasks may share a client and its producer. A client for each request would open connections and fetch metadata
every time, and no two requests could share a batch.
"""

import sys
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self
from uuid import uuid4

import anyio

from aiokafkawire import Client
from aiokafkawire.testing import Broker


class Bookings:
    """The service. A web framework enters it in its lifespan or startup hook, and leaves it at shutdown."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap, self._topic = bootstrap, topic
        self._open = AsyncExitStack()
        self.seen = 0
        self.seen_all = anyio.Event()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:  # closes what is open already if a later step fails
            self._kafka = await stack.enter_async_context(Client(self._bootstrap))
            await self._kafka.admin.create_topics({self._topic: 3})
            self._producer = await stack.enter_async_context(self._kafka.producer())
            self._open = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # In reverse: the producer sends what is still waiting, then the client closes its connections.
        await self._open.__aexit__(kind, error, trace)

    async def handle(self, passenger: int) -> None:
        """Handle a request: return once Kafka has acknowledged the booking."""
        await self._producer.send(self._topic, f"seat for passenger {passenger}".encode())

    async def count_bookings(self, expected: int) -> None:
        """Count bookings, as a background job of the same service on the same client."""
        async with self._kafka.consumer(self._topic, auto_offset_reset="earliest") as consumer:
            async for _ in consumer:
                self.seen += 1
                if self.seen == expected:
                    self.seen_all.set()

    async def forget(self) -> None:
        """Remove the topic, since this is an example."""
        await self._kafka.admin.delete_topics([self._topic])


async def serve(bootstrap: str) -> None:
    async with Bookings(bootstrap, f"bookings-{uuid4().hex}") as service:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(service.count_bookings, 200)
            async with anyio.create_task_group() as requests:  # 200 requests at once share connections and batches
                for passenger in range(200):
                    requests.start_soon(service.handle, passenger)
            print("200 requests were answered")
            with anyio.fail_after(30):
                await service.seen_all.wait()
            print(f"the background job has seen {service.seen} bookings")
            tasks.cancel_scope.cancel()
        await service.forget()


async def main() -> None:
    if len(sys.argv) > 1:
        await serve(sys.argv[1])
        return
    async with Broker() as broker:
        await serve(broker.bootstrap)


if __name__ == "__main__":
    anyio.run(main)
