"""Numbers of batches against leaders that check them: splits, gaps, new epochs, new ids, and brokers without any."""

import logging
from typing import Any

import anyio
import pytest
from support.faulty_cluster import FaultyCluster, a, produced, serving
from support.patience import SOON
from support.producer_states import ProducerStates
from support.producing import numbers, outcome, producing, sent
from support.scripted_broker import SPOKEN, Asked, api_versions

from aiokafkawire import DeliveryFailed, RecordMetadata, RequestTimeout
from aiokafkawire.errors import (
    ClusterAuthorizationFailed,
    ErrorCode,
    InvalidRecord,
    MessageTooLarge,
    UnsupportedVersion,
)
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.produce import ProduceResponse
from aiokafkawire.protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from aiokafkawire.records.batch import RecordBatch

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]


def takes_at_most(cluster: FaultyCluster, count: int) -> None:
    """From now on batches of more records are too large."""

    def on_produce(node: int, asked: Asked) -> ProduceResponse:
        large = [
            (name, index)
            for name, index, records in produced(asked)
            if RecordBatch.parse(records).header.last_offset_delta >= count
        ]
        return cluster.written(asked, {where: ErrorCode.MESSAGE_TOO_LARGE for where in cluster.log if where in large})

    cluster.on_produce = on_produce


def refuses_once(cluster: FaultyCluster, code: ErrorCode) -> None:
    """The next produce is refused, and those after it are taken."""

    def on_produce(node: int, asked: Asked) -> ProduceResponse:
        cluster.on_produce = lambda node, asked: cluster.written(asked)
        return cluster.written(asked, {a(0): code})

    cluster.on_produce = on_produce


def identities(cluster: FaultyCluster, answer: InitProducerIdResponse) -> None:
    """Every broker answers so, whoever asks for a producer id."""
    for broker in cluster.nodes.values():
        broker.on[ApiKey.INIT_PRODUCER_ID] = lambda _: answer


# --- splits --------------------------------------------------------------------------------------------------


async def test_a_batch_that_is_too_large_is_split_and_every_delivery_finds_its_record() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client:
        cluster.on_produce = lambda node, asked: None
        async with producing(client, linger_ms=60_000, delivery_timeout_ms=120_000) as producer:
            heard: list[Any] = []
            deliveries = await sent(producer, a(0), *numbers(7))

            async def wait() -> RecordMetadata:
                place: RecordMetadata = await deliveries[5]
                return place

            with anyio.fail_after(SOON):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(outcome, wait, heard)
                    tasks.start_soon(producer.flush)
                    await cluster.holds(1)
                    takes_at_most(cluster, 2)
                    await cluster.held[0].answer(cluster.written(cluster.held[0], {a(0): ErrorCode.MESSAGE_TOO_LARGE}))
            assert all(delivery.done for delivery in deliveries)
            assert [(await delivery).offset for delivery in deliveries] == list(range(7))
            assert [place.offset for place in heard] == [5]
        assert cluster.values(a(0)) == numbers(7)
        assert cluster.numbered(a(0)) == [(7, 0, 0), (7, 0, 1), (7, 0, 3), (7, 0, 5)]


async def test_what_comes_behind_a_split_stays_behind() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client:
        cluster.on_produce = lambda node, asked: None
        async with producing(client, batch_size=100) as producer:
            with anyio.fail_after(SOON):
                await sent(producer, a(0), b"first")
                await cluster.holds(1)
                await sent(producer, a(0), *numbers(20))
                takes_at_most(cluster, 2)
                await cluster.held[0].answer(cluster.written(cluster.held[0]))  # then several go at once
                await producer.flush()
        assert cluster.values(a(0)) == [b"first", *numbers(20)]
        assert {epoch for _, epoch, _ in cluster.numbered(a(0))} == {0}


async def test_a_record_that_is_too_large_by_itself_fails_alone() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client:
        takes_at_most(cluster, 0)
        async with producing(client, linger_ms=60_000, delivery_timeout_ms=120_000) as producer:
            deliveries = await sent(producer, a(0), *numbers(3))
            with anyio.fail_after(SOON):
                with pytest.raises(DeliveryFailed, match="3 records not delivered"):
                    await producer.flush()
                takes_at_most(cluster, 1)
                last = await sent(producer, a(0), b"last")
                await producer.flush()
            assert (await last[0]).offset == 0
            for delivery in deliveries:
                with pytest.raises(MessageTooLarge):
                    await delivery


# --- gaps and epochs -----------------------------------------------------------------------------------------


async def test_behind_a_batch_that_was_given_up_numbers_begin_anew_in_the_next_epoch() -> None:
    async with serving({a(0): 1, a(1): 1}) as cluster, cluster.client() as client, producing(client) as producer:
        with anyio.fail_after(SOON):
            await producer.send("a", b"0", partition=0)
            refuses_once(cluster, ErrorCode.INVALID_RECORD)
            with pytest.raises(InvalidRecord):
                await producer.send("a", b"never", partition=0)
            assert (await producer.send("a", b"1", partition=0)).offset == 1
            assert (await producer.send("a", b"2", partition=0)).offset == 2
            assert (await producer.send("a", b"other", partition=1)).offset == 0
        assert cluster.numbered(a(0)) == [(7, 0, 0), (7, 1, 0), (7, 1, 1)]
        assert cluster.numbered(a(1)) == [(7, 0, 0)]
        assert cluster.identities == 1


