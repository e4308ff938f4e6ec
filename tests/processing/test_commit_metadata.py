"""What the metadata of a commit says about finished records, and what it makes of texts that others have written."""

from base64 import b64encode
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokafkawire.processing.commit_metadata import (
    MAX_METADATA_BYTES,
    FinishedRecords,
    OffsetRange,
    decode_metadata,
    encode_metadata,
)

OFFSETS = st.integers(0, 2**62)


@st.composite
def ranges(draw: st.DrawFn, largest: int = 2**20, most: int = 40) -> tuple[int, list[OffsetRange]]:
    """A committed offset, and finished ranges from there on."""
    offset = end = draw(OFFSETS)
    found: list[OffsetRange] = []
    for number in range(draw(st.integers(0, most))):
        start = end + draw(st.integers(0 if number == 0 else 1, largest))
        end = start + draw(st.integers(1, largest))
        found.append((start, end))
    return offset, found


@given(ranges(), st.none() | st.integers(0, 2**31 - 1))
def test_what_is_encoded_is_decoded(given_ranges: tuple[int, list[OffsetRange]], leader_epoch: int | None) -> None:
    offset, finished = given_ranges
    text = encode_metadata(offset, finished, leader_epoch=leader_epoch)
    expected = FinishedRecords(offset, finished, leader_epoch) if finished else FinishedRecords(offset)
    found = decode_metadata(offset, text)
    assert (list(found.ranges), found.leader_epoch, found.offset) == (
        list(expected.ranges),
        expected.leader_epoch,
        offset,
    )


@given(ranges(), st.integers(0, 300))
def test_a_limit_leaves_out_the_last_ranges_alone(given_ranges: tuple[int, list[OffsetRange]], limit: int) -> None:
    offset, finished = given_ranges
    text = encode_metadata(offset, finished, limit)
    assert len(text) <= limit
    kept = list(decode_metadata(offset, text).ranges)
    assert kept == finished[: len(kept)]


def test_a_thousand_ranges_of_neighbours_fit() -> None:
    finished = [(number, number + 1) for number in range(1, 3000, 2)][:1500]
    text = encode_metadata(0, finished)
    assert len(text) <= MAX_METADATA_BYTES
    assert len(decode_metadata(0, text).ranges) == 1500


@given(ranges(most=5), OFFSETS)
def test_the_text_counts_for_its_own_offset_alone(given_ranges: tuple[int, list[OffsetRange]], other: int) -> None:
    offset, finished = given_ranges
    found = decode_metadata(other, encode_metadata(offset, finished))
    assert list(found.ranges) == (finished if other == offset else [])


@given(OFFSETS, st.text() | st.text().map("akw2:".__add__) | st.binary(max_size=30).map(
    lambda data: "akw2:" + b64encode(data).decode()))  # fmt: skip
def test_texts_of_others_say_nothing_or_something_sound(offset: int, text: str) -> None:
    found = decode_metadata(offset, text).ranges
    assert all(offset <= start < stop for start, stop in found)
    assert all(before[1] < after[0] for before, after in pairwise(found))


@pytest.mark.parametrize(
    "numbers",
    [
        b"\x05",
        b"\x05\x00\x01",
        b"\x06\x00\x01\x01",
        b"\x05\x00\x01\x00",
        b"\x05\x00\x01\x01\x00\x01",
        b"\x05\x00\x01\x81",
    ],
)
def test_damaged_texts_say_nothing(numbers: bytes) -> None:
    assert decode_metadata(5, "akw2:" + b64encode(numbers).decode()) == FinishedRecords(5)
