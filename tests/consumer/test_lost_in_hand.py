"""What is taken away while the user holds records of it is not committed, whatever is assigned meanwhile."""

from __future__ import annotations

import logging

import anyio
import pytest
from support.clusters import QUICK
from support.virtual_time import virtual_time

from aiokafkawire import Client, CommitFailed, OffsetAndMetadata, TopicPartition
from aiokafkawire.consumer.subscription_state import SubscriptionState
from aiokafkawire.producer.transaction_state_machine import TransactionPhase, TransactionStateMachine
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.broker import Broker
from aiokafkawire.types import GroupMetadata, ProducerIdentity

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
FIRST = GroupMetadata("g", 1, "me")


def holding(*partitions: TopicPartition) -> SubscriptionState:
    """Partitions of which the user holds the records 3 and 4."""
    positions = SubscriptionState(None, in_group=True)
    positions.add([A0, A1])
    for partition in partitions:
        place = positions.require(partition)
        place.position = 3
        place.hold()
        place.position = 5
    return positions


def test_only_what_is_in_hand_is_lost() -> None:
    positions = holding(A0)
    (lost,) = positions.revoke([A0, A1], FIRST, "it was evicted", 1.0)
    assert (lost.state.partition, lost.group) == (A0, FIRST)
    assert positions.assigned == ()
    positions.require_not_lost([A1])
    for partitions in (None, [A0, A1]):
        with pytest.raises(CommitFailed, match=r"a-0: .* in group 'g', since it was evicted\. "):
            positions.require_not_lost(partitions)


def test_a_partition_that_is_assigned_again_is_another_place() -> None:
    positions = holding(A0)
    positions.revoke([A0, A1], FIRST, "it was evicted", 1.0)
    positions.add([A0])
    positions.require(A0).position = 0
    assert positions.to_commit() == {A0: OffsetAndMetadata(5)}
    # It is lost again, while the same records are in hand.
    assert positions.revoke([A0], GroupMetadata("g", 2, "me"), "it was evicted again", 2.0) == ()
    assert positions.lost_in_hand[A0].group == FIRST
    positions.lost_in_hand.clear()
    assert positions.to_commit() == {}


def test_what_was_handed_out_is_known_through_seeks() -> None:
    positions = holding(A0)
    place = positions.require(A0)
    assert [place.has_handed_out(offset) for offset in (2, 3, 4, 5)] == [False, True, True, False]
    positions.seek(A0, 1)
    assert [place.has_handed_out(offset) for offset in (2, 3, 4, 5)] == [False, True, True, False]
    place.hold()
    place.position = 2
    assert [place.has_handed_out(offset) for offset in (0, 1, 4, 5)] == [False, True, True, False]
    assert not positions.require(A1).has_handed_out(0)


def test_a_transaction_that_has_to_be_aborted_cannot_be_committed() -> None:
    machine = TransactionStateMachine("t", 1000, ProducerIdentity("t", 1, 1, 2))
    machine.begin(2)
    machine.must_abort(CommitFailed("no longer"))
    for act in (machine.commit, lambda: machine.must_abort(CommitFailed("again"))):
        with pytest.raises(CommitFailed, match="no longer"):
            act()
    machine.abort()
    assert machine.phase is not TransactionPhase.OPEN


@pytest.mark.anyio
@virtual_time
@pytest.mark.parametrize("waits_for", ["another commit", "the coordinator"])
async def test_a_commit_that_waits_while_the_partition_goes_and_comes_back_fails(waits_for: str) -> None:
    async with Broker(port=None) as broker:
        broker.create_topic("a")
        async with Client(broker.bootstrap, connector=broker.connect, **QUICK) as client:
            async with client.producer() as producer:
                await producer.send_many("a", [b"0", b"1"])
            assigned, failures = anyio.Event(), list[str]()
            async with (
                client.consumer(group_id="g", enable_auto_commit=False, auto_offset_reset="earliest") as consumer,
                anyio.create_task_group() as tasks,
            ):
                consumer.subscribe("a", on_assigned=lambda _: assigned.set())
                await anext(consumer)
                assigned = anyio.Event()

                async def commit(offset: int) -> None:
                    try:
                        await consumer.commit({A0: offset})
                    except CommitFailed as error:
                        failures.append(str(error))

                broker.on(ApiKey.OFFSET_COMMIT, delay=20, times=1)
                tasks.start_soon(commit, 1)
                await anyio.sleep(0.1)
                if waits_for == "another commit":
                    tasks.start_soon(commit, 2)
                    await anyio.sleep(0.1)
                await client.admin.remove_members("g")
                await assigned.wait()
            assert len(failures) == (2 if waits_for == "another commit" else 1)
            assert (await client.admin.list_consumer_group_offsets("g")) == {}


@pytest.mark.anyio
@virtual_time
async def test_a_loss_is_warned_of_once_and_only_with_records_in_hand(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "aiokafkawire")
    async with Broker(port=None) as broker:
        broker.create_topic("a")
        async with Client(broker.bootstrap, connector=broker.connect, **QUICK) as client:
            async with client.producer() as producer:
                await producer.send("a", b"0")
            assigned = anyio.Event()
            async with client.consumer(group_id="g", auto_offset_reset="earliest") as consumer:
                consumer.subscribe("a", on_assigned=lambda _: assigned.set())
                await anext(consumer)
                for expected in (1, 1):
                    assigned = anyio.Event()
                    await client.admin.remove_members("g")
                    await assigned.wait()
                    told = [
                        record.getMessage() for record in caplog.records if "revoked a-0 while" in record.getMessage()
                    ]
                    assert len(told) == expected
                assert "UnknownMemberId" in told[0]
