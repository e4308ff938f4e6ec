"""The offsets that groups have committed."""

from __future__ import annotations

from aiokafkawire.testing.groups.committed import Committed, CommittedOffsets
from aiokafkawire.types import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 1)


def test_offsets_are_kept_by_group() -> None:
    offsets = CommittedOffsets()
    offsets.commit("g", A, Committed(1))
    offsets.commit("g", A, Committed(2, metadata="x"))
    offsets.commit("h", B, Committed(3))
    assert offsets.get("g", A) == Committed(2, metadata="x")
    assert offsets.get("g", B) is None
    assert offsets.of("g") == {A: Committed(2, metadata="x")}
    assert offsets.of("nobody") == {}
    assert offsets.groups() == ["g", "h"]


def test_what_is_asked_for_is_a_copy() -> None:
    offsets = CommittedOffsets()
    offsets.commit("g", A, Committed(1))
    offsets.of("g").clear()
    assert offsets.get("g", A) == Committed(1)


def test_a_transaction_s_offsets_count_when_it_commits() -> None:
    offsets = CommittedOffsets()
    offsets.commit("g", A, Committed(1))
    offsets.pend("g", 7, {A: Committed(5), B: Committed(6)})
    offsets.pend("g", 7, {A: Committed(8)})
    assert offsets.is_pending("g", A)
    assert not offsets.is_pending("h", A)
    assert offsets.get("g", A) == Committed(1)
    offsets.complete(8, commit=True)  # another's
    assert offsets.is_pending("g", A)
    offsets.complete(7, commit=True)
    assert not offsets.is_pending("g", A)
    assert offsets.of("g") == {A: Committed(8), B: Committed(6)}


def test_a_transaction_s_offsets_go_when_it_aborts() -> None:
    offsets = CommittedOffsets()
    offsets.pend("g", 7, {A: Committed(5)})
    assert offsets.groups() == ["g"]
    offsets.complete(7, commit=False)
    assert (offsets.groups(), offsets.of("g")) == ([], {})


def test_a_later_commit_outside_of_a_transaction_wins() -> None:
    offsets = CommittedOffsets()
    offsets.pend("g", 7, {A: Committed(5), B: Committed(5)})
    offsets.commit("g", A, Committed(9))
    offsets.complete(7, commit=True)
    assert offsets.of("g") == {A: Committed(9), B: Committed(5)}


def test_of_two_transactions_the_later_commit_wins() -> None:
    offsets = CommittedOffsets()
    offsets.pend("g", 7, {A: Committed(5)})
    offsets.pend("g", 8, {A: Committed(6)})
    offsets.complete(8, commit=True)
    assert offsets.is_pending("g", A)
    offsets.complete(7, commit=True)
    assert offsets.get("g", A) == Committed(6)


def test_deleting_forgets_what_is_pending_too() -> None:
    offsets = CommittedOffsets()
    for where in (A, B):
        offsets.commit("g", where, Committed(1))
        offsets.pend("g", 7, {where: Committed(2)})
    assert offsets.delete("g", A) == Committed(1)
    assert offsets.delete("g", A) is None
    assert not offsets.is_pending("g", A)
    offsets.complete(7, commit=True)
    assert offsets.of("g") == {B: Committed(2)}


def test_a_topic_s_offsets_go_from_all_groups() -> None:
    offsets = CommittedOffsets()
    for group in ("g", "h"):
        offsets.commit(group, A, Committed(1))
        offsets.commit(group, B, Committed(1))
    offsets.pend("i", 7, {A: Committed(2)})
    offsets.delete_topic("a")
    assert [offsets.of(group) for group in ("g", "h")] == [{B: Committed(1)}] * 2
    assert not offsets.is_pending("i", A)


def test_a_group_s_offsets_go_with_it() -> None:
    offsets = CommittedOffsets()
    offsets.commit("g", A, Committed(1))
    offsets.pend("g", 7, {B: Committed(2)})
    offsets.delete_group("g")
    offsets.complete(7, commit=True)
    assert offsets.groups() == []
