"""What aiokafka's users may do without an error: outages, cancelled commits, floats, empty batches, early flushes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from aiokafkawire.aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafkawire.aiokafka.errors import IllegalOperation
from aiokafkawire.protocol import ApiKey
from aiokafkawire.testing import Broker

T = TopicPartition("t", 0)


def on_a_broker(work: Callable[[Broker, dict[str, Any]], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with Broker() as broker:
            broker.create_topic("t")
            return await asyncio.wait_for(work(broker, {"bootstrap_servers": broker.bootstrap}), 60)

    return asyncio.run(main())


@pytest.mark.slow
@pytest.mark.parametrize("how", ["getone", "getmany", "for"])
def test_an_outage_ends_no_loop(how: str) -> None:
    async def work(broker: Broker, where: dict[str, Any]) -> bytes:
        consumer: Any = AIOKafkaConsumer("t", auto_offset_reset="EARLIEST", request_timeout_ms=600, **where)
        broker.on(ApiKey.FETCH, swallow="before", times=4)  # longer than request_timeout_ms
        async with consumer, AIOKafkaProducer(**where) as producer:
            await producer.send_and_wait("t", b"x")
            if how == "getone":
                return bytes((await consumer.getone()).value)
            if how == "for":
                return bytes((await anext(_first(consumer))).value)
            while not (found := await consumer.getmany(timeout_ms=200)):
                pass
            return bytes(found[T][0].value)

    assert on_a_broker(work) == b"x"


async def _first(consumer: Any) -> Any:
    async for record in consumer:
        yield record
        return


def test_a_cancelled_commit_goes_on_and_cannot_be_aborted_afterwards() -> None:
    async def work(broker: Broker, where: dict[str, Any]) -> list[bytes]:
        async with AIOKafkaProducer(transactional_id="x", **where) as producer:
            await producer.begin_transaction()
            await producer.send("t", b"kept")
            commit = asyncio.create_task(producer.commit_transaction())
            await asyncio.sleep(0)
            commit.cancel()
            with pytest.raises(asyncio.CancelledError):
                await commit
            with pytest.raises(IllegalOperation):
                await producer.abort_transaction()
            async with producer.transaction():
                await producer.send("t", b"next")
        reader: Any = AIOKafkaConsumer("t", auto_offset_reset="earliest", isolation_level="read_committed", **where)
        async with reader as consumer:
            return [(await consumer.getone()).value for _ in range(2)]

    assert on_a_broker(work) == [b"kept", b"next"]


def test_times_may_have_a_fraction() -> None:
    async def work(broker: Broker, where: dict[str, Any]) -> int:
        async with AIOKafkaProducer(**where) as producer:
            float_ms: Any = 1_234.9
            found: Any = await producer.send_and_wait("t", b"x", timestamp_ms=float_ms)
            nothing: Any = float("nan")
            with pytest.raises((ValueError, TypeError)):
                await producer.send("t", b"x", timestamp_ms=nothing)
            return int(found.timestamp)

    assert on_a_broker(work) == 1_234


def test_an_empty_batch_and_an_early_flush_do_nothing() -> None:
    async def work(broker: Broker, where: dict[str, Any]) -> None:
        producer = AIOKafkaProducer(**where)
        await producer.flush()
        async with producer:
            sent: Any = await producer.send_batch(producer.create_batch(), "t", partition=0)
            assert await sent is None
        await producer.flush()

    on_a_broker(work)


def test_a_list_of_partitions_is_refused() -> None:
    async def work(broker: Broker, where: dict[str, Any]) -> None:
        consumer: Any = AIOKafkaConsumer("t", **where)
        async with consumer:
            for wrong in ([T], "t"):
                with pytest.raises(ValueError, match="each argument must be a TopicPartition"):
                    await consumer.getone(wrong)
                with pytest.raises(ValueError, match="each argument must be a TopicPartition"):
                    await consumer.getmany(wrong)

    on_a_broker(work)


def test_a_worker_that_returns_a_dict_of_its_own_has_finished() -> None:
    async def work(broker: Broker, where: dict[str, Any]) -> Any:
        async with AIOKafkaProducer(**where) as producer:
            await producer.send_and_wait("t", b"x")
        consumer: Any = AIOKafkaConsumer("t", group_id="g", auto_offset_reset="earliest", **where)
        await consumer.start()

        async def worker() -> dict[str, int]:
            await consumer.getone()
            return {"processed": 1}

        assert await asyncio.create_task(worker()) == {"processed": 1}
        await consumer.stop()
        async with AIOKafkaConsumer(group_id="g", **where) as other:
            return await other.committed(T)

    assert on_a_broker(work) == 1
