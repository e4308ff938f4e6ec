"""A topic of 0.7 goes over to an in-process cluster, through interruptions."""

from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import uuid4

import anyio
import pytest
from anyio.abc import ByteStream
from support.apache_kafka import ApacheKafka
from support.legacy_cluster import legacy_cluster
from support.patience import PATIENCE, SOON
from support.raw_client import RawClient
from support.zookeeper import ZooKeeperServer

from aiokafkawire import Client, OffsetSpec, TopicPartition
from aiokafkawire.errors import OffsetOutOfRange, UnknownTopicOrPartition, UsageError
from aiokafkawire.legacy.client import LegacyClient
from aiokafkawire.legacy.cluster import BrokerClients
from aiokafkawire.legacy.messages import encode_messages
from aiokafkawire.legacy.migration import MigrationProgress, Sources, migrate, sources_from_zookeeper
from aiokafkawire.legacy.registry import BrokerPartition
from aiokafkawire.legacy.requests import Produce
from aiokafkawire.network.connector import connect_tcp
from aiokafkawire.producer import transaction
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.topics import CreatePartitionsRequest, CreatePartitionsTopic
from aiokafkawire.records.compression import Codec
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.legacy.server import LegacyServer

pytestmark = pytest.mark.anyio

SENT = {partition: [b"%d-%03d" % (partition, number) for number in range(60)] for partition in range(3)}
PLACES = [BrokerPartition(0, partition) for partition in range(3)]


class PowerCut(Exception):
    """What ends a process."""


@pytest.fixture
async def source() -> AsyncIterator[LegacyClient]:
    async with LegacyServer(num_partitions=3, log_file_size=200) as server:
        for partition, values in SENT.items():
            for at, codec in ((0, Codec.NONE), (20, Codec.GZIP), (40, Codec.SNAPPY)):
                for start in range(at, at + 20, 5):
                    part = values[start : start + 5]
                    server.logs.answer(Produce("t", partition, encode_messages(part, codec=codec)))
        async with LegacyClient("legacy", connector=server.connect, fetch_size=100) as client:
            yield client


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(port=None) as broker:
        broker.create_topic("t", 2)
        yield broker


@pytest.fixture
async def target(broker: Broker) -> AsyncIterator[Client]:
    async with Client(broker.bootstrap, connector=broker.connect) as client:
        yield client


def of(source: LegacyClient) -> Sources:
    return dict.fromkeys(PLACES, source)


async def content(target: Client) -> dict[int, list[bytes]]:
    """What readers of committed records find, by partition."""
    found: dict[int, list[bytes]] = {0: [], 1: []}
    ends = {one: await end(target, one) for one in found}
    async with target.consumer(isolation_level="read_committed") as consumer:
        for partition, last in ends.items():
            where = TopicPartition("t", partition)
            consumer.assign({where: 0})
            with anyio.fail_after(SOON):
                while (consumer.position(where) or 0) < last:
                    with anyio.move_on_after(0.05):  # the end may be a marker, which is no record
                        record = await anext(consumer)
                        assert record.value is not None
                        found[partition].append(record.value)
    return found


async def end(target: Client, partition: int) -> int:
    where = TopicPartition("t", partition)
    found = (await target.admin.list_offsets({where: OffsetSpec.LATEST}))[where]
    assert found is not None
    return found.offset


EXPECTED = {0: SENT[0] + SENT[2], 1: SENT[1]}


@pytest.mark.parametrize("exactly_once", [True, False])
async def test_a_topic_is_copied_in_order(source: LegacyClient, target: Client, *, exactly_once: bool) -> None:
    told: list[MigrationProgress] = []
    options: dict[str, Any] = {"name": "m", "exactly_once": exactly_once, "on_progress": told.append}
    assert await migrate(of(source), "t", target, **options) == dict.fromkeys(PLACES, 60)
    assert await content(target) == EXPECTED
    assert len(told) > 6
    for place in PLACES:
        mine = [one for one in told if one.source == place]
        assert [one.position for one in mine] == sorted({one.position for one in mine})
        assert (mine[-1].position, mine[-1].messages) == (mine[-1].end, 60)
    assert await migrate(of(source), "t", target, **options) == dict.fromkeys(PLACES, 0)
    assert await content(target) == EXPECTED


