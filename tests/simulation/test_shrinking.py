"""The shortest list of faults with which a run still fails."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from simulation.shrinking import shrink

EVENTS = list(range(100))


@given(st.sets(st.sampled_from(EVENTS), max_size=6))
def test_what_is_left_is_what_the_failure_takes(needed: set[int]) -> None:
    assert shrink(EVENTS, lambda events: needed <= set(events), tries=2_000) == sorted(needed)


def test_a_failure_that_takes_one_of_two_groups_of_faults_keeps_one() -> None:
    def fails(events: Sequence[int]) -> bool:
        return {1, 2} <= set(events) or {50, 99} <= set(events)

    assert shrink(EVENTS, fails) in ([1, 2], [50, 99])


def test_a_failure_without_faults_takes_none() -> None:
    assert shrink(EVENTS, lambda events: True) == []
    assert shrink([], lambda events: True) == []


def test_it_stops_after_so_many_tries_with_the_shortest_list_so_far() -> None:
    asked: list[Sequence[int]] = []

    def fails(events: Sequence[int]) -> bool:
        asked.append(events)
        return 7 in events

    left = shrink(EVENTS, fails, tries=3)
    assert len(asked) == 3
    assert 7 in left
    assert len(left) < len(EVENTS)


def test_no_list_is_asked_that_has_lost_the_order() -> None:
    def fails(events: Sequence[int]) -> bool:
        assert list(events) == sorted(events)
        return {3, 60} <= set(events)

    assert shrink(EVENTS, fails) == [3, 60]
