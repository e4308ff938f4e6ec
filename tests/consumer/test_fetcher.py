"""What becomes of fetches when brokers fail, move, lie or say nothing."""

from random import Random
from typing import Any

import anyio
import pytest
from support.connecting import eventually
from support.faulty_cluster import a, fetched, serving
from support.fetching import check, fetches, numbers, take, values
from support.patience import PATIENCE
from support.raw_client import batch_of
from support.scripted_broker import Asked
from support.virtual_time import virtual_time

from aiokafkawire import RequestTimeout, TopicPartition, WireError
from aiokafkawire.errors import (
    CorruptBatch,
    KafkaError,
    NotLeaderOrFollower,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from aiokafkawire.protocol.messages.fetch import AbortedTransaction, FetchResponse
from aiokafkawire.records.batch import set_base_offset
from aiokafkawire.records.compression import Codec

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]

B = TopicPartition("b", 0)


# --- trouble that passes -------------------------------------------------------------------------------------


async def test_a_leader_that_moved_is_followed_without_loss_or_duplicates() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, client.consumer() as consumer:
        cluster.fill(a(0), *numbers(0, 5))
        consumer.assign({a(0): 0})
        assert await values(consumer, 5) == numbers(0, 5)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(check, consumer, numbers(5, 10))
            await cluster.holds(1)
            cluster.move(a(0), 2)
            cluster.on_fetch = lambda node, asked: cluster.read(asked) if node == 2 else cluster.answer({a(0): 6})
            cluster.fill(a(0), *numbers(5, 10))
            await cluster.held[0].answer(cluster.answer({a(0): 6}))
        assert consumer.position(a(0)) == 10


async def test_a_partition_that_waits_for_a_busy_broker_is_read_although_the_partition_before_it_moves() -> None:
    async with (
        serving({a(0): 1, a(1): 1}) as cluster,
        cluster.client(retry_backoff_ms=200) as client,
        client.consumer() as consumer,
    ):
        cluster.fill(a(0), *numbers(0, 5))
        consumer.assign({a(0): 0, a(1): 0})
        consumer.pause(a(1))
        assert await values(consumer, 5) == numbers(0, 5)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(check, consumer, numbers(5, 10))
            await cluster.holds(1)
            consumer.resume(a(1))
            cluster.fill(a(1), *numbers(5, 10))
            cluster.move(a(0), 2)
            await client._cluster.metadata.refresh(client._cluster.metadata.snapshot, client._cluster.deadline(5))
            await cluster.held[0].answer(cluster.answer({a(0): 6}))


async def test_a_leader_that_becomes_known_is_asked_while_the_old_one_keeps_a_long_poll() -> None:
    async with serving({a(0): 1, a(1): 2}) as cluster, cluster.client() as client, client.consumer() as consumer:
        cluster.fill(a(0), *numbers(0, 5))
        consumer.assign({a(0): 0, a(1): 0})
        consumer.pause(a(1))
        assert await values(consumer, 5) == numbers(0, 5)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(check, consumer, numbers(5, 10))
            await cluster.holds(1)
            cluster.move(a(0), 2)
            cluster.fill(a(0), *numbers(5, 10))
            await client._cluster.metadata.refresh(client._cluster.metadata.snapshot, client._cluster.deadline(5))
        assert consumer.position(a(0)) == 10


@pytest.mark.parametrize("half", [False, True])
async def test_a_connection_cut_during_a_fetch_is_opened_again(half: bool) -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, client.consumer() as consumer:
        cluster.fill(a(0), *numbers(0, 3))
        consumer.assign({a(0): 0})
        assert await values(consumer, 3) == numbers(0, 3)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(check, consumer, numbers(3, 6))
            await cluster.holds(1)
            cluster.fill(a(0), *numbers(3, 6))
            stream = cluster.held[0].peer.stream
            if half:
                await stream.send(b"\0\0\1\0" + b"\0" * 10)
            await stream.aclose()


