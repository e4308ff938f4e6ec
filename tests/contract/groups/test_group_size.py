"""A group that may have one member: whoever comes second is told so, and gets in once there is room."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest
from contract.conftest import Where
from support.apache_kafka import ApacheKafka
from support.patience import PATIENCE
from support.readers import reading

from aiokafkawire import TopicPartition
from aiokafkawire.errors import GroupMaxSizeReached
from aiokafkawire.network.connector import connect_tcp
from aiokafkawire.testing.broker import Broker

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(180),  # it may take a server of its own
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
    pytest.mark.parametrize(
        "cluster", ["memory", pytest.param("apache-kafka", marks=pytest.mark.kafka)], indirect=True
    ),
]


@pytest.fixture
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Where]:
    if request.param == "memory":
        async with Broker(port=None, group_max_size=1) as broker:
            yield Where(broker.bootstrap, broker.connect)
        return
    shared: ApacheKafka = request.getfixturevalue("apache_kafka")
    with ApacheKafka(shared.version, properties={"group.max.size": "1"}) as kafka:
        yield Where(kafka.bootstrap, connect_tcp)


async def test_whoever_finds_the_group_full_is_told_and_gets_in_later(cluster: Where) -> None:
    async with cluster.client() as kafka, reading() as readers:
        await kafka.admin.create_topics({"t": 1})
        first = await readers.join(kafka, "g", "t")
        await readers.until(lambda: bool(first.owned))
        second = await readers.join(kafka, "g", "t", reads=False)
        with anyio.fail_after(PATIENCE), pytest.raises(GroupMaxSizeReached, match="group 'g'"):
            await anext(second.consumer)
        assert second.consumer.assignment == ()
        assert first.words() == ["assigned"]
        await first.close()
        readers.read(second)
        await readers.until(lambda: second.owned == {TopicPartition("t", 0)})
        assert second.errors == []
