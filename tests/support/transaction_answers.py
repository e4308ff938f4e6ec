"""Coordinators that a transaction machine can be driven with, one answer at a time, without a broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from aiokafkawire.errors import BrokerError
from aiokafkawire.producer.transaction_state_machine import (
    TransactionPhase,
    TransactionRequest,
    TransactionStateMachine,
)
from aiokafkawire.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from aiokafkawire.protocol.schema import Response
from aiokafkawire.types import ProducerIdentity

__all__ = ("Coordinators", "name_of")


def name_of(ask: TransactionRequest | None) -> str | None:
    """The request; with what EndTxn asks for, and whether InitProducerId goes on from an epoch."""
    if ask is None:
        return None
    request: Any = ask.request
    name = type(request).__name__.removesuffix("Request")
    if isinstance(request, EndTxnRequest):
        return f"{name}({'commit' if request.committed else 'abort'})"
    if isinstance(request, InitProducerIdRequest) and request.producer_id >= 0:
        return f"{name}(bump)"
    return name


@attrs.define
class Coordinators:
    """Do what they are asked, for one transactional id, and give out epochs as brokers do."""

    producer_id: int = 7
    epoch: int = -1

    def ready(self, identity: ProducerIdentity | None = None) -> TransactionStateMachine:
        """A machine that has its producer id."""
        machine = TransactionStateMachine("shop", 60_000, identity)
        self.run(machine)
        assert machine.phase is TransactionPhase.READY
        return machine

    def run(self, machine: TransactionStateMachine) -> list[str | None]:
        """Answer until nothing is due; what was asked."""
        asked = []
        while (ask := machine.next_request()) is not None:
            asked.append(name_of(ask))
            machine.succeeded(ask, self.answer(ask))
        return asked

    def tell(self, machine: TransactionStateMachine, ask: TransactionRequest, *codes: int) -> None:
        """Answer with these errors, as whoever drives the machine does."""
        answer = self.answer(ask, *codes)
        try:
            ask.check(answer)
        except BrokerError as error:
            machine.failed(ask, error)
        else:
            machine.succeeded(ask, answer)

    def answer(self, ask: TransactionRequest, *codes: int) -> Response:
        """The answer; with ``codes`` it carries errors, one for each partition or for all."""
        request: Any = ask.request
        error = codes[0] if codes else 0
        if isinstance(request, InitProducerIdRequest | EndTxnRequest) and not error:
            self.epoch += isinstance(request, InitProducerIdRequest) or ask.versions.first >= 5
        if isinstance(request, InitProducerIdRequest):
            return InitProducerIdResponse(error_code=error, producer_id=self.producer_id, producer_epoch=self.epoch)
        if isinstance(request, EndTxnRequest):
            if ask.versions.first < 5:
                return EndTxnResponse(error_code=error)
            return EndTxnResponse(error_code=error, producer_id=self.producer_id, producer_epoch=self.epoch)
        if isinstance(request, AddOffsetsToTxnRequest):
            return AddOffsetsToTxnResponse(error_code=error)
        return _of_partitions(request, codes)


def _of_partitions(request: Any, codes: Sequence[int]) -> Response:
    left = list(codes)

    def next_error() -> int:
        if not left:
            return 0
        return left.pop(0) if len(left) > 1 else left[0]

    if isinstance(request, AddPartitionsToTxnRequest):
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=next_error())
                        for index in topic.partitions
                    ],
                )
                for topic in request.v3_and_below_topics
            ]
        )
    assert isinstance(request, TxnOffsetCommitRequest)
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=next_error())
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