@virtual_time
async def test_lasting_trouble_is_told_with_its_cause_and_the_loop_may_be_entered_again() -> None:
    async with (
        serving({a(0): 1, a(1): 2}) as cluster,
        cluster.client(default_api_timeout_ms=150) as client,
        client.consumer(fetch_max_wait_ms=1) as consumer,
    ):
        healthy = 0

        def on_fetch(node: int, asked: Asked) -> FetchResponse:
            nonlocal healthy
            healthy += node == 2
            return cluster.answer({a(0): 6}) if node == 1 else cluster.answer({a(1): b""})

        cluster.on_fetch = on_fetch  # the other leader's answers do not hide it
        consumer.assign({a(0): 0, a(1): 0})
        for _ in range(2):
            with pytest.raises(RequestTimeout, match=r"cannot fetch a-0 for 0.15 s \(default_api_timeout_ms\)") as told:
                await take(consumer, 1)
            assert isinstance(told.value.__cause__, NotLeaderOrFollower)
        assert healthy > 2
        cluster.fill(a(0), b"at last")
        cluster.on_fetch = lambda node, asked: cluster.read(asked)
        assert await values(consumer, 1) == [b"at last"]


@virtual_time
async def test_a_silent_broker_is_told_in_time() -> None:
    async with (
        serving({a(0): 1}) as cluster,
        cluster.client(default_api_timeout_ms=100) as client,
        client.consumer(fetch_max_wait_ms=50) as consumer,
    ):
        cluster.on_fetch = lambda node, asked: None
        consumer.assign({a(0): 0})
        with pytest.raises(RequestTimeout, match=r"cannot fetch a-0 for 0.1 s .* no answer from n1"):
            await take(consumer, 1)


@virtual_time
async def test_an_unknown_topic_is_told_when_it_lasts() -> None:
    async with (
        serving({a(0): 1}) as cluster,
        cluster.client(default_api_timeout_ms=100) as client,
        client.consumer(fetch_max_wait_ms=1) as consumer,
    ):
        cluster.on_fetch = lambda node, asked: cluster.answer({a(0): 3})
        consumer.assign({a(0): 0})
        with pytest.raises(RequestTimeout, match="Fetch of a-0 at offset 0: UNKNOWN_TOPIC_OR_PARTITION") as told:
            await take(consumer, 1)
        assert isinstance(told.value.__cause__, UnknownTopicOrPartition)


async def test_what_may_not_be_read_is_told_at_once_and_only_once_at_a_time() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, client.consumer() as consumer:
        cluster.on_fetch = lambda node, asked: cluster.answer({a(0): 29})
        consumer.assign({a(0): 0})
        with pytest.raises(TopicAuthorizationFailed, match="Fetch of a-0 at offset 0"):
            await take(consumer, 1)
        before = len(fetches(cluster))
        await eventually(lambda: len(fetches(cluster)) > before + 3)
        cluster.fill(a(0), b"allowed")
        cluster.on_fetch = lambda node, asked: cluster.read(asked)
        told = 0
        with anyio.fail_after(5):
            while told <= 2:  # the one that nobody has heard yet, and what was on its way
                try:
                    assert (await anext(consumer)).value == b"allowed"
                    break
                except TopicAuthorizationFailed:
                    told += 1
        assert told <= 2


async def test_a_stream_that_fails_in_its_own_way_is_told_and_ends_nothing() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, client.consumer() as consumer:
        consumer.assign({a(0): 0})
        await cluster.holds(1)
        cluster.held[0].peer.client.fault = RuntimeError("a stream's own")
        await cluster.held[0].answer(cluster.answer({a(0): b""}))
        with pytest.raises(KafkaError, match=r"fetching a-0 failed in this client: .*a stream's own"):
            await take(consumer, 1)
        cluster.fill(a(0), b"0")
        assert await values(consumer, 1) == [b"0"]


# --- what comes is damaged or a lie --------------------------------------------------------------------------


async def test_a_damaged_batch_is_told_until_someone_seeks_beyond_it() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, client.consumer() as consumer:
        cluster.fill(a(0), *numbers(0, 3))
        damaged = bytearray(cluster.log[a(0)][1])
        damaged[-3] ^= 1
        cluster.log[a(0)][1] = bytes(damaged)
        consumer.assign({a(0): 0})
        assert await values(consumer, 1) == [b"0"]
        for _ in range(3):
            with pytest.raises(CorruptBatch, match=r"^a-0, batch at byte \d+ \(offset 1\): CRC32C is"):
                await take(consumer, 1)
            assert consumer.position(a(0)) == 1
        consumer.seek(a(0), 2)
        assert await values(consumer, 1) == [b"2"]


