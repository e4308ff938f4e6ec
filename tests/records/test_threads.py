"""Records, readers and builders that several threads use at the same time: on a free-threaded CPython, truly so."""

import gc
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from aiokafkawire.records import batch
from aiokafkawire.records.batch import BatchBuilder, RecordBatch, RecordReader, split
from aiokafkawire.records.compression import Codec

pytestmark = pytest.mark.skipif(batch.IMPLEMENTATION == "pure", reason="Python itself takes care of the pure twin")

THREADS = 4
ROUNDS = 200


@pytest.fixture(autouse=True)
def frequent_switches() -> Iterator[None]:
    """Let the threads interrupt each other often where they share the GIL, also while compiled code makes objects."""
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(3)
    gc.callbacks.append(_give_way)
    yield
    gc.callbacks.remove(_give_way)
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)


def _give_way(phase: str, info: object) -> None:
    """Be a function of Python, at which the interpreter may switch to another thread."""


def at_once(act: Callable[[], Any]) -> list[Any]:
    """Call ``act`` in all threads at the same moment; return what each call returns."""
    start = Barrier(THREADS)

    def run() -> Any:
        start.wait()
        return act()

    with ThreadPoolExecutor(THREADS) as pool:
        return [one.result() for one in [pool.submit(run) for _ in range(THREADS)]]


def batch_of(count: int) -> RecordBatch:
    builder = BatchBuilder(limit=1 << 30)
    for index in range(count):
        builder.append(1000 + index, b"key%d" % index, b"value%d" % index, (("h", b"%d" % index),))
    return built(builder)


def built(builder: BatchBuilder) -> RecordBatch:
    (made,) = split(memoryview(builder.build()))
    assert isinstance(made, RecordBatch)
    return made


def records_of(made: RecordBatch) -> RecordReader[bytes, bytes]:
    return made.records("t", 0)


def test_threads_read_the_same_records() -> None:
    for _ in range(ROUNDS):
        records = list(records_of(batch_of(20)))
        read = at_once(lambda: [(record.key, record.value, record.raw_key, record.raw_value) for record in records])  # noqa: B023
        assert read == [[(b"key%d" % i, b"value%d" % i, b"key%d" % i, b"value%d" % i) for i in range(20)]] * THREADS


def test_threads_share_out_the_records_of_a_reader() -> None:
    for _ in range(ROUNDS // 10):
        reader = records_of(batch_of(500))
        read = at_once(lambda: [(record.offset, record.value, record.headers) for record in reader])  # noqa: B023
        together = sorted(record for part in read for record in part)
        assert together == [(i, b"value%d" % i, (("h", b"%d" % i),)) for i in range(500)]


def test_threads_share_out_the_records_of_a_reader_as_columns() -> None:
    for _ in range(ROUNDS):
        reader: Any = records_of(batch_of(100))
        read = at_once(reader.columns)
        offsets = [offset for columns in read for offset in memoryview(columns.offsets).cast("q")]
        headers = [header for columns in read for header in columns.headers or ()]
        assert sorted(offsets) == list(range(100))
        assert sorted(headers) == sorted((("h", b"%d" % index),) for index in range(100))


def test_threads_append_to_one_builder() -> None:
    for _ in range(ROUNDS // 20):
        builder = BatchBuilder(limit=1 << 30)
        indexes = at_once(lambda: [builder.append(5, None, b"v" * size) for size in range(500)])  # noqa: B023
        assert sorted(index for part in indexes for index in part) == list(range(500 * THREADS))
        sizes = sorted(len(record.value or b"") for record in records_of(built(builder)))
        assert sizes == sorted(list(range(500)) * THREADS)


def test_a_batch_is_not_moved_while_it_is_compressed(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = BatchBuilder(limit=1 << 30, codec=Codec.GZIP)
    builder.append(5, None, b"first")
    before = builder.size

    def append_meanwhile(codec: Codec, records: memoryview, level: int | None) -> bytes:
        with pytest.raises(BufferError, match="cannot grow while its records are compressed"):
            builder.append(6, None, b"second" * 1000)
        return bytes(records)

    monkeypatch.setattr(f"{BatchBuilder.__module__}.compress", append_meanwhile)
    builder.compress()
    assert (builder.count, builder.size) == (1, before)
    monkeypatch.undo()
    builder.append(6, None, b"second" * 1000)
    assert [record.value for record in records_of(built(builder))] == [b"first", b"second" * 1000]


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this CPython always has a GIL")
def test_the_compiled_modules_leave_the_gil_off() -> None:
    rooms = ("consumer", "network", "producer", "protocol", "records", "share")
    imports = "".join(f"import aiokafkawire.{room}._hot;" for room in rooms)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}
    program = imports + "import sys; sys.exit(sys._is_gil_enabled())"
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, env=environment)
