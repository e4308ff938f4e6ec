"""Where a consumer goes on when offsets are lost, sought, looked up in vain; what it asks for, and how it ends."""

from contextlib import AsyncExitStack
from typing import Any

import anyio
import pytest
from support.connecting import eventually
from support.faulty_cluster import a, fetched, serving
from support.fetching import numbers, take, values
from support.virtual_time import virtual_time

from aiokafkawire import RequestTimeout, TopicPartition, UsageError
from aiokafkawire.errors import (
    OffsetOutOfRange,
    TopicAuthorizationFailed,
)
from aiokafkawire.protocol.messages.offsets import ListOffsetsRequest

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]

B = TopicPartition("b", 0)


@pytest.mark.parametrize(("policy", "first"), [("earliest", 0), ("latest", 5)])
async def test_an_offset_out_of_range_is_reset_as_the_policy_says(policy: Any, first: int) -> None:
    async with (
        serving({a(0): 1}) as cluster,
        cluster.client() as client,
        client.consumer(auto_offset_reset=policy) as consumer,
    ):
        cluster.fill(a(0), *numbers(0, 5))
        cluster.on_fetch = lambda node, asked: (
            cluster.answer({a(0): 1}) if fetched(asked)[a(0)] > 5 else cluster.read(asked)
        )
        consumer.assign({a(0): 99})
        await eventually(lambda: any(fetched(one)[a(0)] == first for one in cluster.held) or first == 0)
        cluster.fill(a(0), b"5")
        for one in cluster.held:
            await one.answer(cluster.read(one) or cluster.answer({a(0): b""}))
        assert [record.offset for record in await take(consumer, 1)] == [first]


async def test_without_a_policy_an_offset_out_of_range_waits_for_a_seek() -> None:
    async with (
        serving({a(0): 1, B: 2}) as cluster,
        cluster.client() as client,
        client.consumer(auto_offset_reset="none") as consumer,
    ):
        cluster.fill(a(0), *numbers(0, 2))
        cluster.on_fetch = lambda node, asked: (
            cluster.answer({a(0): 1}) if fetched(asked).get(a(0), 0) > 5 else cluster.read(asked)
        )
        consumer.assign({a(0): 99})
        with pytest.raises(OffsetOutOfRange, match=r"a-0 at offset 99: .*'none', so call seek\(\)"):
            await take(consumer, 1)
        consumer.seek(a(0), 1)
        assert await values(consumer, 1) == [b"1"]
        consumer.assign([B])
        with pytest.raises(
            UsageError, match=r"b-0 has no position, and auto_offset_reset is 'none': call seek\(\) first"
        ):
            await take(consumer, 1)
        cluster.fill(B, b"found")
        consumer.seek(B, 0)  # and nothing that was told before is told again
        assert await values(consumer, 1) == [b"found"]


@virtual_time
async def test_a_broker_that_finds_every_offset_out_of_range_is_told() -> None:
    async with (
        serving({a(0): 1}) as cluster,
        cluster.client(default_api_timeout_ms=100) as client,
        client.consumer(auto_offset_reset="earliest") as consumer,
    ):
        cluster.on_fetch = lambda node, asked: cluster.answer({a(0): 1})
        consumer.assign([a(0)])
        with pytest.raises(RequestTimeout, match=r"cannot fetch a-0 .* OFFSET_OUT_OF_RANGE"):
            await take(consumer, 1)
        assert cluster.nodes[1].count(ListOffsetsRequest) < 100


async def test_what_is_asked_for_before_a_seek_counts_no_more() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, client.consumer() as consumer:
        cluster.fill(a(0), *numbers(0, 5))
        cluster.on_fetch = lambda node, asked: None
        consumer.assign({a(0): 0})
        await cluster.holds(1)
        consumer.seek(a(0), 4)
        cluster.on_fetch = lambda node, asked: cluster.read(asked)
        asked = cluster.held[0]
        await asked.answer(cluster.answer({a(0): cluster.log[a(0)][0]}))
        assert await values(consumer, 1) == [b"4"]


@pytest.mark.parametrize("again", [[a(0)], {a(0): 1}])
async def test_a_partition_that_is_assigned_anew_is_read_anew(again: Any) -> None:
    async with (
        serving({a(0): 1}) as cluster,
        cluster.client() as client,
        client.consumer(auto_offset_reset="earliest") as consumer,
    ):
        cluster.fill(a(0), *numbers(0, 3))
        consumer.assign({a(0): 0})
        await eventually(lambda: consumer.high_watermark(a(0)) is not None)  # fetched, and never read
        if again == [a(0)]:
            consumer.assign([])
            await anyio.lowlevel.checkpoint()
        consumer.assign(again)
        assert (await take(consumer, 1))[0].offset == (0 if again == [a(0)] else 1)


