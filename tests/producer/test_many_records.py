"""The columns of ``enqueue_many`` of which each item becomes a Python object."""

from __future__ import annotations

from typing import Any

import pytest

from aiokafkawire.producer.many_records import RecordLists, many_records

VALUES = [b"a", b"b", b"c"]


def first_rows(values: Any, keys: Any, count: int) -> list[tuple[Any, Any]]:
    """The values and keys of the first rows."""
    part = many_records(values, keys, None, None, (), raw=False).rows(0, count)
    assert isinstance(part, RecordLists)
    return [part.record(index)[:2] for index in range(part.count)]


@pytest.mark.parametrize("labels", [[2, 0, 1], [5, 7, 9], [0.5, 1.5, 2.5], ["x", "y", "z"]])
def test_items_of_a_pandas_series_are_taken_by_place_and_not_by_label(labels: list[Any]) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    series = pandas.Series(VALUES, index=labels)
    keys = [b"1", b"2", b"3"]
    assert first_rows(series, keys, 2) == [(b"a", b"1"), (b"b", b"2")]
    assert first_rows(keys, series, 3) == [(b"1", b"a"), (b"2", b"b"), (b"3", b"c")]


@pytest.mark.parametrize("kind", [list, tuple])
def test_sequences_of_python_are_taken_as_they_are(kind: type[Any]) -> None:
    assert first_rows(kind(VALUES), None, 2) == [(b"a", None), (b"b", None)]
