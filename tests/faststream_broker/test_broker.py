"""FastStream's broker on this client, in a process of its own, for it puts aiokafka's API in place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.patience import PATIENCE

pytest.importorskip("faststream", reason="FastStream is not installed")

SCENARIOS = Path(__file__).with_name("scenarios.py")


@pytest.mark.slow
def test_the_scenarios_pass() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", str(SCENARIOS)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE * 4)
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-2000:]


def test_it_is_refused_after_the_real_aiokafka() -> None:
    pytest.importorskip("aiokafka", reason="aiokafka is not installed")
    code = "import aiokafka, aiokafkawire.faststream"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert "UsageError: aiokafka has been imported already" in run.stderr


def test_it_needs_no_aiokafka() -> None:
    hidden = (
        "import importlib.machinery as m; find = m.PathFinder.find_spec\n"
        "hide = lambda cls, name, *more: None if name.split('.')[0] == 'aiokafka' else find(name, *more)\n"
        "m.PathFinder.find_spec = classmethod(hide)\n"
        "import aiokafkawire.faststream, sys; from importlib.metadata import version\n"
        "print(version('aiokafka'), sys.modules['aiokafka'].__name__, aiokafkawire.faststream.KafkaBroker.__module__)"
    )
    run = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert run.stdout.split() == ["0.14.0", "aiokafkawire.aiokafka", "aiokafkawire.faststream.broker"], run.stderr
