"""The queue of acknowledgements, and records that are acquired again."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from aiokafkawire import Acknowledge, AcknowledgementFailed, TopicPartition
from aiokafkawire.errors import ErrorCode, InvalidRecordState, broker_error
from aiokafkawire.share.acknowledgement_queue import AcknowledgementQueue, SentAcknowledgements
from aiokafkawire.share.acknowledgements import AcknowledgedOffsets
from aiokafkawire.share.acquired_partition import AcquiredPartition, AcquiredRange, Acquisitions

A0 = TopicPartition("a", 0)
KEY = (UUID(int=1), 0)


def acquired(first: int, last: int, node_id: int = 1) -> AcquiredPartition:
    return AcquiredPartition(KEY, A0, node_id, 30.0, [AcquiredRange(first, last)])


@pytest.fixture
def queue() -> AcknowledgementQueue:
    """A queue of five acknowledgements: the records 0 to 2 are accepted, and the locks of 5 and 6 are renewed."""
    queue, acquisition = AcknowledgementQueue(), acquired(0, 9)
    queue.add(acquisition, AcknowledgedOffsets(0, 2, Acknowledge.ACCEPT, by_user=True), 0.0)
    queue.add(acquisition, AcknowledgedOffsets(5, 6, Acknowledge.RENEW, by_user=True), 0.0)
    return queue


def test_acknowledgements_that_wait_are_refused_for_records_that_come_again(queue: AcknowledgementQueue) -> None:
    queue.lose(acquired(1, 5))
    sent = queue.take([KEY], renewals=True)
    assert [part[:3] for part in sent.ranges[KEY]] == [(0, 0, Acknowledge.ACCEPT), (6, 6, Acknowledge.RENEW)]
    with pytest.raises(AcknowledgementFailed) as raised:
        queue.results.take()
    assert isinstance(raised.value.errors[A0], InvalidRecordState)


def test_other_acknowledgements_stay(queue: AcknowledgementQueue) -> None:
    queue.lose(acquired(7, 20))
    assert len(queue.take([KEY], renewals=True).ranges[KEY]) == 3
    assert queue.results.take() == {}


def put_back(queue: AcknowledgementQueue, sent: SentAcknowledgements) -> None:
    queue.put_back(sent, now=0.0)


def retried(queue: AcknowledgementQueue, sent: SentAcknowledgements) -> None:
    queue.settle_or_retry(sent, KEY, broker_error(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), 0.0)


@pytest.mark.parametrize("repeat", [put_back, retried])
@pytest.mark.parametrize("comes_again", [False, True])
def test_a_request_is_not_repeated_for_records_that_have_come_again_from_another_broker(
    queue: AcknowledgementQueue, repeat: Callable[[AcknowledgementQueue, SentAcknowledgements], None], comes_again: bool
) -> None:
    sent = queue.take([KEY], renewals=True)
    if comes_again:
        queue.lose(acquired(0, 2, node_id=2))
    repeat(queue, sent)
    queue.ended(sent)
    repeated = queue.take([KEY], renewals=True).ranges[KEY]
    assert [part.first for part in repeated] == ([5, 6] if comes_again else [0, 5, 6])
    if comes_again:
        with pytest.raises(AcknowledgementFailed):
            queue.results.take()


def test_a_fetch_loses_the_records_that_another_one_acquires() -> None:
    acquisitions, first, second = Acquisitions(), acquired(0, 9), acquired(8, 12)
    assert not acquisitions.add(first)
    assert acquisitions.add(second)
    assert not acquisitions.add(acquired(20, 22))
    assert [offset for offset in range(10) if first.has_lost(offset)] == [8, 9]
    assert not second.lost
