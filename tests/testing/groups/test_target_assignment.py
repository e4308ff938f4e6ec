"""The assignors of consumer groups: who gets what, and what stays."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from aiokafkawire.testing.groups.consumer_member import TopicIdPartition
from aiokafkawire.testing.groups.target_assignment import Subscriber, Target, assign_range, assign_uniform

A, B, C = (UUID(int=number) for number in (1, 2, 3))


def parts(topic: UUID, *indexes: int) -> Target:
    return frozenset(TopicIdPartition(topic, index) for index in indexes)


def test_uniform_gives_equal_shares() -> None:
    members = {name: Subscriber({A, B}) for name in "xyz"}
    found = assign_uniform(members, {A: 5, B: 2})
    assert sorted(len(share) for share in found.values()) == [2, 2, 3]
    assert frozenset().union(*found.values()) == parts(A, 0, 1, 2, 3, 4) | parts(B, 0, 1)


def test_uniform_lets_stay_what_can_stay() -> None:
    members = {"x": Subscriber({A}, parts(A, 0, 1, 2, 3)), "y": Subscriber({A})}
    assert assign_uniform(members, {A: 4}) == {"x": parts(A, 0, 1), "y": parts(A, 2, 3)}


def test_uniform_lets_the_holder_of_one_more_keep_it() -> None:
    members = {"x": Subscriber({A}, parts(A, 0)), "y": Subscriber({A}, parts(A, 1, 2))}
    assert assign_uniform(members, {A: 3}) == {"x": parts(A, 0), "y": parts(A, 1, 2)}


def test_uniform_forgets_what_is_not_there_or_not_wanted() -> None:
    members = {"x": Subscriber({A}, parts(A, 0, 7) | parts(B, 0))}
    assert assign_uniform(members, {A: 2, B: 1}) == {"x": parts(A, 0, 1)}
    assert assign_uniform({"x": Subscriber(frozenset(), parts(A, 0))}, {}) == {"x": frozenset()}
    assert assign_uniform({}, {}) == {}


def test_uniform_balances_members_with_different_topics() -> None:
    members = {"x": Subscriber({A, B}, parts(B, 0, 1, 2, 3)), "y": Subscriber({B})}
    found = assign_uniform(members, {A: 2, B: 4})
    assert found == {"x": parts(A, 0, 1) | parts(B, 0), "y": parts(B, 1, 2, 3)}


_SUBSCRIPTIONS = st.lists(st.frozensets(st.sampled_from([A, B, C])), min_size=1, max_size=5)


@given(_SUBSCRIPTIONS, _SUBSCRIPTIONS, st.tuples(*[st.integers(0, 6)] * 3))
def test_every_wanted_partition_has_one_owner_who_wants_it(
    first: list[frozenset[UUID]], then: list[frozenset[UUID]], numbers: tuple[int, int, int]
) -> None:
    counts = dict(zip((A, B, C), numbers, strict=True))
    for assign in (assign_uniform, assign_range):
        before = assign({str(place): Subscriber(topics) for place, topics in enumerate(first)}, counts)
        members = {
            str(place): Subscriber(topics, before.get(str(place), frozenset())) for place, topics in enumerate(then)
        }
        found = assign(members, counts)
        owned = [part for share in found.values() for part in share]
        wanted = {topic for topics in then for topic in topics}
        assert set(owned) == {part for topic in wanted for part in parts(topic, *range(counts[topic]))}
        assert len(owned) == len(set(owned))
        assert all(part.topic_id in members[name].topic_ids for name, share in found.items() for part in share)


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 12))
def test_uniform_shares_differ_by_one_and_little_moves(before: int, after: int, count: int) -> None:
    old = assign_uniform({str(place): Subscriber({A}) for place in range(before)}, {A: count})
    members = {str(place): Subscriber({A}, old.get(str(place), frozenset())) for place in range(after)}
    found = assign_uniform(members, {A: count})
    sizes = [len(share) for share in found.values()]
    assert max(sizes) - min(sizes) <= 1
    kept = sum(len(found[name] & members[name].target) for name in found)
    assert kept == sum(min(len(members[name].target), len(found[name])) for name in found)


def test_ranges_are_those_of_members_by_name() -> None:
    members = {"y": Subscriber({A, B}), "x": Subscriber({A, B}), "z": Subscriber({B})}
    assert assign_range(members, {A: 3, B: 4}) == {
        "x": parts(A, 0, 1) | parts(B, 0, 1), "y": parts(A, 2) | parts(B, 2), "z": parts(B, 3)
    }  # fmt: skip


def test_ranges_of_static_members_come_first() -> None:
    members = {"a": Subscriber({A}), "z": Subscriber({A}, group_instance_id="1")}
    assert assign_range(members, {A: 2}) == {"z": parts(A, 0), "a": parts(A, 1)}