async def test_many_behind_a_batch_that_was_given_up_keep_their_order() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client:
        cluster.on_produce = lambda node, asked: None
        async with producing(client, batch_size=1) as producer:
            with anyio.fail_after(SOON):
                deliveries = await sent(producer, a(0), *numbers(6))
                await cluster.holds(1)
                await cluster.held[0].answer(cluster.written(cluster.held[0]))
                await cluster.holds(6)
                cluster.on_produce = lambda node, asked: cluster.written(asked)
                refused = {a(0): ErrorCode.INVALID_RECORD}
                await cluster.held[1].answer(cluster.written(cluster.held[1], refused))
                for asked in cluster.held[2:]:
                    await asked.answer(cluster.written(asked))
                with pytest.raises(InvalidRecord):
                    await deliveries.pop(1)
                assert [(await delivery).offset for delivery in deliveries] == list(range(5))
        assert cluster.values(a(0)) == [b"0", b"2", b"3", b"4", b"5"]
        assert cluster.numbered(a(0)) == [(7, 0, 0), *((7, 1, number) for number in range(4))]


async def test_a_broker_that_has_forgotten_the_producer_gets_the_next_epoch() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, producing(client) as producer:
        with anyio.fail_after(SOON):
            await producer.send("a", b"0")
            cluster.states[a(0)] = ProducerStates(refuses_unknown=True)
            assert (await producer.send("a", b"1")).offset == 1
        assert cluster.numbered(a(0)) == [(7, 0, 0), (7, 1, 0)]


async def test_a_duplicate_is_a_success_of_which_nobody_knows_the_place() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client, producing(client) as producer:
        refuses_once(cluster, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
        with anyio.fail_after(SOON):
            assert await producer.send("a", b"0", timestamp_ms=7) == RecordMetadata("a", 0, -1, 7)


@pytest.mark.parametrize("code", [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH])
async def test_the_last_epoch_is_followed_by_a_new_producer_id(code: ErrorCode) -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client:
        for broker in cluster.nodes.values():
            broker.on[ApiKey.INIT_PRODUCER_ID] = lambda _: cluster.identify(0 if cluster.identities else 2**15 - 1)
        async with producing(client) as producer:
            with anyio.fail_after(SOON):
                await producer.send("a", b"0")
                refuses_once(cluster, code)
                assert (await producer.send("a", b"1")).offset == 1
                assert (await producer.send("a", b"2")).offset == 2
        assert cluster.numbered(a(0)) == [(7, 2**15 - 1, 0), (8, 0, 0), (8, 0, 1)]
        assert cluster.identities == 2


# --- identity ------------------------------------------------------------------------------------------------


def is_old(cluster: FaultyCluster) -> None:
    """Brokers of before Kafka 0.11 know nothing of producer ids."""
    spoken = {key: versions for key, versions in SPOKEN.items() if key != ApiKey.INIT_PRODUCER_ID}
    for broker in cluster.nodes.values():
        broker.on[ApiKey.API_VERSIONS] = lambda _: api_versions(spoken)


def is_guarded(cluster: FaultyCluster) -> None:
    """Nobody may have a producer id (brokers before 2.8 want IDEMPOTENT_WRITE on the cluster)."""
    refused = InitProducerIdResponse(
        error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, producer_id=-1, producer_epoch=-1
    )
    identities(cluster, refused)


@pytest.mark.parametrize(("refuse", "level"), [(is_old, logging.INFO), (is_guarded, logging.WARNING)])
async def test_who_gets_no_producer_id_sends_without_numbers_and_one_line_says_so(
    refuse: Any, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "aiokafkawire")
    async with serving({a(0): 1}) as cluster:
        refuse(cluster)
        async with cluster.client() as client, producing(client) as producer:
            with anyio.fail_after(SOON):
                for number in range(3):
                    assert (await producer.send("a", b"x")).offset == number
        assert cluster.numbered(a(0)) == [(-1, -1, -1)] * 3
    (told,) = [record for record in caplog.records if record.levelno >= level]
    assert told.levelno == level
    assert told.message.startswith("sending without idempotence, so a retry may write a record twice: ")
    caplog.clear()


@pytest.mark.parametrize(("refuse", "error"), [(is_old, UnsupportedVersion), (is_guarded, ClusterAuthorizationFailed)])
async def test_who_asked_for_idempotence_and_cannot_have_it_is_told(refuse: Any, error: type[Exception]) -> None:
    async with serving({a(0): 1}) as cluster:
        refuse(cluster)
        async with cluster.client() as client, producing(client, enable_idempotence=True) as producer:
            with anyio.fail_after(SOON):
                waiting = await sent(producer, a(0), *numbers(3))
                for delivery in waiting:
                    with pytest.raises(error):
                        await delivery
                with pytest.raises(error):
                    await producer.send("a", b"x")
        assert cluster.end(a(0)) == 0


async def test_a_producer_id_that_takes_its_time_is_waited_for() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client() as client:
        late = InitProducerIdResponse(
            error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, producer_id=-1, producer_epoch=-1
        )
        answers = [late, late]
        for broker in cluster.nodes.values():
            broker.on[ApiKey.INIT_PRODUCER_ID] = lambda _: answers.pop() if answers else cluster.identify()
        async with producing(client) as producer:
            with anyio.fail_after(SOON):
                assert (await producer.send("a", b"0")).offset == 0
        assert cluster.numbered(a(0)) == [(7, 0, 0)]


async def test_who_never_gets_a_producer_id_hears_why_in_time_and_does_not_ask_all_the_time() -> None:
    async with serving({a(0): 1}) as cluster, cluster.client(retry_backoff_ms=50, retry_backoff_max_ms=50) as client:
        broken = InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_id=-1, producer_epoch=-1)
        identities(cluster, broken)
        async with producing(client, delivery_timeout_ms=300) as producer:
            with (
                anyio.fail_after(SOON),
                pytest.raises(RequestTimeout, match="requesting a producer id: INVALID_REQUEST"),
            ):
                await producer.send("a", b"0")
        assert sum(broker.count(InitProducerIdRequest) for broker in cluster.nodes.values()) < 20
