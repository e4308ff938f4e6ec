"""A frame while it arrives: both twins give the same bytes, however they come, and neither is fooled."""

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokafkawire.network import _pure, frame
from aiokafkawire.records.batch import IMPLEMENTATION

COMPILED = IMPLEMENTATION == "cython"
TWINS = [pytest.param(_pure, id="pure")]
if COMPILED:
    from aiokafkawire.network import _hot

    TWINS.append(pytest.param(_hot, id="cython"))

every_twin = pytest.mark.parametrize("twin", TWINS)


def test_the_compiled_frame_goes_with_the_compiled_records() -> None:
    assert frame.Frame.__module__ == ("aiokafkawire.network._hot" if COMPILED else "aiokafkawire.network._pure")


def gathered(made: Any, rest: bytes, steps: list[int]) -> bytes:
    """The frame, of bytes that come so many at a time; beyond the steps as many as there is room for."""
    taken = iter(steps)
    while True:
        room = made.room()
        count = min(len(room), next(taken, len(room)))
        room[:count], rest = rest[:count], rest[count:]
        del room
        whole = made.filled(count)
        if whole is not None:
            assert isinstance(whole, bytes)
            assert rest == b""
            return whole


@every_twin
@given(st.binary(min_size=1, max_size=300), st.data(), st.integers(0, 200_000))
def test_it_is_what_came_however_it_came(twin: ModuleType, data: bytes, more: st.DataObject, length: int) -> None:
    whole = data + bytes(length) + data
    cut = more.draw(st.integers(0, min(len(whole) - 1, 20_000)))
    steps = more.draw(st.lists(st.integers(1, 9000), max_size=20))
    assert gathered(twin.Frame(len(whole), whole[:cut]), whole[cut:], steps) == whole


@every_twin
def test_the_room_ends_with_the_frame(twin: ModuleType) -> None:
    made = twin.Frame(10, b"abc")
    assert len(made.room()) == 7


@every_twin
def test_a_large_frame_takes_room_as_it_comes(twin: ModuleType) -> None:
    assert len(twin.Frame(1 << 27, b"abc").room()) <= 64 * 1024


@pytest.mark.skipif(not COMPILED, reason="the compiled record loop is not in use here")
def test_a_room_that_is_still_held_keeps_its_bytes() -> None:
    made = _hot.Frame(5000, b"")
    room = made.room()
    assert len(room) == 4096
    made.filled(4096)
    with pytest.raises(BufferError, match="still held"):
        made.room()
    del room
    last = made.room()
    whole = made.filled(len(last))
    assert whole is not None
    last[:] = b"x" * len(last)  # nobody would; but the memory is there
    assert len(whole) == 5000


@pytest.mark.skipif(not COMPILED, reason="the compiled record loop is not in use here")
@pytest.mark.parametrize("count", [-1, 11, 1 << 40])
def test_more_than_there_is_room_for_is_refused(count: int) -> None:
    made = _hot.Frame(10, b"")
    with pytest.raises(ValueError, match="more bytes"):
        made.filled(count)
    with pytest.raises(ValueError, match="shorter than the frame"):
        _hot.Frame(3, b"abc")
