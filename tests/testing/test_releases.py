"""Brokers that are older releases."""

from __future__ import annotations

import struct
from itertools import pairwise

import anyio
import pytest
from support.definitions import OURS, read
from support.dialling import over_memory
from support.message_sets import message
from support.raw_client import RawClient, batch_of
from support.raw_client import records_of as rows

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.compiler import decode
from aiokafkawire.protocol.messages.group import HeartbeatRequest
from aiokafkawire.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from aiokafkawire.protocol.messages.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataRequestTopic,
)
from aiokafkawire.protocol.primitives import ZERO_UUID
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.cluster.releases import RELEASES, release_named, versions_of
from aiokafkawire.testing.serving.apis import APIS

pytestmark = pytest.mark.anyio


async def connected(broker: Broker) -> RawClient:
    return RawClient(await over_memory(broker))


def asking_for_versions(version: int = 0) -> bytes:
    return struct.pack(">hhih", ApiKey.API_VERSIONS, version, 7, -1) + b"\0"


# --- the table ---------------------------------------------------------------------------------------------


def test_every_version_is_defined() -> None:
    defined = {one.api_key: one.versions for one in read(OURS).values() if one.kind == "request"}
    for name, table in RELEASES.items():
        for key, versions in table.items():
            assert defined[key].covers(versions), (name, key)


def test_versions_are_given_up_in_4_0_alone_or_later() -> None:
    names = list(RELEASES)
    for before, after in pairwise(names):
        old, new = RELEASES[before], RELEASES[after]
        for key in old.keys() & new.keys():
            assert new[key].last >= old[key].last, (after, key)
            if (after, key) != ("1.0", ApiKey.CONTROLLED_SHUTDOWN) and after < "4":
                assert new[key].first <= old[key].first or after == "0.9.0", (after, key)


def test_apis_come_and_go() -> None:
    gone = [key for key in RELEASES["3.2"] if key not in RELEASES["3.3"]]
    assert gone == [4, 5, 6, 7, 38, 39, 40, 41, 50, 51, 56, 67]
    assert ApiKey.SASL_HANDSHAKE not in RELEASES["0.9.0"]
    assert ApiKey.SASL_HANDSHAKE in RELEASES["0.10.0"]
    assert RELEASES["3.4"] == RELEASES["3.3"]


SUMS = {
    "0.8.0": (8, 0, 0), "0.8.1": (10, 0, 0), "0.8.2": (11, 2, 0), "0.9.0": (17, 7, 1), "0.10.0": (19, 11, 1),
    "0.10.1": (21, 15, 1), "0.10.2": (21, 18, 1), "0.11.0": (34, 36, 1), "1.0": (38, 43, 0), "1.1": (43, 45, 0),
    "2.0": (43, 81, 0), "2.1": (43, 92, 0), "2.2": (44, 99, 0), "2.3": (45, 107, 0), "2.4": (48, 135, 0),
    "2.5": (48, 148, 0), "2.6": (50, 153, 0), "2.7": (54, 161, 0), "2.8": (56, 179, 0), "3.0": (59, 182, 0),
    "3.1": (59, 184, 0), "3.2": (59, 190, 0), "3.3": (49, 168, 0), "3.4": (49, 168, 0), "3.5": (51, 171, 0),
    "3.6": (55, 182, 0), "3.7": (59, 187, 0), "3.8": (61, 196, 0), "3.9": (63, 201, 0), "4.0": (63, 211, 24),
    "4.1": (75, 220, 28), "4.2": (77, 230, 28), "4.3": (77, 231, 28), "4.4": (79, 236, 28),
}  # fmt: skip
"""For each release how many APIs it speaks, and the sums of their last and of their first versions."""


def test_the_sums_of_the_table() -> None:
    sums = {
        name: (len(table), sum(each.last for each in table.values()), sum(each.first for each in table.values()))
        for name, table in RELEASES.items()
    }
    assert sums == SUMS


