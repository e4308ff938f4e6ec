"""What is accepted and what is not, and how a producer ends, whatever is on its way."""

from typing import Any

import anyio
import pytest
from support.connecting import eventually
from support.faulty_cluster import FaultyCluster, a, serving
from support.producing import producing
from support.virtual_time import virtual_time

from aiokafkawire import ConnectionLost, DeliveryFailed, Producer, RecordsPurged, RequestTimeout, UsageError
from aiokafkawire.errors import MessageTooLarge

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]


def silent(cluster: FaultyCluster) -> None:
    cluster.on_produce = lambda node, asked: None


async def test_who_waits_for_room_goes_on_when_it_comes_however_long_records_linger() -> None:
    async with (
        serving({a(0): 1}) as cluster,
        cluster.client() as client,
        producing(client, buffer_memory=400, linger_ms=60_000, delivery_timeout_ms=120_000) as producer,
    ):
        with anyio.fail_after(5):
            deliveries = [await producer.enqueue("a", b"x" * 100) for _ in range(10)]
            await producer.flush()
        assert [(await delivery).offset for delivery in deliveries] == list(range(10))


async def test_a_send_that_is_cancelled_while_it_waits_for_room_sends_nothing() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client:
        silent(cluster)
        async with producing(client, buffer_memory=300) as producer:
            await producer.enqueue("a", b"x" * 150)
            await cluster.holds(1)
            with anyio.move_on_after(0.05) as scope:
                await producer.enqueue("a", b"y" * 150)
            assert scope.cancelled_caught
            cluster.on_produce = lambda node, asked: cluster.written(asked)
            await cluster.held[0].answer(cluster.written(cluster.held[0]))
        assert cluster.values(a(0)) == [b"x" * 150]


async def test_a_send_that_is_cancelled_once_accepted_goes_on_and_its_failure_is_told() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client:
        silent(cluster)
        producer = producing(client)
        with pytest.raises(DeliveryFailed, match="1 record not delivered, the first because of MessageTooLarge"):
            async with producer:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(producer.send, "a", b"0")
                    await cluster.holds(1)
                    tasks.cancel_scope.cancel()
                await cluster.held[0].answer(cluster.written(cluster.held[0], {a(0): 10}))


@virtual_time
@pytest.mark.parametrize("cancelled", ["in its body", "while it closes"])
async def test_a_cancelled_producer_waits_five_seconds_for_silent_brokers(cancelled: str) -> None:
    async with serving({a(0): 1}) as cluster, cluster.client(request_timeout_ms=60_000) as client:
        silent(cluster)
        with anyio.CancelScope() as scope:
            async with producing(client, delivery_timeout_ms=120_000) as producer:
                delivery = await producer.enqueue("a", b"0")
                await cluster.holds(1)
                if cancelled == "in its body":
                    began = anyio.current_time()
                    scope.cancel()
                    await anyio.sleep_forever()
                began = scope.deadline = anyio.current_time() + 1
        assert 4.9 < anyio.current_time() - began < 5.5
        with pytest.raises(ConnectionLost, match="closed before the record was acknowledged"):
            await delivery


async def test_closing_with_requests_in_flight_takes_no_longer_than_the_delivery_timeout() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client:
        silent(cluster)
        with anyio.fail_after(2), pytest.raises(DeliveryFailed) as failed:
            async with producing(client, delivery_timeout_ms=100) as producer:
                await producer.enqueue("a", b"0")
                await cluster.holds(1)
        assert [type(error) for error in failed.value.errors] == [RequestTimeout]


async def test_nothing_is_accepted_any_more_while_a_producer_closes() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client:
        silent(cluster)
        async with anyio.create_task_group() as tasks, producing(client) as producer:
            await producer.enqueue("a", b"0")
            await cluster.holds(1)
            tasks.start_soon(producer.close)
            await eventually(lambda: producer._state != "open")
            with pytest.raises(UsageError, match="the producer is closing"):
                await producer.enqueue("a", b"lost?")
            await cluster.held[0].answer(cluster.written(cluster.held[0]))
        assert cluster.values(a(0)) == [b"0"]


