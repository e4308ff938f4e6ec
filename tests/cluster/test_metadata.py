"""Snapshots of the cluster, each made from the one before and an answer."""

from uuid import UUID

import attrs
import pytest
from support.clusters import metadata, partition, topic

from aiokafkawire.cluster.metadata import EMPTY, Node, Snapshot, merge
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from aiokafkawire.protocol.primitives import ZERO_UUID
from aiokafkawire.types import Address, TopicPartition

FIRST, SECOND = UUID(int=1), UUID(int=2)


def merged(*answers: MetadataResponse) -> Snapshot:
    snapshot = EMPTY
    for answer in answers:
        snapshot = merge(snapshot, answer)
    return snapshot


def leaders(snapshot: Snapshot, name: str) -> list[int | None]:
    return [one.leader for one in snapshot.topics[name].partitions]


def test_a_snapshot_says_who_is_where() -> None:
    snapshot = merged(metadata(topic("t", partition(0, 2), topic_id=FIRST), hosts=("a", "b"), controller=2))
    assert snapshot.generation == 1
    assert snapshot.controller_id == 2
    assert snapshot.nodes == {1: Node(1, Address("a", 9092)), 2: Node(2, Address("b", 9092))}
    assert snapshot.leader(TopicPartition("t", 0)) == snapshot.nodes[2]
    assert snapshot.topic_id("t") == FIRST
    assert snapshot.topic_names == {FIRST: "t"}


def test_what_is_not_known_is_none() -> None:
    snapshot = merged(metadata(topic("t", partition(0, 9), partition(1, -1))))
    for where in (("t", 2), ("t", -1), ("u", 0)):
        assert snapshot.partition(TopicPartition(*where)) is None
        assert snapshot.leader(TopicPartition(*where)) is None
    # Led by a broker that the answer does not list, and by nobody.
    assert snapshot.leader(TopicPartition("t", 0)) is None
    assert leaders(snapshot, "t") == [9, None]
    assert snapshot.topic_id("u") == ZERO_UUID
    assert snapshot.topic_names == {}


def test_every_answer_makes_a_new_generation_and_leaves_the_old_one() -> None:
    first = merged(metadata(topic("t", partition(0, 1, 1))))
    second = merge(first, metadata(topic("t", partition(0, 2, 2))))
    assert (first.generation, second.generation) == (1, 2)
    assert (leaders(first, "t"), leaders(second, "t")) == ([1], [2])
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        first.generation = 7  # type: ignore[misc]


@pytest.mark.parametrize(
    ("known", "answered", "kept"),
    [
        ((1, 5), (2, 4), 1),  # a broker that lags behind
        ((1, 5), (2, 5), 2),
        ((1, 5), (2, 6), 2),
        ((1, 5), (2, -1), 2),  # a broker too old to say
        ((1, -1), (2, 0), 2),
        ((1, 5), (-1, 6), None),
    ],
)
def test_a_leader_of_an_older_epoch_is_ignored(
    known: tuple[int, int], answered: tuple[int, int], kept: int | None
) -> None:
    before = metadata(topic("t", partition(0, *known), topic_id=FIRST))
    after = metadata(topic("t", partition(0, *answered), topic_id=FIRST))
    assert leaders(merged(before, after), "t") == [kept]


def test_a_broker_without_topic_ids_may_lag_behind_too() -> None:
    """As during the upgrade of a cluster from 2.7."""
    before = metadata(topic("t", partition(0, 1, 5), topic_id=FIRST))
    after = metadata(topic("t", partition(0, 2, 4)))
    assert leaders(merged(before, after), "t") == [1]


def test_a_topic_made_again_begins_its_epochs_anew() -> None:
    before = metadata(topic("t", partition(0, 1, 50), partition(1, 1, 50), topic_id=FIRST))
    after = metadata(topic("t", partition(0, 2, 0), topic_id=SECOND))
    snapshot = merged(before, after)
    assert leaders(snapshot, "t") == [2]
    assert snapshot.topic_names == {SECOND: "t"}


def test_only_the_partition_that_is_stale_is_kept() -> None:
    before = metadata(topic("t", partition(0, 1, 5), partition(1, 1, 5)))
    after = metadata(topic("t", partition(0, 2, 4), partition(1, 2, 6), partition(2, 2, 0)))
    assert leaders(merged(before, after), "t") == [1, 2, 2]


def test_partitions_are_ordered_by_their_index() -> None:
    snapshot = merged(metadata(topic("t", partition(2, 3), partition(0, 1), partition(1, 2))))
    assert leaders(snapshot, "t") == [1, 2, 3]
    assert [one.index for one in snapshot.topics["t"].partitions] == [0, 1, 2]


@pytest.mark.parametrize("indexes", [(0, 2), (1,), (0, 0), (-1, 0)])
def test_a_list_with_holes_is_no_topic(indexes: tuple[int, ...]) -> None:
    known = merged(metadata(topic("t", *(partition(one) for one in indexes)))).topics["t"]
    assert known.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert known.partitions == ()


def test_an_error_is_kept_with_the_topic() -> None:
    known = merged(metadata(topic("t", error=ErrorCode.LEADER_NOT_AVAILABLE))).topics["t"]
    assert (known.error, known.partitions) == (ErrorCode.LEADER_NOT_AVAILABLE, ())


def test_topics_that_are_not_answered_are_forgotten_and_nameless_ones_skipped() -> None:
    nameless: MetadataResponseTopic = topic(None, topic_id=SECOND)
    snapshot = merged(metadata(topic("t", partition(0))), metadata(topic("u", partition(0)), nameless))
    assert set(snapshot.topics) == {"u"}
