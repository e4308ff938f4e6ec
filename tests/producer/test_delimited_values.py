"""Lines of a text as values: the same records as from a list of them, from both twins."""

from array import array
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.clusters import QUICK

from aiokafkawire import Client
from aiokafkawire.errors import KafkaError, UsageError
from aiokafkawire.producer import _implementation, _pure
from aiokafkawire.producer.delimited_values import DelimitedValues
from aiokafkawire.producer.many_records import many_records
from aiokafkawire.producer.record_columns import RecordColumns
from aiokafkawire.testing.broker import Broker

TWINS = [_pure.item_ends, _implementation.item_ends]

texts = st.lists(st.sampled_from([b"a", b"b", b"\n", b"\r\n", b"", b"ab" * 40])).map(b"".join)
delimiters = st.sampled_from([b"\n", b"\r\n", b"ab", b"aba", b"\0"])


@given(texts, delimiters)
def test_values_are_what_split_returns(text: bytes, delimiter: bytes) -> None:
    *values, rest = text.split(delimiter)
    found = DelimitedValues(text, delimiter)
    assert list(found) == values
    assert found.rest == rest
    assert len(found) == len(values)


@given(texts, delimiters)
def test_both_twins_find_the_same_ends(text: bytes, delimiter: bytes) -> None:
    pure, hot = (find(text, delimiter) for find in TWINS)
    assert hot == pure


@pytest.mark.parametrize("find", TWINS)
def test_more_ends_than_there_was_room_for_are_found(find: Any) -> None:
    ends = array("q")
    ends.frombytes(find(b"x;" * 5000, b";"))
    assert ends == array("q", [-1, *range(1, 10_000, 2)])


@pytest.mark.parametrize("find", TWINS)
def test_an_empty_delimiter_is_refused(find: Any) -> None:
    with pytest.raises(ValueError, match="empty delimiter"):
        find(b"text", b"")


def test_values_are_a_sequence() -> None:
    values = DelimitedValues(b"one;two;three;rest", b";")
    assert (values[0], values[-1], values[1:]) == (b"one", b"three", [b"two", b"three"])
    assert b"two" in values
    assert values.index(b"three") == 2
    with pytest.raises(IndexError):
        values[3]


def test_values_alone_need_no_object_for_each() -> None:
    values = DelimitedValues(b"one;two;three;", b";")
    records = many_records(values, None, 1, 17, [("source", b"shell")], raw=True)
    part = records.rows(1, 10)
    assert isinstance(part, RecordColumns)
    assert [tuple(part.record(index)) for index in range(part.count)] == [
        (b"two", None, 1, 17, (("source", b"shell"),)),
        (b"three", None, 1, 17, (("source", b"shell"),)),
    ]


@pytest.fixture
async def kafka() -> AsyncIterator[Client]:
    async with (
        Broker(port=None) as broker,
        Client(broker.bootstrap, connector=broker.connect, **QUICK) as client,
    ):
        await client.admin.create_topics({"lines": 2, "list": 2})
        yield client


async def written(kafka: Client, topic: str) -> list[tuple[Any, ...]]:
    records = [record async for record in kafka.read_records(topic)]
    return sorted((one.value or b"", one.key or b"", one.headers, one.partition) for one in records)


@pytest.mark.anyio
@pytest.mark.parametrize("others", [{"keys": [b"1", None, b"3"]}, {}, {"timestamp_ms": 17}, {"headers": [("a", b"b")]}])
@pytest.mark.parametrize("serializer", [None, bytes.upper])
async def test_the_records_are_those_of_a_list(kafka: Client, others: dict[str, Any], serializer: Any) -> None:
    values = DelimitedValues(b"one\n\nthree\nrest", b"\n")
    async with kafka.producer(value_serializer=serializer) as producer:
        assert await producer.enqueue_many("lines", values, partition=1, **others) == 3
        assert await producer.enqueue_many("list", list(values), partition=1, **others) == 3
    assert await written(kafka, "lines") == await written(kafka, "list")
    assert len(await written(kafka, "lines")) == 3


@pytest.mark.anyio
@pytest.mark.parametrize(("others", "accepted"), [({"partition": 7}, 0), ({"partition": "1"}, 0), ({}, 1)])
async def test_a_record_that_is_refused_is_told_with_those_before_it(
    kafka: Client, others: dict[str, Any], accepted: int
) -> None:
    async with kafka.producer(max_request_size=2000) as producer:
        with pytest.raises(KafkaError) as refused:
            await producer.enqueue_many("lines", DelimitedValues(b"one\n" + bytes(5000) + b"\n", b"\n"), **others)
    assert f"{accepted} records before it were accepted" in refused.value.__notes__


def test_a_wrong_timestamp_is_refused() -> None:
    with pytest.raises(UsageError, match="timestamp"):
        many_records(DelimitedValues(b"one\n", b"\n"), None, None, -5, (), raw=True).rows(0, 1)
