"""`aiokafkawire broker` as a process, for clients that others have written."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from secrets import token_hex

import pytest
from support.patience import PATIENCE


@contextmanager
def running(*argv: str) -> Iterator[str]:
    """The command, told to serve; its bootstrap address."""
    command = [sys.executable, "-W", "error", "-m", "aiokafkawire", "broker", "--port", "0", *argv]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            told = re.search(r" at (\S+), ", process.stdout.readline())
            assert told is not None, process.stderr.read()
            yield told[1]
            process.terminate()
            # A fault of the broker's own would be here, with its traceback.
            assert "Traceback" not in process.stderr.read()
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """A broker of one node, shared by the tests of a module."""
    with running("--partitions", "3") as address:
        yield address


@pytest.fixture
def name() -> str:
    """For a topic, a group or a transactional id of a test's own."""
    return f"test-{token_hex(4)}"
