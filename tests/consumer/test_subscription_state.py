"""Positions move by seeks, lookups and resets, and what was asked before counts no more."""

import pytest

from aiokafkawire.consumer.subscription_state import SubscriptionState
from aiokafkawire.errors import CommitFailed, UsageError
from aiokafkawire.types import OffsetSpec, TopicPartition

ONE, TWO = TopicPartition("a", 0), TopicPartition("a", 1)


def test_a_start_may_be_an_offset_a_spec_or_the_default() -> None:
    positions = SubscriptionState(OffsetSpec.LATEST)
    positions.assign({ONE: 5, TWO: OffsetSpec.at(7), TopicPartition("b", 0): None})
    assert [(place.position, place.spec) for place in positions] == [
        (5, None),
        (None, OffsetSpec.at(7)),
        (None, OffsetSpec.LATEST),
    ]
    assert [place.partition for place in positions.to_look_up()] == [TWO, TopicPartition("b", 0)]


def test_a_partition_that_stays_keeps_its_place() -> None:
    positions = SubscriptionState(OffsetSpec.LATEST)
    positions.assign({ONE: 5})
    place = positions.require(ONE)
    place.position = 9
    positions.assign({ONE: None, TWO: None})
    assert positions.get(ONE) is place
    positions.assign({TWO: None})
    assert positions.get(ONE) is None
    positions.assign({ONE: 1})
    assert positions.get(ONE) is not place


def test_a_seek_begins_another_epoch() -> None:
    positions = SubscriptionState(None)
    positions.assign({ONE: 5})
    before = positions.require(ONE).epoch
    positions.seek(ONE, 7)
    assert positions.require(ONE).epoch != before
    assert positions.require(ONE).position == 7
    positions.seek(ONE, OffsetSpec.EARLIEST)
    assert positions.require(ONE).position is None


def test_in_a_group_what_is_committed_comes_before_the_default() -> None:
    positions = SubscriptionState(OffsetSpec.LATEST, in_group=True)
    positions.assign({ONE: 5, TWO: None})
    assert [(place.ask_group, place.spec) for place in positions] == [(False, None), (True, OffsetSpec.LATEST)]
    positions.assign({ONE: None, TWO: OffsetSpec.EARLIEST})
    assert [(place.ask_group, place.position) for place in positions] == [(False, 5), (False, None)]
    positions.assign({TWO: None, TopicPartition("b", 0): None})
    assert positions.require(TopicPartition("b", 0)).ask_group
    positions.reset(positions.require(TopicPartition("b", 0)))  # what is committed is out of range
    assert not positions.require(TopicPartition("b", 0)).ask_group


@pytest.mark.parametrize("in_group", [True, False])
def test_a_partition_that_appears_is_read_from_its_beginning(in_group: bool) -> None:
    positions = SubscriptionState(OffsetSpec.LATEST, in_group=in_group)
    positions.assign({ONE: 5})
    before = positions.require(ONE)
    positions.appeared([TWO])
    assert positions.assigned == (ONE, TWO)
    assert positions.require(ONE) is before
    appeared = positions.require(TWO)
    assert (appeared.spec, appeared.ask_group, appeared.epoch) == (OffsetSpec.EARLIEST, in_group, before.epoch + 1)


def test_epochs_are_never_used_twice() -> None:
    positions = SubscriptionState(None)
    positions.assign({ONE: 5})
    before = positions.require(ONE).epoch
    positions.assign({})
    positions.assign({ONE: 5})
    assert positions.require(ONE).epoch != before


def test_a_reset_needs_a_default() -> None:
    positions = SubscriptionState(OffsetSpec.EARLIEST)
    positions.assign({ONE: 5})
    assert positions.reset(positions.require(ONE))
    assert positions.require(ONE).spec == OffsetSpec.EARLIEST
    without = SubscriptionState(None)
    without.assign({ONE: 5})
    assert not without.reset(without.require(ONE))
    assert without.require(ONE).position == 5


def test_what_is_not_assigned_is_named_with_what_is() -> None:
    positions = SubscriptionState(None)
    positions.assign({TopicPartition("a", number): 0 for number in range(8)})
    with pytest.raises(UsageError, match=r"b-0 is not assigned.*a-0, a-1, a-2, a-3, a-4 and 3 more"):
        positions.seek(TopicPartition("b", 0), 0)


def test_what_an_assignment_changes_is_what_goes_and_what_comes() -> None:
    positions = SubscriptionState(None)
    other = TopicPartition("b", 0)
    positions.add([ONE, TWO])
    assert positions.changes_to((TWO, ONE)) == ((), ())
    assert positions.changes_to((other, TWO, other)) == ((ONE,), (other,))
    assert positions.changes_to(()) == ((ONE, TWO), ())
    assert positions.assigned == (ONE, TWO)


def test_a_revocation_with_records_in_hand_is_not_forgotten_when_the_partition_is_revoked_again_without_any() -> None:
    partition = TopicPartition("a", 0)
    states = SubscriptionState(OffsetSpec.EARLIEST, in_group=True)
    states.add([partition])
    state = states.require(partition)
    state.position = 5
    state.hold()
    assert states.revoke([partition], None, "the first reason", now=10.0)
    states.add([partition])
    assert not states.revoke([partition], None, "the second reason", now=20.0)
    for began in (0.0, 10.0):
        with pytest.raises(CommitFailed, match="the first reason"):
            states.require_not_revoked_since(began)
    states.require_not_revoked_since(10.1)
    states.add([partition])
    states.require(partition).returned_at = 25.0
    assert not states.revoke([partition], None, "the third reason", now=30.0)
    with pytest.raises(CommitFailed, match="the third reason"):
        states.require_not_revoked_since(25.0)
    states.require_not_revoked_since(25.1)
