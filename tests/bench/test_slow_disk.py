"""A slow disk delays writes and syncs of files under its folder, of these alone, and no longer than it is slow."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent.parent.parent))

from benchmarks.broker_faults.cluster import Place
from benchmarks.broker_faults.faults import slow_disk
from benchmarks.broker_faults.slow_disk import SlowDisks, missing_compiler, slow_disks

_WRITES = """
import mmap, os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.write(file, b"a")
os.pwrite(file, b"b", 1)
os.writev(file, [b"c", b"d"])
os.ftruncate(file, 4096)
os.fsync(file)
os.fdatasync(file)
with mmap.mmap(file, 4096) as mapped:
    mapped.flush()
os.lseek(file, 0, os.SEEK_SET)
assert os.read(file, 4) == b"acd\\0"
"""
_CALLS = Counter(["write", "pwrite", "writev", "fsync", "fdatasync", "msync"])
_SHORTEST = 0.2


@pytest.fixture
def disks() -> Iterator[SlowDisks]:
    with slow_disks() as found:
        if found is None:
            pytest.skip(f"NOT TESTED: {missing_compiler()}")
        yield found


def write(disks: SlowDisks, file: Path) -> float:
    """Write a file in every way, in the process of a broker with data under "data"; return the seconds it takes."""
    file.parent.mkdir(exist_ok=True)
    began = time.monotonic()
    environment = os.environ | disks.environment(1, disks.folder / "data")
    subprocess.run([sys.executable, "-c", _WRITES, str(file)], check=True, env=environment)
    return time.monotonic() - began


def test_each_write_and_sync_under_the_folder_is_delayed(disks: SlowDisks) -> None:
    disks.slow(1)
    assert write(disks, disks.folder / "data" / "log") >= _CALLS.total() * _SHORTEST
    assert disks.heal(1) == _CALLS


@pytest.mark.parametrize("folder", ["data-of-another", "other"])
def test_files_elsewhere_are_as_fast_as_usual(disks: SlowDisks, folder: str) -> None:
    disks.slow(1)
    write(disks, disks.folder / folder / "log")
    assert disks.heal(1) == Counter()


def test_a_disk_is_slow_from_slow_to_heal_and_no_other_is(disks: SlowDisks) -> None:
    log = disks.folder / "data" / "log"
    disks.slow(2)
    write(disks, log)
    disks.slow(1)
    assert disks.heal(1) == Counter()
    write(disks, log)
    assert disks.heal(2) == Counter()


def test_a_fault_without_a_slow_call_is_an_error(disks: SlowDisks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Place, "busiest", lambda _: 2)
    cluster: Any = None
    fault = slow_disk(Place(cluster, [], slow_disks=disks))
    next(fault)
    with pytest.raises(RuntimeError, match="the disk of broker 2 was not slow"):
        next(fault)
