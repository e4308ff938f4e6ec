"""A frame while it arrives: both twins give the same bytes, however they come, and neither is fooled."""

import platform
import subprocess
import sys
from sysconfig import get_config_var
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.patience import PATIENCE

from aiokafkawire.network import _implementation, _pure
from aiokafkawire.records.batch import IMPLEMENTATION

COMPILED = IMPLEMENTATION == "cython"
TWINS = [pytest.param(_pure, id="pure")]
if COMPILED:
    from aiokafkawire.network import _hot

    TWINS.append(pytest.param(_hot, id="cython"))

every_twin = pytest.mark.parametrize("twin", TWINS)
compiled = pytest.mark.skipif(not COMPILED, reason="the compiled record loop is not in use here")


def test_the_compiled_frame_goes_with_the_compiled_records() -> None:
    assert _implementation.Frame.__module__ == (
        "aiokafkawire.network._hot" if COMPILED else "aiokafkawire.network._pure"
    )


def gathered(made: Any, rest: bytes, steps: list[int]) -> bytes:
    """The frame, of bytes that come so many at a time; beyond the steps as many as there is room for."""
    taken = iter(steps)
    while True:
        room = made.buffer()
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
    assert len(made.buffer()) == 7


@every_twin
def test_a_large_frame_takes_room_as_it_comes(twin: ModuleType) -> None:
    assert len(twin.Frame(1 << 27, b"abc").buffer()) <= 64 * 1024


@compiled
def test_a_room_that_is_still_held_keeps_its_bytes() -> None:
    made = _hot.Frame(5000, b"")
    room = made.buffer()
    assert len(room) == 4096
    made.filled(4096)
    with pytest.raises(BufferError, match="not released"):
        made.buffer()
    del room
    last = made.buffer()
    whole = made.filled(len(last))
    assert whole is not None
    last[:] = b"x" * len(last)  # nobody would; but the memory is there
    assert len(whole) == 5000


@compiled
@pytest.mark.parametrize("count", [-1, 11, 1 << 40])
def test_more_than_there_is_room_for_is_refused(count: int) -> None:
    made = _hot.Frame(10, b"")
    with pytest.raises(ValueError, match="more bytes"):
        made.filled(count)
    with pytest.raises(ValueError, match="shorter than the frame"):
        _hot.Frame(3, b"abc")


def large(size: int, fill: bytes) -> bytes:
    return gathered(_hot.Frame(size, fill), fill * (size - 1), [])


@compiled
@pytest.mark.skipif(
    bool(get_config_var("Py_GIL_DISABLED")), reason="without the GIL nobody knows whether others have a frame"
)
def test_a_large_frame_that_nobody_has_any_more_becomes_the_next() -> None:
    # Of those that are free the smallest that will do is taken, so it is the same one again and again.
    where = id(large(3_000_000, b"a"))
    assert _hot.bytes_kept() >= 3_000_000
    for fill in (b"b", b"c"):
        other = bytes(3_000_000)  # would have the memory of one that was given back
        again = large(3_000_000, fill)
        assert id(again) == where
        assert (again, len(again)) == (fill * 3_000_000, 3_000_000)
        assert hash(again) == hash(fill * 3_000_000)
        del again, other


@compiled
def test_what_somebody_has_is_left_alone() -> None:
    views = []
    for number in range(12):
        fill = b"%c" % (97 + number)
        views.append((fill, memoryview(large(1_000_000, fill))[500_000:]))
    assert all(view == fill * 500_000 for fill, view in views)


@compiled
def test_of_a_connection_that_ends_in_the_middle_of_a_frame_nothing_is_left() -> None:
    large(2_000_000, b"a")
    cut = _hot.Frame(2_000_000, b"b")
    cut.buffer()[:5] = b"bbbbb"
    cut.filled(5)
    del cut
    assert large(2_000_000, b"c") == b"c" * 2_000_000


@compiled
@given(st.lists(st.tuples(st.integers(200_000, 9_000_000), st.integers(0, 9)), max_size=40))
@settings(max_examples=examples(30), deadline=None)
def test_no_more_is_kept_than_is_said(wanted: list[tuple[int, int]]) -> None:
    held: dict[int, tuple[int, bytes]] = {}
    for size, place in wanted:
        held[place] = size, large(size, b"%d" % place)
        assert _hot.bytes_kept() <= 32 * 1024 * 1024
    for place, (size, data) in held.items():
        assert len(data) == size
        assert data.count(b"%d" % place) == size


_VALUES_COME_AND_GO = """
import resource
import aiokafkawire.network._hot

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

for round in range(60):
    if round == 10:
        before = faults()
    values = [bytes(1000) for _ in range(1000)]
    del values
print(faults() - before)
"""


@pytest.mark.measures_process
@compiled
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="about the allocator of glibc")
def test_memory_of_values_is_reused_and_not_taken_from_the_system_again() -> None:
    run = subprocess.run(
        [sys.executable, "-c", _VALUES_COME_AND_GO], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert int(run.stdout) < 1000  # 50 rounds of 1 MB: more than 10,000 pages if each round takes them anew
