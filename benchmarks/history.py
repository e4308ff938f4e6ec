"""Adds the ratios of a run to the history of runs, and draws its page; see ``python -m benchmarks.history --help``."""

import argparse
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from benchmarks.cases import FIGURES

Pair: TypeAlias = tuple[str, str, str, str, str]
"""Benchmark, case, our row, the peer's row, and the figure that they are compared by."""

_WIDTH: Final = 240
_HEIGHT: Final = 40
_BEFORE: Final = 10
"""With how many earlier runs a run is compared."""
_PAGE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>aiokafkawire: benchmarks over time</title>
<style>
:root {{ color-scheme: light dark; font-family: system-ui, sans-serif; }}
body {{ margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }}
section {{ overflow-x: auto; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ border-bottom: 1px solid #8885; padding: .3rem .6rem; text-align: left; white-space: nowrap; }}
td.worse {{ font-weight: bold; }}
svg {{ display: block; fill: none; stroke: currentColor; }}
svg .one {{ stroke-dasharray: 3; opacity: .5; }}
svg .range {{ fill: currentColor; opacity: .15; stroke: none; }}
</style>
</head>
<body>
<h1>Benchmarks over time</h1>
<p>Each figure is aiokafkawire's divided by the peer's, in the same run: the median of the rounds, and their range.
The machine is one that the forge lends, a different
one each time: compare ratios, not runs. A row that says <strong>worse</strong> has a whole range on the wrong side of
the median of the {before} runs before.</p>
<p>{runs} runs, the newest of {date}, commit {commit}.</p>
{sections}
</body>
</html>
"""


class Entry(NamedTuple):
    """The ratio of a pair in one run, and the range of its rounds."""

    ratio: float
    low: float
    high: float


def add(folder: Path, ratios: Sequence[Mapping[str, Any]], *, commit: str, date: str) -> Path:
    """Append a run to the history in a folder, and draw its page again.

    Args:
        folder: the folder that keeps history.jsonl, a line for each run, and the page index.html.
        ratios: the lines that ``python -m benchmarks --json`` wrote.
        commit: what was measured.
        date: when, as 2026-01-31.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "history.jsonl"
    with kept.open("a") as file:
        file.write(json.dumps({"date": date, "commit": commit, "ratios": list(ratios)}) + "\n")
    page = folder / "index.html"
    page.write_text(page_of([json.loads(line) for line in kept.read_text().splitlines()]))
    return page


def page_of(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the page of all runs, the oldest first: a table for each case, a row and a curve for each pair."""
    cases: dict[tuple[str, str], list[str]] = {}
    for pair, entries in _entries_by_pair(runs).items():
        cases.setdefault(pair[:2], []).append(_row(pair, entries))
    head = "<tr><th>ours</th><th>beside</th><th>figure</th><th>newest</th><th></th><th>all runs</th></tr>"
    sections = [
        f"<section><h2>{escape(f'{benchmark}: {case}')}</h2><table>{head}{''.join(rows)}</table></section>"
        for (benchmark, case), rows in cases.items()
    ]
    newest = runs[-1]
    return _PAGE.format(
        before=_BEFORE,
        runs=len(runs),
        date=escape(newest["date"]),
        commit=escape(newest["commit"]),
        sections="\n".join(sections),
    )


def got_worse(entries: Sequence[Entry | None], less_is_better: bool) -> bool:
    """Return whether the newest range of a pair lies on the wrong side of the median of the runs before."""
    newest, before = entries[-1], [one.ratio for one in entries[-1 - _BEFORE : -1] if one is not None]
    if newest is None or not before:
        return False
    usual = statistics.median(before)
    return newest.low > usual if less_is_better else newest.high < usual


def _entries_by_pair(runs: Sequence[Mapping[str, Any]]) -> dict[Pair, list[Entry | None]]:
    """Return what each run found of each pair; None where a run has not measured it."""
    found: dict[Pair, list[Entry | None]] = {}
    for number, run in enumerate(runs):
        for line in run["ratios"]:
            pair = (line["benchmark"], line["case"], line["ours"], line["peer"], line["metric"])
            entries = found.setdefault(pair, [None] * len(runs))
            entries[number] = Entry(line["ratio"], line["low"], line["high"])
    return found


def _row(pair: Pair, entries: Sequence[Entry | None]) -> str:
    _, _, ours, peer, metric = pair
    newest = entries[-1]
    told = "not measured" if newest is None else f"{newest.ratio:.2f} [{newest.low:.2f}-{newest.high:.2f}]"
    figure = FIGURES[metric]
    verdict = "worse" if got_worse(entries, figure.less_is_better) else ""
    cells = "".join(f"<td>{escape(text)}</td>" for text in (ours, peer, figure.title, told))
    return f'<tr>{cells}<td class="worse">{verdict}</td><td>{_curve(entries)}</td></tr>\n'


def _curve(entries: Sequence[Entry | None]) -> str:
    """Return an SVG of the ratios from the oldest run to the newest, with their ranges and a line at 1."""
    known = [(number, one) for number, one in enumerate(entries) if one is not None]
    lowest = min(1.0, *(one.low for _, one in known))
    span = max(1.0, *(one.high for _, one in known)) - lowest or 1.0
    step = _WIDTH / max(1, len(entries) - 1)

    def points(values: Iterable[tuple[int, float]]) -> str:
        return " ".join(
            f"{number * step:.1f},{_HEIGHT * (1 - (value - lowest) / span):.1f}" for number, value in values
        )

    around = points([(at, one.high) for at, one in known] + [(at, one.low) for at, one in reversed(known)])
    one = f'<polyline class="one" points="{points([(0, 1.0), (len(entries) - 1 or 1, 1.0)])}"/>'
    ratios = f'<polyline points="{points((at, one.ratio) for at, one in known)}"/>'
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 -2 {_WIDTH} {_HEIGHT + 4}"'
    told = f"{len(known)} runs, from {known[0][1].ratio:.2f} to {known[-1][1].ratio:.2f}"
    return f'<svg {size} role="img" aria-label="{told}"><polygon class="range" points="{around}"/>{one}{ratios}</svg>'


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.history",
        description="Add the ratios of a run to the history of runs, and draw its page.",
        epilog="example, after `python -m benchmarks produce consume --json ratios.jsonl`: "
        "python -m benchmarks.history pages/benchmarks --ratios ratios.jsonl --commit $(git rev-parse --short HEAD)",
    )
    parser.add_argument("folder", type=Path, help="has the history, and gets the page index.html; made if it is absent")
    parser.add_argument("--ratios", type=Path, required=True, help="the lines of `python -m benchmarks --json FILE`")
    parser.add_argument("--commit", required=True, help="what was measured")
    parser.add_argument("--date", default=f"{datetime.now(UTC):%Y-%m-%d}", help="when; default: today")
    given = parser.parse_args()
    ratios = [json.loads(line) for line in given.ratios.read_text().splitlines()]
    if not ratios:
        parser.error(f"{given.ratios} has no ratios")
    print(f"drawn: {add(given.folder, ratios, commit=given.commit, date=given.date)}")


if __name__ == "__main__":
    main()
