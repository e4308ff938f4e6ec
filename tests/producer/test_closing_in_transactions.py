"""A producer that is closed while its transaction is open, or is being committed."""

from __future__ import annotations

import anyio
import pytest
from support.patience import SOON

from aiokafkawire import Client, UsageError
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.broker import Broker

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("release", ["4.3", "3.9"])]  # versions 2 and 1


async def states(kafka: Client) -> list[str]:
    """The states of all transactional ids at their coordinators."""
    return [transaction.state for transaction in await kafka.admin.list_transactions()]


async def test_a_commit_whose_caller_was_cancelled_is_completed(release: str) -> None:
    async with (
        Broker(max_versions=release) as broker,
        Client(broker.bootstrap) as kafka,
        anyio.create_task_group() as tasks,
    ):
        broker.create_topic("t")
        rule = broker.on(ApiKey.END_TXN, answer=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

        async def cancel(scope: anyio.CancelScope) -> None:
            await rule.met()
            scope.cancel()

        with anyio.fail_after(SOON), anyio.CancelScope() as scope:
            tasks.start_soon(cancel, scope)
            async with kafka.producer(transactional_id="x") as producer, producer.transaction() as transaction:
                await transaction.send("t", b"0")
        assert scope.cancelled_caught
        assert await states(kafka) == ["CompleteCommit"]


async def test_a_transaction_that_is_open_is_aborted(release: str) -> None:
    async with Broker(max_versions=release) as broker, Client(broker.bootstrap) as kafka:
        broker.create_topic("t")
        with anyio.fail_after(SOON):
            async with kafka.producer(transactional_id="x") as producer:
                with pytest.raises(UsageError, match="closing the producer has aborted the transaction"):
                    async with producer.transaction() as transaction:
                        await transaction.send("t", b"0")
                        await producer.close()
                assert await states(kafka) == ["CompleteAbort"]


async def test_an_error_of_the_body_is_raised_as_it_is(release: str) -> None:
    async with Broker(max_versions=release) as broker, Client(broker.bootstrap) as kafka:
        broker.create_topic("t")
        with anyio.fail_after(SOON), pytest.raises(ZeroDivisionError) as failed:
            async with kafka.producer(transactional_id="x") as producer, producer.transaction() as transaction:
                await transaction.send("t", b"0")
                await producer.close()
                raise ZeroDivisionError
        assert not hasattr(failed.value, "__notes__")


async def test_a_client_that_was_closed_before_makes_nobody_wait(release: str) -> None:
    async with Broker(max_versions=release) as broker, Client(broker.bootstrap) as kafka:
        broker.create_topic("t")
        with anyio.fail_after(SOON):
            async with kafka.producer(transactional_id="x") as producer:
                transaction = producer.transaction()
                await transaction.__aenter__()
                await transaction.send("t", b"0")
                await kafka.close()
                await producer.close()
