"""Consumed records, deserializers, and deliveries."""

import gc
import json
import pickle
import weakref
from collections.abc import Coroutine
from typing import Any

import pytest

from aiokafkawire.errors import DeserializationError, KafkaError
from aiokafkawire.records.batch import (
    AnyReader,
    BatchBuilder,
    ConsumerRecord,
    Delivery,
    RecordBatch,
    RecordReader,
    set_base_offset,
    split,
)
from aiokafkawire.records.compression import Codec
from aiokafkawire.records.delivery_result import DeliveryCallback
from aiokafkawire.types import RecordMetadata, TimestampType, TopicPartition

ATTRIBUTES = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestamp_type",
    "leader_epoch",
    "key",
    "value",
    "raw_key",
    "raw_value",
    "headers",
)


class PinnedBytes(bytearray):
    """A buffer that can be watched."""


def buffer(*values: bytes | None, codec: Codec = Codec.NONE) -> PinnedBytes:
    builder = BatchBuilder(limit=1 << 20, codec=codec)
    for index, value in enumerate(values):
        builder.append(1000 + index, b"key%d" % index, value, (("h", b"%d" % index),))
    return PinnedBytes(set_base_offset(builder.build(), 100, 4))


def batch_of(*values: bytes | None) -> RecordBatch:
    (batch,) = split(memoryview(buffer(*values)))
    assert isinstance(batch, RecordBatch)
    return batch


def first(data: bytes | bytearray) -> ConsumerRecord[bytes, bytes]:
    (batch,) = split(memoryview(data))
    reader: AnyReader[bytes, bytes] = batch.records("flights", 2)
    return next(reader)


def test_what_a_record_says() -> None:
    record = first(buffer(b"value"))
    assert {name: getattr(record, name) for name in ATTRIBUTES} == {
        "topic": "flights",
        "partition": 2,
        "offset": 100,
        "timestamp": 1000,
        "timestamp_type": TimestampType.CREATE_TIME,
        "leader_epoch": 4,
        "key": b"key0",
        "value": b"value",
        "raw_key": b"key0",
        "raw_value": b"value",
        "headers": (("h", b"0"),),
    }
    assert type(record.key) is bytes
    assert record.value is record.raw_value is record.value


def test_a_record_cannot_be_changed() -> None:
    record = first(buffer(b"value"))
    for name in (*ATTRIBUTES, "anything"):
        with pytest.raises(AttributeError):
            setattr(record, name, b"other")
        with pytest.raises(AttributeError):
            delattr(record, name)
    assert record.value == b"value"


def test_records_of_equal_content_are_equal_and_hash_alike() -> None:
    one, same, other = first(buffer(b"value")), first(buffer(b"value")), first(buffer(b"other"))
    assert one == same
    assert one is not same
    assert hash(one) == hash(same)
    assert len({one, same, other}) == 2
    assert one != other
    assert one != "flights"
    own = ConsumerRecord[bytes, bytes](
        "flights", 2, 100, raw_key=b"key0", raw_value=b"value", headers=(("h", b"0"),), timestamp=1000, leader_epoch=4
    )
    assert own == one
    assert hash(own) == hash(one)


def test_every_attribute_counts_in_a_comparison() -> None:
    fields: dict[str, Any] = {"topic": "t", "partition": 0, "offset": 1}
    plain = ConsumerRecord[Any, Any](**fields)
    for name, value in {
        "topic": "u",
        "partition": 1,
        "offset": 2,
        "timestamp": 5,
        "timestamp_type": TimestampType.LOG_APPEND_TIME,
        "leader_epoch": 3,
        "raw_key": b"",
        "raw_value": b"",
        "key": "k",
        "value": "v",
        "headers": (("h", None),),
    }.items():
        assert ConsumerRecord[Any, Any](**{**fields, name: value}) != plain


def test_a_record_is_pickled_with_its_own_bytes_only() -> None:
    record = first(buffer(b"value", b"x" * 100_000))
    pickled = pickle.dumps(record)
    assert len(pickled) < 500
    assert pickle.loads(pickled) == record
    assert b"_pure" not in pickled  # a process with the other twin must be able to load it
    assert b"_hot" not in pickled


