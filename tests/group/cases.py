"""Groups by chance, some rounds of each: who wants what, has what, and where things are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any
from uuid import UUID

import attrs

from aiokafkawire.group.assignors import RangeAssignor, RoundRobinAssignor
from aiokafkawire.group.consumer_protocol import (
    Assignment,
    PartitionInfo,
    Subscription,
    decode_subscription,
    encode_subscription,
)
from aiokafkawire.group.java_hash_order import hash_ordered
from aiokafkawire.group.sticky import CooperativeStickyAssignor, StickyAssignor
from aiokafkawire.types import TopicPartition

__all__ = ("ASSIGNORS", "Case", "Member", "rounds")

ASSIGNORS: dict[str, type[Any]] = {
    one.name: one for one in (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)
}

_RACKS = ("a", "b", "c", "d")
_GARBAGE = (b"", b"\0", b"\xff\xff\xff\xff", b"\0\0\0\1\0\1t\0\0\0\x63")


@attrs.define
class Member:
    """What a member wants, what it says it had, and since when; ``version`` is its subscription's."""

    topics: list[str]
    had: list[TopicPartition]
    generation: int
    version: int = 3
    rack: str | None = None
    instance: str | None = None
    garbage: bytes | None = None
    """User data that is none."""
    older: bool = False
    """Whether its user data is of the older version."""

    def subscription(self, assignor: str) -> bytes:
        """What it says in JoinGroup."""
        cooperative = assignor == CooperativeStickyAssignor.name
        eager = assignor == StickyAssignor.name
        known = ASSIGNORS[assignor]()
        if self.generation >= 0:
            known.on_assignment(Assignment(tuple(self.had)), self.generation)
        user_data = known.subscription(self.topics, self.had, self.generation)
        if eager and self.older and user_data:
            user_data = user_data[:-4]
        if self.garbage is not None and (eager or cooperative):
            user_data = self.garbage
        elif self.older and cooperative:
            user_data = None
        told = Subscription(
            tuple(self.topics), user_data, tuple(self.had) if cooperative else (), self.generation, self.rack
        )
        return encode_subscription(told, self.version)


@attrs.frozen
class Case:
    """What a leader is given: members in the order of JoinGroup."""

    assignor: str
    topics: dict[str, list[PartitionInfo]]
    members: dict[str, Member]
    generation: int

    def subscriptions(self) -> dict[str, Subscription]:
        """What the leader reads."""
        return {
            name: decode_subscription(one.subscription(self.assignor), one.instance)
            for name, one in self.members.items()
        }

    def answer(self) -> Mapping[str, Assignment]:
        """What our assignor says."""
        given: Mapping[str, Assignment] = ASSIGNORS[self.assignor]().assign(self.topics, self.subscriptions())
        return given

    def is_odd(self) -> bool:
        """Whether Java may do what it should not, and ours does not: see `test_where_java_is_wrong`."""
        if "sticky" not in self.assignor:
            return False
        wanted = [frozenset(self.members[name].topics) for name in hash_ordered(self.members)]
        some = next((index for index, each in enumerate(wanted) if each), 0)
        newest = max(one.generation for one in self.members.values())
        return (
            (some > 0 and len(set(wanted[some:])) == 1)
            or any(
                where.partition >= len(self.topics[where.topic])
                for one in self.members.values()
                for where in one.had
                if where.topic in self.topics
            )
            or any(
                where.topic not in one.topics
                for one in self.members.values()
                if one.generation < newest or one.older or one.version < 2
                for where in one.had
            )
        )


def rounds(chance: Random) -> Iterator[Case]:
    """A group from its beginning, and what becomes of it."""
    assignor = chance.choice([*ASSIGNORS, "sticky", "cooperative-sticky"])
    racks = _RACKS[: chance.choice((0, 0, 2, 3, 4))]
    topics = _topics(chance, racks)
    equal = chance.random() < 0.5
    members: dict[str, Member] = {}
    _join(chance, members, topics, racks, equal, chance.choice((1, 2, 3, 5, 8, 20)))
    if chance.random() < 0.4:
        _claim(chance, members, topics)
    generation = 3
    for _ in range(chance.choice((1, 2, 3, 4))):
        case = Case(assignor, {**topics}, {name: attrs.evolve(one) for name, one in members.items()}, generation)
        yield case
        for name, assigned in case.answer().items():
            if chance.random() < 0.9:
                members[name].had, members[name].generation = list(assigned.partitions), generation
        generation += 1
        _change(chance, members, topics, racks, equal)


