"""The assignor of share groups."""

from __future__ import annotations

from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokafkawire.testing.share.assignor import assign

FIRST, SECOND = UUID(int=1), UUID(int=2)


@given(st.integers(1, 12), st.integers(1, 12))
def test_all_partitions_have_members_and_all_members_equally_many(members: int, partitions: int) -> None:
    found = assign({str(number): {FIRST} for number in range(members)}, {FIRST: partitions})
    counts = [sum((FIRST, index) in assigned for assigned in found.values()) for index in range(partitions)]
    assert set(counts) == {max(1, -(-members // partitions))}
    sizes = sorted(map(len, found.values()))
    assert sizes[0] >= 1 if members >= partitions else sizes[0] >= partitions // members
    assert all(larger - smaller <= 1 for smaller, larger in pairwise(sizes))


@pytest.mark.parametrize("members", [[], ["a"]])
def test_nothing_to_assign(members: list[str]) -> None:
    assert assign({member: {FIRST} for member in members}, {}) == {member: frozenset() for member in members}
    assert assign({member: set() for member in members}, {FIRST: 1}) == {member: frozenset() for member in members}


def test_topics_of_several_subscriptions() -> None:
    found = assign({"a": {FIRST}, "b": {FIRST, SECOND}, "c": {SECOND}}, {FIRST: 2, SECOND: 1})
    assert {index for topic, index in found["a"] | found["b"] if topic == FIRST} == {0, 1}
    assert found["c"] == {(SECOND, 0)}
    assert all(topic == FIRST for topic, _ in found["a"])
