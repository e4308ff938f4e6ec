"""Which fetch sessions make room for others, and when."""

from __future__ import annotations

from uuid import UUID

import pytest
from support.raw_client import fetch_request

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.fetch import FetchRequest, PartitionData
from aiokafkawire.testing.cluster.api_error import ApiError
from aiokafkawire.testing.logs.sessions import FetchSessions

EVICTION = 120.0  # seconds


def nothing(topic_id: UUID) -> None:
    return None


def request(partitions: int, session: tuple[int, int] = (0, 0)) -> FetchRequest:
    session_id, epoch = session
    made = fetch_request("t", 0, session_id=session_id, session_epoch=epoch)
    made.topics[0].partitions.clear()
    for index in range(partitions):
        made.topics[0].partitions += fetch_request("t", 0, partition=index).topics[0].partitions
    return made


def opened(sessions: FetchSessions, partitions: int, now: float, *, from_follower: bool = False) -> int:
    """A full fetch; the id of its session, 0 if it got none."""
    fetching = sessions.begin(request(partitions), nothing, by_topic_id=False, now=now)
    results = [
        (wanted, PartitionData(partition_index=wanted.asked.partition, error_code=0, high_watermark=0, records=b""))
        for wanted in fetching.partitions
    ]
    return fetching.answer(results, from_follower=from_follower, now=now)[1]


def use(sessions: FetchSessions, session: int, epoch: int, now: float) -> ErrorCode:
    try:
        fetching = sessions.begin(request(0, (session, epoch)), nothing, by_topic_id=False, now=now)
    except ApiError as refused:
        return refused.code
    return ErrorCode(fetching.answer([], from_follower=False, now=now)[0])


def test_with_all_slots_taken_there_are_no_more_sessions() -> None:
    sessions = FetchSessions(slots=2)
    assert [opened(sessions, 1, now) for now in (0, 1, 2)] == [1, 2, 0]
    assert len(sessions) == 2
    assert opened(FetchSessions(slots=0), 1, 0) == 0


def test_the_session_that_was_not_used_for_longest_goes_first() -> None:
    sessions = FetchSessions(slots=2)
    first, second = opened(sessions, 1, 0), opened(sessions, 1, 1)
    assert use(sessions, first, 1, now=100) == ErrorCode.NONE
    third = opened(sessions, 1, 1 + EVICTION + 1)
    assert use(sessions, second, 1, now=130) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert use(sessions, third, 1, now=130) == ErrorCode.NONE
    assert use(sessions, first, 2, now=130) == ErrorCode.NONE


def test_an_old_session_makes_room_for_a_larger_one() -> None:
    sessions = FetchSessions(slots=1)
    first = opened(sessions, 2, 0)
    assert opened(sessions, 9, EVICTION - 1) == 0  # it is not old yet
    assert use(sessions, first, 1, now=EVICTION - 1) == ErrorCode.NONE
    assert opened(sessions, 9, EVICTION + 1) == 0  # nor was it when it was used last
    assert use(sessions, first, 2, now=EVICTION + 2) == ErrorCode.NONE
    assert opened(sessions, 1, EVICTION + 3) == 0  # which is smaller
    assert opened(sessions, 3, EVICTION + 3) == 2
    assert use(sessions, first, 3, now=EVICTION + 4) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_followers_come_before_consumers() -> None:
    sessions = FetchSessions(slots=1)
    consumer = opened(sessions, 9, 0)
    follower = opened(sessions, 1, 1, from_follower=True)
    assert follower != 0
    assert use(sessions, consumer, 1, now=1) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert opened(sessions, 9, 2) == 0
    assert opened(sessions, 9, 2, from_follower=True) == 0


@pytest.mark.parametrize(("epoch", "following"), [(1, 2), (2**31 - 1, 1)])
def test_epochs_begin_anew_after_the_last(epoch: int, following: int) -> None:
    sessions = FetchSessions()
    session = opened(sessions, 1, 0)
    sessions._sessions[session].epoch = epoch
    assert use(sessions, session, epoch, now=1) == ErrorCode.NONE
    assert use(sessions, session, epoch, now=1) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert use(sessions, session, following, now=1) == ErrorCode.NONE


def test_a_broker_that_stops_forgets_its_sessions() -> None:
    sessions = FetchSessions()
    session = opened(sessions, 1, 0)
    sessions.clear()
    assert use(sessions, session, 1, now=1) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
