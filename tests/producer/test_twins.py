"""The compiled appender does what the pure one does, and is in use where it was built."""

import os
from array import array
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from aiokafkawire.config import ProducerConfig
from aiokafkawire.errors import BufferFull, KafkaError, RecordTooLarge, TopicNotReady, UsageError
from aiokafkawire.producer import _pure, appending
from aiokafkawire.producer.door import Partitioning
from aiokafkawire.producer.partitioner import make_partitioner, partition_for_key
from aiokafkawire.records import batch
from aiokafkawire.types import Header, TopicPartition

COMPILED = batch.IMPLEMENTATION == "cython"
BUILT = pytest.mark.skipif(not COMPILED, reason="the compiled record loop is not in use here")


def test_the_compiled_appender_is_in_use_where_it_must_be() -> None:
    if os.environ.get("AIOKAFKAWIRE_REQUIRE_COMPILED", "0") in ("", "0"):
        pytest.skip("AIOKAFKAWIRE_REQUIRE_COMPILED is not set: the pure one may do")
    assert appending.Appender.__module__ == "aiokafkawire.producer._hot"


class Waiters:
    """A batch's result, known at once."""

    settled = True

    def is_done(self, index: int) -> bool:
        return True

    async def wait(self, index: int) -> Any:
        return "waited", index


class Queues:
    def takes(self, where: TopicPartition, size: int) -> bool:
        return size % 3 > 0

    def waiting(self, topic: str) -> dict[int, int]:
        return {}

    def stalled(self, topic: str) -> list[int]:
        return []


class Doorkeeper:
    """Opens what it is asked for, and writes down what was asked."""

    def __init__(self, twin: Any, limit: int, *, refuses: bool) -> None:
        self.twin, self.limit, self.refuses = twin, limit, refuses
        self.budget = twin.Budget(20_000)
        self.asked: list[Any] = []
        self.batches: list[Any] = []
        self.turns: Any = None

    def open_topic(self, topic: str, /) -> Any:
        self.asked.append(("topic", topic))
        if topic == "unknown":
            raise TopicNotReady(topic)
        return self.twin.OpenTopic(topic, 7, (0, 1, 2, 4), None)

    def open_batch(
        self,
        topic: str,
        partition: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
        /,
    ) -> Any:
        self.asked.append(("batch", topic, partition, timestamp, key, value, list(headers)))
        made = self.twin.OpenBatch(batch.BatchBuilder(limit=self.limit), Waiters(), array("q"))
        self.batches.append(made)
        return made, made.append(self.budget, timestamp, key, value, headers)

    def ask(self, topic: str, partition: int, /) -> None:
        self.asked.append(("may", topic, partition))
        if self.refuses and partition == 3:
            raise UsageError("not there")

    def refuse(self, topic: str, size: int, /) -> KafkaError:
        self.asked.append(("refuse", topic, size))
        return RecordTooLarge(str(size)) if size > 3000 else BufferFull(str(size))

    def wake(self) -> None:
        self.asked.append("wake")

    def go_now(self) -> Coroutine[Any, Any, None] | None:
        self.asked.append("go now")
        return self.write() if len(self.asked) % 2 else None

    async def write(self) -> None:
        self.asked.append("write")

    async def let_others_run(self) -> None:
        self.asked.append("let others run")

    async def accept(self, topic: str, *record: Any) -> Any:
        self.asked.append(("accept", topic, *record))
        raise TopicNotReady("too late")


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
    door = Doorkeeper(twin, limit, refuses=asks)
    partitioning = make_partitioner(config, Random(chance), Queues())
    clock = iter(range(1_000, 100_000))
    appender = twin.Appender(
        door,
        door.budget,
        3000,
        partitioning,
        lambda: next(clock),
        (lambda key: key if key == 7 else repr(key).encode()) if serializes else None,
        (lambda value: bytes(value) if isinstance(value, bytes) else 1 / 0) if serializes else None,
        asks_first=asks,
    )
    told: list[Any] = []
    for step in todo:
        if step == "forget":
            appender.forget()
        elif step == "close":
            for one in door.batches[::2]:
                one.closed = True
        elif step == "free":
            door.budget.used = 0
        else:
            way, record = step
            rest = {name: given for name, given in record.items() if name != "topic"}
            act = partial(getattr(appender, way), record["topic"], **rest)
            if way == "append_many":
                keys = [rest["key"]] * 3 if "key" in rest else None
                others = [rest.get(name) for name in ("partition", "timestamp_ms")]
                given_headers = rest.get("headers", ())
                act = partial(
                    appender.append_many, record["topic"], [rest["value"]] * 3, keys, *others, given_headers, 0, 3
                )
            told.append(repr(outcome(act)))
    written = [(one.closed, one.timestamps.tolist(), one.builder.size, one.builder.build()) for one in door.batches]
    return told, door.asked, written, door.budget.used


def by_length(topic: str, key: bytes | None, available: Sequence[int], partitions: Sequence[int], /) -> int:
    return len(key or b"")


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
    pure, hot = (run(twin, todo, partitioner, limit, serializes, asks, chance) for twin in (_pure, appending))
    assert hot == pure


@BUILT
@given(st.binary(max_size=70), st.integers(1, 5000))
def test_keys_go_where_javas_go(key: bytes, partitions: int) -> None:
    class Wide(Doorkeeper):
        def open_topic(self, topic: str, /) -> Any:
            return self.twin.OpenTopic(topic, partitions, (), None)

    door = Wide(appending, 1000, refuses=False)
    partitioning = make_partitioner(ProducerConfig(), Random(1), Queues())
    appender: appending.Appender[bytes, bytes] = appending.Appender(door, door.budget, 3000, partitioning, lambda: 1)
    appender.append("a", None, key, None, None, ())
    assert door.asked[-1][2] == partition_for_key(key, partitions)


@BUILT
@pytest.mark.parametrize("made", ["Appender", "OpenBatch", "OpenTopic", "Turn", "Budget"])
def test_none_can_be_had_uninitialised(made: str) -> None:
    cls: Any = getattr(appending, made)
    with pytest.raises(TypeError):
        cls.__new__(cls)


@pytest.mark.parametrize("name", ["pure", pytest.param("compiled", marks=BUILT)])
@pytest.mark.parametrize(("closes", "most", "asked"), [(False, 2000, 11), (True, 2000, 7), (False, 700, 8)])
def test_a_turn_goes_on_while_its_open_batch_has_room(name: str, closes: bool, most: int, asked: int) -> None:
    twin: Any = _pure if name == "pure" else appending
    door, turns = Doorkeeper(twin, 1200, refuses=False), dict[str, Any]()

    def choose(topic: str, key: bytes | None, available: Sequence[int], count: int, size: int, /) -> int:
        door.asked.append("choose")
        turns["t"] = twin.Turn(2, available, 0, 500, most)
        return 2

    appender = twin.Appender(door, door.budget, 5000, Partitioning(choose, turns=turns), lambda: 1)
    accepted = 0
    while door.asked.count("choose") < 2:
        appender.append("t", bytes(100), None, None, None, ())
        accepted += 1
        if closes and accepted == 6:
            door.batches[0].closed = True
    assert accepted == asked
