"""Kafka's own assignors, of the newest release, decide the same: byte for byte, over thousands of groups by chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from aiokafkawire.group.assignors import Assignor
from aiokafkawire.group.consumer_protocol import (
    PartitionInfo,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from aiokafkawire.group.java_hash_order import hash_ordered
from aiokafkawire.group.sticky import StickyUserData
from aiokafkawire.protocol.compiler import decode
from aiokafkawire.types import TopicPartition

from .cases import ASSIGNORS, Case, Member, rounds
from .checks import wrongs
from .java import Answer, ask

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

GROUPS = 500
"""Each of one to four rounds."""

T = "t"


@pytest.fixture(scope="module")
def compared() -> list[tuple[Case, Answer]]:
    cases = [case for seed in range(GROUPS) for case in rounds(Random(seed))]
    return list(zip(cases, ask(cases), strict=True))


def test_assignments_are_javas(compared: list[tuple[Case, Answer]]) -> None:
    same = Counter[str]()
    for case, java in compared:
        if case.is_odd():
            continue
        assert java.error is None
        ours = {member: encode_assignment(one) for member, one in case.answer().items()}
        assert {name: decode_assignment(ours[name]) for name in ours} == {
            name: decode_assignment(data) for name, data in java.assignments.items()
        }, case
        assert ours == java.assignments
        same[case.assignor] += 1
    assert same.keys() == ASSIGNORS.keys()
    assert min(same.values()) > GROUPS / 4


def test_subscriptions_are_javas(compared: list[tuple[Case, Answer]]) -> None:
    versions = Counter[int]()
    for case, java in compared:
        for name, member in case.members.items():
            if java.error is None:
                data = member.subscription(case.assignor)
                assert encode_subscription(decode_subscription(data), member.version) == java.again[name]
                versions[member.version] += 1
    assert versions.keys() == {0, 1, 2, 3}


def test_user_data_is_javas_but_for_the_order_of_topics(compared: list[tuple[Case, Answer]]) -> None:
    for case, java in compared:
        for name, data in java.assignments.items():
            assignor: Assignor = ASSIGNORS[case.assignor]()
            assignor.on_assignment(decode_assignment(data), case.generation)
            ours, theirs = assignor.subscription((), (), case.generation), java.user_data[name]
            if case.assignor == "sticky":
                assert ours is not None
                assert theirs is not None
                assert read(ours) == read(theirs)
            else:
                assert ours == theirs


def read(data: bytes) -> tuple[dict[str, list[int]], int]:
    """The user data of the sticky assignor."""
    told = decode(StickyUserData, 1, data)
    return {each.topic: each.partitions for each in told.previous_assignment}, told.generation


def test_what_is_assigned_here_is_right_where_java_is_not_followed(compared: list[tuple[Case, Answer]]) -> None:
    odd = [case for case, _ in compared if case.is_odd()]
    assert odd
    for case in odd:
        cooperative = case.assignor == "cooperative-sticky"
        assert wrongs(case.topics, case.subscriptions(), case.answer(), cooperative=cooperative) == []


def without_topics() -> Case:
    """The first that Java meets wants nothing, the others all want the same."""
    first, second = hash_ordered(["m1", "m2"])
    return Case("sticky", partitions(4), {first: Member([], [], -1), second: Member([T], [], -1)}, 1)


def no_more_partitions() -> Case:
    """A topic was made anew with fewer partitions than it had."""
    had = [[TopicPartition(T, 7), TopicPartition(T, 0)], [TopicPartition(T, 8), TopicPartition(T, 1)]]
    members = {f"m{index}": Member([T], each, 1) for index, each in enumerate(had)}
    return Case("sticky", partitions(4), members, 2)


def wanted_no_more() -> Case:
    """One that was away for a generation wants a topic no more that it read, and so has less than others."""
    topics = {**partitions(6), "u": [PartitionInfo(0)]}
    had = [TopicPartition(T, index) for index in range(6)]
    members = {
        "m1": Member([T, "u"], had, 5),
        "m2": Member(["u"], had[:2], 4),
        "m3": Member([T, "u"], [], 5),
    }
    return Case("sticky", topics, members, 6)


def partitions(count: int) -> dict[str, list[PartitionInfo]]:
    return {T: [PartitionInfo(index) for index in range(count)]}


ODD = (without_topics, no_more_partitions, wanted_no_more)


@pytest.fixture(scope="module")
def odd() -> dict[Callable[[], Case], tuple[Case, Answer]]:
    """The cases that Java gets wrong, and what it says, in one run of it."""
    cases = [make() for make in ODD]
    return dict(zip(ODD, zip(cases, ask(cases), strict=True), strict=True))


@pytest.mark.parametrize("make", ODD, ids=lambda make: make.__name__)
def test_where_java_is_wrong(make: Callable[[], Case], odd: dict[Callable[[], Case], tuple[Case, Answer]]) -> None:
    """These are the differences there are: where Java breaks its own rules, ours keeps them."""
    case, java = odd[make]
    said = {name: decode_assignment(data) for name, data in java.assignments.items()}
    assert java.error or wrongs(case.topics, case.subscriptions(), said)
    assert case.is_odd()
    assert wrongs(case.topics, case.subscriptions(), case.answer()) == []
