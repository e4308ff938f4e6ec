"""Whatever a fetched buffer holds: records or CorruptBatch, and no more memory than the limit on inflating allows.

Data-driven over golden buffers of all formats and codecs; test_batch.py has the damage that is made by hand.
"""

import tracemalloc
from collections.abc import Iterator
from struct import pack, pack_into

import pytest
from fuzz.seeds import seeds
from fuzz.targets import INFLATE_LIMIT, read_batches, read_records, records
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.mutating import mutated_bytes
from support.vectors import vectors

from aiokafkawire.errors import CorruptBatch
from aiokafkawire.records import layout
from aiokafkawire.records.batch import AnyReader, BatchBuilder, RecordBatch, split
from aiokafkawire.records.compression import Codec

HOSTILE = (
    b"\x7f\xff\xff\xff",
    b"\x80\0\0\0",
    b"\xff\xff\xff\xfe",
    b"\0\1\0\0",
    b"\xfe\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x0f",
    b"\xff" * 9 + b"\1",
)
"""Lengths, counts and deltas that lie: int32, varints, a varlong."""


def of_every_kind() -> dict[str, bytes]:
    """Of each mixture of formats and codecs the shortest golden buffer and a middling one."""
    kinds: dict[object, list[tuple[int, str, bytes]]] = {}
    for vector in vectors("batches"):
        data = bytes.fromhex(vector["hex"])
        kind = frozenset((batch["magic"], batch["codec"]) for batch in vector["decoded"]["batches"])
        kinds.setdefault(kind, []).append((len(data), vector["spec"]["id"], data))
    pairs = [(min(found), sorted(found)[len(found) // 2]) for found in kinds.values()]
    return {name: data for pair in pairs for _, name, data in pair}


GOLDEN = of_every_kind()
EVERY_KIND = pytest.mark.parametrize("data", GOLDEN.values(), ids=GOLDEN)
PLAIN = [data for name, data in GOLDEN.items() if name.startswith("m2-none")]


def contents(data: bytes) -> list[object]:
    """The records up to the first damage, without the offsets, which no checksum covers."""
    return [record[1:] for record in read_records(data)[0]]


def damaged(data: bytes) -> Iterator[bytes]:
    """The buffer with every byte changed, in a few ways."""
    for position, byte in enumerate(data):
        for other in {0, 0x7F, 0xFF, byte ^ 1, byte ^ 0x80} - {byte}:
            yield data[:position] + bytes((other,)) + data[position + 1 :]


def test_every_kind_is_here() -> None:
    batches = [batch for data in GOLDEN.values() for batch in split(memoryview(data))]
    seen = {(batch.header.magic, Codec(batch.header.codec)) for batch in batches}
    assert seen == {(magic, codec) for magic in range(3) for codec in Codec} - {(0, Codec.ZSTD), (1, Codec.ZSTD)}


def test_the_fuzzer_begins_with_what_its_target_reads() -> None:
    taken = [records(seed) for seed in seeds("records")]
    assert len(taken) - sum(taken) == 3  # values larger than the limit, in a few bytes


@EVERY_KIND
def test_a_golden_buffer_is_the_same_with_a_tail_and_cut_short(data: bytes) -> None:
    assert read_batches(data)
    assert read_batches(data, check_crcs=False)


@EVERY_KIND
def test_a_buffer_cut_at_any_byte_is_its_beginning(data: bytes) -> None:
    whole, _ = read_records(data)
    for end in range(len(data)):
        cut, is_damaged = read_records(data[:end])
        assert not is_damaged
        assert cut == whole[: len(cut)]


@EVERY_KIND
def test_no_damaged_byte_changes_what_is_in_a_record(data: bytes) -> None:
    whole = contents(data)
    for other in damaged(data):
        read = contents(other)
        assert read == whole[: len(read)]


@EVERY_KIND
def test_damage_without_checksums_gives_records_or_corrupt_batch(data: bytes) -> None:
    for other in damaged(data):
        read_records(other, check_crcs=False)


@pytest.mark.parametrize("data", [data for data in GOLDEN.values() if len(data) < 300])
def test_lengths_that_lie_cost_no_more_memory_than_the_limit(data: bytes) -> None:
    tracemalloc.start()
    try:
        for position in range(len(data)):
            for lie in HOSTILE:
                read_records(data[:position] + lie + data[position + len(lie) :], check_crcs=False)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * INFLATE_LIMIT


@pytest.mark.parametrize("data", PLAIN)
def test_varints_that_lie_inside_a_record_give_records_or_corrupt_batch(data: bytes) -> None:
    for position in range(layout.HEADER_SIZE, len(data)):
        for lie in HOSTILE:
            for after in (position, position + 1):
                other = bytearray(data[:position] + lie + data[after:])
                pack_into(">i", other, layout.LENGTH_AT, len(other) - layout.LOG_OVERHEAD)
                read_records(bytes(other), check_crcs=False)


def mutated() -> st.SearchStrategy[bytes]:
    """A golden buffer with pieces replaced, left out, repeated or put in."""
    return st.sampled_from(list(GOLDEN.values())).flatmap(lambda data: mutated_bytes(data, HOSTILE))


@settings(max_examples=examples(400), deadline=None, derandomize=True)
@given(mutated(), st.booleans())
def test_mutated_buffers_are_read_the_same_with_a_tail_and_cut_short(data: bytes, check_crcs: bool) -> None:
    read_batches(data, check_crcs=check_crcs)


@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(st.binary(max_size=300))
def test_any_bytes_are_read_the_same_with_a_tail_and_cut_short(data: bytes) -> None:
    read_batches(data, check_crcs=False)


def test_headers_take_no_more_than_fifty_times_their_bytes() -> None:
    count = 20_000
    builder = BatchBuilder(limit=1 << 20)
    builder.append(0, None, None, [("", b"")] * count)
    (batch,) = split(memoryview(builder.build()))
    body = batch.prepare()
    tracemalloc.start()
    try:
        reader: AnyReader[bytes, bytes] = batch.records("t", 0)
        (record,) = reader
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(record.headers) == count
    assert peak < 50 * len(body)


# --- found by the fuzzer, or on the way to it --------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0, 1, (1 << 31) - 1])
def test_an_offset_that_no_fetch_could_follow_is_corrupt(delta: int) -> None:
    builder = BatchBuilder(limit=1000)
    builder.append(0, None, b"v")
    data = bytearray(builder.build())
    most = (1 << 63) - 1
    for base, fits in ((most - delta - 1, True), (most - delta, False), (most, False)):
        data[:8] = pack(">q", base)
        data[23:27] = pack(">i", delta)
        if fits:
            assert RecordBatch.parse(memoryview(data)).header.next_offset == most
        else:
            with pytest.raises(CorruptBatch, match=f"last offset delta {delta}"):
                RecordBatch.parse(memoryview(data))
