"""What holds for every group: hypothesis looks for one where it does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pytest
from hypothesis import given as holds_for
from hypothesis import strategies as st

from aiokafkawire.group.assignors import Assignor, RangeAssignor, RoundRobinAssignor
from aiokafkawire.group.consumer_protocol import Assignment, PartitionInfo, Subscription
from aiokafkawire.group.sticky import CooperativeStickyAssignor, StickyAssignor
from aiokafkawire.types import TopicPartition

from .checks import given, sizes, wrongs

STICKY: list[type[Any]] = [StickyAssignor, CooperativeStickyAssignor]
EVERY: list[type[Any]] = [RangeAssignor, RoundRobinAssignor, *STICKY]

every = pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.name)
sticky = pytest.mark.parametrize("kind", STICKY, ids=lambda kind: kind.name)


@attrs.frozen
class Group:
    topics: dict[str, list[PartitionInfo]]
    wanted: dict[str, tuple[str, ...]]
    racks: dict[str, str | None]
    held: dict[str, list[TopicPartition]]
    generations: dict[str, int]

    def subscriptions(self, kind: type[Assignor]) -> dict[str, Subscription]:
        """What a leader reads, of members with this assignor."""
        return {member: self._subscription(kind, member) for member in self.wanted}

    def _subscription(self, kind: type[Assignor], member: str) -> Subscription:
        held, generation = tuple(self.held[member]), self.generations[member]
        assignor = kind()
        if generation >= 0:
            assignor.on_assignment(Assignment(held), generation)
        owned = held if kind is CooperativeStickyAssignor else ()
        user_data = assignor.subscription(self.wanted[member], owned, generation)
        return Subscription(self.wanted[member], user_data, owned, generation, self.racks[member])

    def after(self, assigned: Mapping[str, Assignment]) -> Group:
        """The group once its members have heard."""
        newest = max(self.generations.values()) + 1
        held = {member: list(assigned[member].partitions) for member in self.wanted}
        return attrs.evolve(self, held=held, generations=dict.fromkeys(self.wanted, newest))

    def with_members(self, wanted: dict[str, tuple[str, ...]]) -> Group:
        """The same with these members; new ones have nothing."""
        return Group(
            self.topics,
            wanted,
            {member: self.racks.get(member) for member in wanted},
            {member: self.held.get(member, []) for member in wanted},
            {member: self.generations.get(member, -1) for member in wanted},
        )


@st.composite
def groups(draw: st.DrawFn, *, equal: bool = False, racks: bool = True, fresh: bool = False) -> Group:
    where = st.lists(st.sampled_from("abc" if racks else "a"), max_size=2, unique=True).map(tuple)
    counts = draw(st.lists(st.lists(where, max_size=7), min_size=1, max_size=4))
    topics = {
        name: [PartitionInfo(index, each) for index, each in enumerate(infos)]
        for name, infos in zip("tuvw", counts, strict=False)
    }
    names = draw(st.lists(st.sampled_from("klmnop"), min_size=1, max_size=6, unique=True))
    some = st.lists(st.sampled_from([*topics, "gone"]), unique=True).map(tuple)
    wanted = {name: tuple(topics) if equal else draw(some) for name in names}
    # Partitions beyond those that exist, of topics that nobody wants, and claimed by several.
    claims = st.lists(st.builds(TopicPartition, st.sampled_from([*topics, "gone"]), st.integers(0, 8)), max_size=9)
    return Group(
        topics,
        wanted,
        {name: draw(st.sampled_from([None, "", "a", "b", "z"])) if racks else None for name in names},
        {name: [] if fresh else draw(claims) for name in names},
        {name: -1 if fresh else draw(st.integers(-1, 3)) for name in names},
    )


@every
@holds_for(group=groups())
def test_everything_wanted_goes_to_one_who_wants_it(kind: type[Assignor], group: Group) -> None:
    """But for what cooperative members have to give up first."""
    subscriptions = group.subscriptions(kind)
    cooperative = kind is CooperativeStickyAssignor
    assigned = kind().assign(group.topics, subscriptions)
    assert wrongs(group.topics, subscriptions, assigned, cooperative=cooperative) == []


@every
@holds_for(group=groups(equal=True, fresh=True))
def test_members_that_want_the_same_get_as_much(kind: type[Assignor], group: Group) -> None:
    assigned = kind().assign(group.topics, group.subscriptions(kind))
    for topics in [[topic] for topic in group.topics] if kind is RangeAssignor else [[*group.topics]]:
        counts = [sum(where.topic in topics for where in one.partitions) for one in assigned.values()]
        assert max(counts) - min(counts) <= 1


@holds_for(group=groups(equal=True))
def test_sticky_shares_are_even_whoever_had_what(group: Group) -> None:
    counts = sizes(StickyAssignor().assign(group.topics, group.subscriptions(StickyAssignor)))
    assert counts[-1] - counts[0] <= 1


@holds_for(group=groups())
def test_nobody_wants_what_one_has_who_has_more_by_two(group: Group) -> None:
    assigned = StickyAssignor().assign(group.topics, group.subscriptions(StickyAssignor))
    if len({frozenset(each) for each in group.wanted.values()}) == 1:
        return
    for member, one in assigned.items():
        for other in assigned.values():
            if len(other.partitions) > len(one.partitions) + 1:
                assert not {where.topic for where in other.partitions} & set(group.wanted[member])


@sticky
@holds_for(group=groups(racks=False, fresh=True))
def test_when_nothing_changes_nothing_moves(kind: type[Assignor], group: Group) -> None:
    first = kind().assign(group.topics, group.subscriptions(kind))
    second = kind().assign(group.topics, group.after(first).subscriptions(kind))
    assert given(second) == given(first)


@sticky
@holds_for(group=groups(equal=True, racks=False, fresh=True), gone=st.integers(0))
def test_when_a_member_leaves_the_others_keep_all(kind: type[Assignor], group: Group, gone: int) -> None:
    first = kind().assign(group.topics, group.subscriptions(kind))
    rest = dict(group.wanted)
    if len(rest) > 1:
        del rest[[*rest][gone % len(rest)]]
    second = kind().assign(group.topics, group.after(first).with_members(rest).subscriptions(kind))
    for member in rest:
        assert given(first)[member] <= given(second)[member]


@sticky
@holds_for(group=groups(equal=True, racks=False, fresh=True))
def test_when_a_member_comes_only_it_gets_more(kind: type[Assignor], group: Group) -> None:
    first = kind().assign(group.topics, group.subscriptions(kind))
    more = {**group.wanted, "new": tuple(group.topics)}
    second = kind().assign(group.topics, group.after(first).with_members(more).subscriptions(kind))
    for member in group.wanted:
        assert given(second)[member] <= given(first)[member]


@holds_for(group=groups())
def test_what_cooperative_members_give_up_is_handed_out_the_next_time(group: Group) -> None:
    kind = CooperativeStickyAssignor
    first = kind().assign(group.topics, group.subscriptions(kind))
    later = group.after(first)
    second = kind().assign(group.topics, later.subscriptions(kind))
    # Where racks or unequal wishes move more, it takes another round; never one that leaves out what nobody has.
    owners = {where for each in later.held.values() for where in each}
    everything = {
        TopicPartition(topic, info.partition)
        for topic, infos in group.topics.items()
        for info in infos
        if any(topic in each for each in group.wanted.values())
    }
    assert everything - owners <= {where for each in given(second).values() for where in each}


@every
@holds_for(group=groups())
def test_who_is_asked_twice_says_the_same(kind: type[Assignor], group: Group) -> None:
    subscriptions = group.subscriptions(kind)
    assignor = kind()
    assert assignor.assign(group.topics, subscriptions) == assignor.assign(group.topics, subscriptions)
