"""Codecs: round trips, levels, and what damaged or hostile data may do."""

import contextlib
import gzip
import random
import struct
import subprocess
import sys
import time
import tracemalloc
import zlib
from itertools import pairwise

import lz4.frame
import pytest
import snappy
import zstandard
from support.rows import every_row

from aiokafkawire.errors import ConfigError, CorruptBatch
from aiokafkawire.records.compression import Codec, check_level, compress, decompress

CODECS = [codec for codec in Codec if codec is not Codec.NONE]
LIMIT = 1 << 24
XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)

CHANCE = random.Random(20240101)
NOISE = CHANCE.randbytes(200_000)
TEXT = b"the quick brown fox jumps over the lazy dog; " * 4000
CONTENTS = {
    "one byte": b"x",
    "a record": b"\x18\x00\x00\x00\x01\x0chello!\x00",
    "text": TEXT,
    "noise": NOISE,
    "both": TEXT + NOISE + TEXT,
    "empty": b"",
}


def inflate(codec: int, data: bytes, limit: int = LIMIT) -> bytes:
    return bytes(decompress(codec, memoryview(data), limit=limit))


def test_codecs_are_found_by_kafkas_names() -> None:
    assert [Codec.parse(name) for name in ("none", "gzip", "snappy", "lz4", "zstd")] == list(Codec)
    for name in ("", "GZIP", "brotli"):
        with pytest.raises(ConfigError, match="one of none, gzip, snappy, lz4, zstd"):
            Codec.parse(name)


@pytest.mark.parametrize("codec", Codec)
@every_row("content", CONTENTS.values())
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_inflating_gives_back_what_was_compressed(
    codec: Codec, content: bytes, kind: type[bytes] | type[bytearray] | type[memoryview]
) -> None:
    packed = compress(codec, kind(content))
    if packed or codec is Codec.NONE:
        assert inflate(codec, packed) == content


@pytest.mark.parametrize(
    ("codec", "levels"),
    [
        (Codec.GZIP, [-1, 1, 9]),
        (Codec.LZ4, [1, 2, 3, 9, 12, 17]),
        (Codec.ZSTD, [-131072, -1, 0, 1, 3, 19, 22]),
    ],
)
def test_every_legal_level_compresses(codec: Codec, levels: list[int]) -> None:
    for level in [*levels, None]:
        check_level(codec, level)
        assert inflate(codec, compress(codec, TEXT, level)) == TEXT


def test_a_higher_level_compresses_better() -> None:
    content = b" ".join(b"%d" % CHANCE.randrange(5000) for _ in range(20_000))
    for codec, levels in ((Codec.GZIP, (1, 9)), (Codec.LZ4, (1, 12)), (Codec.ZSTD, (-100, 1, 19))):
        sizes = [len(compress(codec, content, level)) for level in levels]
        assert all(lower > higher for lower, higher in pairwise(sizes))


def test_kafkas_default_levels() -> None:
    assert compress(Codec.GZIP, TEXT) == compress(Codec.GZIP, TEXT, -1)
    assert compress(Codec.ZSTD, TEXT) == compress(Codec.ZSTD, TEXT, 3)
    assert compress(Codec.LZ4, TEXT) == compress(Codec.LZ4, TEXT, 9) == compress(Codec.LZ4, TEXT, 1)


@pytest.mark.parametrize(
    ("codec", "level", "legal"),
    [
        (Codec.GZIP, 0, "1 to 9, or -1"),
        (Codec.GZIP, 10, "1 to 9, or -1"),
        (Codec.LZ4, 0, "1 to 17"),
        (Codec.LZ4, 18, "1 to 17"),
        (Codec.ZSTD, 23, "-131072 to 22"),
        (Codec.ZSTD, -131073, "-131072 to 22"),
        (Codec.NONE, 1, "has no levels"),
        (Codec.SNAPPY, 1, "has no levels"),
    ],
)
def test_other_levels_are_refused_with_the_legal_ones(codec: Codec, level: int, legal: str) -> None:
    with pytest.raises(ConfigError, match=legal):
        check_level(codec, level)
    with pytest.raises(ConfigError, match=legal):
        compress(codec, b"x", level)