async def test_a_client_that_is_closed_first_leaves_no_record_without_an_outcome() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client:
        silent(cluster)
        with anyio.fail_after(5), pytest.raises(DeliveryFailed, match="1 record not delivered") as failed:
            async with producing(client, batch_size=1) as producer:
                first, waiting = [await producer.enqueue("a", value) for value in (b"0", b"1")]
                await cluster.holds(1)
                await client.close()
                with pytest.raises(ConnectionLost, match="a-0: the producer was closed before"):
                    await waiting
                with pytest.raises(UsageError, match="the producer is closed"):
                    await producer.send("a", b"2")
        assert first.done
        assert [type(error) for error in failed.value.errors] == [ConnectionLost]


async def test_the_bodys_own_error_is_not_hidden_by_what_was_not_delivered() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client:
        cluster.on_produce = lambda node, asked: cluster.written(asked, {a(0): 10})
        with pytest.raises(ZeroDivisionError) as failed:
            async with producing(client) as producer:
                await producer.enqueue("a", b"0")
                raise ZeroDivisionError
        assert "besides, 1 record not delivered" in failed.value.__notes__[0]


async def test_a_serializer_that_fails_is_heard_and_appends_nothing() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client:
        serializing: Producer[bytes, int] = client.producer(value_serializer=lambda n: b"%d" % (1 // n))
        async with serializing as producer:
            with pytest.raises(ZeroDivisionError):
                await producer.send("a", 0)
            assert (await producer.send("a", 1)).offset == 0
        assert cluster.values(a(0)) == [b"1"]


@pytest.mark.parametrize("time", [2**63, -1, "now", 1.5])
async def test_a_time_that_cannot_be_is_refused_and_harms_no_batch(time: Any) -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, producing(client) as producer:
        await producer.partitions_for("a")
        delivery = producer.send_nowait("a", b"0")
        with pytest.raises(UsageError, match="timestamp_ms must be a non-negative integer"):
            producer.send_nowait("a", b"1", timestamp_ms=time)
        assert (await delivery).offset == 0


async def test_a_flush_ends_though_others_go_on() -> None:
    async def enqueue(producer: Producer[bytes, bytes]) -> None:
        while True:
            await producer.enqueue("a", b"x")
            await anyio.lowlevel.checkpoint()

    async with (
        serving({a(0): 1}) as cluster,
        cluster.client() as client,
        producing(client) as producer,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(enqueue, producer)
        with anyio.fail_after(5):
            for _ in range(5):
                await producer.flush()
        tasks.cancel_scope.cancel()


async def test_failures_beyond_those_kept_are_told_too() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, producing(client, batch_size=1) as producer:
        cluster.on_produce = lambda node, asked: cluster.written(asked, {a(0): 10})
        for _ in range(100):
            with pytest.raises(MessageTooLarge):
                await producer.send("a", b"heard")
        await producer.enqueue("a", b"unheard")
        with pytest.raises(DeliveryFailed, match="1 record not delivered"):
            await producer.flush()


@pytest.mark.parametrize("timeout", [0, 0.05])
async def test_closing_gives_up_after_its_timeout_and_tells_what_was_lost(timeout: float) -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client:
        silent(cluster)
        async with producing(client) as producer:
            delivery = await producer.enqueue("a", b"0")
            await cluster.holds(1)
            with pytest.raises(DeliveryFailed, match="1 record not delivered"):
                await producer.close(timeout)
            with pytest.raises(ConnectionLost, match="the producer was closed before the record was acknowledged"):
                await delivery
            await producer.close(timeout)  # again, which tells nothing twice


async def test_purging_leaves_what_is_in_flight() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client:
        silent(cluster)
        async with producing(client, max_in_flight_requests_per_connection=1) as producer:
            sent = await producer.enqueue("a", b"0")
            await cluster.holds(1)
            waiting = await producer.enqueue("a", b"1")
            assert producer.purge() == 1
            with pytest.raises(RecordsPurged):
                await waiting
            await cluster.held[0].answer(cluster.written(cluster.held[0]))
            assert (await sent).offset == 0
        assert cluster.values(a(0)) == [b"0"]


async def test_records_that_were_given_up_by_closing_are_not_dropped_once_more_by_a_purge() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client:
        silent(cluster)
        async with producing(client, batch_size=1, max_in_flight_requests_per_connection=1) as producer:
            deliveries = [await producer.enqueue("a", value) for value in (b"in flight", b"waits")]
            await cluster.holds(1)
            with pytest.raises(DeliveryFailed, match="2 records not delivered"):
                await producer.close(0)
            assert producer.purge() == 0
            for delivery in deliveries:
                with pytest.raises(ConnectionLost):
                    await delivery
            assert producer.health().buffered == 0
