"""The decisions of transform(): what follows an error, how an instance is named, and when a group has ended."""

from __future__ import annotations

import pytest

from aiokafkawire import OffsetAndMetadata, TopicPartition
from aiokafkawire.errors import (
    CommitFailed,
    ErrorCode,
    FencedInstanceId,
    KafkaError,
    RequestTimeout,
    UnsupportedVersion,
    broker_error,
)
from aiokafkawire.transform_ends import TransformEnds
from aiokafkawire.transform_recovery import Recovery, recovery_after, transactional_id_of

ONE, TWO = TopicPartition("in", 0), TopicPartition("in", 1)


@pytest.mark.parametrize(
    ("error", "begun", "is_own_id", "recovery"),
    [
        (CommitFailed("x"), True, True, Recovery.RETRY),
        (ErrorCode.REBALANCE_IN_PROGRESS, True, False, Recovery.RETRY),
        (ErrorCode.TRANSACTION_ABORTABLE, True, False, Recovery.RETRY),
        (RequestTimeout("x"), True, False, Recovery.RETRY),
        (RequestTimeout("x"), False, True, Recovery.RAISE),
        (ErrorCode.INVALID_PRODUCER_EPOCH, True, False, Recovery.RETRY),
        (ErrorCode.PRODUCER_FENCED, True, True, Recovery.REPLACE_PRODUCER),
        (ErrorCode.PRODUCER_FENCED, True, False, Recovery.RAISE),
        (ErrorCode.INVALID_TXN_STATE, False, True, Recovery.REPLACE_PRODUCER),
        (ErrorCode.INVALID_TXN_STATE, False, False, Recovery.RAISE),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, False, True, Recovery.REPLACE_PRODUCER),
        (FencedInstanceId("x"), True, False, Recovery.RAISE),
        (UnsupportedVersion("x"), True, True, Recovery.RAISE),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, True, True, Recovery.RAISE),
    ],
)
def test_an_error_leads_to_the_step_that_can_mend_it(
    error: KafkaError | ErrorCode, begun: bool, is_own_id: bool, recovery: Recovery
) -> None:
    if isinstance(error, ErrorCode):
        error = broker_error(error, "x")
    assert recovery_after(error, begun=begun, is_own_id=is_own_id) is recovery


def test_a_static_member_keeps_its_transactional_id() -> None:
    assert transactional_id_of("service", "one", "x7") == "service-one"
    assert transactional_id_of("service", None, "x7") == "service-x7"


def test_the_end_is_reached_once_all_partitions_are_committed_up_to_it() -> None:
    ends = TransformEnds({ONE: 5, TWO: 3, TopicPartition("in", 2): 0})
    assert not ends.are_reached
    assert ends.of_others([ONE]) == ()  # it has to read that one first
    assert ends.of_others([]) == (ONE, TWO)
    assert ends.to_commit({ONE: OffsetAndMetadata(4), TWO: OffsetAndMetadata(3)}) == {TWO: OffsetAndMetadata(3)}
    ends.committed({ONE: OffsetAndMetadata(4), TWO: None})
    assert ends.of_others([]) == (ONE, TWO)
    ends.committed({ONE: OffsetAndMetadata(6)})
    assert ends.of_others([ONE]) == (TWO,)
    ends.committed({TWO: OffsetAndMetadata(3)})
    assert ends.are_reached
    ends.committed({TWO: OffsetAndMetadata(9)})
    assert ends.are_reached
