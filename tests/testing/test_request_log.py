"""What the brokers were asked: kept within bounds, found again, and waited for."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from support.patience import SOON
from support.raw_client import RawClient, batch_of, fetch_request, produce_request

from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.group import HeartbeatRequest, HeartbeatResponse
from aiokafkawire.protocol.messages.metadata import ApiVersionsRequest, MetadataRequest
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.faults.request_log import LoggedRequest, RequestLog, RequestOutcome


def heartbeat(group: str = "g", size: int = 10) -> LoggedRequest:
    request = HeartbeatRequest(group_id=group, generation_id=1, member_id="m")
    return LoggedRequest(0.0, 1, 1, "me", ApiKey.HEARTBEAT, 4, request, size=size)


def filled(journal: RequestLog, *groups: str, size: int = 10) -> list[LoggedRequest]:
    made = [heartbeat(group, size) for group in groups]
    for one in made:
        journal.add(one)
    return made


def groups(journal: RequestLog) -> list[str]:
    return [asked.request.group_id for asked in journal]


def test_only_the_latest_requests_are_kept() -> None:
    journal = RequestLog(max_requests=2)
    filled(journal, "a", "b", "c")
    assert (groups(journal), len(journal), journal[-1].request.group_id) == (["b", "c"], 2, "c")


def test_frames_are_bounded_in_bytes_with_their_answers() -> None:
    journal = RequestLog(max_bytes=100)
    first, second, third = filled(journal, "a", "b", "c", size=30)
    journal.settle(third, RequestOutcome.ANSWERED, HeartbeatResponse(error_code=0), size=20)
    assert groups(journal) == ["b", "c"]
    journal.settle(first, RequestOutcome.ANSWERED, size=1000)  # forgotten already: it counts no more
    assert groups(journal) == ["b", "c"]
    assert first.outcome is RequestOutcome.ANSWERED
    journal.clear()
    journal.settle(second, RequestOutcome.ANSWERED, size=1000)
    filled(journal, "d", "e", "f", size=33)
    assert groups(journal) == ["d", "e", "f"]


def test_requests_are_found_by_the_selectors_of_orders() -> None:
    journal = RequestLog()
    filled(journal, "a", "b", "a")
    assert len(journal.of(ApiKey.HEARTBEAT)) == len(journal.of()) == 3
    assert [one.request.group_id for one in journal.of(ApiKey.HEARTBEAT, group="a")] == ["a", "a"]
    assert journal.of(ApiKey.FETCH) == journal.of(node=2) == []
    with pytest.raises(ValueError, match="needs topic="):
        journal.of(partition=1)


@pytest.mark.anyio
async def test_waiting_counts_what_was_there_before() -> None:
    journal = RequestLog()
    filled(journal, "a")
    found: list[list[LoggedRequest]] = []

    async def wait(count: int, **which: Any) -> None:
        found.append(await journal.wait_for(ApiKey.HEARTBEAT, count, **which))

    await wait(1)
    async with anyio.create_task_group() as group:
        group.start_soon(wait, 3)
        await anyio.wait_all_tasks_blocked()
        filled(journal, "b")
        await anyio.wait_all_tasks_blocked()
        assert len(found) == 1
        filled(journal, "c")
    assert [len(one) for one in found] == [1, 3]


@pytest.mark.anyio
async def test_the_broker_tells_what_it_was_asked_by_whom_and_what_it_said() -> None:
    broker = Broker(2, port=None)
    async with broker:
        broker.create_topic("t")
        leader = broker.leader("t")
        async with RawClient(await broker.connect(f"memory-{leader}", 9092)) as client:
            await client.ask(ApiVersionsRequest(), 0)
            await client.produce("t", batch_of(b"x"))
            await client.send(produce_request("t", batch_of(b"y"), acks=0), 12)
            await client.send(fetch_request("t", 2, max_wait_ms=60_000), 12)
            waiting = (await broker.requests.wait_for(ApiKey.FETCH, topic="t"))[0]
            assert (waiting.outcome, waiting.response) == (RequestOutcome.PENDING, None)
            versions, produce, silent, fetch = broker.requests
    assert (produce.node, produce.connection, produce.client_id) == (leader, versions.connection, "raw")
    assert (produce.api, produce.version, produce.request.acks) == (ApiKey.PRODUCE, 12, -1)
    assert produce.outcome is RequestOutcome.ANSWERED
    assert produce.response.responses[0].partition_responses[0].base_offset == 0  # type: ignore[union-attr]
    assert versions.time <= produce.time <= fetch.time
    assert (silent.outcome, fetch.outcome) == (RequestOutcome.UNANSWERED, RequestOutcome.FAILED)
    async with broker:
        assert len(broker.requests) == 0


@pytest.mark.anyio
async def test_what_cannot_be_read_is_not_in_the_journal() -> None:
    async with Broker(port=None) as broker, RawClient(await broker.connect("memory-1", 9092)) as client:
        await client.send(MetadataRequest(topics=[]), 1)
        await client.frame()
        await client.send_frame(b"\0\3\0\1")
        assert await client.is_cut_off()
        assert [one.api for one in broker.requests] == [ApiKey.METADATA]


@pytest.mark.anyio
async def test_the_newest_request_is_kept_however_large_it_is() -> None:
    journal = RequestLog(max_bytes=100)
    filled(journal, "a")
    filled(journal, "b", size=1000)
    assert groups(journal) == ["b"]
    with anyio.fail_after(SOON):
        await journal.wait_for(ApiKey.HEARTBEAT, group="b")
    filled(journal, "c")
    assert groups(journal) == ["c"]


def test_what_there_is_to_select_by() -> None:
    unknown: Any = {"topik": "t"}
    with pytest.raises(TypeError, match=r"^unknown selector topik=; did you mean topic=\?$"):
        RequestLog().of(ApiKey.FETCH, **unknown)
    for api in ("FETCH", 1):
        with pytest.raises(TypeError, match="api must be an ApiKey"):
            RequestLog().of(api)  # type: ignore[arg-type]
