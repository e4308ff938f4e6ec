"""The checker finds what is wrong with the results of records, and nothing in the nearest history that is right."""

import pytest

from histories.anomalies import Kind
from histories.checking import check
from histories.events import Event, LogFound, SourceFound
from histories.group_events import OffsetFetched

SOURCE = SourceFound("s", ((0, "x"), (2, "y")), end=4)
"""Two records, and the markers of two transactions."""


def counts(*values: str) -> LogFound:
    return LogFound("results", tuple(enumerate(values)), is_committed=True)


def fetched(offset: int) -> OffsetFetched:
    return OffsetFetched("g", "s", offset)


ALL = counts("x", "y")


@pytest.mark.parametrize(
    ("kind", "wrong", "right"),
    [
        (Kind.LOST_WRITE, (SOURCE, counts("x")), (SOURCE, ALL)),
        (Kind.DUPLICATE, (SOURCE, counts("x", "y", "x")), (SOURCE, counts("y", "x"))),
        (Kind.PHANTOM, (SOURCE, counts("x", "y", "z")), (SOURCE, ALL)),
        (Kind.OFFSET_REGRESSION, (SOURCE, ALL, fetched(2)), (SOURCE, ALL, fetched(3))),
        (Kind.COMMIT_BEYOND_FINISHED, (SOURCE, ALL, fetched(5)), (SOURCE, ALL, fetched(4))),
        (
            Kind.COMMIT_BEYOND_FINISHED,
            (SourceFound("s", (), end=0), counts(), fetched(1)),
            (SourceFound("s", (), end=0), counts(), fetched(-1)),
        ),
    ],
)
def test_an_anomaly_is_found_and_its_nearest_neighbour_is_right(
    kind: Kind, wrong: tuple[Event, ...], right: tuple[Event, ...]
) -> None:
    assert [anomaly.kind for anomaly in check(wrong)] == [kind]
    assert check(right) == []


def test_the_counterexample_has_one_record_and_where_its_result_is() -> None:
    (twice,) = check((SOURCE, counts("x", "y", "y")))
    assert str(twice).splitlines() == [
        "duplicate: s:2 counts 2 times",
        "    records of s that have to count once: 2 as 'y'",
        "    committed records of results from 1 to 2: 1 'y', 2 'y'",
    ]
