"""The results of commits."""

from __future__ import annotations

import pytest

from aiokafkawire import AcknowledgementFailed, TopicPartition
from aiokafkawire.errors import InvalidRecordState
from aiokafkawire.share.commit_results import CommitResults

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def test_what_the_consumer_acknowledges_itself_is_in_no_result() -> None:
    results = CommitResults()
    results.settle(A0, 0, None)
    results.settle(A1, 0, InvalidRecordState("a renewal came too late"))
    assert results.take() == {}


def test_a_result_is_taken_once() -> None:
    results = CommitResults()
    for count in (1, 2):
        results.settle(A0, count, None)
    error = InvalidRecordState("too late")
    results.settle(A1, 1, error)
    with pytest.raises(AcknowledgementFailed) as raised:
        results.take()
    assert (raised.value.errors, raised.value.acknowledged) == ({A1: error}, {A0: 3})
    assert results.take() == {}
