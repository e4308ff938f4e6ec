"""The compiled appender does what the pure one does, and is in use where it was built."""

import os
from array import array
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from inspect import getdoc, signature
from itertools import accumulate
from random import Random
from struct import pack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.coroutine_functions import looks_async
from support.examples import examples

from aiokafkawire.config import ProducerConfig
from aiokafkawire.errors import BufferFull, KafkaError, RecordTooLarge, TopicNotReady, UsageError
from aiokafkawire.producer import _implementation, _pure
from aiokafkawire.producer.partitioner import Partitioning, make_partitioner, partition_for_key
from aiokafkawire.producer.record_checks import invalid_partition
from aiokafkawire.producer.record_columns import BinaryColumn, HeadersColumn, RecordColumns, ViewColumn
from aiokafkawire.records import batch
from aiokafkawire.types import Header, Headers, TopicPartition

COMPILED = batch.IMPLEMENTATION == "cython"
BUILT = pytest.mark.skipif(not COMPILED, reason="the compiled record loop is not in use here")


def test_the_compiled_appender_is_in_use_where_it_must_be() -> None:
    if os.environ.get("AIOKAFKAWIRE_REQUIRE_COMPILED", "0") in ("", "0"):
        pytest.skip("AIOKAFKAWIRE_REQUIRE_COMPILED is not set: the pure one may do")
    assert _implementation.Appender.__module__ == "aiokafkawire.producer._hot"


class Result:
    """A batch's result, known at once."""

    completed = True

    def is_done(self, index: int) -> bool:
        return True

    async def wait(self, index: int) -> Any:
        return "waited", index


class QueueSizes:
    def has_room(self, partition: TopicPartition, size: int) -> bool:
        return size % 3 > 0

    def queue_lengths(self, topic: str) -> dict[int, int]:
        return {}

    def unavailable(self, topic: str) -> list[int]:
        return []

    def leaders_in_rack(self, topic: str, rack: str) -> list[int]:
        return []


class Log:
    """What an appender asked of its subclass, and the sender that it has."""

    def __init__(self, twin: Any, limit: int, *, refuses: bool) -> None:
        self.twin, self.limit, self.refuses = twin, limit, refuses
        self.space = twin.BufferSpace(20_000)
        self.count = 7
        self.available: tuple[int, ...] = (0, 1, 2, 4)
        self.asked: list[Any] = []
        self.batches: list[Any] = []

    def wake(self) -> None:
        self.asked.append("wake")

    def send_immediately(self) -> Coroutine[Any, Any, None] | None:
        self.asked.append("send immediately")
        return self.write() if len(self.asked) % 2 else None

    async def write(self) -> None:
        self.asked.append("write")


def subclass_of(twin: Any, log: Log) -> Any:
    """An appender that opens what it is asked for, and writes down what was asked."""

    class Recorder(twin.Appender):  # type: ignore[misc]
        def _open_topic(self, topic: str) -> Any:
            log.asked.append(("topic", topic))
            if topic == "unknown":
                raise TopicNotReady(topic)
            return twin.OpenTopic(topic, log.count, log.available, None)

        def _open_batch(
            self,
            topic: str,
            partition: int,
            timestamp: int,
            key: bytes | None,
            value: bytes | None,
            headers: Sequence[Header],
        ) -> Any:
            log.asked.append(("batch", topic, partition, timestamp, key, value, list(headers)))
            made = twin.OpenBatch(batch.BatchBuilder(limit=log.limit), Result(), array("q"))
            log.batches.append(made)
            return made, made.append(log.space, timestamp, key, value, headers)

        def _add_to_transaction(self, topic: str, partition: int) -> None:
            log.asked.append(("may", topic, partition))
            if log.refuses and partition == 3:
                raise UsageError("not there")

        def _no_partition(self, topic: str, partition: object, count: int) -> KafkaError:
            log.asked.append(("no partition", topic, partition, count))
            return invalid_partition(topic, partition, count)

        def _no_space(self, topic: str, size: int) -> KafkaError:
            log.asked.append(("no space", topic, size))
            return RecordTooLarge(str(size)) if size > 3000 else BufferFull(str(size))

        async def _let_others_run(self) -> None:
            log.asked.append("let others run")

        async def _wait_and_append(self, topic: str, *record: Any) -> Any:
            log.asked.append(("wait", topic, *record))
            raise TopicNotReady("too late")

    return Recorder


class Subclass(bytes):
    pass


