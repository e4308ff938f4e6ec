"""Changes whose first answer is lost: the broker refuses the second attempt, and the error says why."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest
from anyio.abc import ByteStream
from support.clusters import QUICK
from support.group_members import GroupMember
from support.raw_client import RawClient

from aiokafkawire import (
    Client,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    TopicPartition,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from aiokafkawire.admin.admin import Admin
from aiokafkawire.cli.error_text import error_text
from aiokafkawire.errors import (
    BrokerError,
    BrokerIdNotRegistered,
    ConnectionLost,
    DelegationTokenNotFound,
    ErrorCode,
    GroupIdNotFound,
    InvalidPartitions,
    NoReassignmentInProgress,
    NotController,
    ResourceNotFound,
    TopicAlreadyExists,
    UnknownMemberId,
    UnknownTopicOrPartition,
    VoterNotFound,
)
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.controller import UnregisterBrokerResponse
from aiokafkawire.protocol.messages.delegation_tokens import ExpireDelegationTokenResponse
from aiokafkawire.protocol.messages.group_offsets import OffsetDeleteResponse
from aiokafkawire.protocol.messages.quorum_voters import RemoveRaftVoterResponse
from aiokafkawire.protocol.messages.topics import CreateTopicsRequest, CreateTopicsResponse
from aiokafkawire.protocol.schema import Response
from aiokafkawire.testing.broker import Broker

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]

SAYS = "an attempt before has no answer and may have done it"


@asynccontextmanager
async def running(nodes: int = 1) -> AsyncIterator[tuple[Broker, Admin]]:
    """A topic "a", a group "g" with an offset, a user "u", and the admin of a client."""
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    async with Broker(nodes, port=None, default_replication_factor=1) as broker:
        broker.create_topic("a", 2)
        async with Client(broker.bootstrap, connector=broker.connect, **QUICK) as kafka:
            await kafka.admin.alter_consumer_group_offsets("g", {TopicPartition("a", 0): 0})
            await kafka.admin.alter_user_scram_credentials([UserScramCredentialUpsertion("u", info, "secret")])
            yield broker, kafka.admin


def delete_credential(admin: Admin) -> Awaitable[object]:
    return admin.alter_user_scram_credentials([UserScramCredentialDeletion("u", ScramMechanism.SCRAM_SHA_256)])


@pytest.mark.parametrize(
    ("api", "change", "refusal"),
    [
        (ApiKey.CREATE_TOPICS, lambda admin: admin.create_topics({"b": 1}), TopicAlreadyExists),
        (ApiKey.CREATE_PARTITIONS, lambda admin: admin.create_partitions({"a": 3}), InvalidPartitions),
        (ApiKey.DELETE_TOPICS, lambda admin: admin.delete_topics("a"), UnknownTopicOrPartition),
        (ApiKey.DELETE_GROUPS, lambda admin: admin.delete_groups("g"), GroupIdNotFound),
        (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, delete_credential, ResourceNotFound),
    ],
)
async def test_a_refusal_after_a_lost_answer_says_that_the_change_may_be_made(
    api: ApiKey, change: Callable[[Admin], Awaitable[Any]], refusal: type[BrokerError]
) -> None:
    async with running() as (broker, admin):
        broker.on(api, drop="after")
        with pytest.raises(refusal, match=SAYS) as told:
            await change(admin)
        assert isinstance(told.value.__cause__, ConnectionLost)
        assert SAYS in error_text(told.value)
        with pytest.raises(refusal) as again:
            await change(admin)
        assert SAYS not in str(again.value)
        assert again.value.__cause__ is None


async def test_offsets_of_a_share_group_are_deleted_although_the_answer_is_lost() -> None:
    async with running() as (broker, admin):
        await admin.alter_share_group_offsets("s", {TopicPartition("a", 0): 0})
        broker.on(ApiKey.DELETE_SHARE_GROUP_OFFSETS, drop="after")
        with pytest.raises(UnknownTopicOrPartition, match=SAYS) as told:
            await admin.delete_share_group_offsets("s", "a")
        assert isinstance(told.value.__cause__, ConnectionLost)
        with pytest.raises(UnknownTopicOrPartition) as again:
            await admin.delete_share_group_offsets("s", "a")
        assert SAYS not in str(again.value)


async def test_an_attempt_that_could_not_be_sent_has_done_nothing() -> None:
    refused = 0

    async def connect(host: str, port: int) -> ByteStream:
        nonlocal refused
        if refused:
            refused -= 1
            raise ConnectionRefusedError(111, "Connection refused")
        return await broker.connect(host, port)

    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=connect, **QUICK) as kafka:
        broker.create_topic("a")
        refused = 1  # of the lane of the admin, which has no connection yet
        with pytest.raises(TopicAlreadyExists) as told:
            await kafka.admin.create_topics({"a": 1})
        assert refused == 0
        assert told.value.__cause__ is None


async def test_a_controller_that_loses_its_office_may_have_made_the_change() -> None:
    def deposed(request: CreateTopicsRequest, response: CreateTopicsResponse) -> CreateTopicsResponse:
        for topic in response.topics:
            topic.error_code = ErrorCode.NOT_CONTROLLER
        return response

    async with running() as (broker, admin):
        broker.on(ApiKey.CREATE_TOPICS, answer=deposed)
        with pytest.raises(TopicAlreadyExists, match=SAYS) as told:
            await admin.create_topics({"b": 1})
        assert isinstance(told.value.__cause__, NotController)


async def test_a_check_alone_makes_nothing() -> None:
    async with running() as (broker, admin):
        broker.on(ApiKey.CREATE_TOPICS, drop="after")
        with pytest.raises(TopicAlreadyExists) as told:
            await admin.create_topics({"a": 1}, validate_only=True)
        assert told.value.__cause__ is None


async def test_groups_of_one_coordinator_are_deleted_although_the_answer_is_lost() -> None:
    async with running() as (broker, admin):
        await admin.alter_consumer_group_offsets("h", {TopicPartition("a", 0): 0})
        broker.on(ApiKey.DELETE_GROUPS, drop="after")
        with pytest.raises(ExceptionGroup) as told:
            await admin.delete_groups("g", "h")
        assert [isinstance(error, GroupIdNotFound) and SAYS in str(error) for error in told.value.exceptions] == [
            True
        ] * 2


async def test_a_move_is_called_off_although_the_answer_is_lost() -> None:
    async with running(nodes=3) as (broker, admin):
        await admin.create_topics({"b": NewTopic(assignments=[[1]])})
        await broker.stop_node(3)
        await admin.alter_partition_reassignments({TopicPartition("b", 0): [3]})
        broker.on(ApiKey.ALTER_PARTITION_REASSIGNMENTS, drop="after")
        with pytest.raises(NoReassignmentInProgress, match=SAYS):
            await admin.alter_partition_reassignments({TopicPartition("b", 0): None})


async def test_a_broker_is_unregistered_although_the_answer_is_lost() -> None:
    async with running(nodes=3) as (broker, admin):
        await broker.stop_node(3)
        broker.on(ApiKey.UNREGISTER_BROKER, drop="after")
        with pytest.raises(BrokerIdNotRegistered, match=SAYS):
            await admin.unregister_broker(3)


@pytest.mark.parametrize("code", [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER])
async def test_a_broker_may_be_unregistered_although_the_controller_has_not_said_so(code: ErrorCode) -> None:
    def unconfirmed(request: Any, true: UnregisterBrokerResponse) -> UnregisterBrokerResponse:
        true.error_code = code
        return true

    async with running(nodes=3) as (broker, admin):
        await broker.stop_node(3)
        broker.on(ApiKey.UNREGISTER_BROKER, answer=unconfirmed)
        with pytest.raises(BrokerIdNotRegistered, match=SAYS) as told:
            await admin.unregister_broker(3)
        assert code.name in str(told.value.__cause__)


async def test_a_voter_is_removed_although_the_leader_resigns() -> None:
    resigned, gone = ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.VOTER_NOT_FOUND
    async with running() as (broker, admin):
        for code in (resigned, gone):
            answer = RemoveRaftVoterResponse(error_code=code, error_message=None)
            broker.on(ApiKey.REMOVE_RAFT_VOTER, answer=answer)
        with pytest.raises(VoterNotFound, match=SAYS):
            await admin.remove_raft_voter(2, UUID(int=7))


async def test_a_member_leaves_although_the_answer_is_lost() -> None:
    async with running() as (broker, admin), RawClient(await broker.connect("memory-1", 9092)) as client:
        member = GroupMember(client, "m")
        await member.enter(9)
        await member.sync({member.member_id: b""}, 5)
        (known,) = (await admin.describe_groups("m"))["m"].members
        broker.on(ApiKey.LEAVE_GROUP, drop="after")
        with pytest.raises(UnknownMemberId, match=SAYS):
            await admin.remove_members("m", [known])


@pytest.mark.parametrize(
    ("api", "lost", "change", "refusal"),
    [
        (
            ApiKey.EXPIRE_DELEGATION_TOKEN,
            ExpireDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_NOT_FOUND, expiry_timestamp_ms=-1),
            lambda admin: admin.expire_delegation_token(b"hmac"),
            DelegationTokenNotFound,
        ),
        (  # before 4.0, a group without members is deleted with the last of its offsets
            ApiKey.OFFSET_DELETE,
            OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND, topics=[]),
            lambda admin: admin.delete_consumer_group_offsets("g", [TopicPartition("a", 0)]),
            GroupIdNotFound,
        ),
        (
            ApiKey.REMOVE_RAFT_VOTER,
            RemoveRaftVoterResponse(error_code=ErrorCode.VOTER_NOT_FOUND, error_message=None),
            lambda admin: admin.remove_raft_voter(2, UUID(int=7)),
            VoterNotFound,
        ),
    ],
)
async def test_what_a_broker_answers_about_a_change_that_it_has_made(
    api: ApiKey, lost: Response, change: Callable[[Admin], Awaitable[Any]], refusal: type[BrokerError]
) -> None:
    async with running() as (broker, admin):
        broker.on(api, drop="before")
        broker.on(api, answer=lost)
        with pytest.raises(refusal, match=SAYS) as told:
            await change(admin)
        assert isinstance(told.value.__cause__, ConnectionLost)
