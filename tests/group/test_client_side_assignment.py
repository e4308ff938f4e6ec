"""The subscription that a consumer joins with, the assignment that it gets, and those that it decides as the leader."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pytest
from support.clusters import metadata, partition, topic

from aiokafkawire.cluster.metadata import EMPTY, merge
from aiokafkawire.errors import UsageError, WireError
from aiokafkawire.group.assignors import RangeAssignor, RebalanceProtocol
from aiokafkawire.group.client_side_assignment import ClientSideAssignment, make_assignors, partitions_of
from aiokafkawire.group.consumer_protocol import (
    Assignment,
    PartitionInfo,
    Partitions,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from aiokafkawire.group.membership import ApplyAssignment, JoinedMember
from aiokafkawire.types import TopicPartition

A0, A1, B0, B1 = (TopicPartition(topic, index) for topic in "ab" for index in range(2))
EAGER, COOPERATIVE = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE


class Decided:
    """An assignor that gives what the test says."""

    name = "decided"

    def __init__(self, *protocols: RebalanceProtocol, name: str = "decided") -> None:
        self.protocols: Collection[RebalanceProtocol] = protocols or (EAGER,)
        self.name = name
        self.gives: dict[str, tuple[TopicPartition, ...]] = {}
        self.asked: list[tuple[Partitions, Mapping[str, Subscription]]] = []
        self.told: list[tuple[Assignment, int]] = []

    def subscription(self, topics: Sequence[str], owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        return f"{','.join(topics)} {len(owned)} {generation}".encode()

    def assign(self, partitions: Partitions, subscriptions: Mapping[str, Subscription]) -> Mapping[str, Assignment]:
        self.asked.append((partitions, subscriptions))
        return {member: Assignment(given) for member, given in self.gives.items()}

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        self.told.append((assignment, generation))


def take(
    *partitions: TopicPartition, generation: int = 5, leader: bool = False, name: str = "decided"
) -> ApplyAssignment:
    return ApplyAssignment(name, generation, encode_assignment(Assignment(partitions)), leader)


def told(member: ClientSideAssignment, topics: tuple[str, ...], *owned: TopicPartition, since: int = 5) -> Subscription:
    """What it joins with."""
    ((_, data), *_) = member.protocols(topics, owned, since)
    return decode_subscription(data)


# --- assignors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "is_cooperative"),
    [
        (["range"], False),
        (["range", "cooperative-sticky"], False),
        (["cooperative-sticky"], True),
        (["roundrobin", "sticky"], False),
    ],
)
def test_a_member_is_cooperative_if_all_its_assignors_are(names: list[str], is_cooperative: bool) -> None:
    member = ClientSideAssignment(make_assignors(names))
    assert member.is_cooperative is is_cooperative
    assert [name for name, _ in member.protocols(["a"], (), -1)] == names


@pytest.mark.parametrize(
    "assignors",
    [[], [RangeAssignor(), RangeAssignor()], [Decided(EAGER), Decided(COOPERATIVE, name="other")]],
)
def test_assignors_that_do_not_go_together_are_refused(assignors: list[Decided]) -> None:
    with pytest.raises(UsageError):
        ClientSideAssignment(assignors)


# --- its own part --------------------------------------------------------------------------------------------------


def test_it_tells_the_leader_what_it_wants_and_has() -> None:
    member = ClientSideAssignment([Decided(COOPERATIVE), Decided(COOPERATIVE, name="other")], rack="r1")
    assert told(member, ("b", "a"), since=-1) == Subscription(("a", "b"), b"b,a 0 -1", (), -1, "r1")
    assert told(member, ("b", "a"), A0, B1) == Subscription(("a", "b"), b"b,a 2 5", (A0, B1), 5, "r1")
    assert [name for name, _ in member.protocols(["a"], (), -1)] == ["decided", "other"]


def test_a_member_that_its_leader_forgot_has_nothing() -> None:
    member = ClientSideAssignment([Decided()])
    assert member.decode(ApplyAssignment("decided", 6, b"", leader=False)) == Assignment(())


def test_the_assignor_that_was_chosen_hears_of_the_assignment() -> None:
    one, other = Decided(), Decided(name="other")
    member = ClientSideAssignment([one, other])
    task = take(A0, B0, name="other")
    member.on_assignment(task, member.decode(task))
    assert (one.told, other.told) == ([], [(Assignment((A0, B0)), 5)])


def test_an_assignment_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(WireError):
        ClientSideAssignment([Decided()]).decode(ApplyAssignment("decided", 6, b"\0\0\0\0", leader=False))


# --- as the leader -------------------------------------------------------------------------------------------------


def members(*ids: str, topics: tuple[str, ...] = ("a",), rack: str | None = None) -> list[JoinedMember]:
    return [JoinedMember(one, None, encode_subscription(Subscription(topics, rack_id=rack))) for one in ids]


def test_a_leader_decides_for_all_and_who_gets_nothing_is_told_so() -> None:
    assignor = Decided()
    member = ClientSideAssignment([assignor])
    subscriptions = member.read([*members("m1", "m2"), JoinedMember("m3", "i", members("m3")[0].metadata)])
    assert subscriptions["m3"].group_instance_id == "i"
    infos = {"a": [PartitionInfo(0), PartitionInfo(1)]}
    assignor.gives = {"m1": (A0,), "m3": (A1,)}
    decided = member.assign("decided", subscriptions, infos)
    assert {one: decode_assignment(data).partitions for one, data in decided.items()} == {
        "m1": (A0,),
        "m2": (),
        "m3": (A1,),
    }
    assert assignor.asked == [(infos, subscriptions)]


def test_a_member_that_joined_with_nonsense_is_named() -> None:
    with pytest.raises(WireError, match="'m2' sent an invalid subscription"):
        ClientSideAssignment([Decided()]).read([*members("m1"), JoinedMember("m2", None, b"\0")])


@pytest.mark.parametrize(
    ("gives", "told"),
    [
        ({"m1": (A0,), "m2": (A0,)}, "gives a-0 both to 'm1' and to 'm2'"),
        ({"m1": (A0,), "m9": (A1,)}, "gives partitions to 'm9', which is no member"),
    ],
)
def test_an_assignor_that_makes_mistakes_is_named(gives: dict[str, tuple[TopicPartition, ...]], told: str) -> None:
    assignor = Decided()
    assignor.gives = gives
    member = ClientSideAssignment([assignor])
    with pytest.raises(UsageError, match=told):
        member.assign("decided", member.read(members("m1", "m2")), {})


INFOS = {"a": [PartitionInfo(0, ("r1", "r2")), PartitionInfo(1, ("r2",))]}


@pytest.mark.parametrize(
    ("now", "is_outdated"),
    [
        (INFOS, False),
        ({"a": list(reversed(INFOS["a"]))}, False),
        ({"a": [PartitionInfo(0, ("r2", "r1")), PartitionInfo(1, ("r2",))]}, False),
        ({"a": [*INFOS["a"], PartitionInfo(2, ("r1",))]}, True),
        ({"a": [PartitionInfo(0, ("r1",)), PartitionInfo(1, ("r2",))]}, True),
        ({}, True),
        ({**INFOS, "b": [PartitionInfo(0)]}, True),
    ],
)
@pytest.mark.parametrize("decides", [True, False])
def test_a_leader_looks_out_for_what_would_change_what_it_decided(
    now: dict[str, list[PartitionInfo]], is_outdated: bool, decides: bool
) -> None:
    member = ClientSideAssignment([Decided()])
    assert not member.is_outdated(now)
    subscriptions = member.read([*members("m1"), *members("m2", topics=("b", "a"), rack="r3")])
    if decides:
        member.assign("decided", subscriptions, INFOS)
    else:
        member.watch(subscriptions, INFOS)
    assert member.watched == ("a", "b")
    member.decode(take(leader=True))
    assert member.is_outdated(now) is is_outdated
    # A follower leaves that to the leader.
    member.decode(take(leader=False))
    assert len(member.watched) == 0
    assert not member.is_outdated(now)


def test_a_leader_of_members_without_racks_does_not_look_out_for_racks() -> None:
    member = ClientSideAssignment([Decided()], rack=None)
    member.watch(member.read(members("m1", "m2")), INFOS)
    assert not member.is_outdated({"a": [PartitionInfo(0, ("r1",)), PartitionInfo(1)]})
    assert member.is_outdated({"a": [PartitionInfo(0, ("r1",))]})


def test_partitions_have_the_racks_of_their_replicas() -> None:
    answer = metadata(topic("a", partition(0), partition(1, leader=2)), topic("b", error=3), hosts=("h1", "h2"))
    answer.brokers[0].rack = "r1"
    snapshot = merge(EMPTY, answer)
    assert partitions_of(snapshot, ["a", "b", "c"]) == {"a": [PartitionInfo(0, ("r1",)), PartitionInfo(1)]}
