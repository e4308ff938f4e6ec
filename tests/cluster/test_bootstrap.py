"""Opening a cluster: the first address that answers is enough, and when none does each is told."""

import re
from typing import Any

import anyio
import pytest
from support.clusters import Net, hang, metadata, opened
from support.connecting import eventually, running_tasks
from support.patience import PATIENCE
from support.scripted_broker import ScriptedBroker
from support.virtual_time import virtual_time

from aiokafkawire import Client
from aiokafkawire.errors import ErrorCode, NoBrokerReachable, UsageError, WireError
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.serving.memory import memory_connection

pytestmark = pytest.mark.anyio


async def babble(host: str, port: int) -> Any:
    """A host that speaks something else."""
    theirs, ours = memory_connection()
    await ours.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    return theirs


async def quiet(host: str, port: int) -> Any:
    """A host that accepts connections and says nothing."""
    return memory_connection()[0]


@virtual_time
@pytest.mark.parametrize("first", [None, hang, quiet, babble], ids=["refuses", "hangs", "is quiet", "is no Kafka"])
async def test_an_address_that_leads_nowhere_does_not_keep_us_from_the_next(first: Any) -> None:
    async with ScriptedBroker() as broker:
        net = Net(good=broker)
        if first is not None:
            net.hosts["bad"] = first
        broker.on[ApiKey.METADATA] = lambda _: metadata(hosts=["good"])
        with anyio.fail_after(5):
            async with opened(net.connect, "bad:1,good:2", bootstrap_timeout_ms=1000) as cluster:
                assert cluster.metadata.snapshot.nodes[1].address.host == "good"
        assert list(dict.fromkeys(net.dials)) == ["bad", "good"]


@virtual_time
@pytest.mark.parametrize(
    ("server", "remedy"),
    [
        ("refuses:1", "; nothing listens there: start a broker (for development: aiokafkawire broker), or correct the"),
        ("memory-1:9092", "; a Broker(port=None) for tests is reached by Client(..., connector=broker.connect) only"),
    ],
)
async def test_what_to_do_about_a_port_without_a_broker_is_told(server: str, remedy: str) -> None:
    with anyio.fail_after(5), pytest.raises(NoBrokerReachable, match=re.escape(remedy)):
        async with opened(Net().connect, server, bootstrap_timeout_ms=1_000):
            raise AssertionError("opened")


@virtual_time
async def test_when_no_address_leads_to_a_broker_each_is_told_with_its_cause() -> None:
    net = Net()
    net.hosts.update(hangs=hang, quiet=quiet, babbles=babble)
    before = running_tasks()
    with anyio.fail_after(5), pytest.raises(NoBrokerReachable) as caught:
        async with opened(net.connect, "refuses:1,hangs:2,quiet:3,babbles:4", bootstrap_timeout_ms=1_000):
            raise AssertionError("opened")
    told = str(caught.value)
    assert told.startswith("no broker reachable within 1 s: refuses:1: cannot connect to refuses:1: [Errno 111] ")
    assert "; hangs:2: hangs:2 did not accept a connection within " in told
    assert "; quiet:3: quiet:3 did not answer ApiVersions (is it a Kafka listener?) within " in told
    assert "; babbles:4: babbles:4 sent an HTTP answer ('HTTP/1.1 400 Bad Request'): this port is a web" in told
    assert running_tasks() <= before


async def test_whoever_speaks_another_protocol_is_not_asked_twice() -> None:
    net = Net()
    net.hosts.update(a=babble, b=babble)
    with anyio.fail_after(5), pytest.raises(WireError, match=r"^a:1 sent an HTTP answer"):
        async with opened(net.connect, "a:1"):
            raise AssertionError("opened")
    with anyio.fail_after(5), pytest.raises(NoBrokerReachable, match=r"^no broker reachable: a:1: .*; b:1: .*HTTP"):
        async with opened(net.connect, "a:1,b:1"):
            raise AssertionError("opened")


async def test_a_broker_that_comes_up_in_time_is_found() -> None:
    async with ScriptedBroker() as broker:
        net = Net()
        broker.on[ApiKey.METADATA] = lambda _: metadata()

        async def bring_up() -> None:
            await eventually(lambda: len(net.dials) > 2)
            net.hosts["b"] = broker.connect

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bring_up)
            async with opened(net.connect):
                assert len(broker.peers) == 1


@virtual_time
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (metadata(hosts=[]), "b:9092 lists no brokers, not even itself"),
        (metadata(error=ErrorCode.UNKNOWN_SERVER_ERROR), "b:9092 to Metadata: UNKNOWN_SERVER_ERROR"),
    ],
)
async def test_an_answer_that_leads_nowhere_is_told_in_time(answer: Any, told: str) -> None:
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: answer
        with anyio.fail_after(5), pytest.raises(NoBrokerReachable, match=told):
            async with opened(broker.connect, bootstrap_timeout_ms=500):
                raise AssertionError("opened")


@virtual_time
async def test_a_metadata_answer_that_does_not_come_is_told_in_time() -> None:
    async with ScriptedBroker() as broker:
        with anyio.fail_after(5), pytest.raises(NoBrokerReachable, match="no answer from b:9092 to Metadata within"):
            async with opened(broker.connect, bootstrap_timeout_ms=500):
                raise AssertionError("opened")


async def test_opening_ends_when_the_client_is_closed_meanwhile() -> None:
    net = Net()
    client = Client("b:9092", connector=net.connect, bootstrap_timeout_ms=10 * 60_000)

    async def close() -> None:
        await eventually(lambda: len(net.dials) > 1)
        await client.close()

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(close)
            with pytest.raises(UsageError, match="the client was closed while it was opened"):
                await client.open()


async def test_opening_that_is_cancelled_leaves_nothing_behind() -> None:
    before = running_tasks()
    async with ScriptedBroker(spoken=None) as broker:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:

                async def open_it() -> None:
                    async with opened(broker.connect):
                        raise AssertionError("opened")

                tasks.start_soon(open_it)
                await eventually(lambda: bool(broker.peers))
                scope.cancel()
        await broker.peers[0].hung_up()
    assert running_tasks() <= before
