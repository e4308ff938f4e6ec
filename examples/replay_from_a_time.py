"""Read a topic from a time in the past to its current end, and stop.

python examples/replay_from_a_time.py                   # starts an in-process broker
python examples/replay_from_a_time.py localhost:9092    # uses your cluster
"""

import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import anyio

from aiokafkawire import Client, OffsetSpec
from aiokafkawire.testing import Broker

MIDNIGHT = datetime(2013, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def to_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


async def write_a_day(kafka: Client, topic: str) -> None:
    """Write one record an hour. The producer sets the timestamps; their default is the current time."""
    async with kafka.producer(value_serializer=to_json) as producer:
        for hour in range(24):
            departure = MIDNIGHT + hour * HOUR
            await producer.enqueue(topic, {"hour": hour}, key=b"UA%d" % hour, timestamp_ms=ms(departure))


async def replay(kafka: Client, topic: str, since: datetime) -> list[int]:
    """Return the hours of all records since then, from every partition, up to the current ends."""
    hours = []
    records = kafka.read_records(topic, start=OffsetSpec.at(ms(since)), value_deserializer=json.loads)
    with anyio.fail_after(30):
        async for record in records:
            assert record.value is not None
            hours.append(record.value["hour"])
    return sorted(hours)


async def show(bootstrap: str) -> None:
    topic = f"example-{uuid4().hex}"
    async with Client(bootstrap) as kafka:
        await kafka.admin.create_topics({topic: 3})
        await write_a_day(kafka, topic)
        evening = MIDNIGHT + 18 * HOUR
        print(f"since {evening:%H:%M}: the flights of {await replay(kafka, topic, evening)} o'clock")
        await kafka.admin.delete_topics([topic])


async def main() -> None:
    if len(sys.argv) > 1:
        await show(sys.argv[1])
        return
    async with Broker() as broker:
        await show(broker.bootstrap)


if __name__ == "__main__":
    anyio.run(main)
