"""Runs the scenarios with many seeds: ``python -m simulation --seeds 1000``, with ``tests`` on the path.

``nox -s simulate -- --seeds 1000 --scenario transactions`` does that with one of them.
"""

import argparse
import sys
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from .idle import idle
from .one_seed import RUN, TOLD, run_seed


def main() -> int:
    """Run the seeds asked for; 1 if one fails."""
    parser = argparse.ArgumentParser(prog="simulation", description="Clients and brokers in virtual time, with faults.")
    parser.add_argument("--seeds", type=int, default=100, help="how many (default: 100)")
    parser.add_argument("--scenario", choices=RUN, help="one of the scenarios (default: all of them, one by one)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first of them (default: 0)")
    parser.add_argument("--jobs", type=int, help="how many processes (default: one for each processor)")
    parser.add_argument("--replay", type=int, metavar="SEED", help="run one seed, and print its whole trace")
    parser.add_argument(
        "--idle", type=float, metavar="SECONDS", help="how long so much virtual time of a quiet cluster takes"
    )
    parser.add_argument("--verbose", action="store_true", help="a line for every seed")
    asked = parser.parse_args()
    names = [asked.scenario] if asked.scenario else list(RUN)
    if asked.idle is not None:
        return _idle(asked.idle)
    if asked.replay is not None:
        return max(_replay(name, asked.replay) for name in names)
    seeds = range(asked.first, asked.first + asked.seeds)
    return max(_many(name, seeds, asked.jobs, verbose=asked.verbose) for name in names)


def _many(name: str, seeds: range, jobs: int, *, verbose: bool) -> int:
    began, faults, failed, seconds = time.perf_counter(), Counter[str](), list[int](), 0.0
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for done in pool.map(partial(run_seed, name), seeds):
            if done.error:
                failed.append(done.seed)
                again = f"nox -s simulate -- --scenario {name} --replay {done.seed}"
                print(
                    f"{done.error}{name}: seed {done.seed} FAILED; again, with its whole trace: {again}\n", flush=True
                )
                continue
            faults += done.faults
            seconds += done.seconds
            if verbose:
                print(done.told, flush=True)
    wall = time.perf_counter() - began
    print(f"{name}: {len(seeds)} seeds, {seconds / 3600:.1f} h of virtual time in {wall:.0f} s")
    print("faults: " + ", ".join(f"{count:,} {kind}" for kind, count in faults.most_common()))
    print(f"failed: {', '.join(map(str, failed))}" if failed else "none failed", flush=True)
    return 1 if failed else 0


def _replay(name: str, seed: int) -> int:
    try:
        done = RUN[name](seed, keep=10**9)
    except Exception as error:
        traceback.print_exception(error)
        return 1
    print(done.trace)
    print(TOLD[name](done))
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
