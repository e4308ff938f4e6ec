"""Checks an installed distribution: its modules, compiled or pure, and the demo on few records.

``python tests/releasing/check_installed.py`` wants the compiled modules; ``--pure`` wants none of them. It runs
outside a checkout, in an environment with ``aiokafkawire[demo]`` and nothing else, on each platform that has a wheel.
"""

import argparse
import importlib
import importlib.util
import platform
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import aiokafkawire
from aiokafkawire import protocol, records

__all__ = ("main",)

COMPILED = ("protocol", "records", "network", "producer", "consumer", "share")


def check_compiled() -> None:
    """Check that each compiled module is loaded, and that what users call is in them."""
    for package in COMPILED:
        module = importlib.import_module(f"aiokafkawire.{package}._hot")
        assert Path(str(module.__file__)).suffix in (".so", ".pyd"), f"{module.__file__} is not compiled"
    used = {protocol.IMPLEMENTATION, records.IMPLEMENTATION}
    assert used == {"cython"}, f"the compiled modules are there, but {used} are used"
    for owner in (aiokafkawire.Producer.send_nowait, records.BatchBuilder, records.RecordReader):
        assert not isinstance(owner, FunctionType), f"{owner} is Python, not compiled"
    assert records.BatchBuilder.__module__.endswith("._hot"), records.BatchBuilder.__module__


def check_pure() -> None:
    """Check that no compiled module is there, and that the pure ones are used."""
    there = [package for package in COMPILED if importlib.util.find_spec(f"aiokafkawire.{package}._hot") is not None]
    assert not there, f"compiled modules of {there} in a pure distribution"
    used = {protocol.IMPLEMENTATION, records.IMPLEMENTATION}
    assert used == {"pure"}, used


def main() -> None:
    """Run the checks and the demo; an assertion or a failed process ends it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pure", action="store_true", help="the distribution without compiled modules")
    parser.add_argument("--records", type=int, default=2_000, help="flights of the demo")
    options = parser.parse_args()
    (check_pure if options.pure else check_compiled)()
    demo = [sys.executable, "-m", "aiokafkawire", "demo", "--limit", str(options.records)]
    subprocess.run(demo, check=True, timeout=300, stdout=subprocess.DEVNULL)
    kind = "pure" if options.pure else "compiled"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    sys.stdout.write(f"aiokafkawire {aiokafkawire.__version__}, {kind}, {python}: the demo is complete\n")


if __name__ == "__main__":
    main()