def test_a_pickled_record_keeps_what_was_deserialized() -> None:
    reader: RecordReader[str, Any] = batch_of(b'{"n": 1}', None).records(
        "t", 0, key_deserializer=bytes.decode, value_deserializer=json.loads
    )
    for record in reader:
        loaded = pickle.loads(pickle.dumps(record))
        assert loaded == record
        assert (loaded.key, loaded.value, loaded.raw_value) == (record.key, record.value, record.raw_value)


def test_a_long_value_is_elided() -> None:
    assert repr(first(buffer(b"short"))) == (
        "ConsumerRecord(topic='flights', partition=2, offset=100, timestamp=1000, key=b'key0', value=b'short', "
        "headers=(('h', b'0'),))"
    )
    text = repr(first(buffer(b"v" * 100_000)))
    assert len(text) < 250
    assert "(100000 bytes)" in text
    assert "value=None" in repr(first(buffer(None)))
    assert "(500 characters)" in repr(ConsumerRecord[str, str]("t", 0, 0, value="v" * 500))


@pytest.mark.slow
def test_a_record_pins_its_batch_until_detached() -> None:
    data = buffer(b"value")
    watched = weakref.ref(data)
    record = first(data)
    untouched = first(data)
    del data
    gc.collect()
    assert watched() is not None

    detached = record.detach()
    assert detached == record
    assert detached.detach() is detached
    assert untouched.value == b"value"
    del record, untouched
    gc.collect()
    assert watched() is None
    assert (detached.key, detached.value, detached.headers) == (b"key0", b"value", (("h", b"0"),))


def test_detaching_keeps_what_was_deserialized() -> None:
    reader: RecordReader[bytes, str] = batch_of(b"value").records("t", 0, value_deserializer=bytes.decode)
    record = next(reader).detach()
    assert (record.key, record.value, record.raw_value) == (b"key0", "value", b"value")


def test_a_record_of_ones_own() -> None:
    record = ConsumerRecord[str, int]("t", 1, 5, key="k", value=7)
    assert (record.key, record.value, record.raw_key, record.raw_value) == ("k", 7, None, None)
    assert (record.timestamp, record.headers, record.leader_epoch) == (-1, (), None)
    assert record.detach() is record


# --- deserializers -------------------------------------------------------------------------------------------


def test_deserializers_make_key_and_value_and_leave_the_raw_ones() -> None:
    reader: RecordReader[str, int] = batch_of(b"1", b"2").records(
        "t", 0, key_deserializer=bytes.decode, value_deserializer=int
    )
    records = list(reader)
    assert [(record.key, record.value) for record in records] == [("key0", 1), ("key1", 2)]
    assert [(record.raw_key, record.raw_value) for record in records] == [(b"key0", b"1"), (b"key1", b"2")]


def test_null_is_not_given_to_a_deserializer() -> None:
    reader: RecordReader[bytes, int] = batch_of(None).records("t", 0, value_deserializer=int)
    assert next(reader).value is None


def test_a_deserializer_runs_once_and_for_wanted_records_only() -> None:
    seen: list[bytes] = []
    reader: RecordReader[bytes, None] = batch_of(b"0", b"1", b"2").records(
        "t", 0, from_offset=101, value_deserializer=seen.append
    )
    records = list(reader)
    assert [record.value for record in records] == [None, None]
    assert [record.value for record in records] == [None, None]
    assert seen == [b"1", b"2"]


def test_iteration_goes_on_after_a_deserializer_failed() -> None:
    reader: RecordReader[bytes, int] = batch_of(b"0", b"one", b"2", b"three").records(
        "flights", 7, value_deserializer=int
    )
    got: list[int | None] = []

    def iterate() -> None:
        for record in reader:
            got.append(record.value)

    for offset in (101, 103):
        with pytest.raises(DeserializationError, match=f"^flights-7, offset {offset}: the value could") as caught:
            iterate()
        assert isinstance(caught.value.__cause__, ValueError)
        assert reader.next_offset == offset + 1
    iterate()
    assert got == [0, 2]