async def test_a_cancelled_iteration_loses_no_batch_that_was_being_inflated() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, client.consumer() as consumer:
        noise = Random(1).randbytes(100_000)  # large enough for a thread, compressed too
        for number in range(4):
            cluster.append(a(0), batch_of(b"%d" % number, noise, codec=Codec.LZ4))
        consumer.assign({a(0): 0})
        await eventually(lambda: consumer.high_watermark(a(0)) is not None)
        seen: list[int] = []
        while len(seen) < 8:
            with anyio.CancelScope() as scope:
                scope.cancel()
                seen.append((await anext(consumer)).offset)
            if scope.cancelled_caught:
                seen.append((await take(consumer, 1))[0].offset)
        assert seen == list(range(8))


async def test_an_answer_that_ends_within_a_batch_is_read_as_far_as_it_goes() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, client.consumer() as consumer:
        cluster.fill(a(0), *numbers(0, 4))

        def on_fetch(node: int, asked: Asked) -> FetchResponse | None:
            offset = fetched(asked)[a(0)]
            whole = b"".join(cluster.log[a(0)][offset : offset + 2])
            return cluster.answer({a(0): whole[:-5] if offset < 3 else whole}) if offset < 4 else None

        cluster.on_fetch = on_fetch
        consumer.assign({a(0): 0})
        assert await values(consumer, 4) == numbers(0, 4)


async def test_records_below_the_asked_offset_are_dropped() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, client.consumer() as consumer:
        cluster.append(a(0), batch_of(*numbers(0, 5)))
        cluster.append(a(0), batch_of(*numbers(5, 10)))
        cluster.on_fetch = lambda node, asked: (
            cluster.answer({a(0): b"".join(cluster.log[a(0)])}) if fetched(asked)[a(0)] < 10 else None
        )
        consumer.assign({a(0): 7})
        assert await values(consumer, 3) == numbers(7, 10)


async def test_records_that_do_not_reach_the_position_are_told_each_time() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, client.consumer() as consumer:
        cluster.fill(a(0), *numbers(0, 2))
        cluster.on_fetch = lambda node, asked: cluster.answer({a(0): b"".join(cluster.log[a(0)])})
        consumer.assign({a(0): 7})
        for _ in range(3):
            with pytest.raises(CorruptBatch, match=r"a-0 at offset 7: .* without a whole batch at this offset"):
                await take(consumer, 1)
        assert len(fetches(cluster)) <= 4


async def test_a_broker_that_says_at_once_that_there_is_nothing_is_not_asked_in_a_tight_loop() -> None:
    async with (
        serving({a(0): 1}) as cluster,
        cluster.client(retry_backoff_ms=50) as client,
        client.consumer() as consumer,
    ):
        asked_often = anyio.Event()

        def answer(node: int, asked: Any) -> Any:
            if len(fetches(cluster)) == 4:
                asked_often.set()
            return cluster.answer({a(0): b""})

        cluster.on_fetch = answer
        began = anyio.current_time()
        consumer.assign({a(0): 0})
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anext, consumer)
                await asked_often.wait()
                tasks.cancel_scope.cancel()
        assert anyio.current_time() - began > 0.1  # three waits of 50 ms, some of them shorter by chance


async def test_an_answer_without_a_partition_is_a_wire_error() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, client.consumer() as consumer:
        cluster.on_fetch = lambda node, asked: cluster.answer({a(1): b""})
        consumer.assign({a(0): 0})
        with pytest.raises(WireError, match="n1:9092 answered Fetch without a-0"):
            await take(consumer, 1)


async def test_records_of_aborted_transactions_are_not_shown() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client:
        log = [
            batch_of(b"aborted", producer_id=5, producer_epoch=0, base_sequence=0, transactional=True),
            batch_of(b"plain"),
            batch_of(b"marker", producer_id=5, producer_epoch=0, transactional=True, control=True),
            batch_of(b"committed", producer_id=5, producer_epoch=0, base_sequence=1, transactional=True),
        ]
        data = b"".join(set_base_offset(one, offset, 0) for offset, one in enumerate(log))
        aborted = {a(0): [AbortedTransaction(producer_id=5, first_offset=0)]}
        cluster.on_fetch = lambda node, asked: (
            cluster.answer({a(0): data}, aborted) if fetched(asked)[a(0)] < 4 else None
        )
        async with client.consumer(isolation_level="read_committed") as consumer:
            consumer.assign({a(0): 0})
            assert await values(consumer, 2) == [b"plain", b"committed"]
        assert {one.isolation_level for one in fetches(cluster)} == {1}
        async with client.consumer() as consumer:
            consumer.assign({a(0): 0})
            assert await values(consumer, 3) == [b"aborted", b"plain", b"committed"]
