"""Runs the cases: ``python -m hostile [--message FetchResponse] [--first 0] [--count 9]``, with ``tests`` on the path.

``nox -s hostile -- --message FetchResponse`` does that with the cases of one message.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import groupby
from multiprocessing import get_context

from .cases import Case, all_cases, message_of
from .lives import LIVES
from .running import Result, limit_memory, run_cases

_TOGETHER = 25
_TOGETHER_WITH_ONE_CLIENT = 250
"""Cases of one life that run on the same brokers."""


def main() -> int:
    """Run the cases asked for; 1 if there is a finding."""
    parser = argparse.ArgumentParser(prog="hostile", description="A broker that lies in every field, and its clients.")
    parser.add_argument("--message", action="append", help="only this response, such as FetchResponse; repeatable")
    parser.add_argument("--life", action="append", help="only lives whose names begin so; repeatable")
    parser.add_argument("--first", type=int, default=0, metavar="CASE", help="the first case (default: 0)")
    parser.add_argument("--count", type=int, help="how many (default: all)")
    parser.add_argument("--step", type=int, default=1, help="only every so many-th case of these (default: 1)")
    parser.add_argument("--jobs", type=int, help="how many processes (default: one for each processor)")
    parser.add_argument("--no-error-codes", action="store_true", help="leave out error codes")
    asked = parser.parse_args()
    cases: Sequence[Case] = all_cases()[asked.first :]
    if asked.message:
        cases = [case for case in cases if message_of(case.api_key) in asked.message]
    if asked.life:
        cases = [case for case in cases if case.life.startswith(tuple(asked.life))]
    if asked.no_error_codes:
        cases = [case for case in cases if not case.path.endswith("error_code")]
    cases = cases[: asked.count : asked.step]
    if not cases:
        parser.error("no such case")
    return _run(cases, asked.jobs)


def _run(cases: Sequence[Case], jobs: int | None) -> int:
    began, results = time.perf_counter(), list[Result]()
    batches = list(_batches(cases))
    with ProcessPoolExecutor(jobs, get_context("spawn"), initializer=limit_memory) as pool:
        futures = [pool.submit(run_cases, batch) for batch in batches]
        for number, future in enumerate(as_completed(futures), 1):
            for result in future.result():
                results.append(result)
                _print_findings(result)
            if sys.stderr.isatty():
                print(f"\r{len(results)} of {len(cases)} cases", end="", file=sys.stderr, flush=True)
            elif number % 10 == 0:
                print(f"{len(results)} of {len(cases)} cases, {time.perf_counter() - began:.0f} s", flush=True)
    _print_summary(results, time.perf_counter() - began)
    return 1 if any(result.findings for result in results) else 0


def _batches(cases: Sequence[Case]) -> Iterator[list[Case]]:
    for _, of_life in groupby(cases, key=lambda case: (case.life, case.api_key)):
        batch = list(of_life)
        size = _TOGETHER_WITH_ONE_CLIENT if LIVES[batch[0].life].shares_client else _TOGETHER
        yield from (batch[at : at + size] for at in range(0, len(batch), size))


def _print_findings(result: Result) -> None:
    if result.findings:
        print(f"\n{result.case} FAILED")
        for finding in result.findings:
            print(f"  {finding}")
        print(f"  again: nox -s hostile -- --first {result.case.number} --count 1", flush=True)


def _print_summary(results: Sequence[Result], seconds: float) -> None:
    counts, reached, failed = Counter[str](), Counter[str](), Counter[str]()
    for result in results:
        name = message_of(result.case.api_key)
        counts[name] += 1
        reached[name] += result.altered > 0
        failed[name] += bool(result.findings)
    print(f"\n{'response':45} {'cases':>6} {'altered':>8} {'failed':>7}")
    for name, count in counts.items():
        print(f"{name:45} {count:6} {reached[name]:8} {failed[name]:7}")
    replaced = sum(result.replaced for result in results)
    print(
        f"{len(results)} cases in {seconds:.0f} s, {sum(reached.values())} with altered answers, "
        f"{sum(failed.values())} failed; in {replaced} what the client had opened was opened again"
    )


if __name__ == "__main__":
    sys.exit(main())
