"""Where a failed record goes next, how long it waits there, and which retry topics are refused."""

from typing import Any

import attrs
import pytest

from aiokafkawire import ConfigError, RetryTopic, SubscriptionPattern, TopicPartition, UsageError
from aiokafkawire.processing.failures import Failure
from aiokafkawire.processing.retry_topics import RetryTopics, checked_retry_topics, topics_to_read
from aiokafkawire.processing.waiting_records import WaitingRecords

SOON, LATE = RetryTopic("t.soon", 1_000), RetryTopic("t.late", delay_ms=60_000)
P, Q = TopicPartition("t.soon", 0), TopicPartition("t.late", 0)
FAILURE = Failure("t", 0, 5, 1, "g", 3, "ValueError", "no")


def test_a_record_goes_through_the_topics_in_their_order() -> None:
    topics = RetryTopics([SOON, LATE])
    assert [topics.after(name) for name in ("t", "t.soon", "t.late")] == [SOON, LATE, None]
    assert "t.late" in topics
    assert "t" not in topics
    assert RetryTopics().after("t") is None


@pytest.mark.parametrize(
    ("not_before_ms", "seconds"),
    [(10_400, 0.4), (10_000, 0.0), (0, 0.0), (10**15, 1.0)],
)
def test_a_wait_is_never_longer_than_the_delay_of_the_topic(not_before_ms: int, seconds: float) -> None:
    failure = attrs.evolve(FAILURE, not_before_ms=not_before_ms)
    assert RetryTopics([SOON, LATE]).wait("t.soon", failure, 10_000) == seconds


def test_a_record_without_a_failure_is_due_at_once() -> None:
    assert RetryTopics([SOON]).wait("t.soon", None, 10_000) == 0.0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([RetryTopic("t", 1)], "is a topic that process"),
        ([RetryTopic("dead", 1)], "is the dead_letter_topic"),
        ([SOON, LATE, RetryTopic("t.soon", 5)], "'t.soon' is there twice"),
        (["t.retry"], "'t.retry' needs a delay: use RetryTopic"),
        (["1m"], "'1m' needs a delay"),
        (["t.0s"], "delay_ms must be an integer from 1"),
        (["t.99d"], "delay_ms must be"),
        ([5], "must be RetryTopic objects or names"),
        ("t.retry", "retry_topics must be"),
        (SOON, "retry_topics must be"),
    ],
)
def test_topics_with_another_role_are_refused(given: Any, told: str) -> None:
    with pytest.raises((ConfigError, UsageError), match=told):
        checked_retry_topics(given, ("t",), "dead", share=False)


def test_a_name_may_end_in_the_delay() -> None:
    names = ["t.retry.250ms", "t-5s", "t_retry_1m", "t.12h", "t.1d"]
    found = checked_retry_topics(names, ("t",), "dead", share=False)
    assert [topic.name for topic in found] == names
    assert [topic.delay_ms for topic in found] == [250, 5_000, 60_000, 12 * 3_600_000, 86_400_000]


def test_share_groups_have_none() -> None:
    assert checked_retry_topics((), ("t",), None, share=True) == ()
    with pytest.raises(UsageError, match="share group has no retry_topics"):
        checked_retry_topics([SOON], ("t",), None, share=True)


@pytest.mark.parametrize("wrong", [("a/b", 1), ("t", 0), ("t", True), ("t", 1.5), (5, 1)])
def test_a_retry_topic_needs_a_name_and_a_delay(wrong: Any) -> None:
    with pytest.raises((ConfigError, UsageError)):
        RetryTopic(*wrong)


def test_a_pattern_is_joined_by_the_names_of_the_retry_topics() -> None:
    assert topics_to_read(("a", "b"), [SOON]) == ("a", "b", "t.soon")
    assert topics_to_read((SubscriptionPattern("o.*|p"),), [SOON]) == (SubscriptionPattern(r"(o.*|p)|t\.soon"),)


def test_records_are_taken_when_they_are_due_and_never_before_those_before_them() -> None:
    waiting: WaitingRecords[str] = WaitingRecords()
    waiting.add(P, 5.0, "a")
    waiting.add(P, 4.0, "b")
    waiting.add(P, 9.0, "c")
    waiting.add(Q, 6.0, "x")
    assert (len(waiting), waiting.next_due(())) == (4, 5.0)
    assert waiting.take(4.5, (), 10) == []
    assert waiting.take(5.0, (P,), 10) == []
    assert waiting.take(5.0, (), 1) == ["a"]
    assert waiting.take(5.0, (), 10) == ["b"]
    assert (waiting.next_due(()), waiting.next_due((Q,))) == (6.0, 9.0)
    assert waiting.take(9.0, (), 10) == ["c"]
    assert P not in waiting


def test_held_records_stay_and_are_not_taken() -> None:
    waiting: WaitingRecords[str] = WaitingRecords()
    waiting.add(P, 1.0, "a")
    waiting.hold([P, Q])
    assert (waiting.take(2.0, (), 10), waiting.next_due(()), P in waiting) == ([], None, True)
    waiting.drop([P, Q])
    assert len(waiting) == 0
