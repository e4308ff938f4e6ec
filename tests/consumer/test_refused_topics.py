"""Members of classic groups that subscribe to topics that they may not see."""

from __future__ import annotations

import anyio
import pytest

from aiokafkawire.errors import ErrorCode, TopicAuthorizationFailed
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.simulation import Simulation, simulate


@pytest.mark.parametrize("when", ["before", "later"])
def test_a_member_is_told_once_of_a_topic_that_it_may_not_see_and_reads_the_others(when: str) -> None:
    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("secret")
        sim.broker.create_topic("open")
        denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        async with sim.client(metadata_max_age_ms=5_000) as kafka, kafka.producer() as producer:
            rule = sim.broker.on(ApiKey.METADATA, answer=denied, times=None, topic="secret")
            consumer = kafka.consumer(group_id="g", auto_offset_reset="earliest")
            async with consumer:
                if when == "later":  # what is known of the topic at the time of the subscription is of before
                    with pytest.raises(TopicAuthorizationFailed):
                        await kafka._cluster.metadata.topic("secret", kafka._cluster.deadline(1))
                consumer.subscribe("secret", "open")
                with anyio.fail_after(10), pytest.raises(TopicAuthorizationFailed, match="topic 'secret'"):
                    await consumer.poll()
                await producer.send("open", b"1")
                assert [record.value for record in await consumer.poll(timeout=20)] == [b"1"]
                assert await consumer.poll(timeout=20) == []
                rule.remove()
                await producer.send("secret", b"2")
                assert [record.value for record in await consumer.poll(timeout=20)] == [b"2"]
                sim.broker.on(ApiKey.METADATA, answer=denied, times=None, topic="secret")
                with anyio.fail_after(20), pytest.raises(TopicAuthorizationFailed, match="topic 'secret'"):
                    await consumer.poll()

    simulate(main)
