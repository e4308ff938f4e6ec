"""The compiled record loop does what the pure one does, and is in use where it was built."""

import gc
import os
import pickle
import weakref
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from aiokafkawire.records import _pure, batch, layout
from aiokafkawire.records.compression import Codec
from aiokafkawire.types import Header, TimestampType

try:
    HOT: ModuleType | None = import_module("aiokafkawire.records._hot")
except ImportError:
    HOT = None

pytestmark = pytest.mark.filterwarnings("error")
BUILT = pytest.mark.skipif(HOT is None, reason="the compiled record loop is not built here: it takes a C compiler")

Content = tuple[int, bytes | None, bytes | None, tuple[Header, ...]]


def test_the_compiled_loop_is_in_use_where_it_must_be() -> None:
    if os.environ.get("AIOKAFKAWIRE_REQUIRE_COMPILED", "0") in ("", "0"):
        pytest.skip("AIOKAFKAWIRE_REQUIRE_COMPILED is not set: the pure loop may do")
    assert batch.IMPLEMENTATION == "cython"
    assert HOT is not None
    assert (batch.BatchBuilder, batch.RecordReader) == (HOT.BatchBuilder, HOT.RecordReader)


def both(act: Callable[[Any], Any]) -> tuple[Any, Any]:
    """What either twin gives: a result, or an error's type and words."""
    return tuple(map(outcome, (partial(act, _pure), partial(act, HOT))))


