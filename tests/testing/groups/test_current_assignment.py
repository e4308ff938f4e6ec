"""How one member comes to its target assignment."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from aiokafkawire.testing.cluster.releases import release_named
from aiokafkawire.testing.groups.consumer_member import ConsumerMember, MemberState, TopicIdPartition
from aiokafkawire.testing.groups.current_assignment import Reconciliation, reconcile
from aiokafkawire.testing.groups.release_rules import ReleaseRules
from aiokafkawire.testing.serving.apis import APIS

A, B = UUID(int=1), UUID(int=2)
RULES_OF_4_1 = ReleaseRules.of(release_named("4.1", APIS))
STABLE, UNREVOKED, UNRELEASED = (
    MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS
)  # fmt: skip


def parts(*indexes: int, topic: UUID = A) -> set[TopicIdPartition]:
    return {TopicIdPartition(topic, index) for index in indexes}


def member(state: MemberState, epoch: int, *assigned: int, revoking: tuple[int, ...] = ()) -> ConsumerMember:
    return ConsumerMember(
        "m",
        epoch,
        epoch,
        state,
        assigned=dict.fromkeys(parts(*assigned), epoch),
        revoking=dict.fromkeys(parts(*revoking), epoch),
    )


def target(epoch: int, *indexes: int, **fields: Any) -> Reconciliation:
    given = {"subscribed": {A}, "others": set(), "owned": None} | fields
    return Reconciliation(epoch, parts(*indexes), **given)


def outcome(found: ConsumerMember) -> tuple[MemberState, int, list[int], list[int]]:
    return (
        found.state,
        found.epoch,
        sorted(part.partition for part in found.assigned),
        sorted(part.partition for part in found.revoking),
    )


ROWS = {
    "takes at once": (member(STABLE, 0), target(1, 0, 1), (STABLE, 1, [0, 1], [])),
    "revokes first": (member(STABLE, 1, 0, 1), target(2, 1, 2), (UNREVOKED, 1, [1], [0])),
    "has given up already": (
        member(STABLE, 1, 0, 1), target(2, 1, 2, owned=parts(1)), (STABLE, 2, [1, 2], [])
    ),
    "does not say what it owns": (
        member(UNREVOKED, 1, 1, revoking=(0,)), target(2, 1, 2), (UNREVOKED, 1, [1], [0])
    ),
    "still owns it": (
        member(UNREVOKED, 1, 1, revoking=(0,)), target(2, 1, 2, owned=parts(0, 1)), (UNREVOKED, 1, [1], [0])
    ),
    "acknowledges": (
        member(UNREVOKED, 1, 1, revoking=(0,)), target(2, 1, 2, owned=parts(1)), (STABLE, 2, [1, 2], [])
    ),
    "acknowledges, and more is to be revoked": (
        member(UNREVOKED, 1, 1, revoking=(0,)), target(3, 2, owned=parts(1)), (UNREVOKED, 1, [], [1])
    ),
    "acknowledges in 4.1, and more is to be revoked": (
        member(UNREVOKED, 1, 1, revoking=(0,)),
        target(3, 2, owned=parts(1), rules=RULES_OF_4_1),
        (UNREVOKED, 2, [], [1]),
    ),
    "waits in 4.1 for what it has given up": (
        member(UNREVOKED, 1, 1, revoking=(0,)),
        target(3, 0, 1, owned=parts(1), rules=RULES_OF_4_1),
        (UNRELEASED, 3, [1], []),
    ),
    "subscribes in 4.1 to other topics": (
        member(STABLE, 2, 0, 1),
        target(2, 0, 1, subscribed=set(), subscription_changed=True, rules=RULES_OF_4_1),
        (STABLE, 2, [0, 1], []),
    ),
    "gets back what it has given up": (
        member(UNREVOKED, 1, 1, revoking=(0,)),
        target(3, 0, 1, owned=parts(1), others=parts(5)),
        (STABLE, 3, [0, 1], []),
    ),
    "waits for others": (member(STABLE, 1, 0), target(2, 0, 1, others=parts(1)), (UNRELEASED, 2, [0], [])),
    "takes what is free": (
        member(UNRELEASED, 2, 0), target(2, 0, 1, 2, others=parts(2)), (UNRELEASED, 2, [0, 1], [])
    ),
    "takes the last": (member(UNRELEASED, 2, 0), target(2, 0, 1), (STABLE, 2, [0, 1], [])),
    "reads the topic no longer": (member(STABLE, 1, 0), target(2, 0, subscribed=set()), (UNREVOKED, 1, [], [0])),
    "an old target": (
        member(STABLE, 1, 0), target(1, 0, subscribed={B}, subscription_changed=True), (UNREVOKED, 1, [], [0])
    ),
    "an old target, given up": (
        member(STABLE, 1, 0),
        target(1, 0, subscribed={B}, owned=set(), subscription_changed=True),
        (STABLE, 1, [], []),
    ),
    "an old target, while it revokes": (
        member(UNREVOKED, 1, 1, revoking=(0,)),
        target(2, 1, subscribed={B}, subscription_changed=True),
        (UNREVOKED, 1, [], [0, 1]),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("before", "given", "expected"), ROWS.values(), ids=ROWS)
def test_steps(
    before: ConsumerMember, given: Reconciliation, expected: tuple[MemberState, int, list[int], list[int]]
) -> None:
    assert outcome(reconcile(before, given)) == expected


def test_who_has_nothing_to_do_stays_the_same() -> None:
    done = member(STABLE, 2, 0)
    assert reconcile(done, target(2, 0, 1)) is done
    assert reconcile(done, target(2, 0, subscription_changed=True)) is done
    waiting = reconcile(member(STABLE, 1), target(2, 0, others=parts(0)))
    again = reconcile(waiting, target(2, 0, others=parts(0)))
    assert (outcome(again), again.previous_epoch) == (outcome(waiting), 2)
    assert reconcile(again, target(2, 0, others=parts(0))) is again


def test_partitions_keep_the_epoch_in_which_they_came() -> None:
    found = reconcile(member(STABLE, 1, 0), target(4, 0, 1))
    assert {part.partition: epoch for part, epoch in found.assigned.items()} == {0: 1, 1: 4}
    assert (found.epoch, found.previous_epoch) == (4, 1)
