"""The checks of the scenario with admin clients find what is wrong."""

import pytest

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey

from .admin_calls import Answer, Call, Topic, problems_of, topics_after

CREATED = Call("a/0", ApiKey.CREATE_TOPICS, "a", 3, ErrorCode.NONE)
GROWN = Call("a/1", ApiKey.CREATE_PARTITIONS, "a", 5, ErrorCode.NONE)
CONFIGURED = Call("a/2", ApiKey.INCREMENTAL_ALTER_CONFIGS, "a", 60_000, ErrorCode.NONE)
DELETED = Call("a/3", ApiKey.DELETE_TOPICS, "a", 0, ErrorCode.NONE)


def answered(*calls: Call) -> list[Answer]:
    return [Answer(call.name, ErrorCode.NONE) for call in calls]


def test_topics_are_what_brokers_have_accepted_in_its_order() -> None:
    calls = [CREATED, GROWN, CONFIGURED, DELETED]
    assert topics_after(calls, answered(CREATED, GROWN, CONFIGURED)) == {"a": Topic(5, 60_000)}
    assert topics_after(calls, answered(CREATED, GROWN, CONFIGURED, DELETED)) == {}
    refused = Answer(GROWN.name, ErrorCode.INVALID_PARTITIONS)
    assert topics_after(calls, [*answered(CREATED), refused]) == {"a": Topic(3)}


def test_a_call_that_returns_without_an_answer_is_a_problem() -> None:
    assert problems_of([CREATED], answered(CREATED)) == []
    assert problems_of([CREATED], []) == ["a/0 of a ended with 0, but brokers answered []"]


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.NOT_CONTROLLER])
def test_a_call_that_fails_otherwise_than_it_was_answered_is_a_problem(code: ErrorCode) -> None:
    failed = Call("a/0", ApiKey.CREATE_TOPICS, "a", 3, ErrorCode.TOPIC_ALREADY_EXISTS)
    assert len(problems_of([failed], [Answer("a/0", code)])) == 1


def test_nobody_knows_what_became_of_a_call_that_was_given_up() -> None:
    assert problems_of([Call("a/0", ApiKey.CREATE_TOPICS, "a", 3, None)], []) == []
