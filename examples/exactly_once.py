"""Consume, process and produce each record exactly once: every booking makes one ticket, although the service crashes
and restarts.

python examples/exactly_once.py                   # starts an in-process broker
python examples/exactly_once.py localhost:9092    # uses your cluster
"""

import json
import sys
from uuid import uuid4

import anyio

from aiokafkawire import Client, ConsumerRecord, OutgoingRecord
from aiokafkawire.testing import Broker

BOOKINGS = 1000


class PowerCut(Exception):
    """A crash of the service."""


class Service:
    """The service: turns bookings of a flight into tickets, and crashes after ``survives`` of them."""

    def __init__(self, tickets: str, survives: int) -> None:
        self.tickets, self.left = tickets, survives

    def process(self, bookings: list[ConsumerRecord[bytes, bytes]]) -> list[OutgoingRecord]:
        """Process some records; the returned records and the offsets after the bookings are one transaction."""
        made = []
        for booking in bookings:
            if self.left == 0:
                raise PowerCut
            self.left -= 1
            assert booking.value is not None
            ticket = {"passenger": json.loads(booking.value)["passenger"], "price": 99}
            made.append(OutgoingRecord(self.tickets, json.dumps(ticket).encode(), key=booking.key))
        return made


async def serve(kafka: Client, bookings: str, tickets: str, survives: int) -> int:
    """Process all bookings in the topic. A service that runs for ever omits ``until_end``."""
    return await kafka.transform(
        bookings,
        Service(tickets, survives).process,
        # The same in every process of the service: the processes share the partitions.
        group_id=f"{bookings}-service",
        transactional_id=f"{bookings}-service",
        max_records=100,
        until_end=True,
    )


async def tickets_of(kafka: Client, tickets: str, count: int) -> list[str]:
    """Read the committed tickets; return their passengers."""
    found: list[str] = []
    async with kafka.consumer(tickets, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        with anyio.fail_after(30):
            while len(found) < count:
                record = await anext(consumer)
                assert record.value is not None
                found.append(json.loads(record.value)["passenger"])
    return sorted(found)


async def show(bootstrap: str) -> None:
    name = uuid4().hex
    bookings, tickets = f"bookings-{name}", f"tickets-{name}"
    passengers = [f"passenger {number:03}" for number in range(BOOKINGS)]
    async with Client(bootstrap) as kafka:
        await kafka.admin.create_topics({bookings: 3, tickets: 3})
        async with kafka.producer() as producer:
            for passenger in passengers:
                booking = json.dumps({"passenger": passenger}).encode()
                await producer.enqueue(bookings, booking, key=passenger.encode())

        for survives in (250, 333, BOOKINGS):
            try:
                count = await serve(kafka, bookings, tickets, survives)
                print(f"the last {count} bookings are processed")
            except PowerCut:
                print(f"a power cut after {survives} bookings: what was not committed will be done again")

        assert await tickets_of(kafka, tickets, BOOKINGS) == passengers
        print(f"{BOOKINGS} bookings, and a ticket for each, none of them twice")
        await kafka.admin.delete_topics([bookings, tickets])


async def main() -> None:
    if len(sys.argv) > 1:
        await show(sys.argv[1])
        return
    async with Broker() as broker:
        await show(broker.bootstrap)


if __name__ == "__main__":
    anyio.run(main)
