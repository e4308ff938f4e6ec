"""What a user subscribes to, and which topics that means."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.clusters import metadata, partition, topic

from aiokafkawire.cluster.metadata import EMPTY, merge
from aiokafkawire.consumer.topic_subscription import RebalanceListeners, subscription_to
from aiokafkawire.errors import UsageError

NOBODY = RebalanceListeners()


def test_topics_are_those_that_were_named_whether_they_are_there_or_not() -> None:
    subscription = subscription_to(["b", "a", "b"], None, NOBODY)
    assert subscription.topics == subscription.topics_in(EMPTY) == ("b", "a")
    assert str(subscription) == "b, a"


@pytest.mark.parametrize("pattern", ["log-.*", re.compile("log-.*")])
def test_a_pattern_means_whole_names_and_nothing_internal(pattern: str | re.Pattern[str]) -> None:
    named = [topic(name, partition(0)) for name in ("log-b", "log-a", "blog-a", "log-", "other")]
    internal = topic("log-internal", partition(0))
    internal.is_internal = True
    subscription = subscription_to([], pattern, NOBODY)
    assert subscription.topics_in(EMPTY) == ()
    assert subscription.topics_in(merge(EMPTY, metadata(*named, internal))) == ("log-", "log-a", "log-b")
    assert str(subscription) == "pattern 'log-.*'"


@pytest.mark.parametrize(
    ("topics", "pattern", "listeners", "told"),
    [
        ([], None, NOBODY, "topics or to a pattern"),
        (["a"], "b", NOBODY, "topics or to a pattern"),
        (["a/b"], None, NOBODY, "a/b"),
        ([], "log-(", NOBODY, "no regular expression"),
        ([], 7, NOBODY, "no regular expression"),
        (["a"], None, RebalanceListeners(on_revoked="not callable"), "on_revoked must be a function"),  # type: ignore[arg-type]
    ],
)
def test_what_makes_no_sense_is_refused(
    topics: list[str], pattern: Any, listeners: RebalanceListeners, told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        subscription_to(topics, pattern, listeners)
