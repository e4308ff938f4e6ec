"""Batches of a megabyte that inflate to hundreds of times that: an error, within memory that the limit bounds.

The bombs are frames, or blocks, that follow one another: each is made once.
"""

import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import lz4.frame
import pytest
import snappy
import zstandard
from support.message_sets import message

from aiokafkawire.errors import CorruptBatch
from aiokafkawire.records import layout
from aiokafkawire.records.batch import AnyBatch, split
from aiokafkawire.records.checksum import crc32c
from aiokafkawire.records.compression import Codec, compress

LIMIT = 1 << 20
PIECE = 1 << 22
"""What one frame inflates to."""
MEGABYTE = 1_000_000
CODECS = [codec for codec in Codec if codec is not Codec.NONE]
STATUS = Path("/proc/self/status")


def pieces(codec: Codec) -> bytes:
    """About a megabyte that inflates to as much as the codec can make of it: from 20 MB (snappy) to 30 GB (zstd)."""
    content = bytes(PIECE)
    match codec:
        case Codec.GZIP:
            piece = compress(codec, content, 9)
        case Codec.LZ4:
            piece = bytes(lz4.frame.compress(content, block_size=lz4.frame.BLOCKSIZE_MAX4MB, store_size=False))
        case Codec.ZSTD:
            piece = zstandard.ZstdCompressor().compress(content)
        case _:
            block = bytes(snappy.compress(content))
            xerial = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
            return xerial + (struct.pack(">i", len(block)) + block) * (MEGABYTE // len(block) + 1)
    return piece * (MEGABYTE // len(piece) + 1)


def single(codec: Codec) -> bytes:
    """One frame or block of a megabyte at most, without an end of a frame to stop at."""
    size = 16 * MEGABYTE if codec is Codec.SNAPPY else 1 << 27
    return bytes(snappy.compress(bytes(size))) if codec is Codec.SNAPPY else compress(codec, bytes(size))


def as_batch(codec: Codec, packed: bytes, magic: int) -> bytes:
    """A batch or a message that holds these bytes, with a checksum that is right."""
    if magic < 2:
        return message(0, packed, magic=magic, attributes=codec)
    length = layout.HEADER_SIZE - layout.LOG_OVERHEAD + len(packed)
    fields = (0, length, 0, 2, 0, codec, 999, 0, 0, -1, -1, -1, 1000)
    batch = bytearray(layout.HEADER.pack(*fields) + packed)
    layout.UINT32.pack_into(batch, layout.CRC_AT, crc32c(bytes(batch[layout.ATTRIBUTES_AT :])))
    return bytes(batch)


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
