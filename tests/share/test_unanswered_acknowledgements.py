"""Acknowledgements that brokers do not answer, or refuse for a while, in virtual time."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from support.share_simulation import A0, LOCK, share

from aiokafkawire import Acknowledge, AcknowledgementFailed, ShareConsumer, ShareRecord
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol import ApiKey
from aiokafkawire.protocol.messages.share_fetch import ShareAcknowledgeResponse, ShareFetchResponse
from aiokafkawire.testing.simulation import Simulation


def test_a_commit_fails_if_the_consumer_closes_before_the_broker_answers() -> None:
    async def body(sim: Simulation, consumer: ShareConsumer[bytes, bytes]) -> None:
        (record,) = await consumer.poll(1)
        sim.network.block(1)
        consumer.acknowledge(record)

        async def commit() -> None:
            with pytest.raises(AcknowledgementFailed, match="was closed before the broker answered") as raised:
                await consumer.commit()
            assert raised.value.acknowledged == {}

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(commit)
            await anyio.sleep(0.1)
            await consumer.close(timeout=1)

    share(body)


def unavailable(_: object, response: ShareAcknowledgeResponse) -> ShareAcknowledgeResponse:
    """The response of a leader that cannot store the state of the group."""
    response.responses[0].partitions[0].error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    return response


def test_acknowledgements_that_fail_for_a_while_are_sent_again_at_growing_intervals() -> None:
    async def body(sim: Simulation, consumer: ShareConsumer[bytes, bytes]) -> None:
        (record,) = await consumer.poll(1)
        rule = sim.broker.on(ApiKey.SHARE_ACKNOWLEDGE, answer=unavailable, times=4)
        before = anyio.current_time()
        consumer.acknowledge(record)
        assert await consumer.commit() == {A0: 1}
        assert rule.count == 4
        assert anyio.current_time() - before > 0.3

    share(body)


def without_results(
    _: object, response: ShareAcknowledgeResponse | ShareFetchResponse
) -> ShareAcknowledgeResponse | ShareFetchResponse:
    """The response without any partition."""
    response.responses = []
    return response


def test_what_a_response_lacks_is_not_acknowledged() -> None:
    async def body(sim: Simulation, consumer: ShareConsumer[bytes, bytes]) -> None:
        one, two = await consumer.poll(2)
        for record, api in ((one, ApiKey.SHARE_ACKNOWLEDGE), (two, ApiKey.SHARE_FETCH)):
            lacking = sim.broker.on(api, answer=without_results, times=None, where=acknowledges)
            consumer.acknowledge(record)
            if api is ApiKey.SHARE_FETCH:
                assert await consumer.poll(1, timeout=0.5) == []
            with pytest.raises(
                AcknowledgementFailed, match="without the result of the acknowledgements of a-0"
            ) as failed:
                await consumer.commit()
            assert failed.value.acknowledged == {}
            assert lacking.count == 1
            lacking.remove()

    share(body, records=2)


def acknowledges(request: Any) -> bool:
    return any(part.acknowledgement_batches for topic in request.topics for part in topic.partitions)


def test_a_renewal_that_failed_for_a_while_spoils_no_acknowledgement_that_follows() -> None:
    async def body(sim: Simulation, consumer: ShareConsumer[bytes, bytes]) -> None:
        (record,) = await consumer.poll(1)
        rule = sim.broker.on(ApiKey.SHARE_ACKNOWLEDGE, answer=unavailable, times=1)
        consumer.acknowledge(record, Acknowledge.RENEW)
        sim.network.slow(1, latency=(0.05, 0.05))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consumer.commit)
            await anyio.sleep(0.06)  # the renewal is on its way
            consumer.acknowledge(record)
        await consumer.commit()
        assert rule.count == 1
        assert await consumer.poll(timeout=2 * LOCK) == []

    share(body)


def test_a_commit_does_not_wait_for_what_the_client_itself_acknowledges_later() -> None:
    async def body(sim: Simulation, consumer: ShareConsumer[bytes, bytes]) -> None:
        (record,) = await consumer.poll(1)
        (unread,) = consumer._fetcher.buffer
        sim.network.slow(1, latency=(0.1, 0.1))
        requests = sim.broker.on(ApiKey.SHARE_ACKNOWLEDGE, answer=unchanged, times=None)
        consumer.acknowledge(record)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(release_soon, consumer, unread)
            assert await consumer.commit() == {A0: 1}
            assert requests.count == 1

    share(body, records=2)


async def release_soon(consumer: ShareConsumer[bytes, bytes], record: ShareRecord[bytes, bytes]) -> None:
    """Release a record while the acknowledgements of a commit are on their way."""
    await anyio.sleep(0.05)
    consumer._fetcher.locks.release([record])


def unchanged(_: object, response: ShareAcknowledgeResponse) -> ShareAcknowledgeResponse:
    """The response as it is."""
    return response
