"""The command line of the programs that measure recoveries: their options, the figures that they keep, their status."""

import argparse
import json
from collections.abc import Callable, Collection
from pathlib import Path

from benchmarks.arguments import LOOPS, names_of, positive, require_installed
from benchmarks.contenders import OURS
from benchmarks.faults.running import CLIENTS
from benchmarks.recovery.report import render
from benchmarks.recovery.run import Row

__all__ = ("exit_status", "figures", "new_parser", "parse")


def new_parser(
    program: str, description: str | None, epilog: str, kinds: Collection[str], faults: int
) -> argparse.ArgumentParser:
    """Return a parser of the options of these kinds of faults; ``faults`` of each kind are the default."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {program}",
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--clients", type=names_of(CLIENTS), default=CLIENTS[:3], help=f"some of {','.join(CLIENTS)}")
    parser.add_argument("--kinds", type=names_of(kinds), default=tuple(kinds), help=f"some of {','.join(kinds)}")
    parser.add_argument("--faults", type=positive, default=faults, help=f"of each kind ({faults})")
    parser.add_argument("--rate", type=positive, default=100, help="records per second of each producer (100)")
    parser.add_argument("--value-size", type=positive, default=600, help="bytes of each value (600)")
    parser.add_argument("--loop", choices=LOOPS, default="asyncio", help="trio: ours only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    parser.add_argument("--show", type=Path, metavar="FILE", help="measure nothing, and report what --json has written")
    return parser


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Return the options of the command line; end the program with a message if clients cannot run with them."""
    options = parser.parse_args()
    if options.loop == "trio" and options.clients != (OURS,):
        parser.error("--loop trio: only with --clients ours")
    require_installed(parser, options.clients)
    return options


def figures(
    options: argparse.Namespace, measure: Callable[[argparse.Namespace], tuple[dict[str, str], list[Row]]]
) -> tuple[dict[str, str], list[Row]]:
    """Measure, or read what was measured; keep the figures in the file asked for, and print them."""
    about, rows = measure(options) if options.show is None else json.loads(options.show.read_text()).values()
    if options.json is not None:
        options.json.write_text(json.dumps({"about": about, "rows": rows}))
    print(render(about, rows))
    return about, rows


def exit_status(rows: list[Row]) -> int:
    """Return 1 if something is wrong with our client, else 0."""
    return 1 if any(row["problems"] or row["wrong"] for row in rows if row["client"] == OURS) else 0
