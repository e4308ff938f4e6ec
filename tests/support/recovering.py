"""The programs that measure recoveries, run with our client alone, and a clock for their schedules."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

__all__ = ("JumpingClock", "check", "run")

_ROOT: Final = Path(__file__).parents[2]
_FAULTS: Final = os.environ.get("AIOKAFKAWIRE_FAULTS", "1")


def run(program: str, tmp_path: Path, kind: str, *options: str) -> list[dict[str, Any]]:
    """The figures of our producer and of our reader. What the program tells is shown if the test fails."""
    result = tmp_path / "result"
    command = [sys.executable, "-m", program, "--clients", "ours", "--json", str(result)]
    subprocess.run([*command, "--kinds", kind, "--faults", _FAULTS, *options], check=False, cwd=_ROOT)
    rows: list[dict[str, Any]] = json.loads(result.read_text())["rows"]
    return rows


def check(rows: list[dict[str, Any]]) -> None:
    """Nothing was lost, doubled, disordered or stuck."""
    producer, reader = rows
    assert (producer["problems"], producer["wrongs"], producer["errors"]) == ([], {}, {})
    # A reader may be told what is wrong, if only by errors of the client, on which it goes on.
    assert (reader["problems"], reader["wrongs"]) == ([], {})
    for row in rows:
        assert all(fault["caught_up"] is not None for fault in row["faults"])


class JumpingClock:
    """Jumps to the end of every sleep. It begins at 100 s."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
