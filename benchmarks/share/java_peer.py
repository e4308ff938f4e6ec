"""Measures the share consumer of Java, in a process of its own that prints the figures."""

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.clients.measurement import Job, read_job
from benchmarks.java import compiled
from benchmarks.share.group import begin_at_earliest

_PROGRAM = Path(__file__).with_name("SharePoll.java")
_MODES = {"share_explicit": "explicit", "share_implicit": "implicit"}


def _measure(job: Job, mode: str) -> None:
    """Run the program to its end; its last line has the figures."""
    with tempfile.TemporaryDirectory() as folder:
        command = compiled(_PROGRAM, Path(folder))
        done = subprocess.run([*command, job.as_argument(), job.group_id, mode], check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)


WAYS = {way: partial(_measure, mode=mode) for way, mode in _MODES.items()}


def main() -> None:
    job = read_job()
    begin_at_earliest(job)
    WAYS[job.way](job)


if __name__ == "__main__":
    main()
