"""Batches of a megabyte that inflate to hundreds of times that: an error, within memory that the limit bounds.

The bombs are frames, or blocks, that follow one another: each is made once.
"""

import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from support.bombs import MEGABYTE, as_batch, pieces, single
from support.message_sets import message

from aiokafkawire.errors import CorruptBatch
from aiokafkawire.records.batch import AnyBatch, split
from aiokafkawire.records.compression import Codec, compress

LIMIT = 1 << 20
CODECS = [codec for codec in Codec if codec is not Codec.NONE]
STATUS = Path("/proc/self/status")


def peak_of(act: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def refused(batch: AnyBatch) -> None:
    with pytest.raises(CorruptBatch, match="more than the limit"):
        batch.prepare(limit=LIMIT)


FORMATS = [(codec, magic) for codec in CODECS for magic in (0, 1, 2) if magic == 2 or codec is not Codec.ZSTD]


@pytest.mark.parametrize(("codec", "magic"), FORMATS)
@pytest.mark.parametrize("make", [pieces, single])
def test_a_bomb_takes_no_more_memory_than_the_limit(codec: Codec, magic: int, make: Callable[[Codec], bytes]) -> None:
    small = as_batch(codec, compress(codec, message(0, magic=min(magic, 1))), magic)
    (harmless,) = split(memoryview(small))
    harmless.prepare(limit=LIMIT)  # libraries loaded
    data = as_batch(codec, make(codec), magic)
    assert len(data) < 6 * MEGABYTE
    (bomb,) = split(memoryview(data))
    assert peak_of(lambda: refused(bomb)) < 4 * LIMIT


@pytest.mark.parametrize("codec", CODECS)
def test_the_error_of_a_bomb_keeps_none_of_its_output(codec: Codec) -> None:
    (bomb,) = split(memoryview(as_batch(codec, pieces(codec), 2)))
    tracemalloc.start()
    try:
        with pytest.raises(CorruptBatch, match="more than the limit") as kept:
            bomb.prepare(limit=4 * LIMIT)
        assert tracemalloc.get_traced_memory()[0] < LIMIT
        assert kept.value.__traceback__ is not None
    finally:
        tracemalloc.stop()


CHILD = """
import pathlib, sys
from aiokafkawire.errors import CorruptBatch
from aiokafkawire.records.batch import split
from aiokafkawire.records.compression import Codec, compress, decompress

def peak():
    (line,) = [one for one in pathlib.Path("/proc/self/status").read_text().splitlines() if one.startswith("VmHWM")]
    return int(line.split()[1])

for codec in list(Codec)[1:]:
    decompress(codec, memoryview(compress(codec, bytes(200_000))), limit=1 << 20)
batches = [batch for path in sys.argv[1:] for batch in split(memoryview(pathlib.Path(path).read_bytes()))]
before = peak()
for batch in batches:
    try:
        batch.prepare(limit=1 << 20)
    except CorruptBatch as error:
        assert "more than the limit" in str(error), error
    else:
        raise AssertionError(f"{batch} was inflated")
print(len(batches), peak() - before)
"""


@pytest.mark.measures_process
@pytest.mark.slow
@pytest.mark.skipif(not STATUS.exists(), reason="asks Linux for a process's memory")
def test_bombs_take_no_more_memory_outside_of_python_either(tmp_path: Path) -> None:
    paths = []
    for codec, magic in FORMATS:
        for make in (pieces, single):
            paths.append(tmp_path / f"{codec.name}-{magic}-{make.__name__}")
            paths[-1].write_bytes(as_batch(codec, make(codec), magic))
    command = [sys.executable, "-c", CHILD, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    count, kilobytes = map(int, done.stdout.split())
    assert count == len(paths)
    assert kilobytes < 32 * 1024  # the libraries' own buffers are some megabytes, what the bombs hold is gigabytes


@pytest.mark.parametrize("magic", [0, 1])
def test_a_set_that_claims_much_costs_nothing(magic: int) -> None:
    """Lengths and offsets are only compared: neither a list nor a loop is as long as they say."""

    def wrapped(inner: bytes) -> AnyBatch:
        packed = compress(Codec.GZIP, inner)
        (batch,) = split(memoryview(message((1 << 63) - 2, packed, magic=magic, attributes=Codec.GZIP)))
        return batch

    well = message(0, magic=magic) + message((1 << 63) - 2, magic=magic)
    assert peak_of(lambda: list(wrapped(well).records("t", 0))) < 500_000
    lying = wrapped(well[:8] + b"\x7f\xff\xff\xff" + well[12:])

    def refuse() -> None:
        with pytest.raises(CorruptBatch, match="a length of 2147483647"):
            lying.prepare()

    assert peak_of(refuse) < 500_000
