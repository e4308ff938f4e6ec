"""Runs thousands of seeds of all scenarios: ``python -m simulation.nightly``, with ``tests`` on the path.

``nox -s nightly -- --seeds 10000`` does that on all processors. Each failure is shrunk to the fewest faults and written
as a test; see docs/simulation.md.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from itertools import chain, zip_longest
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from histories.mutations.every import MUTATIONS
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from .night_run import NightRun, mutate, run_one

__all__ = ("WEIGHTS", "jobs", "main", "shares", "written")

WEIGHTS: Final[Mapping[str, int]] = {
    "plain": 3,
    "transactions": 3,
    "groups": 3,
    "mixed": 3,
    "consumer_groups": 3,
    "orderly_groups": 1,
    "processing": 2,
    "consumer_processing": 2,
    "process": 2,
    "transforms": 1,
    "share": 2,
    "share_process": 1,
    "recreated": 2,
    "subscriptions": 2,
    "rolling": 2,
    "admin": 2,
}
"""The share of each scenario in the seeds."""
FOUND: Final = Path(__file__).parent / "found"
_CONSOLE: Final = Console()
_LINE: Final = 100


def shares(seeds: int, weights: Mapping[str, int]) -> dict[str, int]:
    """Return how many of the seeds each scenario gets by its weight; in all as many as there are."""
    total = sum(weights.values())
    given = {name: seeds * weight // total for name, weight in weights.items()}
    left = seeds - sum(given.values())
    for name in sorted(weights, key=lambda name: seeds * weights[name] % total, reverse=True)[:left]:
        given[name] += 1
    return given


def jobs(counts: Mapping[str, int], first: int) -> Iterator[tuple[str, int]]:
    """Yield scenarios with seeds in turns, so that a run that is cut short has some of all scenarios."""
    of_each = [[(name, seed) for seed in range(first, first + count)] for name, count in counts.items()]
    return (job for job in chain.from_iterable(zip_longest(*of_each)) if job is not None)


def main() -> int:
    """Run the seeds asked for; 1 if one fails."""
    parser = argparse.ArgumentParser(prog="simulation.nightly", description="Many seeds of all scenarios.")
    parser.add_argument("--seeds", type=int, default=10_000, help="how many in all (default: 10000)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first of each scenario (default: 0)")
    parser.add_argument("--scenario", choices=WEIGHTS, action="append", help="only this one; may be repeated")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many processes (default: all processors)")
    parser.add_argument("--seconds", type=float, default=60.0, help="processor time after which a run has hung")
    parser.add_argument("--tries", type=int, default=60, help="how many runs to shrink a failure (default: 60)")
    parser.add_argument("--found", type=Path, default=FOUND, help="where tests of failures are written")
    parser.add_argument("--mutation", choices=[one.name for one in MUTATIONS], help="with this defect in the client")
    asked = parser.parse_args()
    weights = {name: weight for name, weight in WEIGHTS.items() if not asked.scenario or name in asked.scenario}
    if asked.mutation:
        os.environ.update(next(one for one in MUTATIONS if one.name == asked.mutation).environment)
    wanted = list(jobs(shares(asked.seeds, weights), asked.first))
    runs = list(_run_all(asked, wanted))
    _report(runs)
    return 1 if any(run.failure for run in runs) else 0


def _run_all(asked: argparse.Namespace, wanted: Iterable[tuple[str, int]]) -> Iterator[NightRun]:
    start = (mutate, (asked.mutation,)) if asked.mutation else (None, ())
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        ProcessPoolExecutor(asked.jobs, get_context("spawn"), *start) as pool,
        Progress(*columns, console=Console(stderr=True)) as bar,
    ):
        running: list[Future[NightRun]] = [
            pool.submit(run_one, name, seed, seconds=asked.seconds, tries=asked.tries) for name, seed in wanted
        ]
        task, failed = bar.add_task("none failed", total=len(running)), 0
        for done in as_completed(running):
            run = done.result()
            if run.failure:
                failed += 1
                _CONSOLE.print(_told(run, written(run, asked.found)), markup=False, highlight=False, soft_wrap=True)
            bar.update(task, advance=1, description=f"{failed} failed" if failed else "none failed")
            yield run


def _told(run: NightRun, test: Path) -> str:
    again = f"nox -s simulate -- --scenario {run.scenario} --replay {run.seed}"
    kept = ", ".join(run.kept or ()) or "none"
    return (
        f"{run.error}{run.scenario}: seed {run.seed} FAILED: {run.failure}\n"
        f"  again, with its whole trace: {again}\n"
        f"  of {run.happened} faults it takes: {kept}\n"
        f"  written as a test: {test}\n"
    )


def written(run: NightRun, folder: Path) -> Path:
    """Write the test that repeats a failure with the fewest faults, and return its path."""
    faults = _tuple(run.kept or ())
    test = folder / f"test_{run.scenario}_{run.seed}.py"
    folder.mkdir(parents=True, exist_ok=True)
    test.write_text(
        f'"""Seed {run.seed} of the scenario {run.scenario}'
        f" with {len(run.kept or ())} of its {run.happened} faults.\n\n"
        f"The nightly run found: {run.failure}.\n"
        f'"""\n\n'
        f"from simulation.one_seed import replay\n\n"
        f"FAULTS = {faults}\n\n\n"
        f"def test_seed_{run.seed}_of_{run.scenario}() -> None:\n"
        f'    replay("{run.scenario}", {run.seed}, FAULTS)\n'
    )
    return test


def _tuple(names: Sequence[str]) -> str:
    """Return a tuple as its source, on one line if that is short."""
    quoted = [f'"{name}"' for name in names]
    line = f"({', '.join(quoted)}{',' if len(quoted) == 1 else ''})"
    return line if len(line) <= _LINE else "".join(("(\n", *(f"    {name},\n" for name in quoted), ")"))


def _report(runs: Iterable[NightRun]) -> None:
    from .coverage import missed_codes, missed_transitions

    table = Table("scenario", "seeds", "virtual h", "CPU s", "virtual s per CPU s", "faults", "failed")
    by_name: dict[str, list[NightRun]] = {}
    for run in runs:
        by_name.setdefault(run.scenario, []).append(run)
    met: Counter[tuple[str, str]] = Counter()
    kinds: Counter[str] = Counter()
    for name, some in by_name.items():
        seconds, cpu = sum(run.seconds for run in some), sum(run.cpu for run in some)
        faults = sum((run.faults for run in some), Counter[str]())
        met += sum((run.met for run in some), Counter[tuple[str, str]]())
        failed = " ".join(str(run.seed) for run in some if run.failure) or "none"
        row = (f"{seconds / 3600:.1f}", f"{cpu:,.0f}", f"{seconds / max(cpu, 0.01):.0f}", f"{faults.total():,}", failed)
        table.add_row(name, f"{len(some):,}", *row)
        kinds += faults
    _CONSOLE.print(table)
    print("faults: " + ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common()))
    _list("transitions of state machines that no run made", missed_transitions(met))
    _list("error codes that no run met", missed_codes(met))


def _list(title: str, missed: list[tuple[str, str]]) -> None:
    grouped: dict[str, list[str]] = {}
    for name, one in missed:
        grouped.setdefault(name, []).append(one)
    print(f"{title}: {len(missed)}")
    for name, some in grouped.items():
        print(f"  {name}: {', '.join(some)}")


if __name__ == "__main__":
    sys.exit(main())