ODD_PARTITIONS: list[Any] = [-1, 7, 1 << 40, 1 << 80, True, 1.0, "0"]
ODD_TIMES: list[Any] = [-1, 1 << 63, True, 1.5, "now"]
ODD_HEADERS: list[Any] = [[("a", "b")], [("a",)], [(1, b"")], {"a": 1}, [None]]
TEXT = st.sampled_from(["text", 7, bytearray(b"x"), Subclass(b"of bytes")])
records = st.fixed_dictionaries(
    {
        "topic": st.sampled_from(["a", "b", "unknown"]),
        "value": st.none() | st.binary(max_size=3500) | TEXT,
    },
    optional={
        "key": st.none() | st.binary(max_size=40) | TEXT,
        "partition": st.none() | st.integers(0, 6) | st.sampled_from(ODD_PARTITIONS),
        "timestamp_ms": st.none() | st.integers(0, 1 << 42) | st.sampled_from(ODD_TIMES),
        "headers": st.dictionaries(st.text(max_size=5), st.none() | st.binary(max_size=9), max_size=2)
        | st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=9)), max_size=2)
        | st.sampled_from(ODD_HEADERS),
    },
)
ways = st.sampled_from(["send_nowait", "enqueue", "send", "append_many"])
steps = st.lists(st.sampled_from(["forget", "close", "free"]) | st.tuples(ways, records), max_size=40)