def test_a_failing_key_is_named_as_such() -> None:
    def refuse(_: bytes) -> str:
        raise LookupError("no such schema")

    reader: RecordReader[str, bytes] = batch_of(b"0").records("t", 0, key_deserializer=refuse)
    with pytest.raises(DeserializationError, match="t-0, offset 100: the key could not be deserialized") as caught:
        next(reader)
    assert isinstance(caught.value.__cause__, LookupError)
    assert list(reader) == []


@pytest.mark.parametrize("failed", ["key", "value"])
@pytest.mark.parametrize("pickled", [False, True])
def test_a_record_that_cannot_be_deserialized_is_in_the_error(failed: str, pickled: bool) -> None:
    builder = BatchBuilder(limit=10_000)
    builder.append(1_000, b"key", b"value", (("h", b"1"), ("n", None)))
    batch = RecordBatch.parse(memoryview(set_base_offset(builder.build(), 100, 7)))
    reader: RecordReader[Any, Any] = batch.records(
        "t", 3, key_deserializer=int if failed == "key" else None, value_deserializer=int if failed == "value" else None
    )
    with pytest.raises(DeserializationError) as caught:
        next(reader)
    error = pickle.loads(pickle.dumps(caught.value)) if pickled else caught.value
    assert (error.failed, error.partition, error.offset) == (failed, TopicPartition("t", 3), 100)
    assert (error.raw_key, error.raw_value, error.timestamp) == (b"key", b"value", 1_000)
    assert error.headers == (("h", b"1"), ("n", None))
    assert str(error) == f"t-3, offset 100: the {failed} could not be deserialized"
    assert type(error.partition) is TopicPartition


def test_errors_of_a_deserializer_are_never_taken_for_damage() -> None:
    def index(_: bytes) -> int:
        return [1][5]

    reader: RecordReader[bytes, int] = batch_of(b"0").records("t", 0, value_deserializer=index)
    with pytest.raises(DeserializationError):
        next(reader)


# --- deliveries ----------------------------------------------------------------------------------------------


class BatchResult:
    def __init__(self) -> None:
        self.outcome: int | Exception | None = None
        self.callbacks: list[tuple[int, DeliveryCallback]] = []

    def is_done(self, index: int) -> bool:
        return self.outcome is not None

    async def wait(self, index: int) -> RecordMetadata:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        assert self.outcome is not None
        return RecordMetadata("t", 0, self.outcome + index, -1)

    def add_callback(self, index: int, callback: DeliveryCallback) -> None:
        self.callbacks.append((index, callback))


def outcome_of(delivery: Delivery) -> RecordMetadata:
    async def wait() -> RecordMetadata:
        return await delivery

    waiting: Coroutine[Any, Any, RecordMetadata] = wait()
    try:
        waiting.send(None)
    except StopIteration as stop:
        result: RecordMetadata = stop.value
        return result
    raise AssertionError("it waits")


def test_a_delivery_gives_its_place_in_the_batch() -> None:
    result = BatchResult()
    deliveries = [Delivery(result, index) for index in range(3)]
    assert not any(delivery.done for delivery in deliveries)
    assert repr(deliveries[1]) == "<Delivery 1, pending>"
    result.outcome = 500
    assert all(delivery.done for delivery in deliveries)
    assert [outcome_of(delivery).offset for delivery in deliveries] == [500, 501, 502]
    assert outcome_of(deliveries[1]) == outcome_of(deliveries[1])  # as often as you like


def test_a_delivery_raises_what_went_wrong() -> None:
    result = BatchResult()
    delivery = Delivery(result, 0)
    result.outcome = KafkaError("lost")
    for _ in range(2):
        with pytest.raises(KafkaError, match="lost"):
            outcome_of(delivery)


def test_a_delivery_passes_its_callback_on_with_its_index() -> None:
    result = BatchResult()

    def callback(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        raise AssertionError

    Delivery(result, 2).add_callback(callback)
    assert result.callbacks == [(2, callback)]


def test_a_delivery_carries_nothing_else() -> None:
    with pytest.raises(AttributeError):
        Delivery(BatchResult(), 0).extra = 1  # type: ignore[attr-defined]