@pytest.mark.parametrize(
    ("name", "key", "last"),
    [
        ("0.8.2", ApiKey.OFFSET_COMMIT, 1),
        ("0.9.0", ApiKey.PRODUCE, 1),
        ("0.10.2", ApiKey.FETCH, 3),
        ("0.11.0", ApiKey.PRODUCE, 3),
        ("1.1", ApiKey.FETCH, 7),
        ("2.4", ApiKey.METADATA, 9),
        ("2.8", ApiKey.METADATA, 11),
        ("3.1", ApiKey.FETCH, 13),
        ("4.0", ApiKey.PRODUCE, 12),
    ],
)
def test_some_versions_that_are_well_known(name: str, key: ApiKey, last: int) -> None:
    assert versions_of(name)[key].last == last


@pytest.mark.parametrize(("name", "known"), [("2.4.1", "2.4"), ("0.10.2.2", "0.10.2"), ("4.4.0", "4.4")])
def test_the_patch_level_makes_no_difference(name: str, known: str) -> None:
    assert release_named(name, APIS) == release_named(known, APIS)
    assert release_named(name, APIS).name == known


@pytest.mark.parametrize("name", ["", "2", "2.9", "0.10", "0.7.0", "9.0", "2.4.x", "2.4.1.1", "v2.4", "newest", "02.4"])
def test_a_release_that_there_is_not(name: str) -> None:
    with pytest.raises(ValueError, match="unknown release"):
        Broker(port=None, max_versions=name)


def test_older_and_newer() -> None:
    old = release_named("0.10.2", APIS)
    assert old.since("0.9.0")
    assert old.since("0.10.2")
    assert not old.since("0.11.0")
    assert not old.since("2.0")


# --- the broker --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in RELEASES if ApiKey.API_VERSIONS in RELEASES[name]])
async def test_it_tells_what_it_speaks(name: str) -> None:
    async with Broker(port=None, max_versions=name) as broker, await connected(broker) as client:
        answer = await client.ask(ApiVersionsRequest(), 0)
        told = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
        there = {key: tuple(versions) for key, versions in versions_of(name).items() if key in APIS}
        assert told == there
        beyond = versions_of(name)[ApiKey.METADATA].last + 1
        await client.send_frame(struct.pack(">hhih", ApiKey.METADATA, beyond, 1, -1) + bytes(20))
        assert await client.is_cut_off()


@pytest.mark.parametrize(("name", "told"), [("0.10.0", 0), ("2.3", 0), ("2.4", 1), ("4.4", 1)])
async def test_versions_asked_for_in_a_version_that_is_too_new(name: str, told: int) -> None:
    async with Broker(port=None, max_versions=name) as broker, await connected(broker) as client:
        await client.send_frame(asking_for_versions(6))
        answer = decode(ApiVersionsResponse, 0, await client.frame(), 4)
        assert (answer.error_code, len(answer.api_keys)) == (ErrorCode.UNSUPPORTED_VERSION, told)


@pytest.mark.parametrize("name", ["0.8.0", "0.8.1", "0.8.2"])
async def test_0_8_hangs_up_on_what_it_does_not_know(name: str) -> None:
    async with Broker(port=None, max_versions=name) as broker, await connected(broker) as client:
        await client.send_frame(asking_for_versions())
        assert await client.is_cut_off()


