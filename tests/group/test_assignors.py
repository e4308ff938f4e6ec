"""Range and round robin, and what an assignor is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from aiokafkawire.group.assignors import Assignor, RangeAssignor, RebalanceProtocol, RoundRobinAssignor
from aiokafkawire.group.consumer_protocol import Assignment, PartitionInfo, Partitions, Subscription
from aiokafkawire.group.sticky import CooperativeStickyAssignor, StickyAssignor
from aiokafkawire.types import TopicPartition

Given = dict[str, str]
"""Partitions by member, as in `read`."""

BUILT_IN: list[Assignor] = [RangeAssignor(), RoundRobinAssignor(), StickyAssignor(), CooperativeStickyAssignor()]


def topics(**counts: int) -> Partitions:
    return {topic: [PartitionInfo(index) for index in range(count)] for topic, count in counts.items()}


def in_racks(**racks: str) -> Partitions:
    """Each word a partition, each letter a rack."""
    return {
        topic: [PartitionInfo(index, tuple(word.strip("-"))) for index, word in enumerate(words.split())]
        for topic, words in racks.items()
    }


def members(**wanted: str) -> dict[str, Subscription]:
    return {member: Subscription(tuple(text.split())) for member, text in wanted.items()}


def shown(assigned: Mapping[str, Assignment]) -> Given:
    return {member: " ".join(f"{t}{p}" for t, p in one.partitions) for member, one in assigned.items()}


def test_names_and_protocols_are_kafkas() -> None:
    eager, cooperative = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE
    assert {one.name: one.protocols for one in BUILT_IN} == {
        "range": (eager,),
        "roundrobin": (eager,),
        "sticky": (eager,),
        "cooperative-sticky": (cooperative, eager),
    }


class FirstTakesAll:
    """One of a user's own."""

    name = "first-takes-all"
    protocols = (RebalanceProtocol.EAGER,)

    def subscription(self, topics: Sequence[str], owned: Sequence[TopicPartition], generation: int) -> None:
        return None

    def assign(self, partitions: Partitions, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        everything = [TopicPartition(topic, info.partition) for topic, infos in partitions.items() for info in infos]
        assigned = dict.fromkeys(subscriptions, Assignment(()))
        assigned[min(subscriptions)] = Assignment(tuple(everything))
        return assigned

    def on_assignment(self, assignment: Assignment, generation: int) -> None: ...


def test_users_may_write_their_own() -> None:
    own: Assignor = FirstTakesAll()
    assert shown(own.assign(topics(t=2), members(b="t", a="t"))) == {"a": "t0 t1", "b": ""}


@pytest.mark.parametrize("assignor", BUILT_IN, ids=lambda one: one.name)
def test_topics_that_do_not_exist_are_nobodys(assignor: Assignor) -> None:
    partitions: Partitions = {"t": [PartitionInfo(1), PartitionInfo(0)], "empty": []}
    assert shown(assignor.assign(partitions, members(a="gone t empty"))) == {"a": "t0 t1"}
    assert shown(assignor.assign({}, members(a="gone", b=""))) == {"a": "", "b": ""}


@pytest.mark.parametrize("assignor", BUILT_IN, ids=lambda one: one.name)
def test_what_nobody_wants_is_nobodys(assignor: Assignor) -> None:
    assert shown(assignor.assign(topics(t=1, u=1), members(a="t"))) == {"a": "t0"}


@pytest.mark.parametrize(
    ("partitions", "wanted", "expected"),
    [
        (topics(t=3), members(b="t", a="t"), {"a": "t0 t1", "b": "t2"}),
        (topics(t=1), members(a="t", b="t"), {"a": "t0", "b": ""}),
        (topics(t=3, u=3), members(a="t u", b="u t"), {"a": "t0 t1 u0 u1", "b": "t2 u2"}),
        (topics(t=3, u=2), members(a="t", b="t u", c="t"), {"a": "t0", "b": "t1 u0 u1", "c": "t2"}),
    ],
)
def test_range_gives_each_a_part_of_each_topic(
    partitions: Partitions, wanted: dict[str, Subscription], expected: Given
) -> None:
    assert shown(RangeAssignor().assign(partitions, wanted)) == expected


@pytest.mark.parametrize(
    ("partitions", "wanted", "expected"),
    [
        (topics(t=3, u=3), members(b="t u", a="t u"), {"a": "t0 t2 u1", "b": "t1 u0 u2"}),
        (topics(t=1, u=2, v=3), members(a="t", b="t u", c="t u v"), {"a": "t0", "b": "u0", "c": "u1 v0 v1 v2"}),
        (topics(t=2), members(a="t", b="t", c="t"), {"a": "t0", "b": "t1", "c": ""}),
    ],
)
def test_round_robin_goes_on_where_it_was(
    partitions: Partitions, wanted: dict[str, Subscription], expected: Given
) -> None:
    assert shown(RoundRobinAssignor().assign(partitions, wanted)) == expected


@pytest.mark.parametrize("assignor", [RangeAssignor(), RoundRobinAssignor()], ids=lambda one: one.name)
def test_static_members_come_first_and_by_their_own_names(assignor: Assignor) -> None:
    wanted = {
        "a": Subscription(("t",)),
        "b": Subscription(("t",), group_instance_id="z"),
        "c": Subscription(("t",), group_instance_id="y"),
    }
    assert shown(assignor.assign(topics(t=3), wanted)) == {"c": "t0", "b": "t1", "a": "t2"}


def racked(**racks: str) -> dict[str, Subscription]:
    return {member: Subscription(("t", "u"), rack_id=rack.strip("-")) for member, rack in racks.items()}


@pytest.mark.parametrize(
    ("partitions", "wanted", "expected"),
    [
        (in_racks(t="b a b a"), racked(m="a", n="b"), {"m": "t1 t3", "n": "t0 t2"}),
        (in_racks(t="b b b a"), racked(m="a", n="b"), {"m": "t2 t3", "n": "t0 t1"}),
        (in_racks(t="b b b a"), racked(m="a", n="-"), {"m": "t2 t3", "n": "t0 t1"}),
        (in_racks(t="ab ab ab ab"), racked(m="b", n="a"), {"m": "t0 t1", "n": "t2 t3"}),
        (in_racks(t="b a b a"), racked(m="c", n="d"), {"m": "t0 t1", "n": "t2 t3"}),
        (in_racks(t="b a b a"), racked(m="-", n="-"), {"m": "t0 t1", "n": "t2 t3"}),
        (in_racks(t="- a b a"), racked(m="a", n="b"), {"m": "t1 t3", "n": "t0 t2"}),
        (in_racks(t="b a", u="b a"), racked(m="a", n="b"), {"m": "t1 u1", "n": "t0 u0"}),
        (in_racks(t="b a", u="a b"), racked(m="a", n="b"), {"m": "t0 u0", "n": "t1 u1"}),
        (in_racks(t="b a", u="a b a"), racked(m="a", n="b"), {"m": "t1 u0 u2", "n": "t0 u1"}),
    ],
    ids=[
        "split",
        "uneven",
        "no rack",
        "all in all",
        "elsewhere",
        "no racks",
        "no replica",
        "together",
        "apart",
        "unlike",
    ],
)
def test_range_matches_racks_but_not_where_that_parts_what_belongs_together(
    partitions: Partitions, wanted: dict[str, Subscription], expected: Given
) -> None:
    assert shown(RangeAssignor().assign(partitions, wanted)) == expected
