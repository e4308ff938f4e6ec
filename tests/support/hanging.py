"""Transactions that hang: batches in the log of a partition that the transaction's coordinator does not know of."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

from support.raw_client import RawClient, batch_of
from support.transactional import settled

from aiokafkawire import Client, ConfigResource
from aiokafkawire.errors import ErrorCode

__all__ = ("HOUR", "hang", "unverified")

HOUR = 3_600_000  # ms
_VERIFICATION = "transaction.partition.verification.enable"
_REFUSED = (
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.NOT_ENOUGH_REPLICAS,
)
"""What brokers answer that ask the coordinator, the last if there is none yet."""
_new_producer_ids = count(9_000_000)


@asynccontextmanager
async def unverified(kafka: Client) -> AsyncIterator[None]:
    """While open, brokers append transactional batches without asking the coordinator, as brokers before 3.6 did."""
    broker = ConfigResource.broker(1)
    await kafka.admin.incremental_alter_configs({broker: {_VERIFICATION: "false"}})
    try:
        yield
    finally:
        await kafka.admin.incremental_alter_configs({broker: {_VERIFICATION: None}})


async def hang(
    client: RawClient, topic: str, *, producer_id: int | None = None, partition: int = 0, age_ms: int = HOUR
) -> int:
    """Write a batch of a transaction that no coordinator knows of; its producer id, by default one of nobody.

    It takes a moment until a broker does without verification.
    """
    chosen = next(_new_producer_ids) if producer_id is None else producer_id
    batch = batch_of(
        b"hanging",
        timestamp=time.time_ns() // 1_000_000 - age_ms,
        producer_id=chosen,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    answer = await settled(
        lambda: client.produce(topic, batch, partition=partition, version=11, transactional_id="hanging"),
        lambda answer: answer.error_code not in _REFUSED,
    )
    assert answer.error_code == 0, ErrorCode(answer.error_code).name
    return chosen