def _topics(chance: Random, racks: tuple[str, ...]) -> dict[str, list[PartitionInfo]]:
    count = chance.choice((1, 2, 3, 5, 30))
    alike = chance.choice((None, None, 3, 6, 16))
    names = [f"{chance.choice(('topic-', 't', 'orders.'))}{index}" for index in range(count)]
    return {name: _partitions(chance, racks, alike or chance.choice((0, 1, 2, 3, 5, 8, 40))) for name in names}


def _partitions(chance: Random, racks: tuple[str, ...], count: int) -> list[PartitionInfo]:
    if not racks:
        return [PartitionInfo(index) for index in range(count)]
    replicas = chance.choice((1, 1, 2, 3))
    found = []
    for index in range(count):
        some = chance.sample(racks, min(replicas, len(racks)))
        if chance.random() < 0.05:
            some = []
        found.append(PartitionInfo(index, tuple(some)))
    return found


def _join(
    chance: Random,
    members: dict[str, Member],
    topics: dict[str, list[PartitionInfo]],
    racks: tuple[str, ...],
    equal: bool,
    count: int,
) -> None:
    for _ in range(count):
        name = chance.choice(("consumer-", "", "é", "\U0001f600", "￼")) + str(UUID(int=chance.getrandbits(128)))
        if chance.random() < 0.3:
            name = f"m{chance.randrange(100)}"
        members[name] = Member(
            _wanted(chance, topics, equal),
            [],
            -1,
            version=chance.choice((0, 1, 2, 3, 3, 3)) if chance.random() < 0.5 else 3,
            rack=chance.choice((*racks, *racks, *racks, None, "elsewhere", "")) if racks else None,
            instance=f"i{len(members)}-{chance.randrange(9)}" if chance.random() < 0.2 else None,
            garbage=chance.choice(_GARBAGE) if chance.random() < 0.03 else None,
            older=chance.random() < 0.1,
        )


def _wanted(chance: Random, topics: dict[str, list[PartitionInfo]], equal: bool) -> list[str]:
    wanted = list(topics)
    if not equal:
        wanted = chance.sample(wanted, chance.randint(chance.random() > 0.1, len(wanted)))
        if chance.random() < 0.1:
            wanted.append("unknown")
    chance.shuffle(wanted)
    return wanted


def _claim(chance: Random, members: dict[str, Member], topics: dict[str, list[PartitionInfo]]) -> None:
    """Let members have had what they have not: the same as others, in other generations, what they do not want."""
    everything = [TopicPartition(topic, info.partition) for topic, infos in topics.items() for info in infos]
    for one in members.values():
        mine = [where for where in everything if where.topic in one.topics or chance.random() < 0.03]
        one.had = chance.sample(mine, chance.randint(0, len(mine) // chance.choice((1, 2, len(members)))))
        one.generation = chance.choice((-1, 1, 1, 2, 2))
        if chance.random() < 0.02:
            one.had.append(TopicPartition(chance.choice(list(topics)), 77))


def _change(
    chance: Random,
    members: dict[str, Member],
    topics: dict[str, list[PartitionInfo]],
    racks: tuple[str, ...],
    equal: bool,
) -> None:
    for name in list(members):
        if len(members) > 1 and chance.random() < 0.15:
            del members[name]
        elif not equal and chance.random() < 0.1:
            members[name].topics = _wanted(chance, topics, equal)
    _join(chance, members, topics, racks, equal, chance.choice((0, 0, 1, 2, 6)))
    for topic, infos in topics.items():
        if chance.random() < 0.1:
            more = _partitions(chance, racks, 3)
            topics[topic] = [*infos, *(info._replace(partition=info.partition + len(infos)) for info in more)]
        elif chance.random() < 0.1:
            topics[topic] = [
                info._replace(racks=other.racks)
                for info, other in zip(infos, _partitions(chance, racks, len(infos)), strict=True)
            ]
    if chance.random() < 0.2:
        names = list(members)
        chance.shuffle(names)
        members.update({name: members.pop(name) for name in names})
