"""An interceptor adds a trace id to each record, and another keeps an audit of what was sent, read and committed.

python examples/interceptors.py                    # on a broker in this process
python examples/interceptors.py localhost:9092
"""

import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import anyio

from aiokafkawire import Client, OffsetAndMetadata, RecordMetadata, TopicPartition
from aiokafkawire.interceptors import ConsumerInterceptor, ProducerInterceptor, ProducerRecord
from aiokafkawire.records import ConsumerRecord
from aiokafkawire.testing import Broker

TOPIC, GROUP, RECORDS = f"flights-{uuid4().hex}", f"delays-{uuid4().hex}", 100


class Trace(ProducerInterceptor):
    """Adds a header with a trace id to each record."""

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        return record.with_header("trace-id", uuid4().hex.encode())


class Audit(ProducerInterceptor, ConsumerInterceptor):
    """Counts records by what became of them."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.open: set[str] = set()

    def on_acknowledgement(
        self, metadata: RecordMetadata, error: Exception | None, headers: tuple[tuple[str, bytes | None], ...]
    ) -> None:
        trace = dict(headers)["trace-id"]
        if error is None and trace is not None:
            self.open.add(trace.decode())
        self.counts["sent" if error is None else "failed"] += 1

    def on_consume(self, records: list[ConsumerRecord[Any, Any]]) -> list[ConsumerRecord[Any, Any]]:
        for record in records:
            self.open.discard(bytes(dict(record.headers)["trace-id"] or b"").decode())
        self.counts["read"] += len(records)
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self.counts["committed"] = sum(at.offset for at in offsets.values())


async def main(bootstrap: str) -> None:
    audit = Audit()
    async with Client(bootstrap) as kafka:
        await kafka.admin.create_topics({TOPIC: 1})
        async with kafka.producer(interceptors=[Trace(), audit]) as producer:
            await producer.send_many(TOPIC, [b"%d minutes late" % number for number in range(RECORDS)])
        options: Any = {"group_id": GROUP, "auto_offset_reset": "earliest", "enable_auto_commit": False}
        async with kafka.consumer(TOPIC, interceptors=[audit], **options) as consumer:
            while audit.counts["read"] < RECORDS:
                await consumer.poll()
            await consumer.commit()
    print(", ".join(f"{count} {what}" for what, count in audit.counts.items()))
    print(f"{len(audit.open)} records were sent and not read")


async def on_a_broker_of_our_own() -> None:
    async with Broker() as broker:
        await main(broker.bootstrap)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        anyio.run(main, sys.argv[1])
    else:
        anyio.run(on_a_broker_of_our_own)
