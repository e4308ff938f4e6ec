"""Disks of brokers that can be made slow: a library of C in their processes delays what these write to their files."""

import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SOURCE: Final = Path(__file__).with_suffix(".c")


def missing_compiler() -> str | None:
    """Return what this machine lacks for a slow disk, or None."""
    there = sys.platform == "linux" and shutil.which("gcc")
    return None if there else "a slow disk needs Linux, and gcc: on Debian, apt-get install gcc libc6-dev"


@dataclass(frozen=True)
class SlowDisks:
    """The library, and a folder for the data of brokers and for the files that say whose disk is slow."""

    library: Path
    folder: Path

    def environment(self, node: int, data: Path) -> Mapping[str, str]:
        """Return the variables of a broker whose writes under the folder `data` can be made slow."""
        return {
            "LD_PRELOAD": str(self.library),
            "SLOW_DISK_FOLDER": str(data.resolve()),
            "SLOW_DISK_CALLS": str(self._calls(node)),
        }

    def slow(self, node: int) -> None:
        """Let each write and sync of a broker's data take 200 to 500 ms more, from now on."""
        self._calls(node).touch()

    def heal(self, node: int) -> Counter[str]:
        """Let them take as long as usual, and return the functions that were slow, with their calls."""
        calls = self._calls(node)
        names = calls.read_text().split()
        calls.unlink()
        return Counter(names)

    def _calls(self, node: int) -> Path:
        return self.folder / f"slow-calls-{node}"


@contextmanager
def slow_disks() -> Iterator[SlowDisks | None]:
    """Compile the library, and make a folder until the ``with`` block ends; yield None where there is no compiler."""
    if missing_compiler():
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="aiokafkawire-slow-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        library = folder / "slow_disk.so"
        command = ["gcc", "-O2", "-shared", "-fPIC", "-o", str(library), str(_SOURCE), "-ldl"]
        subprocess.run(command, check=True)
        yield SlowDisks(library, folder)
