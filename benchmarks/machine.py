"""The machine and the versions of a benchmark, for the head of its report."""

import importlib.metadata
import importlib.util
import os
import platform
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("aiokafkawire", "anyio", "uvloop", "trio", "aiokafka", "confluent-kafka", "kafka-python", "kio")


def describe(command: list[str]) -> dict[str, str]:
    """Return names and texts of the machine's properties, in order."""
    return {
        "command": shlex.join(["python", *_module(Path(command[0])), *command[1:]]),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{os.cpu_count()} cores, {_cpu_model()}, {_memory()}",
        "system": platform.platform(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": ", ".join(f"{name} {version}" for name in PACKAGES if (version := version_of(name))),
        "commit": _commit(),
        "load before": " ".join(f"{load:.2f}" for load in os.getloadavg()) + " (1, 5, 15 minutes)",
    }


def version_of(package: str) -> str | None:
    """Return the installed version; None if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def has_module(name: str) -> bool:
    """Return whether it is installed; this loads the packages around it."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _module(program: Path) -> list[str]:
    """Return the command that starts a program of this project."""
    if not program.is_relative_to(ROOT):
        return [program.name]
    parts = program.relative_to(ROOT).with_suffix("").parts
    return ["-m", ".".join(parts[:-1] if parts[-1] == "__main__" else parts)]


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def _memory() -> str:
    if sys.platform == "win32":
        return "memory unknown"
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"


def _commit() -> str:
    git = ["git", "-C", str(ROOT)]
    try:
        head = subprocess.run([*git, "rev-parse", "--short", "HEAD"], check=True, capture_output=True, text=True)
        changed = subprocess.run([*git, "status", "--porcelain"], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head.stdout.strip() + (" with uncommitted changes" if changed.stdout.strip() else "")
