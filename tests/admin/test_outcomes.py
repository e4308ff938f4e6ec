"""Calls for several resources: what is returned, and what is raised."""

import pytest

from aiokafkawire.admin.outcomes import results_of
from aiokafkawire.errors import AdminError, InvalidPartitions, TopicAlreadyExists, UnknownTopicOrPartition

MISSING = UnknownTopicOrPartition("deleting topic 'a'")
TAKEN = TopicAlreadyExists("creating topic 'b'")


def test_results_are_returned_if_nothing_failed() -> None:
    assert results_of("describing topics", {"a": 1, "b": 2}) == {"a": 1, "b": 2}
    assert results_of("describing topics", {}) == {}


def test_the_only_resource_raises_its_own_error() -> None:
    with pytest.raises(UnknownTopicOrPartition) as raised:
        results_of("deleting topics", {"a": MISSING})
    assert raised.value is MISSING


def test_some_of_several_raise_one_error_with_the_results_of_the_others() -> None:
    with pytest.raises(AdminError) as raised:
        results_of("changing topics", {"a": MISSING, "b": TAKEN, "c": 3})
    error = raised.value
    assert error.results == {"c": 3}
    assert error.errors == {"a": MISSING, "b": TAKEN}
    assert str(error) == f"changing topics failed for 2 of 3: {MISSING}; {TAKEN}"


def test_errors_of_a_kind_are_caught_by_except_star() -> None:
    caught: list[ExceptionGroup[TopicAlreadyExists]] = []
    with pytest.raises(AdminError) as raised:
        try:
            results_of("changing topics", {"a": MISSING, "b": TAKEN, "c": 3})
        except* TopicAlreadyExists as taken:
            caught.append(taken)
    assert isinstance(caught[0], AdminError)
    assert caught[0].errors == {"b": TAKEN}
    assert caught[0].results == raised.value.results == {"c": 3}
    assert raised.value.errors == {"a": MISSING}


def test_the_error_of_the_only_resource_is_caught_by_except_star_too() -> None:
    caught = []
    try:
        results_of("deleting topics", {"a": MISSING})
    except* (UnknownTopicOrPartition, InvalidPartitions) as unknown:
        caught.append(unknown)
    assert len(caught) == 1
