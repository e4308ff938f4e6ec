"""How a call of ``Client.process`` ends while its dead letters cannot be written."""

from __future__ import annotations

import anyio
import pytest

from aiokafkawire import Client, ConsumerRecord, Retry
from aiokafkawire.config import ProducerOptions
from aiokafkawire.errors import MessageTooLarge
from aiokafkawire.processing.failures import failure_of
from aiokafkawire.protocol import ApiKey
from aiokafkawire.testing import Broker

pytestmark = pytest.mark.anyio


async def test_the_end_does_not_wait_for_dead_letters_of_cancelled_calls() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as kafka:
        broker.create_topic("t")
        broker.create_topic("dead")
        async with kafka.producer() as producer:
            await producer.send("t", b"x")
        stop = anyio.Event()

        async def handle(record: ConsumerRecord[bytes, bytes]) -> None:
            broker.on(ApiKey.PRODUCE, swallow="before", times=None)
            stop.set()
            raise ValueError

        with anyio.fail_after(60):  # delivery_timeout_ms is 120 s
            summary = await kafka.process(
                "t",
                handle,
                group_id="g",
                stop=stop,
                drain_timeout=0.1,
                retry=Retry(attempts=1),
                dead_letter_topic="dead",
            )
        assert (summary.processed, summary.dead_lettered) == (0, 0)


@pytest.mark.every_loop
async def test_a_dead_letter_that_is_too_large_names_the_error_of_the_handler() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as kafka:
        broker.create_topic("t")
        broker.create_topic("dead")
        async with kafka.producer() as producer:
            await producer.send("t", bytes(1_048_400))

        async def handle(record: ConsumerRecord[bytes, bytes]) -> None:
            raise ValueError("no such customer")

        with anyio.fail_after(60), pytest.raises(MessageTooLarge) as caught:
            await kafka.process("t", handle, group_id="g", retry=Retry(attempts=1), dead_letter_topic="dead")
        assert caught.value.__notes__ == [
            "t-0 offset 0 was not written to 'dead'; it has failed with ValueError: no such customer"
        ]


@pytest.mark.parametrize("max_request_size", [None, 1_048_576])
async def test_the_text_of_a_failure_is_short_where_the_record_has_no_room_for_more(
    max_request_size: int | None,
) -> None:
    """Whether the broker finds it too large, or the producer as it is set."""
    async with Broker() as broker, Client(broker.bootstrap) as kafka:
        broker.create_topic("t")
        broker.create_topic("dead")
        async with kafka.producer() as producer:
            await producer.send("t", bytes(1_040_000))
        stop = anyio.Event()

        async def handle(record: ConsumerRecord[bytes, bytes]) -> None:
            stop.set()
            raise ValueError("x" * 20_000)

        options = ProducerOptions() if max_request_size is None else ProducerOptions(max_request_size=max_request_size)
        with anyio.fail_after(60):
            summary = await kafka.process(
                "t",
                handle,
                group_id="g",
                stop=stop,
                retry=Retry(attempts=1),
                dead_letter_topic="dead",
                producer_options=options,
            )
            async with kafka.consumer("dead", auto_offset_reset="earliest") as consumer:
                letter = await anext(consumer)
        assert summary.dead_lettered == 1
        failure = failure_of(letter.headers)
        assert failure is not None
        assert (failure.error, failure.message) == ("builtins.ValueError", "x" * 200)
        assert len(letter.raw_value or b"") == 1_040_000