def test_codec_libraries_load_on_first_use() -> None:
    program = (
        "import sys, aiokafkawire.records.batch\n"
        "loaded = {'lz4', 'snappy', 'cramjam', 'zstandard'} & set(sys.modules)\n"
        "sys.exit(f'{loaded} loaded' if loaded else 0)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# --- the framing that Kafka's own classes expect ---------------------------------------------------------------


def test_lz4_frames_are_such_as_kafka_reads() -> None:
    frame = lz4.frame.get_frame_info(compress(Codec.LZ4, TEXT))
    assert not frame["block_linked"]
    assert not frame["content_checksum"]
    assert not frame["content_size"]
    assert frame["block_size"] == 65536


def test_snappy_is_framed_in_blocks_of_32_kib() -> None:
    packed = compress(Codec.SNAPPY, NOISE[:80_000])
    assert packed.startswith(XERIAL)
    position, sizes = len(XERIAL), []
    while position < len(packed):
        (length,) = struct.unpack_from(">i", packed, position)
        sizes.append(len(snappy.uncompress(packed[position + 4 : position + 4 + length])))
        position += 4 + length
    assert sizes == [32768, 32768, 80_000 - 65536]


def test_snappy_without_framing_is_read() -> None:
    assert inflate(Codec.SNAPPY, snappy.compress(TEXT)) == TEXT


def several(codec: Codec) -> bytes:
    return b"".join(compress(codec, part) for part in (b"one ", TEXT, b"three"))


@pytest.mark.parametrize("codec", CODECS)
def test_frames_that_follow_one_another_are_read_as_one(codec: Codec) -> None:
    assert inflate(codec, several(codec)) == b"one " + TEXT + b"three"


@pytest.mark.slow
def test_zstd_frames_of_all_shapes_are_read() -> None:
    for parameters in (
        zstandard.ZstdCompressionParameters(write_checksum=True),
        zstandard.ZstdCompressionParameters(write_content_size=False),
        zstandard.ZstdCompressionParameters.from_level(22),
    ):
        compressor = zstandard.ZstdCompressor(compression_params=parameters)
        for content in (*CONTENTS.values(), bytes(1_000_000)):
            assert inflate(Codec.ZSTD, compressor.compress(content)) == content
            stream = compressor.compressobj()  # without a content size, and with the level's whole window
            assert inflate(Codec.ZSTD, stream.compress(content) + stream.flush()) == content


def test_zstd_skippable_frames_are_skipped() -> None:
    skippable = struct.pack("<II", 0x184D2A57, 3) + b"abc"
    frame = compress(Codec.ZSTD, b"content")
    assert inflate(Codec.ZSTD, skippable + frame + skippable) == b"content"
    with pytest.raises(CorruptBatch):
        inflate(Codec.ZSTD, frame + skippable[:-1])


# --- damage --------------------------------------------------------------------------------------------------


def test_an_unknown_codec_is_corrupt() -> None:
    for codec in (5, 6, 7):
        with pytest.raises(CorruptBatch, match=f"unknown compression codec {codec}"):
            inflate(codec, b"x")


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("content", [CONTENTS["a record"], TEXT, NOISE], ids=["short", "text", "noise"])
def test_every_cut_is_noticed(codec: Codec, content: bytes) -> None:
    packed = compress(codec, content)
    for end in {*range(min(len(packed), 200)), *range(0, len(packed), 997), *range(len(packed) - 20, len(packed))}:
        if codec is Codec.SNAPPY and packed[:end] == XERIAL:
            continue  # no blocks at all: nothing compressed
        try:
            cut = inflate(codec, packed[: max(end, 0)])
        except CorruptBatch:
            continue
        # A xerial stream has no end mark; cut between blocks it is shorter, and the batch's own bounds must tell.
        assert codec is Codec.SNAPPY
        assert len(cut) % 32768 == 0
        assert content.startswith(cut)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("garbage", [b"\0", b"garbage", b"\0" * 40, NOISE[:5000]], ids=["nul", "word", "nuls", "noise"])
def test_garbage_behind_the_end_is_noticed(codec: Codec, garbage: bytes) -> None:
    with pytest.raises(CorruptBatch):
        inflate(codec, compress(codec, TEXT) + garbage)


@pytest.mark.parametrize("codec", CODECS)
def test_flipped_bytes_give_a_result_or_corrupt_batch(codec: Codec) -> None:
    chance = random.Random(codec)
    packed = compress(codec, TEXT[:3000] + NOISE[:300])
    for _ in range(1500):
        damaged = bytearray(packed)
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.randrange(min(len(damaged), chance.choice((20, 100, 10_000))))] = chance.randrange(256)
        try:
            result = inflate(codec, bytes(damaged), limit=100_000)
        except CorruptBatch:
            continue
        assert len(result) <= 100_000


