"""Runs the scenario with many seeds: ``python -m simulation --seeds 1000``, with ``tests`` on the path.

``nox -s simulate -- --seeds 1000`` does that.
"""

import argparse
import sys
import time
import traceback
from collections import Counter

from .idle import idle
from .scenario import run, told


def main() -> int:
    """Run the seeds asked for; 1 if one fails."""
    parser = argparse.ArgumentParser(prog="simulation", description="Clients and brokers in virtual time, with faults.")
    parser.add_argument("--seeds", type=int, default=100, help="how many (default: 100)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first of them (default: 0)")
    parser.add_argument("--replay", type=int, metavar="SEED", help="run one seed, and print its whole trace")
    parser.add_argument(
        "--idle", type=float, metavar="SECONDS", help="how long so much virtual time of a quiet cluster takes"
    )
    parser.add_argument("--verbose", action="store_true", help="a line for every seed")
    asked = parser.parse_args()
    if asked.replay is not None:
        return _replay(asked.replay)
    if asked.idle is not None:
        return _idle(asked.idle)
    return _many(asked.first, asked.seeds, verbose=asked.verbose)


def _many(first: int, seeds: int, *, verbose: bool) -> int:
    began, faults, failed, seconds, sent = time.perf_counter(), Counter[str](), list[int](), 0.0, 0
    for seed in range(first, first + seeds):
        try:
            done = run(seed)
        except Exception as error:
            failed.append(seed)
            traceback.print_exception(error, limit=-5)
            print(f"seed {seed} FAILED; again, with its whole trace: nox -s simulate -- --replay {seed}\n", flush=True)
            continue
        faults += done.value.faults
        seconds += done.seconds
        sent += done.value.sent
        if verbose:
            print(told(done), flush=True)
    wall = time.perf_counter() - began
    print(f"{seeds} seeds, {sent:,} records, {seconds / 3600:.1f} h of virtual time in {wall:.0f} s")
    print("faults: " + ", ".join(f"{count:,} {kind}" for kind, count in faults.most_common()))
    print(f"failed: {', '.join(map(str, failed))}" if failed else "none failed")
    return 1 if failed else 0


def _replay(seed: int) -> int:
    try:
        done = run(seed, keep=10**9)
    except Exception as error:
        traceback.print_exception(error)
        return 1
    print(done.trace)
    print(told(done))
    return 0


def _idle(seconds: float) -> int:
    began = time.perf_counter()
    done = idle(seconds)
    wall = time.perf_counter() - began
    print(
        f"{done.value:,} records and {done.trace.count:,} events in {done.seconds:.0f} s of virtual time: {wall:.1f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
