"""A group's offsets in a transaction, as Apache Kafka keeps them."""

from __future__ import annotations

from itertools import count

import pytest
from support.raw_client import RawClient
from support.transactional import TransactionalProducer, coordinated, settled, state_of

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    SyncGroupRequest,
)
from aiokafkawire.protocol.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponsePartitions,
)
from aiokafkawire.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

pytestmark = pytest.mark.anyio

OFFSETS = "__consumer_offsets"
_groups = (f"transactional-group-{number}" for number in count())


@pytest.fixture
async def producer(client: RawClient) -> TransactionalProducer:
    """A new transactional id, initialized."""
    return await TransactionalProducer(client).initialized()


@pytest.fixture
async def group(client: RawClient) -> str:
    """A new group that has a coordinator."""
    group = next(_groups)
    await coordinated(client, group, key_type=0)
    await settled(lambda: committed(client, group, "any"), lambda answer: answer.error_code == 0)
    return group


async def committed(
    client: RawClient, group: str, topic: str, *, stable: bool = False
) -> OffsetFetchResponsePartitions:
    """What the group has committed for the topic's partition 0."""
    topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)], require_stable=stable)
    answer = (await client.ask(request, 9)).groups[0]
    if answer.error_code:
        return OffsetFetchResponsePartitions(
            partition_index=0, committed_offset=-1, metadata="", error_code=answer.error_code
        )
    return answer.topics[0].partitions[0]


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", [0, 3, 4, 5])
async def test_offsets_count_once_the_transaction_commits(
    client: RawClient, producer: TransactionalProducer, name: str, group: str, version: int, commit: bool
) -> None:
    if version < 5:
        assert await producer.add_offsets(group) == 0
    assert await producer.commit_offset(group, name, 7, version) == 0
    state = await state_of(client, producer.transactional_id)
    assert (state.transaction_state, [each.topic for each in state.topics]) == ("Ongoing", [OFFSETS])

    assert (await committed(client, group, name)).committed_offset == -1
    assert (await committed(client, group, name, stable=True)).error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
    await producer.ended(commit, 4 if version < 5 else 5)
    found = await committed(client, group, name, stable=True)
    expected = (7, "noted") if commit else (-1, "")
    assert (found.error_code, found.committed_offset, found.metadata) == (0, *expected)


@pytest.mark.parametrize(
    ("version", "error"), [(0, "INVALID_TXN_STATE"), (3, "INVALID_TXN_STATE"), (4, "TRANSACTION_ABORTABLE")]
)
async def test_the_group_must_be_in_the_transaction(
    producer: TransactionalProducer, name: str, group: str, version: int, error: str
) -> None:
    assert await producer.commit_offset(group, name, 7, version) == ErrorCode[error]


@pytest.mark.parametrize("version", range(5))
async def test_offsets_are_added(client: RawClient, producer: TransactionalProducer, group: str, version: int) -> None:
    assert await producer.add_offsets(group, version) == 0
    state = await state_of(client, producer.transactional_id)
    assert [each.topic for each in state.topics] == [OFFSETS]


@pytest.mark.parametrize("version", [3, 4, 5])
async def test_only_the_producer_commits_in_its_transaction(
    producer: TransactionalProducer, name: str, group: str, version: int
) -> None:
    await producer.add_offsets(group)
    producer.epoch = 1
    assert await producer.commit_offset(group, name, 7, version) == ErrorCode.INVALID_PRODUCER_EPOCH
    producer.producer_id, producer.epoch = producer.producer_id + 1000, 0
    assert await producer.commit_offset(group, name, 7, version) == ErrorCode.INVALID_PRODUCER_ID_MAPPING


async def test_partitions_and_groups_are_checked(
    client: RawClient, producer: TransactionalProducer, name: str, group: str
) -> None:
    def at(index: int, metadata: str = "") -> TxnOffsetCommitRequestPartition:
        return TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=3, committed_metadata=metadata)

    request = TxnOffsetCommitRequest(
        transactional_id=producer.transactional_id,
        group_id=group,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=[
            TxnOffsetCommitRequestTopic(name=name, partitions=[at(0), at(9)]),
            TxnOffsetCommitRequestTopic(name="no-such-topic", partitions=[at(0)]),
        ],
    )
    answer = await client.ask(request, 5)
    errors = {(topic.name, one.partition_index): one.error_code for topic in answer.topics for one in topic.partitions}
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors == {(name, 0): 0, (name, 9): unknown, ("no-such-topic", 0): unknown}
    request.topics = [TxnOffsetCommitRequestTopic(name=name, partitions=[at(0, "x" * 4097)])]
    answer = await client.ask(request, 5)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert await producer.commit_offset("", name, 7) == ErrorCode.INVALID_GROUP_ID


# --- who commits (KIP-447) -----------------------------------------------------------------------------------------


async def joined(client: RawClient, group: str, instance: str | None = None) -> JoinGroupResponse:
    """A group with one member, stable."""
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        member_id="",
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    answer = await client.ask(request, 9)
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        request.member_id = answer.member_id
        answer = await client.ask(request, 9)
    assert answer.error_code == 0
    sync = SyncGroupRequest(
        group_id=group,
        generation_id=answer.generation_id,
        member_id=answer.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[],
    )
    assert (await client.ask(sync, 5)).error_code == 0
    return answer


async def test_members_are_checked(client: RawClient, producer: TransactionalProducer, name: str, group: str) -> None:
    member = await joined(client, group, "instance")
    known = {"member_id": member.member_id, "generation_id_or_member_epoch": member.generation_id}
    for version in (3, 5):
        await producer.add_offsets(group)
        assert await producer.commit_offset(group, name, 7, version, **known) == 0
        stranger = known | {"member_id": "stranger"}
        assert await producer.commit_offset(group, name, 7, version, **stranger) == ErrorCode.UNKNOWN_MEMBER_ID
        late = known | {"generation_id_or_member_epoch": member.generation_id + 1}
        assert await producer.commit_offset(group, name, 7, version, **late) == ErrorCode.ILLEGAL_GENERATION
        fenced = known | {"member_id": "stranger", "group_instance_id": "instance"}
        assert await producer.commit_offset(group, name, 7, version, **fenced) == ErrorCode.FENCED_INSTANCE_ID
    assert await producer.commit_offset(group, name, 7, 2) == 0  # who says nothing is not asked


async def test_a_group_that_is_not_there_has_no_generations(
    producer: TransactionalProducer, name: str, group: str
) -> None:
    answer = await producer.commit_offset(group, name, 7, generation_id_or_member_epoch=1, member_id="m")
    assert answer == ErrorCode.ILLEGAL_GENERATION
