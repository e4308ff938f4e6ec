"""The command line in this process, with what it prints, and as a process of its own."""

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from aiokafkawire.cli.main import main

__all__ = ("Shell", "shell_command", "start_shell")


class Shell:
    """Runs commands in this process against one cluster; ``err`` is what the last one printed to standard error."""

    def __init__(self, bootstrap: str, capture: "pytest.CaptureFixture[bytes]") -> None:
        self._bootstrap, self._capture = bootstrap, capture
        self.err = ""

    def __call__(self, *argv: str, status: int = 0) -> bytes:
        """Run a command, and return what it prints to standard output; its exit status must be ``status``."""
        self._capture.readouterr()
        try:
            ended: Any = main([*argv, "-b", self._bootstrap])
        except SystemExit as left:
            ended = left.code
        out, err = self._capture.readouterr()
        self.err = err.decode()
        assert ended == status, (ended, self.err)
        return out

    def lines(self, *argv: str) -> list[str]:
        """Run a command that succeeds, and return the lines that it prints."""
        return self(*argv).decode().splitlines()


def shell_command(*argv: str) -> Sequence[str]:
    """Return the command line that runs our command as a process of its own; every warning is an error there."""
    return (sys.executable, "-W", "error", "-m", "aiokafkawire", *argv)


def start_shell(*argv: str, bootstrap: str, **options: Any) -> "subprocess.Popen[bytes]":
    """Start a command as a process whose streams are pipes."""
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    environment = os.environ | {"AIOKAFKAWIRE_BOOTSTRAP": bootstrap}
    process: subprocess.Popen[bytes] = subprocess.Popen(shell_command(*argv), env=environment, **(pipes | options))
    return process