def outcome(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except Exception as error:
        return type(error), str(error)


# --- writing -------------------------------------------------------------------------------------------------

timestamps = st.one_of(st.integers(-1, 1 << 42), st.sampled_from([-(1 << 63), (1 << 63) - 1, 0, 1 << 62]))
contents = st.tuples(
    timestamps,
    st.none() | st.binary(max_size=80),
    st.none() | st.binary(max_size=9000),
    st.lists(st.tuples(st.text(max_size=80), st.none() | st.binary(max_size=100)), max_size=4).map(tuple),
)


@BUILT
@given(
    st.lists(contents, max_size=70), st.sampled_from(Codec), st.integers(0, 20_000), st.integers(-1, 9), st.booleans()
)
def test_both_write_the_same_bytes(
    records: list[Content], codec: Codec, limit: int, number: int, transactional: bool
) -> None:
    def write(twin: Any) -> Any:
        builder = twin.BatchBuilder(limit=limit, codec=codec)
        told = [outcome(partial(builder.append, *record)) for record in records]
        state = builder.count, builder.base_timestamp, builder.max_timestamp, builder.size, builder.limit, builder.codec
        numbered = {"producer_id": number, "producer_epoch": number, "base_sequence": number}
        built = outcome(lambda: builder.build(**numbered, transactional=transactional, control=transactional))
        return told, state, built, outcome(builder.build)

    pure, hot = both(write)
    assert hot == pure


ODD: Sequence[tuple[Any, ...]] = [
    (1, "text", None),
    (1, None, 7),
    (1, None, bytearray(b"a")),
    (1, memoryview(b"key"), memoryview(b"value")),
    (1, memoryview(array("i", [1, 2])), array("q", [3])),
    (1, "", None),
    (1, None, []),
    (1.5, None, None),
    ("now", None, None),
    (1 << 64, None, None),
    (1, None, None, [("name", "text")]),
    (1, None, None, [(b"name", b"")]),
    (1, None, None, [("name",)]),
    (1, None, None, {"name": b"x"}),
    (1, None, None, 7),
]


@BUILT
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("arguments", ODD, ids=map(str, range(len(ODD))))
def test_what_is_no_record_is_refused_alike_and_leaves_no_trace(arguments: tuple[Any, ...], is_first: bool) -> None:
    def write(twin: Any) -> Any:
        builder = twin.BatchBuilder(limit=1000)
        if not is_first:
            builder.append(5, b"before", None)
        told = outcome(partial(builder.append, *arguments))
        kind = told if isinstance(told, int) else told[0]
        builder.append(6, b"after", None)
        return kind, builder.build()

    pure, hot = both(write)
    assert hot == pure


@BUILT
@given(contents)
def test_both_know_the_same_bound(record: Content) -> None:
    _, key, value, headers = record
    pure, hot = both(lambda twin: twin.record_size_bound(key, value, headers))
    assert hot == pure


# --- reading -------------------------------------------------------------------------------------------------


def read(twin: Any, body: bytes, **header: Any) -> Any:
    """All that a reader says: records as they are pickled, errors, and how far it has come after each."""
    told: list[Any] = []
    reader = twin.RecordReader(memoryview(body), topic="t", partition=3, **header)
    for _ in range(header["count"] + 2):
        try:
            record = next(reader, None)
        except Exception as error:
            told.append((type(error), str(error), repr(error.__cause__), reader.next_offset, reader.met_headers))
            continue
        if record is None:
            break
        told.append((*record.__reduce__()[1], record.key, record.value, repr(record), hash(record), reader.next_offset))
    return told


def _next(reader: Any) -> str:
    return repr(next(reader, None))


def in_columns(twin: Any, body: bytes, **header: Any) -> Any:
    """The columns of a batch whose first record was taken before, or the error; and how far the reader has come."""
    found = []
    for left_out in ({}, {"with_keys": False}, {"with_values": False}):
        reader = twin.RecordReader(memoryview(body), topic="t", partition=3, **header)
        first = outcome(partial(_next, reader))
        found.append((first, outcome(partial(reader.columns, **left_out)), reader.next_offset))
    return found


def body_of(records: Sequence[Content]) -> bytes:
    builder = _pure.BatchBuilder(limit=1 << 20)
    for record in records:
        builder.append(*record)
    return builder.build()[layout.HEADER_SIZE :] if records else b""


HOSTILE = [b"\xff" * 4, b"\xff" * 9 + b"\x01", b"\xff" * 9 + b"\x02", b"\x80" * 5 + b"\x00", b"\x01", b"\x00", b"\x7f"]


@st.composite
def damaged(draw: st.DrawFn) -> tuple[int, bytes]:
    """How many records there are said to be, and their bytes, most of them well."""
    records = draw(st.lists(contents.map(lambda one: (one[0] % (1 << 42), *one[1:])), max_size=6))
    body = body_of(records)
    for _ in range(draw(st.integers(0, 2))):
        start = draw(st.integers(0, min(len(body), 60)))
        hostile = st.sampled_from(
            [b"\xff" * 4, b"\xff" * 9 + b"\x01", b"\x80" * 5 + b"\x00", b"\x01", b"\x00", b"\x7f"]
        )
        body = body[:start] + draw(st.binary(max_size=3) | hostile) + body[start + draw(st.integers(0, 3)) :]
    return max(0, len(records) + draw(st.sampled_from([0, 0, 0, 0, 1, -1]))), body


places = st.sampled_from([0, 1, 100, (1 << 62), (1 << 63) - (1 << 33)])


@pytest.mark.slow
@BUILT
@settings(max_examples=examples(1500))
@given(
    damaged(),
    places,
    st.sampled_from([-1, 0, 2, 69, (1 << 31) - 1]),
    st.sampled_from([-(1 << 63), -1, 0, 1 << 41, (1 << 63) - 1]),
    st.sampled_from(TimestampType),
    st.integers(0, 4),
    st.none() | st.just(7),
)
def test_both_read_and_refuse_the_same(
    given_body: tuple[int, bytes],
    base_offset: int,
    last_offset_delta: int,
    base_timestamp: int,
    timestamp_type: TimestampType,
    skipped: int,
    leader_epoch: int | None,
) -> None:
    count, body = given_body
    header = {
        "count": count,
        "base_offset": base_offset,
        "last_offset_delta": last_offset_delta,
        "base_timestamp": base_timestamp,
        "max_timestamp": 5,
        "timestamp_type": timestamp_type,
        "from_offset": base_offset + skipped,
        "leader_epoch": leader_epoch,
    }
    pure, hot = both(lambda twin: read(twin, body, **header))
    assert hot == pure
    pure, hot = both(lambda twin: in_columns(twin, body, **header))
    assert hot == pure


@BUILT
@given(st.lists(contents, min_size=1, max_size=5), st.booleans(), st.booleans())
def test_both_deserialize_alike(records: list[Content], fails: bool, keys: bool) -> None:
    def deserializer(raw: bytes) -> str:
        if fails and len(raw) % 2:
            raise LookupError(raw)
        return raw.hex()

    records = [(index, *rest) for index, (_, *rest) in enumerate(records)]  # type: ignore[misc]
    header: dict[str, Any] = {
        "count": len(records),
        "base_offset": 0,
        "last_offset_delta": len(records) - 1,
        "base_timestamp": 0,
        "max_timestamp": 0,
        "timestamp_type": TimestampType.CREATE_TIME,
        "key_deserializer": deserializer if keys else None,
        "value_deserializer": deserializer,
    }
    pure, hot = both(lambda twin: read(twin, body_of(records), **header))
    assert hot == pure


# --- what only the compiled one could do wrong ---------------------------------------------------------------


@pytest.fixture
def hot() -> Iterator[Any]:
    if HOT is None:
        pytest.skip("the compiled record loop is not built here: it takes a C compiler")
    yield HOT
    gc.collect()  # what it has done to memory would show here


def some(twin: Any, count: int = 3, **deserializers: Any) -> Any:
    body = body_of([(index, b"key", b"value", (("h", b"x"),)) for index in range(count)])
    return twin.RecordReader(
        memoryview(bytearray(body)),
        count=count,
        base_offset=0,
        last_offset_delta=count - 1,
        base_timestamp=0,
        max_timestamp=0,
        timestamp_type=TimestampType.CREATE_TIME,
        topic="t",
        partition=0,
        **deserializers,
    )


@pytest.mark.slow
def test_what_was_never_initialised_harms_nobody(hot: Any) -> None:
    for made in (hot.ConsumerRecord, hot.BatchBuilder, hot.Delivery):
        blank = made.__new__(made)
        for name in dir(blank):
            outcome(partial(getattr, blank, name))
        for act in (repr, hash, list, pickle.dumps, lambda one: one == one.__class__.__new__(one.__class__)):
            outcome(partial(act, blank))
    with pytest.raises(TypeError):
        hot.RecordReader.__new__(hot.RecordReader)


@pytest.mark.slow
def test_records_outlive_their_reader_and_batch(hot: Any) -> None:
    records = list(some(hot, 500))
    gc.collect()
    assert {(record.key, record.value, record.headers) for record in records} == {(b"key", b"value", (("h", b"x"),))}


@pytest.mark.slow
def test_cycles_through_what_deserializers_made_are_found(hot: Any) -> None:
    class Made:
        alive = 0

        def __init__(self, raw: bytes) -> None:
            Made.alive += 1

        def __del__(self) -> None:
            Made.alive -= 1

    for record in some(hot, value_deserializer=Made):
        record.value.record = record
    del record
    gc.collect()
    assert Made.alive == 0


@pytest.mark.slow
def test_a_cycle_with_a_reader_in_it_is_found(hot: Any) -> None:
    class Kept:
        pass

    for _ in range(5):
        kept = Kept()
        is_kept = weakref.ref(kept)
        cycle: list[Any] = [some(hot), kept]
        cycle.append(next(cycle[0]))
        cycle.append(cycle)
        del cycle, kept
        gc.collect()
        assert is_kept() is None