@pytest.mark.parametrize("lost", [TopicPartition("c", 0), a(1), a(9)])
async def test_a_partition_that_cannot_be_looked_up_holds_up_no_other(lost: TopicPartition) -> None:
    async with (
        serving({a(0): 1, a(1): -1}) as cluster,
        # A lookup that failed rests for so long, or it would be told again before the record comes.
        cluster.client(default_api_timeout_ms=30_000, retry_backoff_max_ms=30_000) as client,
        client.consumer(auto_offset_reset="earliest") as consumer,
    ):
        cluster.fill(a(0), b"0")
        consumer.assign([lost, a(0)])
        if lost == a(9):
            with pytest.raises(UsageError, match="topic 'a' has 2 partitions, no 9"):
                await take(consumer, 1)
        assert await values(consumer, 1) == [b"0"]


async def test_a_lookup_that_fails_is_told_and_tried_again() -> None:
    async with serving({a(0): 1}) as cluster, AsyncExitStack() as stack:
        cluster.topic_errors["a"] = 29
        client = await stack.enter_async_context(cluster.client())
        consumer = await stack.enter_async_context(client.consumer(auto_offset_reset="earliest"))
        consumer.assign([a(0)])
        with pytest.raises(TopicAuthorizationFailed, match="topic 'a'"):
            await take(consumer, 1)
        del cluster.topic_errors["a"]
        cluster.fill(a(0), b"0")
        with anyio.fail_after(5):
            while True:
                try:
                    assert (await anext(consumer)).value == b"0"
                    break
                except TopicAuthorizationFailed:
                    continue


# --- what is asked -------------------------------------------------------------------------------------------


async def test_one_fetch_a_leader_shares_the_memory_and_leaves_out_what_is_unread_or_paused() -> None:
    leaders = {a(0): 1, a(1): 1, a(2): 1, B: 2}
    async with serving(leaders) as cluster, cluster.client() as client:
        cluster.fill(B, b"x" * 600)
        cluster.on_fetch = lambda node, asked: None
        async with client.consumer(fetch_max_bytes=1_000) as consumer:
            consumer.assign(dict.fromkeys(leaders, 0))
            consumer.pause(a(2))
            await cluster.holds(2)
            asked = {tuple(fetched(one)): one.request.max_bytes for one in cluster.held}
            assert asked == {(a(0), a(1)): 500, (B,): 500}
            one, two = sorted(cluster.held, key=lambda held: B in fetched(held))
            data = b"".join(cluster.log[B])
            await two.answer(cluster.answer({B: data}))
            await eventually(lambda: consumer.high_watermark(B) is not None)
            await one.answer(cluster.answer({a(0): b"", a(1): b""}))
            await cluster.holds(3)
            # Leader 2 is not asked again while B is unread, and what B holds counts.
            assert fetched(cluster.held[2]) == {a(0): 0, a(1): 0}
            assert cluster.held[2].request.max_bytes == 1_000 - len(data)


async def test_what_a_paused_partition_keeps_does_not_keep_others_from_being_read() -> None:
    async with (
        serving({a(0): 1, a(1): 1}) as cluster,
        cluster.client() as client,
        client.consumer(fetch_max_bytes=100) as consumer,
    ):
        cluster.fill(a(0), b"x" * 300)
        consumer.assign({a(0): 0, a(1): 0})
        await eventually(lambda: consumer.high_watermark(a(0)) is not None)
        consumer.pause(a(0))
        cluster.fill(a(1), b"other")
        assert await values(consumer, 1) == [b"other"]
        consumer.resume(a(0))
        assert await values(consumer, 1) == [b"x" * 300]


# --- the end -------------------------------------------------------------------------------------------------


async def test_closing_does_not_wait_for_a_long_poll() -> None:
    async with (
        serving({a(0): 1}) as cluster,
        cluster.client() as client,
        client.consumer(fetch_max_wait_ms=20_000) as consumer,
    ):
        consumer.assign({a(0): 0})
        await cluster.holds(1)
        with anyio.fail_after(10):
            await consumer.close()


async def test_a_client_that_is_closed_first_ends_the_iteration() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, client.consumer() as consumer:
        consumer.assign({a(0): 0})
        async with anyio.create_task_group() as tasks:

            async def iterate() -> None:
                with pytest.raises(UsageError, match="the consumer is closed"):
                    await anext(consumer)

            tasks.start_soon(iterate)
            await cluster.holds(1)
            with anyio.fail_after(5):
                await client.close()