@pytest.mark.parametrize("codec", CODECS)
def test_noise_gives_a_result_or_corrupt_batch(codec: Codec) -> None:
    magics = {
        Codec.GZIP: b"\x1f\x8b\x08\0",
        Codec.SNAPPY: XERIAL,
        Codec.LZ4: lz4.frame.compress(b"")[:6],
        Codec.ZSTD: b"\x28\xb5\x2f\xfd",
    }
    chance = random.Random(codec)
    for _ in range(1000):
        noise = chance.randbytes(chance.randrange(60))
        for data in (noise, magics[codec] + noise):
            with contextlib.suppress(CorruptBatch):
                assert len(inflate(codec, data, limit=100_000)) <= 100_000


# --- bounds --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", Codec)
def test_the_limit_is_exact(codec: Codec) -> None:
    for content in (b"x" * 1000, TEXT, bytes(300_000)):
        packed = compress(codec, content)
        assert inflate(codec, packed, limit=len(content)) == content
        with pytest.raises(CorruptBatch, match="more than the limit"):
            inflate(codec, packed, limit=len(content) - 1)


def bomb(codec: Codec, size: int) -> bytes:
    match codec:
        case Codec.GZIP:
            return zlib.compress(bytes(size), 9, wbits=31)
        case Codec.SNAPPY:
            return bytes(snappy.compress(bytes(size)))
        case Codec.LZ4:
            return bytes(lz4.frame.compress(bytes(size), block_size=lz4.frame.BLOCKSIZE_MAX4MB))
        case _:
            return zstandard.ZstdCompressor(level=19).compress(bytes(size))


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_takes_no_more_memory_than_the_limit(codec: Codec) -> None:
    size, limit = 1 << 27, 1 << 20
    packed = memoryview(bomb(codec, size))
    inflate(codec, compress(codec, b"x"))  # libraries loaded
    tracemalloc.start()
    try:
        with pytest.raises(CorruptBatch, match="more than the limit"):
            decompress(codec, packed, limit=limit)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * limit


def test_a_snappy_block_that_only_claims_much_is_refused_unread() -> None:
    claims = b"\xff\xff\xff\xff\x0f" + b"\0" * 10
    for data in (claims, XERIAL + struct.pack(">i", len(claims)) + claims):
        with pytest.raises(CorruptBatch, match="more than the limit"):
            inflate(Codec.SNAPPY, data)


def test_snappy_blocks_add_up_to_the_limit() -> None:
    block = snappy.compress(bytes(30_000))
    framed = struct.pack(">i", len(block)) + block
    assert inflate(Codec.SNAPPY, XERIAL + framed * 3, limit=90_000) == bytes(90_000)
    with pytest.raises(CorruptBatch, match="more than the limit"):
        inflate(Codec.SNAPPY, XERIAL + framed * 4, limit=90_000)


@pytest.mark.measures_process
@pytest.mark.slow
def test_hundreds_of_thousands_of_empty_members_are_walked_quickly() -> None:
    members = {
        Codec.GZIP: gzip.compress(b"", mtime=0),
        Codec.LZ4: lz4.frame.compress(b"", store_size=False),
        Codec.ZSTD: zstandard.ZstdCompressor().compress(b""),
        Codec.SNAPPY: XERIAL,
    }
    began = time.process_time()
    for codec, member in members.items():
        assert inflate(codec, member * (2_000_000 // len(member))) == b""
    assert time.process_time() - began < 15  # it takes one second, or with a copy of the rest for each member far more
