"""Errors and paused partitions in responses to Fetch and ShareFetch."""

from __future__ import annotations

from uuid import UUID

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.compiler import decode, encode
from aiokafkawire.protocol.messages import fetch, share_fetch
from aiokafkawire.testing.tap.fetch_results import has_records, inject_errors, withhold_records
from aiokafkawire.testing.tap.observed_cluster import SessionPartition

T = UUID(int=1)
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


def named(partition: SessionPartition) -> tuple[str | None, int]:
    topic, index = partition
    return ("t" if topic == T else None if isinstance(topic, UUID) else topic), index


def fetched(*partitions: int, topic: str = "") -> fetch.FetchResponse:
    data = [
        fetch.PartitionData(partition_index=index, error_code=0, high_watermark=5, records=b"x") for index in partitions
    ]
    topics = [fetch.FetchableTopicResponse(topic=topic, partitions=data, **({} if topic else {"topic_id": T}))]
    return fetch.FetchResponse(responses=topics)


def codes(response: fetch.FetchResponse) -> dict[int, int]:
    return {one.partition_index: one.error_code for topic in response.responses for one in topic.partitions}


def test_one_partition_gets_the_error_and_loses_its_records() -> None:
    response = fetched(0, 1)
    inject_errors(response, [], lambda topic, index: NOT_LEADER if (topic, index) == ("t", 1) else None, named)
    assert codes(response) == {0: 0, 1: NOT_LEADER}
    assert [bytes(one.records or b"") for one in response.responses[0].partitions] == [b"x", b""]


def test_partitions_of_the_session_get_the_error_though_they_have_no_news() -> None:
    response = fetched(0)
    inject_errors(response, [(T, 0), (T, 7)], lambda _, index: NOT_LEADER if index == 7 else None, named)
    again = decode(fetch.FetchResponse, 17, encode(response, 17))
    assert codes(again) == {0: 0, 7: NOT_LEADER}
    by_name = fetched(0, topic="t")
    inject_errors(by_name, [("t", 7)], lambda _, index: NOT_LEADER if index == 7 else None, named)
    assert codes(decode(fetch.FetchResponse, 12, encode(by_name, 12))) == {0: 0, 7: NOT_LEADER}


def test_paused_partitions_have_no_records() -> None:
    response = fetched(0, 1)
    assert not withhold_records(response, lambda *_: False, named)
    assert withhold_records(response, lambda topic, index: (topic, index) == ("t", 0), named)
    assert has_records(response)
    assert withhold_records(response, lambda *_: True, named)
    assert not has_records(response)


def test_members_of_share_groups_do_not_acquire_what_they_do_not_get() -> None:
    data = share_fetch.ShareFetchResponsePartitionData(
        partition_index=0,
        error_code=0,
        acknowledge_error_code=0,
        current_leader=share_fetch.LeaderIdAndEpoch(leader_id=1, leader_epoch=0),
        records=b"x",
        acquired_records=[share_fetch.AcquiredRecords(first_offset=0, last_offset=3, delivery_count=1)],
    )
    topic = share_fetch.ShareFetchableTopicResponse(topic_id=T, partitions=[data])
    response = share_fetch.ShareFetchResponse(error_code=0, responses=[topic], node_endpoints=[])
    inject_errors(response, [(T, 5)], lambda *_: NOT_LEADER, named)
    again = decode(share_fetch.ShareFetchResponse, 1, encode(response, 1))
    results = [one for topic in again.responses for one in topic.partitions]
    assert [(one.partition_index, one.error_code, one.acquired_records) for one in results] == [
        (0, NOT_LEADER, []),
        (5, NOT_LEADER, []),
    ]
