"""How most users test: pytest-asyncio in strict mode, a client in a fixture that opens and closes it in other tasks."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from aiokafkawire import Client, OffsetSpec, TopicPartition
from aiokafkawire.testing.broker import Broker


@pytest.fixture
def anyio_backend() -> str:
    raise AssertionError("the anyio plugin took over what belongs to pytest-asyncio")


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(port=None) as broker:
        broker.create_topic("flights")
        yield broker


@pytest_asyncio.fixture
async def client(broker: Broker) -> AsyncIterator[Client]:
    async with Client(broker.bootstrap, connector=broker.connect) as client:
        yield client


@pytest_asyncio.fixture
async def client_without_context(broker: Broker) -> AsyncIterator[Client]:
    before = asyncio.all_tasks()
    client = Client(broker.bootstrap, connector=broker.connect)
    await client.open()
    assert asyncio.all_tasks() > before
    yield client
    await client.close()
    left = {task.get_coro().__qualname__ for task in asyncio.all_tasks() - before}  # type: ignore[union-attr]
    assert not {name for name in left if name.startswith(("Owner", "Cluster", "Connection"))}


async def produce_and_look(client: Client) -> None:
    async with client.producer() as producer:
        sent = await producer.send("flights", b"SFO")
        assert (sent.topic, sent.partition, sent.offset) == ("flights", 0, 0)
    where = TopicPartition("flights", 0)
    found = (await client.admin.list_offsets({where: OffsetSpec.LATEST}))[where]
    assert found is not None
    assert found.offset == 1


@pytest.mark.asyncio
async def test_a_client_from_a_fixture_works(client: Client) -> None:
    await produce_and_look(client)


@pytest.mark.asyncio
async def test_a_client_that_its_fixture_opens_and_closes_by_name_works(client_without_context: Client) -> None:
    await produce_and_look(client_without_context)


@pytest.mark.asyncio
async def test_the_client_outlives_the_cancelled_call(client: Client) -> None:
    with pytest.raises(asyncio.TimeoutError):
        async with asyncio.timeout(0.01):
            await asyncio.sleep(60)
    call = asyncio.create_task(produce_and_look(client))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    async with client.producer() as producer:
        assert (await producer.send("flights", b"JFK")).topic == "flights"
