"""A position belongs to the topic that it was fetched from, not to another topic of the same name."""

from __future__ import annotations

import logging
from uuid import UUID

import pytest
from support.clusters import metadata, partition, topic

from aiokafkawire.cluster.metadata import EMPTY, Snapshot, merge
from aiokafkawire.consumer.completed_fetch import PartitionFetch
from aiokafkawire.consumer.pending_errors import PendingErrors
from aiokafkawire.consumer.recreated_topics import RecreatedTopics, is_of_old_topic
from aiokafkawire.consumer.subscription_state import PartitionState, SubscriptionState
from aiokafkawire.errors import LogTruncated
from aiokafkawire.protocol.primitives import ZERO_UUID
from aiokafkawire.types import OffsetSpec, TopicPartition

WHERE = TopicPartition("t", 0)
OLD, NEW = UUID(int=1), UUID(int=2)


def snapshot(topic_id: UUID) -> Snapshot:
    return merge(EMPTY, metadata(topic("t", partition(0), topic_id=topic_id)))


class World:
    """A consumer that reads one partition from offset 5 on."""

    def __init__(self, default: OffsetSpec | None = OffsetSpec.EARLIEST) -> None:
        self.positions = SubscriptionState(default)
        self.errors = PendingErrors(self.positions, 1.0)
        self.topics = RecreatedTopics(self.positions, self.errors)
        self.positions.assign({WHERE: 5})

    def at(self) -> int | None:
        return self.state.position

    @property
    def state(self) -> PartitionState:
        return self.positions.require(WHERE)

    def fetch(self, topic_id: UUID, epoch: int | None = None) -> None:
        ask = PartitionFetch(self.state, self.state.epoch if epoch is None else epoch, 5)
        self.topics.fetched([ask], snapshot(topic_id))


def test_another_id_resets_what_was_fetched_from_the_old_topic(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.fetch(OLD)
    world.topics.check(snapshot(OLD))
    world.topics.check(EMPTY)  # it is deleted
    world.topics.check(snapshot(ZERO_UUID))
    assert world.at() == 5
    world.topics.check(snapshot(NEW))
    assert (world.at(), world.state.spec) == (None, OffsetSpec.EARLIEST)
    (line,) = caplog.records
    assert line.levelno == logging.WARNING
    assert line.getMessage() == (
        f"topic 't' was deleted and created again (its id was {OLD}, and is {NEW} now): the positions in t-0 are those "
        "of the old topic, so auto_offset_reset decides where to read the new one"
    )
    assert world.positions.vanished == {OLD}


def test_a_position_that_was_never_fetched_is_kept() -> None:
    world = World()
    world.topics.check(snapshot(OLD))
    world.topics.check(snapshot(NEW))
    assert world.at() == 5
    world.fetch(ZERO_UUID)  # from a broker without topic ids
    world.topics.check(snapshot(NEW))
    assert world.at() == 5


def test_a_seek_is_to_whichever_topic_is_read_next() -> None:
    world = World()
    world.fetch(OLD)
    before = world.state.epoch
    world.positions.seek(WHERE, 7)
    world.fetch(OLD, before)  # the answer to a request before the seek
    world.topics.check(snapshot(NEW))
    assert world.at() == 7


def test_a_broker_that_lags_behind_does_not_bring_the_old_topic_back() -> None:
    world = World()
    world.fetch(OLD)
    world.topics.check(snapshot(NEW))
    world.positions.seek(WHERE, 3)
    world.fetch(NEW)
    world.topics.check(snapshot(OLD))
    assert world.at() == 3
    assert not is_of_old_topic(world.positions, world.state, snapshot(OLD))


def test_without_a_reset_an_error_names_the_position() -> None:
    world = World(None)
    world.fetch(OLD)
    world.topics.check(snapshot(NEW))
    world.topics.check(snapshot(NEW))
    error = world.errors.next()
    assert isinstance(error, LogTruncated)
    assert str(error) == (
        "the topic of t-0 was deleted and created again after it was read up to offset 5; auto_offset_reset is "
        "'none', so call seek()"
    )
    assert (error.partition, error.position) == (WHERE, 5)
    assert world.errors.next() is None
    assert world.state.lost


def test_what_is_assigned_by_id_is_withheld_until_it_is_lost(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.positions.assign({})
    world.positions.add([WHERE], ids={"t": OLD})
    world.state.position = 5
    world.topics.check(snapshot(OLD))
    assert not world.state.withheld
    world.topics.check(snapshot(NEW))
    assert world.state.withheld
    assert world.at() == 5
    assert not caplog.records
