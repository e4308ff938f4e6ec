"""JSON as keys and values."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokafkawire import Client, DeserializationError
from aiokafkawire.json_serialization import JsonDeserializer, JsonSerializer
from aiokafkawire.testing.broker import Broker

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def _is_text(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


@given(VALUES.filter(_is_text))
def test_values_return_from_json(value: Any) -> None:
    assert JsonDeserializer()(JsonSerializer()(value)) == value


def test_json_is_compact_and_in_utf_8() -> None:
    assert JsonSerializer()({"a": [1, 2.5, None, True], "ä": "→"}) == '{"a":[1,2.5,null,true],"ä":"→"}'.encode()


@pytest.mark.parametrize("value", [math.nan, [math.inf], {"a": -math.inf}])
def test_numbers_that_json_lacks_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON"):
        JsonSerializer()(value)


@pytest.mark.parametrize("data", [b"NaN", b"[Infinity]", b"", b"{", b"\xff", b"{'a': 1}"])
def test_bytes_that_are_not_json_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        JsonDeserializer()(data)


def test_another_library_takes_the_place_of_pythons() -> None:
    assert JsonSerializer(lambda value: b"<%d>" % value)(5) == b"<5>"
    assert JsonSerializer(str)(5) == b"5"
    assert JsonDeserializer(int)(b"5") == 5


@pytest.mark.anyio
async def test_producers_and_consumers_take_them() -> None:
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        await kafka.admin.create_topics({"a": 1})
        async with kafka.producer(value_serializer=JsonSerializer(), key_serializer=JsonSerializer()) as producer:
            await producer.send("a", {"n": 1}, key=["k"])
        async with kafka.producer() as raw:
            await raw.send("a", b"{")
        async with kafka.consumer(
            "a",
            key_deserializer=JsonDeserializer(),
            value_deserializer=JsonDeserializer(),
            auto_offset_reset="earliest",
        ) as consumer:
            record = await anext(consumer)
            assert (record.key, record.value) == (["k"], {"n": 1})
            with pytest.raises(DeserializationError):
                await anext(consumer)
