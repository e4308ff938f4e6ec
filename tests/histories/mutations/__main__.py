"""Runs the mutations: ``python -m histories.mutations``, with ``tests`` on the path; see docs/simulation.md.

Each mutation breaks one guarantee of the client. Its scenario runs seed by seed until a run fails.
"""

import argparse
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

import attrs

from .every import MUTATIONS
from .mutation import Mutation
from .running import Caught, run_mutated

_SECONDS = 1_800


def main() -> int:
    """Run the mutations asked for; 1 if nothing finds one of them."""
    parser = argparse.ArgumentParser(prog="histories.mutations", description=__doc__)
    parser.add_argument("--seeds", type=int, default=40, help="how many at most for each mutation (default: 40)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first of them (default: 0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many processes (default: all processors)")
    parser.add_argument("--only", metavar="WORDS", help="the mutations whose name or scenario has these words")
    parser.add_argument("--here", action="store_true", help="run one mutation in this process, and print what found it")
    parser.add_argument("--details", action="store_true", help="print what was found, as well")
    asked = parser.parse_args()
    chosen = [one for one in MUTATIONS if asked.only is None or asked.only in (one.name, one.scenario)] or [
        one for one in MUTATIONS if asked.only in one.name
    ]
    if not chosen:
        parser.error(f"no mutation has {asked.only!r} in its name, and no scenario is called so")
    seeds = range(asked.first, asked.first + asked.seeds)
    if asked.here:
        (mutation,) = chosen
        print(json.dumps(attrs.asdict(run_mutated(mutation, seeds))))
        return 0
    missed = []
    with ThreadPoolExecutor(asked.jobs) as pool:
        running = {pool.submit(_in_a_process, mutation, seeds): mutation for mutation in chosen}
        for done in as_completed(running):
            mutation, caught = running[done], done.result()
            print(_line(mutation, caught), flush=True)
            if asked.details and caught.detail:
                print(textwrap.indent(caught.detail, "    "), flush=True)
            if not caught.by:
                missed.append(mutation.name)
    print(f"\n{len(chosen)} mutations, {len(chosen) - len(missed)} found")
    print("\n".join(f"NOT FOUND: {name}" for name in missed))
    return 1 if missed else 0


def _in_a_process(mutation: Mutation, seeds: range) -> Caught:
    command = [sys.executable, "-m", "histories.mutations", "--here", "--only", mutation.name]
    command += ["--first", str(seeds.start), "--seeds", str(len(seeds))]
    environment = os.environ | mutation.environment
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        return Caught("the process does not end", -1, 0)
    if done.returncode:
        raise RuntimeError(f"{mutation.name}: {done.stderr[-2_000:]}")
    return Caught(**json.loads(done.stdout.splitlines()[-1]))


def _line(mutation: Mutation, caught: Caught) -> str:
    columns: Sequence[object] = (
        mutation.name,
        mutation.guarantee,
        mutation.scenario,
        caught.by or f"nothing, in {caught.runs} runs",
        f"seed {caught.seed}, {caught.runs} runs" if caught.by else "-",
    )
    return " | ".join(map(str, columns))


if __name__ == "__main__":
    sys.exit(main())
