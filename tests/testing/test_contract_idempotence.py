"""Idempotent producers, as Apache Kafka tells their retries from their gaps."""

from __future__ import annotations

import pytest
from support.raw_client import RawClient, batch_of, records_of
from support.transactional import producers_of, settled

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.transactions import InitProducerIdRequest

pytestmark = pytest.mark.anyio

HIGHEST = 2**31 - 1


@pytest.fixture(autouse=True)
async def producer_id(client: RawClient) -> int:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1)
    # The first ids come from the controller, which takes a moment.
    answer = await settled(
        lambda: client.ask(request, 5), lambda answer: answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    )
    assert (answer.error_code, answer.producer_epoch) == (0, 0)
    return answer.producer_id


async def sent(
    client: RawClient, topic: str, producer_id: int, sequence: int, *values: bytes, epoch: int = 0
) -> tuple[int, int]:
    """Produce; the error and the base offset."""
    batch = batch_of(*values or (b"x",), producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    answer = await client.produce(topic, batch)
    return answer.error_code, answer.base_offset


async def offsets(client: RawClient, topic: str) -> list[int]:
    return [record.offset for record in records_of(await client.fetch(topic, 0))]


@pytest.mark.parametrize("version", range(6))
async def test_ids_are_never_given_twice(client: RawClient, version: int) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
    answers = [await client.ask(request, version) for _ in range(3)]
    assert [answer.error_code for answer in answers] == [0, 0, 0]
    assert len({answer.producer_id for answer in answers}) == 3
    assert {answer.producer_epoch for answer in answers} == {0}


async def test_an_idempotent_producer_with_an_id_gets_another(client: RawClient, producer_id: int) -> None:
    request = InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=0, producer_id=producer_id, producer_epoch=0
    )
    answer = await client.ask(request, 5)
    assert (answer.error_code, answer.producer_epoch, answer.producer_id != producer_id) == (0, 0, True)


async def test_the_newest_five_batches_are_known_again(client: RawClient, name: str, producer_id: int) -> None:
    for sequence in range(6):
        assert await sent(client, name, producer_id, sequence) == (0, sequence)
    for sequence in range(1, 6):
        assert await sent(client, name, producer_id, sequence) == (0, sequence)
    assert await sent(client, name, producer_id, 0) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert await offsets(client, name) == list(range(6))


async def test_a_batch_known_again_has_both_ends_in_common(client: RawClient, name: str, producer_id: int) -> None:
    assert await sent(client, name, producer_id, 0, b"a", b"b") == (0, 0)
    for values in ([b"a"], [b"a", b"b", b"c"]):
        assert await sent(client, name, producer_id, 0, *values) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert await sent(client, name, producer_id, 1) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert await sent(client, name, producer_id, 3) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert await sent(client, name, producer_id, 2) == (0, 2)


async def test_an_unknown_producer_begins_anywhere(client: RawClient, name: str, producer_id: int) -> None:
    assert await sent(client, name, producer_id, 77, epoch=4) == (0, 0)
    assert await sent(client, name, producer_id, 79, epoch=4) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert await sent(client, name, producer_id, 78, epoch=4) == (0, 1)


@pytest.mark.parametrize("values", [(b"a",), (b"a", b"b", b"c")])
async def test_sequences_go_on_at_zero(
    client: RawClient, name: str, producer_id: int, values: tuple[bytes, ...]
) -> None:
    last = (HIGHEST + len(values) - 1) % 2**31
    for _ in range(2):
        assert await sent(client, name, producer_id, HIGHEST, *values) == (0, 0)
    (active,) = (await producers_of(client, name)).active_producers
    assert active.last_sequence == last
    following = (last + 1) % 2**31
    assert await sent(client, name, producer_id, following + 1) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert await sent(client, name, producer_id, following) == (0, len(values))


async def test_epochs(client: RawClient, name: str, producer_id: int) -> None:
    assert await sent(client, name, producer_id, 0, epoch=1) == (0, 0)
    assert await sent(client, name, producer_id, 1, epoch=0) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)
    assert await sent(client, name, producer_id, 1, epoch=2) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert await sent(client, name, producer_id, 1, epoch=1) == (0, 1)  # what was refused changed nothing
    assert await sent(client, name, producer_id, 0, epoch=2) == (0, 2)
    assert await sent(client, name, producer_id, 0, epoch=1) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)
    (active,) = (await producers_of(client, name)).active_producers
    assert (active.producer_epoch, active.last_sequence) == (2, 0)


async def test_partitions_count_for_themselves(client: RawClient, name: str, producer_id: int) -> None:
    other = producer_id + 5000
    assert await sent(client, name, producer_id, 0) == (0, 0)
    assert await sent(client, name, other, 0) == (0, 1)
    assert await sent(client, name, producer_id, 1) == (0, 2)
    assert await sent(client, name, other, 1) == (0, 3)
    assert len((await producers_of(client, name)).active_producers) == 2


async def test_without_an_id_nothing_is_remembered(client: RawClient, name: str) -> None:
    for offset in range(2):
        assert await sent(client, name, -1, -1, epoch=-1) == (0, offset)
    assert (await producers_of(client, name)).active_producers == []
