"""The machine and real coordinators: those of the in-process broker, and Apache Kafka's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from itertools import count
from typing import Any

import attrs
import pytest
from support.dialling import Dial, over_memory, over_tcp
from support.raw_client import RawClient
from support.transaction_answers import name_of
from support.transactional import READ_COMMITTED, TransactionalProducer, coordinated, settled, state_of

from aiokafkawire.errors import (
    BrokerError,
    CommitFailed,
    ErrorCode,
    IllegalGeneration,
    ProducerFenced,
    RequestTimeout,
    UnknownMemberId,
    broker_error,
)
from aiokafkawire.producer.transaction_state_machine import (
    TransactionPhase,
    TransactionRequest,
    TransactionStateMachine,
)
from aiokafkawire.protocol.api import choose_version
from aiokafkawire.protocol.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from aiokafkawire.protocol.messages.metadata import ApiVersionsRequest
from aiokafkawire.protocol.messages.produce import ProduceRequest
from aiokafkawire.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from aiokafkawire.protocol.schema import Versions
from aiokafkawire.records.batch import ConsumerRecord, split
from aiokafkawire.testing.broker import Broker
from aiokafkawire.types import CoordinatorType, GroupMetadata, OffsetAndMetadata, ProducerIdentity, TopicPartition

# The machine knows no loop.
pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

VERSIONS = pytest.mark.parametrize("version", [1, 2])
OUTCOMES = pytest.mark.parametrize("commit", [True, False])
_numbers = count()


@pytest.fixture(params=["memory", pytest.param("apache", marks=pytest.mark.kafka)])
def address(request: pytest.FixtureRequest) -> str | None:
    """Of Apache Kafka; None for the in-process broker."""
    return request.getfixturevalue("apache_kafka").bootstrap if request.param == "apache" else None


@pytest.fixture
async def connect(address: str | None) -> AsyncIterator[Dial]:
    if address is not None:
        yield partial(over_tcp, address)
        return
    async with Broker(port=None) as broker:
        yield partial(over_memory, broker)


@pytest.fixture
async def client(connect: Dial) -> AsyncIterator[RawClient]:
    async with RawClient(await connect()) as client:
        yield client


@pytest.fixture
async def topic(client: RawClient) -> str:
    """A new topic with two partitions, of which both are led."""
    name = f"machine-{next(_numbers)}"
    topic = CreatableTopic(name=name, num_partitions=2, replication_factor=1, assignments=[], configs=[])
    created = await client.ask(CreateTopicsRequest(topics=[topic]), 7)
    assert created.topics[0].error_code == 0, created
    for partition in range(2):
        await settled(partial(client.fetch, name, 0, partition=partition), lambda data: data.error_code == 0)
    return name


@attrs.define
class Driven:
    """A machine, and someone who asks for it and sends its batches."""

    client: RawClient
    machine: TransactionStateMachine
    spoken: dict[int, Versions]
    producer: TransactionalProducer
    asked: list[str | None] = attrs.Factory(list)

    async def go_on(self) -> list[str | None]:
        """Ask until nothing is due; what was asked."""
        self.asked = []
        while (ask := self.machine.next_request()) is not None:
            self.asked.append(name_of(ask))
            await self.ask(ask)
        return self.asked

    async def ask(self, ask: TransactionRequest) -> None:
        """Again while that may mend it."""
        await coordinated(self.client, ask.key, ask.coordinator_type)
        version = choose_version(type(ask.request), self.spoken, ask.versions)

        async def once() -> tuple[Any, BrokerError | None]:
            answer = await self.client.ask(ask.request, version)
            try:
                ask.check(answer)
            except BrokerError as error:
                return answer, error
            return answer, None

        answer, error = await settled(once, lambda told: told[1] is None or not told[1].retriable)
        if error is None:
            self.machine.succeeded(ask, answer)
        else:
            self.machine.failed(ask, error)

    async def begin(self, version: int) -> None:
        await self.go_on()
        self.machine.begin(version)

    async def send(self, topic: str, *values: bytes, partition: int = 0) -> int:
        """Write a batch; the error of the answer, of which the machine hears."""
        machine, where = self.machine, TopicPartition(topic, partition)
        machine.add_partition(where)
        await self.go_on()
        assert machine.may_send(where)
        self.producer.producer_id, self.producer.epoch = machine.producer_id, machine.producer_epoch
        version = choose_version(ProduceRequest, self.spoken, Versions(machine.produce_versions.first, 12))
        answer = await self.producer.send(topic, *values, partition=partition, version=version)
        if answer.error_code:
            machine.batch_failed(where, broker_error(answer.error_code))
        return answer.error_code

    async def end(self, *, commit: bool) -> list[str | None]:
        """What was asked for it. The markers are written then."""
        if commit:
            self.machine.commit()
        else:
            self.machine.abort()
        asked = await self.go_on()
        await state_of(self.client, self.machine.transactional_id)
        return asked


Drive = Callable[..., Awaitable[Driven]]


@pytest.fixture
async def drive(client: RawClient) -> Drive:
    """Makes a machine that has its producer id, for a new transactional id unless it is given one."""
    request = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
    answer = await client.ask(request, 3)
    spoken = {int(each.api_key): Versions(each.min_version, each.max_version) for each in answer.api_keys}

    async def make(name: str | None = None, identity: ProducerIdentity | None = None) -> Driven:
        name = name or f"machine-{next(_numbers)}"
        machine = TransactionStateMachine(name, 60_000, identity)
        driven = Driven(client, machine, spoken, TransactionalProducer(client, name))
        await driven.go_on()
        assert machine.phase is TransactionPhase.READY
        return driven

    return make


async def values_of(client: RawClient, topic: str, partition: int = 0) -> list[bytes | None]:
    """What a reader of committed records sees."""
    data = await client.fetch(topic, 0, partition=partition, isolation_level=READ_COMMITTED)
    aborted = {(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()}
    skipped: set[int] = set()
    records: list[ConsumerRecord[bytes, bytes]] = []
    for batch in split(memoryview(data.records or b"")):
        header = batch.header
        if (header.producer_id, header.base_offset) in aborted:
            skipped.add(header.producer_id)
        if header.is_control:
            skipped.discard(header.producer_id)
        elif header.producer_id not in skipped:
            records += batch.records(topic, partition)
    return [record.value for record in records]


# --- transactions --------------------------------------------------------------------------------------------------


async def test_a_producer_id(drive: Drive) -> None:
    driven = await drive()
    assert (driven.asked, driven.machine.producer_epoch) == (["InitProducerId"], 0)


@VERSIONS
@OUTCOMES
async def test_transactions_one_after_the_other(
    client: RawClient, drive: Drive, topic: str, version: int, commit: bool
) -> None:
    driven = await drive()
    machine = driven.machine
    for number in range(3):
        await driven.begin(version)
        for partition in range(2):
            assert await driven.send(topic, b"kept" if commit else b"lost", partition=partition) == 0
        asked = await driven.end(commit=commit)
        assert asked == ["EndTxn(commit)" if commit else "EndTxn(abort)"]
        assert (machine.phase, machine.error) == (TransactionPhase.READY, None)
        assert machine.producer_epoch == (number + 1 if version == 2 else 0)
        state = await state_of(client, machine.transactional_id)
        assert state.transaction_state == ("CompleteCommit" if commit else "CompleteAbort")
    for partition in range(2):
        assert await values_of(client, topic, partition) == [b"kept"] * (3 if commit else 0)


@VERSIONS
@OUTCOMES
async def test_nothing_was_written(client: RawClient, drive: Drive, version: int, commit: bool) -> None:
    driven = await drive()
    await driven.begin(version)
    assert await driven.end(commit=commit) == []
    state = await state_of(client, driven.machine.transactional_id)
    assert (state.transaction_state, state.producer_epoch) == ("Empty", 0)


@VERSIONS
async def test_an_abort_after_a_loss(client: RawClient, drive: Drive, topic: str, version: int) -> None:
    driven = await drive()
    machine = driven.machine
    await driven.begin(version)
    assert await driven.send(topic, b"lost") == 0
    driven.producer.batch(topic, b"never sent")  # its sequence is used up
    machine.batch_failed(TopicPartition(topic, 0), RequestTimeout("no answer"))
    bump = ["InitProducerId(bump)"] if version == 1 else []
    assert await driven.end(commit=False) == ["EndTxn(abort)", *bump]
    assert (machine.phase, machine.producer_epoch, machine.generation) == (TransactionPhase.READY, 1, 2)
    await driven.begin(version)
    assert await driven.send(topic, b"kept") == 0
    await driven.end(commit=True)
    assert await values_of(client, topic) == [b"kept"]


@pytest.mark.parametrize("arrived", [True, False])
async def test_an_abort_of_what_may_have_begun(client: RawClient, drive: Drive, topic: str, arrived: bool) -> None:
    driven = await drive()
    machine = driven.machine
    await driven.begin(1)
    machine.add_partition(TopicPartition(topic, 0))
    ask = machine.next_request()
    assert ask is not None
    if arrived:
        ask.check(await client.ask(ask.request, 3))
    machine.failed(ask, RequestTimeout("no answer"))
    assert await driven.end(commit=False) == ["EndTxn(abort)", "InitProducerId(bump)"]
    assert (machine.phase, machine.producer_epoch) == (TransactionPhase.READY, 1)


async def test_a_commit_with_version_2_of_a_record_that_was_not_taken(drive: Drive, topic: str) -> None:
    driven = await drive()
    await driven.begin(2)
    driven.machine.add_partition(TopicPartition(topic, 0))
    assert await driven.end(commit=True) == ["EndTxn(commit)"]
    assert driven.machine.phase is TransactionPhase.READY
    await driven.begin(2)
    assert await driven.send(topic, b"kept") == 0
    await driven.end(commit=True)
    assert driven.machine.phase is TransactionPhase.READY


async def test_from_version_1_to_version_2(client: RawClient, drive: Drive, topic: str) -> None:
    driven = await drive()
    epochs, asked = [], []
    for version in (1, 2, 2, 1, 2, 2):
        await driven.begin(version)
        assert await driven.send(topic, b"kept") == 0
        asked += await driven.end(commit=True)
        epochs.append(driven.machine.producer_epoch)
    assert epochs == [0, 1, 2, 2, 3, 4]
    assert asked.count("InitProducerId(bump)") == 2
    assert await values_of(client, topic) == [b"kept"] * 6


# --- fencing -------------------------------------------------------------------------------------------------------


@VERSIONS
async def test_a_newer_producer_fences_the_older(client: RawClient, drive: Drive, topic: str, version: int) -> None:
    older = await drive()
    await older.begin(version)
    assert await older.send(topic, b"lost") == 0
    newer = await drive(older.machine.transactional_id)
    await newer.begin(version)
    assert await newer.send(topic, b"kept") == 0

    # A leader's word is not the last.
    assert await older.send(topic, b"lost") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert older.machine.phase is TransactionPhase.OPEN
    assert await older.end(commit=False) == ["EndTxn(abort)"]
    with pytest.raises(ProducerFenced, match="a newer producer has its id"):
        older.machine.begin(version)
    assert await older.go_on() == []

    await newer.end(commit=True)
    assert await values_of(client, topic) == [b"kept"]


# --- offsets -------------------------------------------------------------------------------------------------------


async def offsets_of(client: RawClient, group: str, topic: str) -> list[int]:
    """What the group has committed for both partitions; -1 for nothing."""
    topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=[0, 1])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)], require_stable=True)

    def is_stable(answer: OffsetFetchResponseGroup) -> bool:
        return not answer.error_code and not any(one.error_code for one in answer.topics[0].partitions)

    async def ask() -> OffsetFetchResponseGroup:
        return (await client.ask(request, 9)).groups[0]

    answer = await settled(ask, is_stable)
    return [one.committed_offset for one in answer.topics[0].partitions]


@VERSIONS
@OUTCOMES
async def test_offsets(client: RawClient, drive: Drive, topic: str, version: int, commit: bool) -> None:
    driven = await drive()
    group = GroupMetadata(f"machine-{next(_numbers)}")
    await coordinated(client, group.group_id, CoordinatorType.GROUP)
    await driven.begin(version)
    first = driven.machine.add_offsets(group, {TopicPartition(topic, 0): OffsetAndMetadata(4, "note")})
    second = driven.machine.add_offsets(group, {TopicPartition(topic, 1): OffsetAndMetadata(5)})
    added = ["AddOffsetsToTxn"] if version == 1 else []
    assert await driven.go_on() == [*added, "TxnOffsetCommit"]
    assert (first.done, first.error, second.done) == (True, None, True)
    await driven.end(commit=commit)
    assert driven.machine.phase is TransactionPhase.READY
    assert await offsets_of(client, group.group_id, topic) == ([4, 5] if commit else [-1, -1])


@VERSIONS
async def test_offsets_of_nobody_the_group_knows(client: RawClient, drive: Drive, topic: str, version: int) -> None:
    driven = await drive()
    group = GroupMetadata(f"machine-{next(_numbers)}", 3, "stranger")
    await driven.begin(version)
    commit = driven.machine.add_offsets(group, {TopicPartition(topic, 0): OffsetAndMetadata(4)})
    await driven.go_on()
    assert isinstance(commit.error, CommitFailed)
    assert isinstance(commit.error.__cause__, IllegalGeneration | UnknownMemberId)
    assert await driven.end(commit=False) == ["EndTxn(abort)"]
    await driven.begin(version)
    assert await driven.send(topic, b"kept") == 0
    await driven.end(commit=True)
    assert await values_of(client, topic) == [b"kept"]


# --- identities ----------------------------------------------------------------------------------------------------


@VERSIONS
@OUTCOMES
async def test_another_producer_writes_into_the_transaction(
    client: RawClient, drive: Drive, topic: str, version: int, commit: bool
) -> None:
    value = b"kept" if commit else b"lost"
    driven = await drive()
    await driven.begin(version)
    assert await driven.send(topic, value) == 0
    identity = driven.machine.identity
    assert identity.transaction_version == version

    other = await drive(driven.machine.transactional_id, identity)
    assert other.asked == []
    await other.begin(version)
    assert await other.send(topic, value, partition=1) == 0
    other.machine.commit()
    assert await other.go_on() == []
    assert await values_of(client, topic, 1) == []

    await driven.end(commit=commit)
    for partition in range(2):
        assert await values_of(client, topic, partition) == ([b"kept"] if commit else [])
