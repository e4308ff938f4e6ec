"""What a proxy learns of topics and fetch sessions."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from aiokafkawire.protocol.messages import fetch, metadata, share_fetch
from aiokafkawire.protocol.messages.topics import CreatableTopicResult, CreateTopicsResponse
from aiokafkawire.testing.tap.observed_cluster import ObservedCluster

T, U = UUID(int=1), UUID(int=2)


def fetching(epoch: int, *partitions: int, session: int = 0, forgotten: list[int] | None = None) -> fetch.FetchRequest:
    asked = [fetch.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1) for index in partitions]
    topics = [fetch.FetchTopic(topic_id=T, topic="t", partitions=asked)] if asked else []
    gone = [fetch.ForgottenTopic(topic_id=T, topic="t", partitions=forgotten)] if forgotten else []
    return fetch.FetchRequest(
        max_wait_ms=0, min_bytes=1, topics=topics, session_id=session, session_epoch=epoch, forgotten_topics_data=gone
    )


def named(cluster: ObservedCluster) -> None:
    topic = metadata.MetadataResponseTopic(error_code=0, name="t", topic_id=T, partitions=[])
    cluster.learn(1, metadata.MetadataRequest(topics=None), 12, metadata.MetadataResponse(brokers=[], topics=[topic]))


def test_names_of_topics_come_from_metadata_and_from_their_creation() -> None:
    cluster = ObservedCluster()
    assert cluster.name_of(T) is None
    named(cluster)
    created = CreatableTopicResult(name="u", topic_id=U, error_code=0, error_message=None)
    request: Any = None
    cluster.learn(1, request, 7, CreateTopicsResponse(topics=[created]))
    assert (cluster.name_of(T), cluster.name_of(U)) == ("t", "u")


def test_a_fetch_session_has_what_its_requests_added_and_not_what_they_forgot() -> None:
    cluster = ObservedCluster()
    opened = fetch.FetchResponse(session_id=9, responses=[])
    cluster.learn(1, fetching(0, 0, 1), 13, opened)
    assert cluster.session(1, 9) == [(None, 0), (None, 1)]  # the topic's name is not known yet
    named(cluster)
    cluster.learn(1, fetching(1, 2, session=9, forgotten=[0]), 13, opened)
    assert cluster.session(1, 9) == [("t", 1), ("t", 2)]
    assert cluster.partitions(1, fetching(2, 4, session=9), 13) == [(T, 1), (T, 2), (T, 4)]
    assert cluster.session(2, 9) == []  # of another broker


def test_a_session_ends_with_its_last_request_or_its_error() -> None:
    for ending in (fetching(-1, session=9), fetching(3, session=9)):
        cluster = ObservedCluster()
        cluster.learn(1, fetching(0, 0), 12, fetch.FetchResponse(session_id=9, responses=[]))
        assert cluster.session(1, 9) == [("t", 0)]
        cluster.learn(1, ending, 12, fetch.FetchResponse(error_code=70, responses=[]))
        assert cluster.session(1, 9) == []


def sharing(epoch: int, *partitions: int) -> share_fetch.ShareFetchRequest:
    asked = [share_fetch.FetchPartition(partition_index=index, acknowledgement_batches=[]) for index in partitions]
    topics = [share_fetch.FetchTopic(topic_id=T, partitions=asked)] if asked else []
    return share_fetch.ShareFetchRequest(
        group_id="g",
        member_id="m",
        share_session_epoch=epoch,
        max_wait_ms=0,
        min_bytes=1,
        topics=topics,
        forgotten_topics_data=[],
    )


def test_share_sessions_are_of_a_member() -> None:
    cluster = ObservedCluster()
    answer = share_fetch.ShareFetchResponse(error_code=0, responses=[], node_endpoints=[])
    cluster.learn(1, sharing(0, 0), 1, answer)
    cluster.learn(1, sharing(1, 3), 1, answer)
    assert cluster.share_session(1, "g", "m") == [(T, 0), (T, 3)]
    cluster.learn(1, sharing(-1), 1, answer)
    assert cluster.share_session(1, "g", "m") == []
