"""The sticky assignors: what members keep, and what they hear of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pytest

from aiokafkawire.group.assignors import Assignor
from aiokafkawire.group.consumer_protocol import Assignment, PartitionInfo, Subscription
from aiokafkawire.group.sticky import CooperativeStickyAssignor, StickyAssignor, StickyUserData, StickyUserDataTopic
from aiokafkawire.protocol.compiler import encode
from aiokafkawire.types import TopicPartition

Given = dict[str, str]


def partitions(text: str) -> tuple[TopicPartition, ...]:
    """``t0 t1 u0``."""
    return tuple(TopicPartition(word[0], int(word[1:])) for word in text.split())


def topics(**counts: int) -> dict[str, list[PartitionInfo]]:
    return {topic: [PartitionInfo(index) for index in range(count)] for topic, count in counts.items()}


def shown(assigned: Mapping[str, Assignment]) -> Given:
    return {member: " ".join(f"{t}{p}" for t, p in one.partitions) for member, one in assigned.items()}


def told(assignor: Assignor, wanted: Iterable[str], had: str | None = None, generation: int = 5) -> Subscription:
    """The subscription of a member with this assignor."""
    owned: tuple[TopicPartition, ...] = ()
    if had is not None:
        assignor.on_assignment(Assignment(partitions(had)), generation)
        owned = partitions(had) if assignor.name == "cooperative-sticky" else ()
    user_data = assignor.subscription(tuple(wanted), owned, generation)
    return Subscription(tuple(wanted), user_data, owned, generation if had is not None else -1)


def eager(wanted: str, had: str | None = None, generation: int = 5) -> Subscription:
    return told(StickyAssignor(), wanted, had, generation)


def cooperative(wanted: str, had: str | None = None, generation: int = 5) -> Subscription:
    return told(CooperativeStickyAssignor(), wanted, had, generation)


EIGHT = topics(t=2, u=2, v=2, w=2)


@pytest.mark.parametrize(
    ("count", "wanted", "expected"),
    [
        (EIGHT, {m: eager("tuvw") for m in "abc"}, {"a": "t0 u1 w0", "b": "t1 v0 w1", "c": "u0 v1"}),
        (
            EIGHT,
            {"a": eager("tuvw", "t0 u1 w0"), "c": eager("tuvw", "u0 v1")},
            {"a": "t0 w0 u1 t1", "c": "u0 v1 v0 w1"},
        ),
        (
            topics(t=1, u=2, v=3),
            {"a": eager("t"), "b": eager("tu"), "c": eager("tuv")},
            {"a": "t0", "b": "u0 u1", "c": "v0 v1 v2"},
        ),
        (
            topics(t=1, u=2, v=3),
            {"b": eager("tu", "u0 u1"), "c": eager("tuv", "v0 v1 v2")},
            {"b": "u0 u1 t0", "c": "v0 v1 v2"},
        ),
    ],
    ids=["equal, new", "equal, one left", "unequal, new", "unequal, one left"],
)
def test_as_in_kafkas_documentation(
    count: Mapping[str, list[PartitionInfo]], wanted: Mapping[str, Subscription], expected: Given
) -> None:
    assert shown(StickyAssignor().assign(count, wanted)) == expected


def test_a_newer_generation_wins_over_an_older_one() -> None:
    wanted = {"a": eager("t", "t0 t1", 5), "b": eager("t", "t0 t1", 4), "c": eager("t", "t2", 5)}
    assert shown(StickyAssignor().assign(topics(t=3), wanted)) == {"a": "t0", "b": "t1", "c": "t2"}


@pytest.mark.parametrize(("make", "expected"), [(eager, ["t1", "t0"]), (cooperative, ["t1", ""])])
def test_what_two_claim_in_one_generation_neither_keeps(
    make: Callable[[str, str], Subscription], expected: list[str]
) -> None:
    """And with the cooperative assignor nobody gets it before both have heard that they lost it."""
    wanted = {"a": make("t", "t0 t1"), "b": make("t", "t0")}
    assignor: Assignor = StickyAssignor() if make is eager else CooperativeStickyAssignor()
    assert list(shown(assignor.assign(topics(t=2), wanted)).values()) == expected


def test_partitions_go_back_to_who_had_them_in_an_older_generation() -> None:
    wanted = {
        "a": eager("t", "t0 t1 t2 t3", 5),
        "b": eager("tu", "t0 t1", 4),
        "c": eager("tu", generation=5),
    }
    assigned = shown(StickyAssignor().assign(topics(t=4, u=1), wanted))
    assert assigned == {"a": "t2 t3", "b": "u0 t0", "c": "t1"}


def test_of_former_owners_the_newest_comes_first_and_of_one_generation_the_first() -> None:
    def with_generations(b: int, c: int) -> Given:
        given = {
            "a": eager("t", "t0 t1 t2", 5),
            "b": eager("tu", "t0 t1", b),
            "c": eager("tu", "t0 t1", c),
        }
        return shown(StickyAssignor().assign(topics(t=3), given))

    assert with_generations(4, 4) == with_generations(4, 3) == {"a": "t2", "b": "t0", "c": "t1"}
    assert with_generations(3, 4) == {"a": "t2", "b": "t1", "c": "t0"}


@pytest.mark.parametrize("wanted", ["t", "tu"], ids=["equal", "unequal"])
def test_cooperative_members_get_only_what_nobody_has_to_give_up(wanted: str) -> None:
    given = {"a": cooperative("t", "t0 t1 t2 t3"), "b": cooperative(wanted)}
    first = CooperativeStickyAssignor().assign(topics(t=4, u=0), given)
    kept = shown(first)["a"]
    assert len(kept.split()) == 2
    assert shown(first)["b"] == ""
    given = {"a": cooperative("t", kept, 6), "b": cooperative(wanted, "", 6)}
    second = CooperativeStickyAssignor().assign(topics(t=4, u=0), given)
    assert shown(second)["a"] == kept
    assert {*partitions(kept), *second["b"].partitions} == {*partitions("t0 t1 t2 t3")}


def test_eager_members_get_all_at_once() -> None:
    given = {"a": eager("t", "t0 t1 t2 t3"), "b": eager("t")}
    assert shown(StickyAssignor().assign(topics(t=4), given)) == {"a": "t0 t1", "b": "t2 t3"}


def test_racks_come_before_stickiness_and_even_numbers_before_racks() -> None:
    here = {"t": [PartitionInfo(index, (rack,)) for index, rack in enumerate("aaab")]}
    given = {
        "m": Subscription(("t",), eager("t", "t3").user_data, rack_id="a"),
        "n": Subscription(("t",), eager("t", "t0").user_data, rack_id="b"),
    }
    assert shown(StickyAssignor().assign(here, given)) == {"m": "t0 t1", "n": "t3 t2"}


# --- user data -----------------------------------------------------------------------------------------


def test_before_its_first_assignment_a_sticky_member_says_nothing() -> None:
    assert StickyAssignor().subscription(("t",), partitions("t0"), 3) is None


def test_a_sticky_member_says_what_it_was_assigned_last_and_when() -> None:
    assert eager("tu", "t1 u0 t0", 9).user_data == (
        b"\0\0\0\2\0\1t\0\0\0\2\0\0\0\1\0\0\0\0\0\1u\0\0\0\1\0\0\0\0\0\0\0\x09"
    )


def test_a_cooperative_member_says_when_it_was_assigned_last() -> None:
    assert CooperativeStickyAssignor().subscription((), (), 3) == b"\xff\xff\xff\xff"
    assert cooperative("t", "t0", 9).user_data == b"\0\0\0\x09"


def test_user_data_without_a_generation_is_older_than_any() -> None:
    topic = StickyUserDataTopic(topic="t", partitions=[0])
    older = Subscription(("t",), encode(StickyUserData(previous_assignment=[topic]), 0))
    given = {"a": older, "b": Subscription(("t",))}
    assert shown(StickyAssignor().assign(topics(t=1), given)) == {"a": "t0", "b": ""}
    given = {"a": older, "b": eager("t", "t0", 0)}
    assert shown(StickyAssignor().assign(topics(t=1), given)) == {"a": "", "b": "t0"}


@pytest.mark.parametrize("user_data", [b"", b"\0", b"\xff\xff\xff\xff", b"\0\0\0\1\0\1t\0\0\0\1\0\0"])
def test_user_data_that_is_none_says_that_a_member_had_nothing(user_data: bytes) -> None:
    given = {"a": Subscription(("t",), user_data), "b": eager("t", "t0")}
    assert shown(StickyAssignor().assign(topics(t=1), given)) == {"a": "", "b": "t0"}


def test_cooperative_generations_are_read_from_the_subscription_before_the_user_data() -> None:
    """Subscriptions before version 2 have none; user data that is none says -1."""
    older, newest = b"\0\0\0\4", b"\0\0\0\6"

    def holder(user_data: bytes | None, generation: int = -1) -> str:
        given = {
            "a": Subscription(("t",), None, partitions("t0"), 5),
            "b": Subscription(("t",), user_data, partitions("t0"), generation),
        }
        return shown(CooperativeStickyAssignor().assign(topics(t=1), given))["b"]

    assert holder(newest) == "t0"
    assert holder(older) == holder(None) == holder(b"\0") == ""
    assert holder(older, 6) == "t0"
    assert holder(newest, 4) == ""


# --- where Java's are not followed ---------------------------------------------------------------------


def test_partitions_that_are_no_more_are_nobodys() -> None:
    given = {"a": eager("t", "t7 t0"), "b": eager("t", "t8 t1")}
    assert shown(StickyAssignor().assign(topics(t=4), given)) == {"a": "t0 t2", "b": "t1 t3"}


def test_a_member_that_wants_nothing_gets_nothing() -> None:
    for given in ({"a": eager(""), "b": eager("t")}, {"b": eager("t"), "a": eager("")}):
        assert shown(StickyAssignor().assign(topics(t=2), given)) == {"a": "", "b": "t0 t1"}