async def test_positions_are_asked_for_as_they_are_once_transactions_are_over(
    broker: Broker, source: LegacyClient, target: Client
) -> None:
    await migrate(of(source), "t", target, name="m")
    asked = [one.request.require_stable for one in broker.requests.of(ApiKey.OFFSET_FETCH)]
    assert asked == [True] * 3


async def test_what_comes_later_is_copied_later(source: LegacyClient, target: Client) -> None:
    await migrate(of(source), "t", target, name="m")
    await source.produce("t", [b"late"], partition=1)
    assert await migrate(of(source), "t", target, name="m") == {PLACES[0]: 0, PLACES[1]: 1, PLACES[2]: 0}
    assert (await content(target))[1] == [*SENT[1], b"late"]


async def test_an_end_between_two_transactions(source: LegacyClient, target: Client) -> None:
    for survives in range(4):
        left = iter(range(survives))

        def cut(progress: MigrationProgress, left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise PowerCut

        with pytest.raises(PowerCut):
            await migrate(of(source), "t", target, name="m", on_progress=cut)
    await migrate(of(source), "t", target, name="m")
    assert await content(target) == EXPECTED


async def killed(broker: Broker, source: LegacyClient, api: ApiKey, at: Any, passing: int, **how: Any) -> None:
    """A migration whose process ends while a request is under way: nothing more is said, not even goodbye."""
    streams: list[ByteStream] = []
    dead = False

    async def connect(host: str, port: int) -> ByteStream:
        if dead:
            raise ConnectionRefusedError("this process is no more")
        streams.append(await broker.connect(host, port))
        return streams[-1]

    async def first() -> None:
        async with Client(broker.bootstrap, connector=connect) as dying:
            await migrate(of(source), "t", dying, name="m", **how)

    async with broker.hold(api, at, after=passing) as held, anyio.create_task_group() as tasks:
        tasks.start_soon(first)
        await held.arrived()
        dead = True
        for stream in streams:
            await stream.aclose()
        tasks.cancel_scope.cancel()


@pytest.fixture(autouse=True)
def no_time_to_abort(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed takes no leave."""
    monkeypatch.setattr(transaction, "_ABORT_SECONDS", 0.0)


@pytest.mark.parametrize("api", [ApiKey.PRODUCE, ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN], ids=lambda api: api.name)
@pytest.mark.parametrize("at", ["before", "after"])
@pytest.mark.parametrize("passing", [0, 3])
async def test_a_kill_in_the_middle_of_a_transaction(
    broker: Broker, source: LegacyClient, api: ApiKey, at: Any, passing: int
) -> None:
    await killed(broker, source, api, at, passing)
    async with Client(broker.bootstrap, connector=broker.connect) as target:
        await migrate(of(source), "t", target, name="m")
        assert await content(target) == EXPECTED


async def test_at_least_once_loses_nothing(broker: Broker, source: LegacyClient) -> None:
    await killed(broker, source, ApiKey.OFFSET_COMMIT, "before", 2, exactly_once=False)
    # The group was never one with members, so what is held may be committed still: that is not what is looked at.
    async with Client(broker.bootstrap, connector=broker.connect) as target:
        await migrate(of(source), "t", target, name="m", exactly_once=False)
        found = await content(target)
        for partition, values in EXPECTED.items():
            assert set(found[partition]) == set(values)


async def test_it_can_be_stopped(source: LegacyClient, target: Client) -> None:
    stop = anyio.Event()
    copied = await migrate(of(source), "t", target, name="m", stop=stop, on_progress=lambda progress: stop.set())
    assert 0 < copied[PLACES[0]] < 60
    assert (copied[PLACES[1]], copied[PLACES[2]]) == (0, 0)


async def test_what_was_cleaned_up_meanwhile_is_told(target: Client) -> None:
    async with LegacyServer(log_file_size=50, log_retention_size=60) as server:
        for number in range(20):
            server.logs.answer(Produce("t", 0, encode_messages([b"%030d" % number])))
        async with LegacyClient("legacy", connector=server.connect, fetch_size=100) as client:
            sources, stop = {BrokerPartition(0, 0): client}, anyio.Event()
            await migrate(sources, "t", target, name="m", stop=stop, on_progress=lambda progress: stop.set())
            server.logs.clean()
            with pytest.raises(OffsetOutOfRange) as caught:
                await migrate(sources, "t", target, name="m")
            assert "group 'm.t.0-0' in the target says" in caught.value.__notes__[0]


async def test_sources_are_found_in_zookeeper(zookeeper: ZooKeeperServer, target: Client) -> None:
    async with legacy_cluster(zookeeper, 2, 1) as cluster:
        for broker in (0, 1):
            await cluster.topic(broker, "old")
            cluster.logs(broker).answer(Produce("old", 0, encode_messages([b"from %d" % broker])))
        async with BrokerClients(connector=cluster.connect) as clients:
            sources = await sources_from_zookeeper(cluster.zookeeper, "old", clients)
            assert sorted(map(str, sources)) == ["0-0", "0-1", "1-0"]
            copied = await migrate(sources, "old", target, name="m", target_topic="t")
            assert copied == {BrokerPartition(0, 0): 1, BrokerPartition(0, 1): 0, BrokerPartition(1, 0): 1}
    assert await content(target) == {0: [b"from 0"], 1: [b"from 1"]}


@pytest.mark.parametrize("exactly_once", [True, False])
async def test_a_source_partition_stays_in_its_target_partition_whichever_sources_there_are(
    broker: Broker, source: LegacyClient, target: Client, *, exactly_once: bool
) -> None:
    options: dict[str, Any] = {"name": "m", "exactly_once": exactly_once}
    for at in ((1,), (2,), (0, 1), (0, 1, 2)):  # brokers that are down, and come back
        await migrate({PLACES[number]: source for number in at}, "t", target, **options)
    found = await content(target)
    assert [one for one in found[0] if one in SENT[0]] == SENT[0]
    assert [one for one in found[0] if one in SENT[2]] == SENT[2]
    assert found[1] == SENT[1]
    # Nor does it move when the target gets more partitions.
    broker._cluster.topics.add_partitions("t", 3)
    for number, value in enumerate((b"late 0", b"late 1", b"late 2")):
        await source.produce("t", [value], partition=number)
    await source.confirm()
    async with Client(broker.bootstrap, connector=broker.connect) as target:
        await migrate({PLACES[2]: source}, "t", target, **options)
        await migrate(of(source), "t", target, **options)
        later = await content(target)
        assert sorted(later[0][len(found[0]) :]) == [b"late 0", b"late 2"]
        assert later[1][len(found[1]) :] == [b"late 1"]
        assert await end(target, 2) == 0


async def test_a_source_partition_stays_in_its_target_partition_on_apache_kafka(
    apache_kafka: ApacheKafka, source: LegacyClient
) -> None:
    topic = f"migrated-{uuid4().hex}"
    options: dict[str, Any] = {"name": topic, "target_topic": topic}
    async with Client(apache_kafka.bootstrap) as target:
        await target.admin.create_topics({topic: 2})
        for at in ((2,), (1,), (0, 1, 2)):
            await migrate({PLACES[number]: source for number in at}, "t", target, **options)
    host, _, port = apache_kafka.bootstrap.rpartition(":")
    async with RawClient(await connect_tcp(host, int(port))) as raw:
        more = CreatePartitionsTopic(name=topic, count=3, assignments=None)
        await raw.ask(CreatePartitionsRequest(topics=[more], timeout_ms=10_000, validate_only=False), 3)
    await source.produce("t", [b"late"], partition=2)
    await source.confirm()
    async with (
        Client(apache_kafka.bootstrap) as target,
        target.consumer(isolation_level="read_committed", auto_offset_reset="earliest") as consumer,
    ):
        assert (await migrate({PLACES[2]: source}, "t", target, **options))[PLACES[2]] == 1
        consumer.assign({TopicPartition(topic, partition): OffsetSpec.EARLIEST for partition in range(3)})
        found: dict[int, list[bytes]] = {0: [], 1: [], 2: []}
        with anyio.fail_after(PATIENCE):
            while sum(map(len, found.values())) < 181:
                record = await anext(consumer)
                found[record.partition].append(record.value or b"")
    assert found == {0: [*SENT[2], *SENT[0], b"late"], 1: SENT[1], 2: []}


async def test_arguments_are_checked(source: LegacyClient, target: Client, broker: Broker) -> None:
    with pytest.raises(UsageError, match="the migration's name has to be a name without slashes"):
        await migrate(of(source), "t", target, name="a/b")
    with pytest.raises(UsageError):
        await migrate(of(source), "an old ü name", target, name="m")
    with pytest.raises(UnknownTopicOrPartition):
        await migrate(of(source), "t", target, name="m", target_topic="u")
