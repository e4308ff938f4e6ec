"""Answers of coordinators that lack a partition: without an answer, it is not part of the transaction."""

from __future__ import annotations

import pytest

from aiokafkawire import Client, TopicPartition
from aiokafkawire.errors import WireError
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio


def only_first_offset(request: TxnOffsetCommitRequest, response: TxnOffsetCommitResponse) -> TxnOffsetCommitResponse:
    del response.topics[0].partitions[1:]
    return response


def nothing_added(
    request: AddPartitionsToTxnRequest, response: AddPartitionsToTxnResponse
) -> AddPartitionsToTxnResponse:
    response.results_by_topic_v3_and_below = []
    return response


@pytest.mark.parametrize("release", ["4.4", "4.3", "3.9"])  # by topic ids, by names, and in version 1
async def test_offsets_without_an_answer_are_not_committed(release: str) -> None:
    async with Broker(max_versions=release) as broker, Client(broker.bootstrap) as kafka:
        broker.create_topic("a", 2)
        offsets = {TopicPartition("a", 0): 3, TopicPartition("a", 1): 4}
        async with kafka.producer(transactional_id="t1") as producer:
            partial = broker.on(ApiKey.TXN_OFFSET_COMMIT, answer=only_first_offset)
            with pytest.raises(WireError, match="the TxnOffsetCommit response for group 'g' lacks a-1"):
                async with producer.transaction() as transaction:
                    await transaction.send("a", b"aborted", partition=0)
                    await transaction.commit_offsets(offsets, group="g")
            assert partial.is_met
            assert not await kafka.admin.list_consumer_group_offsets("g")
            async with producer.transaction() as transaction:
                await transaction.commit_offsets(offsets, group="g")
        committed = await kafka.admin.list_consumer_group_offsets("g")
        assert {at: found.offset for at, found in committed.items()} == offsets


async def test_a_partition_without_an_answer_gets_no_records() -> None:
    async with Broker(max_versions="3.9") as broker, Client(broker.bootstrap) as kafka:
        broker.create_topic("a")
        async with kafka.producer(transactional_id="t1") as producer:
            partial = broker.on(ApiKey.ADD_PARTITIONS_TO_TXN, answer=nothing_added)
            with pytest.raises(WireError, match="the AddPartitionsToTxn response lacks a-0"):
                async with producer.transaction() as transaction:
                    await transaction.send("a", b"aborted")
            assert partial.is_met
            assert not broker.requests.of(ApiKey.PRODUCE)
            async with producer.transaction() as transaction:
                await transaction.send("a", b"committed")
