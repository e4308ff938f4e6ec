"""Measures what no client can be faster than: one Produce frame, made before, sent again and again over a connection.

It is what ``await producer.send`` would cost if nothing had to be encoded, chosen or remembered: a write, and the
answer read whole.
"""

import asyncio
import time

from aiokafkawire.protocol.api import RequestHeader, request_header_version
from aiokafkawire.protocol.compiler import encode
from aiokafkawire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aiokafkawire.records.batch import BatchBuilder
from benchmarks.clients.measurement import Job, Watch, print_latency, read_job

_VERSION = 9
"""Of Produce: the newest but for fields that change nothing here, and topics are named."""


async def replayed_frame(job: Job) -> None:
    """Measure ``writer.write(frame)``, then ``reader.readexactly`` of the response's size and of the response."""
    watch = Watch(job)
    latencies: list[float] = []
    host, _, port = job.bootstrap.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for topic, partition in job.places:
        writer.write(_frame(job, topic, partition))
        await _answer(reader)
    topic, partition = job.places[0]
    frame = _frame(job, topic, partition)
    with watch:
        for _ in range(job.records):
            began = time.perf_counter()
            writer.write(frame)
            await _answer(reader)
            latencies.append(time.perf_counter() - began)
    writer.close()
    await writer.wait_closed()
    print_latency(watch, latencies, version=f"Produce v{_VERSION}")


async def _answer(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(int.from_bytes(await reader.readexactly(4)))


def _frame(job: Job, topic: str, partition: int) -> bytes:
    builder = BatchBuilder(limit=job.batch_size)
    builder.append(time.time_ns() // 1_000_000, None, job.value)
    data = PartitionProduceData(index=partition, records=builder.build())
    request = ProduceRequest(
        acks=1, timeout_ms=30_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )
    header = RequestHeader(
        request_api_key=ProduceRequest.api_key, request_api_version=_VERSION, correlation_id=1, client_id="floor"
    )
    body = encode(header, request_header_version(ProduceRequest, _VERSION)) + encode(request, _VERSION)
    return len(body).to_bytes(4) + body


WAYS = {"replayed_frame": replayed_frame}


def main() -> None:
    job = read_job()
    if job.loop == "uvloop":
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(WAYS[job.way](job))
    else:
        asyncio.run(WAYS[job.way](job))


if __name__ == "__main__":
    main()
