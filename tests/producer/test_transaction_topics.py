"""The transaction machine, and topics that are deleted and created anew during a transaction."""

from collections.abc import Callable
from uuid import UUID

import pytest
from support.transaction_answers import Coordinators

from aiokafkawire.errors import UnknownTopicId
from aiokafkawire.producer.transaction_state_machine import TransactionPhase, TransactionStateMachine
from aiokafkawire.protocol.primitives import ZERO_UUID
from aiokafkawire.types import TopicPartition

A = TopicPartition("a", 0)
OLD, NEW = UUID(int=1), UUID(int=2)


def named(topic_id: UUID) -> Callable[[str], UUID]:
    """A snapshot in which every topic has this id."""
    return lambda topic: topic_id


@pytest.fixture
def machine() -> TransactionStateMachine:
    """A machine in a transaction that has a batch in the old topic."""
    coordinators = Coordinators()
    machine = coordinators.ready()
    machine.begin(2)
    machine.add_partition(A)
    coordinators.run(machine)
    assert machine.may_send(A)
    machine.batch_written("a", OLD)
    return machine


def test_a_new_topic_leaves_an_abort_alone(machine: TransactionStateMachine) -> None:
    machine.check_topic_ids(named(NEW))
    assert isinstance(machine.error, UnknownTopicId)
    with pytest.raises(UnknownTopicId, match="topic 'a' was deleted and made again during the transaction"):
        machine.commit()
    machine.abort()
    assert machine.phase is TransactionPhase.ABORTING


def test_a_new_topic_stops_a_commit_that_was_not_asked_for_yet(machine: TransactionStateMachine) -> None:
    machine.commit()
    machine.check_topic_ids(named(NEW))
    assert machine.phase is TransactionPhase.OPEN
    assert isinstance(machine.error, UnknownTopicId)


def test_a_commit_that_was_asked_for_stays(machine: TransactionStateMachine) -> None:
    machine.commit()
    assert machine.next_request() is not None
    machine.check_topic_ids(named(NEW))
    assert machine.error is None
    assert machine.phase is TransactionPhase.COMMITTING


@pytest.mark.parametrize("topic_id", [OLD, ZERO_UUID])
def test_the_same_topic_or_an_unknown_one_changes_nothing(machine: TransactionStateMachine, topic_id: UUID) -> None:
    machine.check_topic_ids(named(topic_id))
    assert machine.error is None


def test_the_next_transaction_knows_nothing_of_the_old_topic() -> None:
    coordinators = Coordinators()
    machine = coordinators.ready()
    machine.begin(2)
    machine.add_partition(A)
    coordinators.run(machine)
    machine.may_send(A)
    machine.batch_written("a", OLD)
    machine.commit()
    coordinators.run(machine)
    machine.begin(2)
    machine.check_topic_ids(named(NEW))
    assert machine.error is None
