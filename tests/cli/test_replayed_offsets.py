"""Which dead letters are replayed: a commit says it, and a selection chooses among the others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokafkawire import OffsetAndMetadata
from aiokafkawire.cli.dead_letters.replayed_offsets import ReplayedOffsets
from aiokafkawire.cli.dead_letters.selection import REPLAYED_FROM, Selection, replayed_headers
from aiokafkawire.processing.failures import Failure, with_failure

FAILURE = Failure("orders", 3, 17, 1_000, "billing", 5, "http.client.BadStatusLine", "no")


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 6))), st.integers(0, 20), st.integers(0, 40))
def test_a_commit_says_exactly_what_is_finished(ranges: list[tuple[int, int]], begin: int, log_start: int) -> None:
    state = ReplayedOffsets(begin)
    expected = set(range(begin))
    for start, length in ranges:
        state.finish(start, start + length)
        expected |= set(range(start, start + length))
    assert state.fits
    assert {offset for offset in range(80) if offset in state} == expected
    assert state.begin not in state
    again = ReplayedOffsets.of_commit(state.commit, log_start)
    assert {offset for offset in range(80) if offset in again} == expected | set(range(log_start))
    assert again.begin not in again


def test_a_copy_does_not_change_the_original() -> None:
    state = ReplayedOffsets(5, [(8, 9)])
    copy = state.copy()
    copy.finish(5, 8)
    assert (copy.begin, state.begin) == (9, 5)
    assert 8 in state


def test_without_a_commit_nothing_is_finished_and_ranges_of_another_offset_do_not_count() -> None:
    assert ReplayedOffsets.of_commit(None, 7).begin == 7
    moved = OffsetAndMetadata(2, ReplayedOffsets(5, [(8, 9)]).commit.metadata)
    assert 8 not in ReplayedOffsets.of_commit(moved, 0)


def test_a_commit_without_room_for_all_ranges_is_told() -> None:
    state = ReplayedOffsets(0)
    for offset in range(1, 20_000, 2):
        state.finish(offset, offset + 1)
    assert not state.fits
    assert 0 not in ReplayedOffsets.of_commit(state.commit, 0)
    state.finish(0, 20_000)
    assert (state.fits, state.commit) == (True, OffsetAndMetadata(20_000))


@pytest.mark.parametrize(
    ("selection", "passes"),
    [
        (Selection(), True),
        (Selection(origins=frozenset({"orders", "pay"})), True),
        (Selection(origins=frozenset({"pay"})), False),
        (Selection(errors=frozenset({"BadStatusLine"})), True),
        (Selection(errors=frozenset({"http.client.BadStatusLine", "ValueError"})), True),
        (Selection(errors=frozenset({"client.BadStatusLine"})), False),
        (Selection(since_ms=5_000, until_ms=5_001), True),
        (Selection(since_ms=5_001), False),
        (Selection(until_ms=5_000), False),
        (Selection(origins=frozenset({"orders"}), errors=frozenset({"ValueError"})), False),
    ],
)
def test_a_dead_letter_must_pass_all_conditions(selection: Selection, passes: bool) -> None:
    assert selection.has(FAILURE, 5_000) is passes


def test_the_headers_of_the_failure_make_room_for_the_place_of_the_dead_letter() -> None:
    own = [("trace", b"1"), ("none", None)]
    first = replayed_headers(with_failure(own, FAILURE), "orders.dead", 0, 42)
    assert first == [*own, (REPLAYED_FROM, b"orders.dead:0:42")]
    assert replayed_headers(with_failure(first, FAILURE), "orders.dead", 1, 7) == [
        *own,
        (REPLAYED_FROM, b"orders.dead:1:7"),
    ]