def binary(items: Sequence[bytes | None], first: int, code: str) -> BinaryColumn:
    """A column whose items begin in the middle of its bits and bytes."""
    ends, bits = array(code, [first]), bytearray((first + len(items) + 7) // 8)
    for index, item in enumerate(items, first):
        ends.append(ends[-1] + len(item or b""))
        bits[index >> 3] |= (item is not None) << (index & 7)
    validity = memoryview(bits) if None in items else None
    return BinaryColumn(
        memoryview(ends), memoryview(bytes(first) + b"".join(map(bytes, filter(None, items)))), validity, first
    )


def views(items: Sequence[bytes | None], first: int, buffers: int) -> ViewColumn:
    """A column of views, whose longer items lie in several buffers, and whose bits begin in the middle of a byte."""
    made, contents = bytearray(), [bytearray(first) for _ in range(buffers)]
    bits = bytearray((first + len(items) + 7) // 8)
    for index, item in enumerate(items, first):
        bits[index >> 3] |= (item is not None) << (index & 7)
        content = contents[index % buffers]
        if item is None or len(item) <= 12:
            made += pack("=i12s", len(item or b""), item or b"")
        else:
            made += pack("=i4sii", len(item), item[:4], index % buffers, len(content))
            content += item
    validity = memoryview(bits) if None in items else None
    return ViewColumn(memoryview(made), tuple(map(memoryview, contents)), validity, first)


def numbers(items: Sequence[int]) -> memoryview:
    return memoryview(array("q", items))


def header_lists(lists: Sequence[Sequence[tuple[str, bytes | None]] | None]) -> HeadersColumn:
    pairs = [pair for headers in lists for pair in headers or ()]
    ends = array("i", [0, *accumulate(len(headers or ()) for headers in lists)])
    bits = bytearray((len(lists) + 7) // 8)
    for index, headers in enumerate(lists):
        bits[index >> 3] |= (headers is not None) << (index & 7)
    names, contents = binary([name.encode() for name, _ in pairs], 0, "i"), binary([it for _, it in pairs], 0, "i")
    return HeadersColumn(memoryview(ends), names, contents, len(pairs), memoryview(bits))


COMMON_HEADERS: list[Headers] = [(), [("a", b"1"), ("b", None)], {"c": b""}]


@st.composite
def columns(draw: st.DrawFn) -> RecordColumns:
    count = draw(st.integers(0, 5))

    def some(item: Any) -> Any:
        return draw(st.none() | st.lists(item, min_size=count, max_size=count))

    first, code = draw(st.integers(0, 9)), draw(st.sampled_from("iqv"))

    def column(items: Sequence[bytes | None] | None) -> BinaryColumn | ViewColumn | None:
        if items is None:
            return None
        return views(items, first, draw(st.integers(1, 3))) if code == "v" else binary(items, first, code)

    values, keys = some(st.none() | st.binary(max_size=3500)), some(st.none() | st.binary(max_size=40))
    partitions, times = some(st.integers(-1, 7)), some(st.sampled_from([-1, 0, 1]) | st.integers(-1, 1 << 42))
    headers = some(st.none() | st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2))
    return RecordColumns(
        count,
        column(values),
        column(keys),
        draw(st.none() | st.integers(0, 6) | st.sampled_from(ODD_PARTITIONS)),
        None if partitions is None else numbers(partitions),
        draw(st.none() | st.integers(0, 1 << 42)),
        None if times is None else numbers(times),
        draw(st.sampled_from(COMMON_HEADERS)),
        None if headers is None else header_lists(headers),
    )


runs_of_columns = st.lists(
    st.sampled_from(["forget", "close", "free"])
    | st.tuples(st.just("append_columns"), st.tuples(st.sampled_from(["a", "b", "unknown"]), columns())),
    max_size=6,
)


def outcome(act: Callable[[], Any]) -> Any:
    try:
        made = act()
        if not isinstance(made, Coroutine):
            return made
        made.send(None)
    except StopIteration as stop:
        return stop.value
    except Exception as error:
        return type(error), str(error)
    raise AssertionError("nobody has to wait here")


def run(twin: Any, todo: Sequence[Any], partitioner: Any, limit: int, serializes: bool, asks: bool, chance: int) -> Any:
    config = ProducerConfig(partitioner=partitioner, batch_size=limit)
    log = Log(twin, limit, refuses=asks)
    partitioning = make_partitioner(config, Random(chance), QueueSizes())
    clock = iter(range(1_000, 100_000))
    appender = subclass_of(twin, log)(
        log,
        log.space,
        3000,
        partitioning,
        lambda: next(clock),
        (lambda key: key if key == 7 else repr(key).encode()) if serializes else None,
        (lambda value: bytes(value) if isinstance(value, bytes) else 1 / 0) if serializes else None,
        transactional=asks,
    )
    told: list[Any] = []
    for step in todo:
        if step == "forget":
            appender._invalidate_topics()
        elif step == "close":
            for one in log.batches[::2]:
                one.closed = True
        elif step == "free":
            log.space.used = 0
        elif step[0] == "append_columns":
            topic, given_columns = step[1]
            told.append(repr(outcome(partial(appender._append_columns, topic, given_columns, 0, given_columns.count))))
        else:
            way, record = step
            rest = {name: given for name, given in record.items() if name != "topic"}
            act = partial(getattr(appender, "_append_many" if way == "append_many" else way), record["topic"], **rest)
            if way == "append_many":
                keys = [rest["key"]] * 3 if "key" in rest else None
                others = [rest.get(name) for name in ("partition", "timestamp_ms")]
                given_headers = rest.get("headers", ())
                act = partial(
                    appender._append_many, record["topic"], [rest["value"]] * 3, keys, *others, given_headers, 0, 3
                )
            told.append(repr(outcome(act)))
    written = [(one.closed, one.timestamps.tolist(), one.builder.size, one.builder.build()) for one in log.batches]
    # For columns, the compiled one asks once a partition and call whether a transaction may have it.
    allowed = {entry for entry in log.asked if entry[0] == "may"}
    return told, [entry for entry in log.asked if entry[0] != "may"], allowed, written, log.space.used


def by_length(topic: str, key: bytes | None, available: Sequence[int], partitions: Sequence[int], /) -> int:
    return len(key or b"")


@pytest.mark.slow
@BUILT
@settings(max_examples=examples(500))
@given(
    steps,
    st.sampled_from(["default", "murmur2", "consistent_random", "fnv1a", "round_robin", "random", by_length]),
    st.sampled_from([100, 1000, 4000]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 9),
)
def test_both_do_the_same(
    todo: list[Any], partitioner: Any, limit: int, serializes: bool, asks: bool, chance: int
) -> None:
    pure, hot = (run(twin, todo, partitioner, limit, serializes, asks, chance) for twin in (_pure, _implementation))
    assert hot == pure


@pytest.mark.slow
@BUILT
@settings(max_examples=examples(300))
@given(
    runs_of_columns,
    st.sampled_from(["default", "consistent_random", "fnv1a", by_length]),
    st.sampled_from([100, 1000, 4000]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 9),
)
def test_both_append_columns_alike(
    todo: list[Any], partitioner: Any, limit: int, serializes: bool, asks: bool, chance: int
) -> None:
    pure, hot = (run(twin, todo, partitioner, limit, serializes, asks, chance) for twin in (_pure, _implementation))
    assert hot == pure


@BUILT
@given(st.binary(max_size=70), st.integers(1, 5000))
def test_keys_go_where_javas_go(key: bytes, partitions: int) -> None:
    log = Log(_implementation, 1000, refuses=False)
    log.count, log.available = partitions, ()
    partitioning = make_partitioner(ProducerConfig(), Random(1), QueueSizes())
    appender = subclass_of(_implementation, log)(log, log.space, 3000, partitioning, lambda: 1)
    appender._append("a", None, key, None, None, ())
    assert log.asked[-1][2] == partition_for_key(key, partitions)


@BUILT
@pytest.mark.parametrize("made", ["OpenBatch", "OpenTopic", "StickyPartition", "BufferSpace"])
def test_none_can_be_had_uninitialised(made: str) -> None:
    cls: Any = getattr(_implementation, made)
    with pytest.raises(TypeError):
        cls.__new__(cls)


@BUILT
def test_a_subclass_that_does_not_initialise_the_appender_gets_an_error() -> None:
    class Forgetful(_implementation.Appender[bytes, bytes]):
        def __init__(self) -> None:
            pass

    with pytest.raises((AttributeError, NotImplementedError)):
        Forgetful().send_nowait("a", b"")
    with pytest.raises(TypeError, match="BufferSpace"):
        _implementation.Appender(Log(_implementation, 1, refuses=False), None, 1, Partitioning(len), lambda: 1)  # type: ignore


@BUILT
@pytest.mark.parametrize("name", ["send", "enqueue", "send_nowait"])
def test_both_have_the_same_signatures_and_docstrings(name: str) -> None:
    pure, hot = (getattr(twin.Appender, name) for twin in (_pure, _implementation))
    assert getdoc(hot) == getdoc(pure)
    ours, theirs = (
        [(one.name, one.kind, one.default) for one in signature(method).parameters.values()] for method in (hot, pure)
    )
    assert ours == theirs
    assert looks_async(hot) == looks_async(pure)


@pytest.mark.parametrize("name", ["pure", pytest.param("compiled", marks=BUILT)])
@pytest.mark.parametrize(("closes", "most", "asked"), [(False, 2000, 11), (True, 2000, 7), (False, 700, 8)])
def test_a_turn_goes_on_while_its_open_batch_has_room(name: str, closes: bool, most: int, asked: int) -> None:
    twin: Any = _pure if name == "pure" else _implementation
    log, sticky = Log(twin, 1200, refuses=False), dict[str, Any]()

    def choose(topic: str, key: bytes | None, available: Sequence[int], count: int, size: int, /) -> int:
        log.asked.append("choose")
        sticky["t"] = twin.StickyPartition(2, available, 0, 500, most)
        return 2

    appender = subclass_of(twin, log)(log, log.space, 5000, Partitioning(choose, sticky=sticky), lambda: 1)
    accepted = 0
    while log.asked.count("choose") < 2:
        appender._append("t", bytes(100), None, None, None, ())
        accepted += 1
        if closes and accepted == 6:
            log.batches[0].closed = True
    assert accepted == asked


@pytest.mark.parametrize("name", ["pure", pytest.param("compiled", marks=BUILT)])
@pytest.mark.parametrize("part", ["values", "keys"])
@pytest.mark.parametrize("ends", [[0, 5], [3, 2], [1, -1], [0, 1 << 40]])
def test_offsets_outside_of_the_data_are_refused(name: str, part: str, ends: list[int]) -> None:
    twin: Any = _pure if name == "pure" else _implementation
    refuse_second(twin, part, BinaryColumn(numbers([0, *ends]), memoryview(b"four")))


@pytest.mark.parametrize("name", ["pure", pytest.param("compiled", marks=BUILT)])
@pytest.mark.parametrize("part", ["values", "keys"])
@pytest.mark.parametrize("view", [(-1, 0, 0), (13, 1, 0), (13, -1, 0), (13, 0, 8), (13, 0, -1), (2**31 - 1, 0, 1)])
def test_views_outside_of_the_buffers_are_refused(name: str, part: str, view: tuple[int, int, int]) -> None:
    twin: Any = _pure if name == "pure" else _implementation
    size, buffer, begin = view
    made = pack("=i12si4sii", 1, b"1", size, b"1234", buffer, begin)
    refuse_second(twin, part, ViewColumn(memoryview(made), (memoryview(bytes(20)),)))


def refuse_second(twin: Any, part: str, damaged: BinaryColumn | ViewColumn) -> None:
    """Check that the second of two records, of which a part is in a damaged column, is refused."""
    log = Log(twin, 1000, refuses=False)
    partitioning = make_partitioner(ProducerConfig(), Random(1), QueueSizes())
    appender = subclass_of(twin, log)(log, log.space, 3000, partitioning, lambda: 1)
    good = binary([b"1", b"2"], 0, "q")
    parts: dict[str, Any] = {"values": good, "keys": good, part: damaged}
    assert appender._append_columns("a", RecordColumns(2, **parts), 0, 2) == 1
    with pytest.raises(UsageError, match="row 1 of an Arrow array cannot be read"):
        appender._append_columns("a", RecordColumns(2, **parts), 1, 2)