async def test_0_8_2_answers_heartbeats_by_an_error_and_0_8_1_hangs_up() -> None:
    request = HeartbeatRequest(group_id="", generation_id=-1, member_id="")
    async with Broker(port=None, max_versions="0.8.2") as broker, await connected(broker) as client:
        assert (await client.ask(request, 0)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    async with Broker(port=None, max_versions="0.8.1") as broker, await connected(broker) as client:
        await client.send_frame(struct.pack(">hhih", ApiKey.HEARTBEAT, 0, 7, -1) + bytes(8))
        assert await client.is_cut_off()


@pytest.mark.parametrize("frame", [asking_for_versions(), struct.pack(">hhih", 3, 9, 1, -1), struct.pack(">hh", -1, 0)])
async def test_0_9_keeps_silent(frame: bytes) -> None:
    async with Broker(port=None, max_versions="0.9.0") as broker, await connected(broker) as client:
        await client.send_frame(frame)
        assert (await client.ask(MetadataRequest(topics=[]), 0)).brokers  # the next answer, and to the next request
        with anyio.move_on_after(0.01) as waited:
            await client.stream.receive()
        assert waited.cancelled_caught


@pytest.mark.parametrize(
    "name", ["0.8.0", "0.8.1", "0.8.2", "0.9.0", "0.10.2", "0.11.0", "1.1", "2.0", "2.4", "3.3", "4.0", "4.3", "4.4"]
)
async def test_records_go_in_and_out_in_every_version(name: str) -> None:
    async with Broker(port=None, max_versions=name) as broker, await connected(broker) as client:
        broker.create_topic("t")
        produce, fetch = release_named(name, APIS).served[0], release_named(name, APIS).served[1]
        for count, version in enumerate(range(produce.first, min(produce.last, 12) + 1), 1):
            data = message(0, b"x", magic=1 if version >= 2 else 0) if version < 3 else batch_of(b"x")
            answer = await client.produce("t", data, version=version)
            assert (answer.error_code, answer.base_offset) == (0, count - 1)
        for version in range(fetch.first, min(fetch.last, 12) + 1):
            data_read = await client.fetch("t", 0, version=version)
            assert [record.value for record in rows(data_read)] == [b"x"] * count
        metadata = release_named(name, APIS).served[3]
        for version in range(metadata.first, metadata.last + 1):
            request = MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=version < 4)
            (topic,) = (await client.ask(request, version)).topics
            assert topic.error_code == 0
            assert (topic.topic_id != ZERO_UUID) == (version >= 10)


@pytest.mark.parametrize(("name", "converts"), [("1.1", False), ("2.0", True)])
async def test_answers_are_filled_up_since_2_0(name: str, converts: bool) -> None:
    async with Broker(port=None, max_versions=name) as broker, await connected(broker) as client:
        broker.create_topic("t")
        await client.produce("t", batch_of(b"x"), version=5)
        sizes = [len((await client.fetch("t", 0, version=version)).records or b"") for version in (3, 4)]
        assert (sizes[0] == sizes[1]) == converts


@pytest.mark.parametrize("name", ["0.8.1", "0.8.2", "2.4", "3.2"])
async def test_offsets_in_zookeeper(name: str) -> None:
    async with Broker(nodes=2, port=None, max_versions=name) as broker, await connected_to(broker, 2) as client:
        broker.create_topic("t")
        for topic, error in (("t", 0), ("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)):
            assert await fetched(client, topic, 0) == (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="m")]
            request = OffsetCommitRequest(
                group_id="g", topics=[OffsetCommitRequestTopic(name=topic, partitions=partitions)]
            )
            assert (await client.ask(request, 0)).topics[0].partitions[0].error_code == error
        assert await fetched(client, "t", 0) == (5, 0)
        broker.delete_topic("t")
        assert await fetched(client, "t", 0) == (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


async def connected_to(broker: Broker, node: int) -> RawClient:
    at = next(where for where, number in broker.addresses.items() if number == node)
    return RawClient(await broker.connect(*at))


async def fetched(client: RawClient, topic: str, version: int) -> tuple[int, int]:
    asked = [OffsetFetchRequestTopic(name=topic, partition_indexes=[0])]
    partition = (await client.ask(OffsetFetchRequest(group_id="g", topics=asked), version)).topics[0].partitions[0]
    assert partition.metadata == ""
    return partition.committed_offset, partition.error_code


@pytest.mark.parametrize(("name", "taken"), [("3.9", True), ("4.0", False)])
async def test_records_of_the_far_future(name: str, taken: bool) -> None:
    async with Broker(port=None, max_versions=name) as broker, await connected(broker) as client:
        broker.create_topic("t")
        answer = await client.produce("t", batch_of(b"x", timestamp=2**60), version=11)
        assert (answer.error_code == 0) == taken
