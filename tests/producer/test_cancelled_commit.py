"""A call that is cancelled at the very moment at which its transaction is committed."""

from __future__ import annotations

import anyio
import pytest
from support.patience import SOON

from aiokafkawire import Client
from aiokafkawire.observe import Observer, TransactionEnded
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio


async def test_the_next_transaction_is_not_aborted_instead() -> None:
    ended: list[bool] = []
    scope = anyio.CancelScope()

    class Cancels(Observer):
        def transaction_ended(self, event: TransactionEnded) -> None:
            ended.append(event.is_committed)
            scope.cancel()

    async with (
        Broker() as broker,
        Client(broker.bootstrap, observers=[Cancels()]) as kafka,
        kafka.producer(transactional_id="x") as producer,
    ):
        broker.create_topic("t")
        with anyio.fail_after(SOON):
            with scope:
                async with producer.transaction() as transaction:
                    await transaction.send("t", b"first")
            assert scope.cancelled_caught
            async with producer.transaction() as transaction:
                await transaction.send("t", b"second")
            assert ended == [True, True]
            async with kafka.consumer("t", auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
                assert [(await anext(consumer)).value for _ in range(2)] == [b"first", b"second"]
