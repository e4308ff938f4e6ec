"""Whatever bytes come: a decoder gives a message or a WireError, soon, and without much memory."""

import time
import tracemalloc
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.shapes import Shapes, Tagged, with_tags
from support.vectors import declared_messages, vectors

from aiokafkawire.errors import WireError
from aiokafkawire.protocol.compiler import decode, encode
from aiokafkawire.protocol.schema import Message

MESSAGES: dict[str, type[Message]] = {**declared_messages(), "Shapes": Shapes, "Tagged": Tagged}
VERSIONS = [(cls, version) for cls in MESSAGES.values() for version in range(cls.versions.first, cls.versions.last + 1)]


def longest_vectors() -> dict[tuple[str, int], bytes]:
    """The longest golden message of each class and version, up to a length that keeps the tests short."""
    found = {("Shapes", version): encode(Shapes(), version) for version in range(3)}
    found["Tagged", 0] = encode(with_tags(Tagged(fifth=1), {1: b"a"}), 0)
    for name in ("request", "response", "header"):
        for vector in vectors(name):
            key, data = (vector["name"], vector["version"]), bytes.fromhex(vector["hex"])
            if vector["name"] in MESSAGES and len(found.get(key, b"")) <= len(data) < 600:
                found[key] = data
    return found


GOLDEN = longest_vectors()
BY_NAME = pytest.mark.parametrize("name", sorted(MESSAGES))


def golden(name: str) -> list[tuple[int, bytes]]:
    return [(version, data) for (one, version), data in GOLDEN.items() if one == name]


def decoded_or_refused(cls: type[Message], version: int, data: bytes) -> bool:
    try:
        decode(cls, version, data)
    except WireError:
        return False
    return True


def test_there_is_a_golden_message_for_every_decoder() -> None:
    assert set(GOLDEN) == {(cls.__name__, version) for cls, version in VERSIONS}


@BY_NAME
def test_a_message_cut_short_at_any_byte_is_refused(name: str) -> None:
    for version, data in golden(name):
        assert decoded_or_refused(MESSAGES[name], version, data)
        for end in range(len(data)):
            assert not decoded_or_refused(MESSAGES[name], version, data[:end]), end


@BY_NAME
def test_a_byte_too_many_is_refused(name: str) -> None:
    for version, data in golden(name):
        with pytest.raises(WireError, match="1 bytes left over"):
            decode(MESSAGES[name], version, data + b"\0")


@BY_NAME
def test_lengths_and_counts_beyond_the_message_cost_neither_time_nor_memory(name: str) -> None:
    cls, random = MESSAGES[name], Random(5)
    hostile = (
        b"\x7f\xff\xff\xff",
        b"\x80\0\0\0",
        b"\0\x7f\xff\xff",
        b"\xff\xff\xff\xff\x07",
        b"\xff\xff\x03",
        b"\x7f\xff",
    )
    for version, data in golden(name):
        decode(cls, version, data)
        places = random.sample(range(len(data)), min(len(data), 12))
        started = time.perf_counter()
        tracemalloc.start()
        try:
            for place in places:
                for lie in hostile:
                    decoded_or_refused(cls, version, data[:place] + lie + data[place + len(lie) :])
                    decoded_or_refused(cls, version, data[:place] + lie)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 1_000_000
        assert time.perf_counter() - started < 5


@BY_NAME
def test_random_bytes_are_read_or_refused(name: str) -> None:
    random = Random(7)
    for version, _ in golden(name):
        for size in range(120):
            decoded_or_refused(MESSAGES[name], version, random.randbytes(size))
            # Small numbers make more sense as lengths and counts: these get further.
            decoded_or_refused(MESSAGES[name], version, bytes(random.choices((0, 0, 0, 1, 1, 2, 3, 255), k=size)))


@st.composite
def mutated(draw: st.DrawFn) -> tuple[type[Message], int, bytes]:
    """A golden message with pieces replaced, left out, repeated or put in."""
    name, version = draw(st.sampled_from(sorted(GOLDEN)))
    data = GOLDEN[name, version]
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 8)))
        piece = draw(st.one_of(st.binary(max_size=8), st.sampled_from((b"\xff" * 4, b"\0" * 8, data[start:end] * 2))))
        data = data[:start] + piece + data[end:]
    return MESSAGES[name], version, data


@settings(max_examples=1000, deadline=None, derandomize=True)
@given(mutated())
def test_mutated_messages_are_read_or_refused(case: tuple[type[Message], int, bytes]) -> None:
    decoded_or_refused(*case)


@settings(max_examples=500, deadline=None, derandomize=True)
@given(st.sampled_from(VERSIONS), st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(decoder: tuple[type[Message], int], data: bytes) -> None:
    decoded_or_refused(*decoder, data)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(mutated())
def test_what_can_be_read_can_be_written_and_read_again(case: tuple[type[Message], int, bytes]) -> None:
    cls, version, data = case
    try:
        read = decode(cls, version, data)
    except WireError:
        return
    again = encode(read, version)
    # Not the very bytes: a default among the tagged fields is left out, and NaN differs from itself.
    assert encode(decode(cls, version, again), version) == again
