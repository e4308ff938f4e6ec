"""The command ``aiokafkawire top`` in a terminal: it ends by a key or a signal, and leaves the terminal as it was."""

from __future__ import annotations

import os
import select
import signal
import struct
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from support.patience import PATIENCE
from support.shell import shell_command

if TYPE_CHECKING:
    from aiokafkawire.testing.background import BackgroundBroker

fcntl = pytest.importorskip("fcntl")
pty = pytest.importorskip("pty")
termios = pytest.importorskip("termios")

ALTERNATE, NORMAL = b"\x1b[?1049h", b"\x1b[?1049l"


def read_until(master: int, expected: bytes) -> bytes:
    """Read what the command writes to the terminal, until it has written this."""
    found, end = b"", time.monotonic() + PATIENCE
    while expected not in found:
        assert time.monotonic() < end, found[-2000:]
        if select.select([master], [], [], 0.1)[0]:
            found += os.read(master, 65536)
    return found


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        pytest.param("q", 0, marks=pytest.mark.thorough),
        pytest.param("\x03", 0, marks=pytest.mark.thorough),
        pytest.param("SIGINT", 130, marks=pytest.mark.thorough),
        ("SIGTERM", 143),
        pytest.param("SIGHUP", 129, marks=pytest.mark.thorough),
    ],
)
def test_it_leaves_the_terminal_as_it_was(kafka_broker: BackgroundBroker, ending: str, status: int) -> None:
    kafka_broker.create_topic("orders")
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    before = termios.tcgetattr(slave)
    command = [*shell_command("top"), "-b", kafka_broker.bootstrap, "--interval", "0.5"]
    streams = {"stdin": slave, "stdout": slave, "stderr": slave}
    with subprocess.Popen(
        command, env=os.environ | {"TERM": "xterm-256color"}, start_new_session=True, **streams
    ) as top:
        try:
            shown = read_until(master, b"orders")
            assert ALTERNATE in shown
            if ending.startswith("SIG"):
                top.send_signal(getattr(signal, ending))
            else:
                os.write(master, ending.encode())
            read_until(master, NORMAL)
            assert top.wait(PATIENCE) == status
        finally:
            top.kill()
    assert termios.tcgetattr(slave) == before
    os.close(master)
    os.close(slave)
