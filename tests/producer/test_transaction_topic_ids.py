"""Offsets that are committed with a transaction by their topics' ids (KIP-1319)."""

from __future__ import annotations

from typing import cast
from uuid import UUID

import pytest

from aiokafkawire import Client, TopicPartition
from aiokafkawire.errors import CommitFailed, ErrorCode, UnknownTopicId, UnknownTopicOrPartition
from aiokafkawire.producer.transaction_requests import (
    TransactionRequest,
    check_topic_ids,
    commit_offsets,
    with_topic_ids,
)
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from aiokafkawire.protocol.primitives import ZERO_UUID
from aiokafkawire.testing.broker import Broker
from aiokafkawire.types import GroupMetadata, OffsetAndMetadata, ProducerIdentity

A, B = UUID(int=1), UUID(int=2)
OFFSETS = {TopicPartition("a", 0): OffsetAndMetadata(3), TopicPartition("b", 1): OffsetAndMetadata(4)}
NO_ERROR = {"a": 0, "b": 0}.__getitem__


def by_name(version: int = 2) -> TransactionRequest:
    identity = ProducerIdentity("t1", 1, 0, version)
    return commit_offsets(identity, GroupMetadata("g"), OFFSETS)


def test_ids_are_sent_if_all_are_known() -> None:
    request = by_name()
    sent = with_topic_ids(request, {"a": A, "b": B}.__getitem__)
    asked = cast("TxnOffsetCommitRequest", sent.request)
    assert [(topic.name, topic.topic_id) for topic in asked.topics] == [("a", A), ("b", B)]
    assert (sent.versions.first, sent.versions.last) == (5, 6)
    assert with_topic_ids(request, {"a": A, "b": ZERO_UUID}.__getitem__) is request
    older = by_name(1)
    assert with_topic_ids(older, {"a": A, "b": B}.__getitem__) is older


def test_the_ids_of_topics_that_a_consumer_has_read_come_before_those_of_the_metadata() -> None:
    for version in (1, 2):
        identity = ProducerIdentity("t1", 1, 0, version)
        request = commit_offsets(identity, GroupMetadata("g"), OFFSETS, {"a": A})
        sent = with_topic_ids(request, {"a": B, "b": B}.__getitem__)
        asked = cast("TxnOffsetCommitRequest", sent.request)
        assert [topic.topic_id for topic in asked.topics] == [A, B if version == 2 else ZERO_UUID]
        with pytest.raises(CommitFailed, match="topic 'a' was deleted and created again"):
            check_topic_ids(sent, {"a": B, "b": B}.__getitem__, NO_ERROR)


def test_an_error_names_the_topic_that_the_answer_has_by_id() -> None:
    sent = with_topic_ids(by_name(), {"a": A, "b": B}.__getitem__)
    partition = TxnOffsetCommitResponsePartition(partition_index=1, error_code=100)
    with pytest.raises(UnknownTopicId, match="TxnOffsetCommit of b-1 for group 'g'"):
        sent.check(TxnOffsetCommitResponse(topics=[TxnOffsetCommitResponseTopic(topic_id=B, partitions=[partition])]))


def test_offsets_of_a_topic_that_was_created_again_are_not_committed() -> None:
    sent = with_topic_ids(by_name(), {"a": A, "b": B}.__getitem__)
    check_topic_ids(sent, {"a": A, "b": B}.__getitem__, NO_ERROR)
    with pytest.raises(CommitFailed, match="topic 'b' was deleted and created again"):
        check_topic_ids(sent, {"a": A, "b": A}.__getitem__, NO_ERROR)
    check_topic_ids(by_name(), {"a": B, "b": A}.__getitem__, NO_ERROR)


@pytest.mark.parametrize("error", [None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])
def test_offsets_of_a_topic_that_is_missing_wait(error: int | None) -> None:
    """By its name, a coordinator before 4.4 would take a new topic for the old one."""
    sent = with_topic_ids(by_name(), {"a": A, "b": B}.__getitem__)
    known = {"a": A, "b": ZERO_UUID}.__getitem__
    with pytest.raises(UnknownTopicOrPartition, match="TxnOffsetCommit of 'b'"):
        check_topic_ids(sent, known, {"a": 0, "b": error}.__getitem__)
    check_topic_ids(sent, known, NO_ERROR)  # metadata of a broker before 2.8, which has no ids


@pytest.mark.anyio
@pytest.mark.parametrize(("release", "version"), [("4.4", 6), ("4.3", 5)])
async def test_a_coordinator_gets_ids_if_it_knows_them(release: str, version: int) -> None:
    async with Broker(max_versions=release) as broker, Client(broker.bootstrap) as kafka:
        broker.create_topic("a")
        async with kafka.producer(transactional_id="t1") as producer:
            async with producer.transaction() as transaction:
                await transaction.send("a", b"v")
                await transaction.commit_offsets({TopicPartition("a", 0): 3}, group="g")
            [call] = broker.requests.of(ApiKey.TXN_OFFSET_COMMIT)
        assert call.version == version
        [topic] = call.request.topics
        assert (topic.topic_id != ZERO_UUID) == (version == 6)
        found = await kafka.admin.list_consumer_group_offsets("g")
        assert found[TopicPartition("a", 0)].offset == 3


@pytest.mark.anyio
async def test_a_topic_that_was_created_again_meanwhile_aborts_the_transaction() -> None:
    async with Broker(max_versions="4.4") as broker, Client(broker.bootstrap) as kafka:
        broker.create_topic("a")
        async with kafka.producer(transactional_id="t1") as producer:
            await producer.partitions_for("a")
            async with Client(broker.bootstrap) as other:
                await other.admin.delete_topics(["a"])
                await other.admin.create_topics({"a": 1})
            with pytest.raises(CommitFailed, match="topic 'a' was deleted and created again"):
                async with producer.transaction() as transaction:
                    await transaction.commit_offsets({TopicPartition("a", 0): 3}, group="g")
