"""A Polars frame written to a topic and read back, with this client and in confluent-kafka's best loop.

Every measurement is a new process; the clients take turns, every other round backwards. The clock runs while the frame
is written or read, and not while modules are imported and frames are made and compared. Each client reads what it has
written.
"""

import argparse
import json
import statistics
import subprocess
import sys
from typing import Final

from benchmarks.arguments import positive
from benchmarks.cluster import create_topics, delete_topics, kafka
from benchmarks.frames.frame import PARTITIONS
from benchmarks.machine import ROOT, describe
from benchmarks.progress import progress

_CLIENTS: Final = {"aiokafkawire": "benchmarks.frames.ours", "confluent-kafka": "benchmarks.frames.confluent_peer"}
_TASKS: Final = ("write", "read")
_TIMEOUT: Final = 900.0


def main() -> None:
    """Measure all rounds, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frames", description=__doc__)
    parser.add_argument("--rounds", type=positive, default=5, help="of each client (5)")
    parser.add_argument("--rows", type=positive, default=10_000_000, help="of the frame, 108 bytes each (10,000,000)")
    parser.add_argument("--compression", default="none", choices=("none", "gzip", "snappy", "lz4", "zstd"))
    options = parser.parse_args()
    for name, value in describe(sys.argv).items():
        print(f"{name}: {value}")
    found: dict[tuple[str, str], list[dict[str, float]]] = {(task, one): [] for task in _TASKS for one in _CLIENTS}
    with kafka() as cluster, progress(options.rounds * len(_CLIENTS)) as step:
        for number in range(options.rounds):
            for client in _CLIENTS if number % 2 == 0 else reversed(_CLIENTS):
                step(f"round {number + 1}: {client}")
                topic = f"frames-{number}-{client}"
                create_topics(cluster.bootstrap, [topic], PARTITIONS)
                for task in _TASKS:
                    arguments = (task, cluster.bootstrap, topic, str(options.rows), options.compression)
                    found[task, client].append(_run(_CLIENTS[client], *arguments))
                delete_topics(cluster.bootstrap, [topic])
    for client in _CLIENTS:
        pairs = zip(found["write", client], found["read", client], strict=True)
        found["both", client] = [_sum(written, read) for written, read in pairs]
    for (task, client), runs in found.items():
        print(_line(task, client, runs, found[task, "aiokafkawire"], options.rows))


def _run(module: str, *arguments: str) -> dict[str, float]:
    command = [sys.executable, "-m", module, *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    if ended.returncode:
        raise SystemExit(f"{' '.join(command[1:])} failed: {ended.stderr[-2_000:]}")
    figures: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return figures


def _sum(written: dict[str, float], read: dict[str, float]) -> dict[str, float]:
    peak = max(written["peak_mb"], read["peak_mb"])
    return {name: written[name] + read[name] for name in written} | {"peak_mb": peak}


def _line(task: str, client: str, runs: list[dict[str, float]], ours: list[dict[str, float]], rows: int) -> str:
    seconds, cpu = [[run[name] for run in runs] for name in ("seconds", "cpu")]
    text = f"{task:5} {client:15} {_spread(seconds)} s, {_spread([one * 1e6 / rows for one in cpu])} us of CPU a row"
    text += f", {statistics.median(run['peak_mb'] for run in runs):,.0f} MB"
    if runs is ours:
        return text
    return text + "".join(
        f"; ours {word}: {_spread([theirs[name] / mine[name] for mine, theirs in zip(ours, runs, strict=True)])} x"
        for name, word in (("seconds", "faster"), ("cpu", "with less CPU"))
    )


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.3g} [{min(values):.3g}-{max(values):.3g}]"


if __name__ == "__main__":
    main()
