"""The rates of ``consume`` and ``produce`` beside kcat and Kafka's console tools, and the CPU time of ``--help``.

Every program runs as a user starts it, from its start to its end: ``consume`` reads a topic into ``/dev/null``,
``produce`` sends the lines of a file.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

from support.apache_kafka import NEWEST, missing, resolve

from benchmarks.arguments import positive
from benchmarks.cluster import create_topics, delete_topics, kafka, records_in
from benchmarks.machine import describe
from benchmarks.progress import progress

SIZES: Final = {100: 5_000_000, 1024: 1_000_000}
"""The number of records for each size of a value, in bytes."""

_OURS: Final = (sys.executable, "-m", "aiokafkawire")
_TOOLS: Final = "kafka-tools"
_HELP_RUNS: Final = 9
_LOOK_EVERY: Final = 0.02


class Measured(NamedTuple):
    """The wall time and the user's CPU time of a program, in seconds, and its largest resident memory, in bytes."""

    wall: float
    cpu: float
    memory: int


# pip compiles a package's modules as it installs them, and Python otherwise when they are first imported.
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def measure(command: Sequence[str], source: Path | None = None, *, quiet: bool = False) -> Measured:
    """Run a program with its output to ``/dev/null``, its errors too if ``quiet``, and the file as its input.

    :raises SystemExit: it failed.
    """
    stream = None if source is None else source.open("rb")
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdin=stream or subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL if quiet else None,
        env=_ENVIRONMENT,
    )
    with ThreadPoolExecutor(1) as watching:
        memory = watching.submit(_peak_memory, process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if stream is not None:
        stream.close()
    if process.returncode:
        raise SystemExit(f"{' '.join(command[:6])}... ended with {process.returncode}")
    return Measured(wall, usage.ru_utime, memory.result())


def _peak_memory(pid: int) -> int:
    """Return the largest resident memory of a process, in bytes, once it has ended.

    The system's own figure for an ended child (``ru_maxrss``) counts what this process had when it forked.
    """
    found = 0
    while True:
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return found
        peak = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
        if peak is None:  # it has ended
            return found
        found = int(peak[1]) * 1024
        time.sleep(_LOOK_EVERY)


def java_tool(name: str, *arguments: str) -> list[str]:
    """Return the command of one of Kafka's console tools."""
    jars = f"{resolve(NEWEST, _TOOLS)}/*"
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    return ["java", "-Xmx512M", quiet, "-cp", jars, f"org.apache.kafka.tools.{name}", *arguments]


def consumers(bootstrap: str, topic: str, records: int) -> dict[str, list[str]]:
    """Return the commands that print the values of a topic."""
    return {
        "aiokafkawire": [*_OURS, "consume", topic, "-b", bootstrap, "--quiet"],
        "kcat": ["kcat", "-C", "-b", bootstrap, "-t", topic, "-o", "beginning", "-e", "-q"],
        "kafka-console-consumer": java_tool(
            "consumer.ConsoleConsumer",
            *("--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning", "--max-messages", str(records)),
        ),
    }


def producers(bootstrap: str, topic: str, lines: Path) -> dict[str, tuple[list[str], Path | None]]:
    """Return the commands that send the lines of a file, and the file if it is their input."""
    return {
        "aiokafkawire": ([*_OURS, "produce", topic, str(lines), "-b", bootstrap, "--quiet"], None),
        "kcat": (["kcat", "-P", "-b", bootstrap, "-t", topic, "-l", str(lines)], None),
        "kafka-console-producer": (
            java_tool("ConsoleProducer", "--bootstrap-server", bootstrap, "--topic", topic),
            lines,
        ),
    }


def report(title: str, runs: dict[str, list[Measured]], records: int) -> None:
    """Print the rates, and our rate divided by that of each other program."""
    print(f"\n{title}")
    ours = runs["aiokafkawire"]
    for name, each in runs.items():
        rates = [records / one.wall for one in each]
        cpu = statistics.median(one.cpu for one in each) / records * 1e6
        text = f"  {name:24} {statistics.median(rates):>12,.0f} records/s [{min(rates):,.0f}-{max(rates):,.0f}]"
        text += f"  {cpu:6.2f} us of CPU a record"
        if name != "aiokafkawire":
            ratios = [theirs.wall / mine.wall for mine, theirs in zip(ours, each, strict=True)]
            text += f"  ours: {statistics.median(ratios):.2f} x [{min(ratios):.2f}-{max(ratios):.2f}]"
        print(text, flush=True)


def write_lines(path: Path, size: int, count: int) -> None:
    """Write different lines of the same size."""
    with path.open("wb", buffering=1 << 20) as file:
        for start in range(0, count, 10_000):
            file.write(b"".join(b"%012d".ljust(size, b"x") % at + b"\n" for at in range(start, start + 10_000)))


def measure_size(bootstrap: str, size: int, count: int, rounds: int, advance: Callable[[str], None]) -> None:
    """Produce and consume values of one size, and report both."""
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "lines"
        write_lines(lines, size, count)
        sent: dict[str, list[Measured]] = {}
        read: dict[str, list[Measured]] = {}
        for number in range(rounds):
            names = list(producers(bootstrap, "", lines))
            for name in names if number % 2 == 0 else reversed(names):
                topic = f"lines-{size}-{number}-{name}"
                create_topics(bootstrap, [topic], 1)
                advance(f"{size} B, round {number + 1}: produce, {name}")
                command, source = producers(bootstrap, topic, lines)[name]
                sent.setdefault(name, []).append(measure(command, source))
                found = records_in(bootstrap, [topic], 1)
                if found != count:
                    raise SystemExit(f"{name} has sent {found:,} of {count:,} lines")
                if (number, name) != (0, "kcat"):
                    delete_topics(bootstrap, [topic])
            topic = f"lines-{size}-0-kcat"
            commands = consumers(bootstrap, topic, count)
            for name in names_of(commands, number):
                advance(f"{size} B, round {number + 1}: consume, {name}")
                read.setdefault(name, []).append(measure(commands[name]))
        delete_topics(bootstrap, [topic])
    report(f"produce: {count:,} lines of {size} B from a file, one partition", in_order(sent), count)
    report(f"consume: {count:,} values of {size} B to /dev/null, one partition", in_order(read), count)


def names_of(commands: dict[str, list[str]], number: int) -> list[str]:
    """Return the names, every other round backwards."""
    return list(commands) if number % 2 == 0 else list(reversed(commands))


def in_order(runs: dict[str, list[Measured]]) -> dict[str, list[Measured]]:
    """Return the runs with ours first."""
    return dict(sorted(runs.items(), key=lambda item: item[0] != "aiokafkawire"))


def measure_help() -> None:
    """Report the CPU time of ``--help`` beside that of an empty program."""
    for title, command in {"--help": [*_OURS, "--help"], "python -c pass": [sys.executable, "-c", "pass"]}.items():
        times = [measure(command).cpu for _ in range(_HELP_RUNS)]
        print(f"{title:16} {statistics.median(times):.3f} s of CPU [{min(times):.3f}-{max(times):.3f}]", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shell_rates", description=__doc__)
    parser.add_argument("--rounds", type=positive, default=3, help="of each program (3)")
    parser.add_argument("--scale", type=float, default=1.0, help="a factor for the numbers of records (1.0)")
    options = parser.parse_args()
    lacks = missing() or (None if shutil.which("kcat") else "kcat is not installed: apt-get install kcat")
    if lacks:
        parser.error(lacks)
    for name, value in describe(sys.argv).items():
        print(f"{name}: {value}")
    version = subprocess.run(["kcat", "-V"], check=True, capture_output=True, text=True).stdout.split("\n")
    print(f"kcat: {' '.join(line for line in version if 'ersion' in line)}\n")
    measure_help()
    sizes = {size: max(10_000, round(count * options.scale / 10_000) * 10_000) for size, count in SIZES.items()}
    with kafka() as cluster, progress(len(sizes) * options.rounds * 6) as advance:
        for size, count in sizes.items():
            measure_size(cluster.bootstrap, size, count, options.rounds, advance)
    return 0


if __name__ == "__main__":
    sys.exit(main())
