"""A transactional producer for contract tests: requests by name, nothing decided, nothing retried but what must be."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, TypeVar

import anyio
import attrs
from support.raw_client import RawClient, batch_of

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.fetch import PartitionData
from aiokafkawire.protocol.messages.group import FindCoordinatorRequest
from aiokafkawire.protocol.messages.produce import PartitionProduceResponse
from aiokafkawire.protocol.messages.transaction_admin import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    DescribeTransactionsResponseTransactionState,
    PartitionResponse,
    TopicRequest,
)
from aiokafkawire.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

from .patience import PATIENCE

__all__ = ("TransactionalProducer", "aborted_of", "coordinated", "producers_of", "settled", "state_of")

READ_COMMITTED = 1

_NOT_YET = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
_names = (f"transaction-{number}" for number in count())

R = TypeVar("R")


async def settled(ask: Callable[[], Awaitable[R]], is_settled: Callable[[R], bool]) -> R:
    """Ask until the answer is such: markers are written a moment after the end of a transaction was answered."""
    with anyio.fail_after(PATIENCE):
        while True:
            answer = await ask()
            if is_settled(answer):
                return answer
            await anyio.lowlevel.checkpoint()


async def coordinated(client: RawClient, key: str, key_type: int = 1) -> None:
    """Wait until there is a coordinator; the first time the brokers make a topic for it."""
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    await settled(lambda: client.ask(request, 4), lambda answer: not answer.coordinators[0].error_code)


async def state_of(client: RawClient, transactional_id: str) -> DescribeTransactionsResponseTransactionState:
    """The transaction, once it is not being completed."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    answer = await settled(
        lambda: client.ask(request, 0), lambda answer: "Prepare" not in answer.transaction_states[0].transaction_state
    )
    return answer.transaction_states[0]


async def producers_of(client: RawClient, topic: str, partition: int = 0) -> PartitionResponse:
    """What the partition remembers of producers."""
    topics = [TopicRequest(name=topic, partition_indexes=[partition])]
    return (await client.ask(DescribeProducersRequest(topics=topics), 0)).topics[0].partitions[0]


def aborted_of(data: PartitionData) -> list[tuple[int, int]]:
    """The aborted transactions of a fetched partition, as producer id and first offset."""
    return [(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()]


@attrs.define
class TransactionalProducer:
    """A transactional id, and the producer id and epoch that it has."""

    client: RawClient
    transactional_id: str = attrs.Factory(lambda: next(_names))
    producer_id: int = -1
    epoch: int = -1
    timeout_ms: int = 60_000
    _sequences: dict[tuple[str, int, int, int], int] = attrs.Factory(dict)

    async def initialized(self) -> TransactionalProducer:
        """With its id and epoch."""
        await coordinated(self.client, self.transactional_id)
        answer = await settled(
            self.initialize, lambda answer: answer.error_code not in (*_NOT_YET, ErrorCode.CONCURRENT_TRANSACTIONS)
        )
        assert answer.error_code == 0, ErrorCode(answer.error_code).name
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return self

    async def initialize(self, version: int = 5, **fields: Any) -> InitProducerIdResponse:
        """InitProducerId, once."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=self.timeout_ms, **fields
        )
        return await self.client.ask(request, version)

    def batch(self, topic: str, *values: bytes, partition: int = 0, transactional: bool = True) -> bytes:
        """The next batch for a partition, of this moment: one of 1970 would begin a new segment."""
        key = (topic, partition, self.producer_id, self.epoch)
        sequence = self._sequences.get(key, 0)
        self._sequences[key] = sequence + len(values)
        return batch_of(
            *values,
            timestamp=time.time_ns() // 1_000_000,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=transactional,
        )

    async def send(self, topic: str, *values: bytes, partition: int = 0, version: int = 12) -> PartitionProduceResponse:
        """Produce, again while the transaction before is being completed."""
        batch = self.batch(topic, *values, partition=partition)
        return await settled(
            lambda: self.produce(topic, batch, partition=partition, version=version),
            lambda answer: answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS,
        )

    async def produce(
        self, topic: str, batch: bytes, *, partition: int = 0, version: int = 12
    ) -> PartitionProduceResponse:
        """Produce a batch as it is."""
        return await self.client.produce(
            topic, batch, partition=partition, version=version, transactional_id=self.transactional_id
        )

    async def add(self, *partitions: tuple[str, int], version: int = 3) -> dict[tuple[str, int], int]:
        """AddPartitionsToTxn, again while the transaction before is being completed; the error of each."""
        topics: dict[str, list[int]] = {}
        for topic, index in partitions:
            topics.setdefault(topic, []).append(index)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=indexes) for topic, indexes in topics.items()
            ],
        )

        async def ask() -> dict[tuple[str, int], int]:
            answer = await self.client.ask(request, version)
            return {
                (topic.name, one.partition_index): one.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for one in topic.results_by_partition
            }

        return await settled(ask, lambda errors: ErrorCode.CONCURRENT_TRANSACTIONS not in errors.values())

    async def add_offsets(self, group: str, version: int = 3) -> int:
        """AddOffsetsToTxn, in the same way."""
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group,
        )
        answer = await settled(
            lambda: self.client.ask(request, version),
            lambda answer: answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS,
        )
        return answer.error_code

    async def commit_offset(self, group: str, topic: str, offset: int, version: int = 5, **fields: Any) -> int:
        """TxnOffsetCommit for one partition, in the same way; its error."""
        asked = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="noted")
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[asked])],
            **fields,
        )
        answer = await settled(
            lambda: self.client.ask(request, version),
            lambda answer: (
                answer.topics[0].partitions[0].error_code not in (ErrorCode.CONCURRENT_TRANSACTIONS, *_NOT_YET)
            ),
        )
        return answer.topics[0].partitions[0].error_code

    async def end(self, commit: bool, version: int = 5) -> EndTxnResponse:
        """EndTxn, in the same way; its new epoch is not taken up."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        return await settled(
            lambda: self.client.ask(request, version),
            lambda answer: answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS,
        )

    async def ended(self, commit: bool, version: int = 5) -> None:
        """The transaction has ended, its markers are written, and the next one has its epoch."""
        answer = await self.end(commit, version)
        assert answer.error_code == 0, ErrorCode(answer.error_code).name
        if version >= 5:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        await state_of(self.client, self.transactional_id)
