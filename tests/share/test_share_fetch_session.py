"""Share sessions as the member knows them."""

from __future__ import annotations

from uuid import UUID

from aiokafkawire.protocol.messages.share_fetch import ForgottenTopic
from aiokafkawire.share.share_fetch_session import PartitionKey, ShareFetchSession

A, B = UUID(int=1), UUID(int=2)
KEYS: list[PartitionKey] = [(A, 0), (A, 1), (B, 0)]


def opened(*partitions: PartitionKey) -> ShareFetchSession:
    session = ShareFetchSession()
    session.answered(partitions)
    return session


def test_requests_count_from_zero() -> None:
    session = ShareFetchSession()
    assert not session.is_open
    epochs = []
    for _ in range(3):
        epochs.append(session.next_epoch())
        session.answered()
    assert epochs == [0, 1, 2]
    assert session.is_open
    assert session.final_epoch() == -1


def test_a_fetch_names_only_what_has_changed() -> None:
    session = opened(KEYS[0], KEYS[2])
    assert session.added(KEYS[:2]) == [KEYS[1]]
    assert session.forgotten(KEYS[:2]) == [ForgottenTopic(topic_id=B, partitions=[0])]
    session.answered(KEYS[:2])
    assert session.added(KEYS[:2]) == []
    assert session.forgotten(KEYS[:2]) == []


def test_an_acknowledgement_leaves_the_partitions_as_they_are() -> None:
    session = opened(*KEYS)
    session.answered()
    assert session.added(KEYS) == []


def test_another_session_begins_with_nothing() -> None:
    session = opened(*KEYS)
    session.restart()
    assert (session.is_open, session.next_epoch()) == (False, 0)
    assert session.added(KEYS) == KEYS


def test_the_epoch_after_the_greatest_is_one() -> None:
    session = opened()
    session._epoch = 2**31 - 1
    session.answered()
    assert session.next_epoch() == 1
