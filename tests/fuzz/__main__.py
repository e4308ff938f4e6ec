"""Runs the fuzz targets one after the other, each in a process of its own, and tells what came of them.

``python -m fuzz [--seconds 60] [target ...]``, with ``tests`` on the path; ``nox -s fuzz -- ...`` does that.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from .seeds import DICTIONARY, MAX_LENGTH, seeds
from .targets import TARGETS

FINDS = Path(__file__).parent / "finds"
SLOWEST_SECONDS = 10
MEMORY_MB = 2048
"""Ten times what all codecs take when they are instrumented: an input of a few KB has no business near it."""


class Outcome(NamedTuple):
    """What one run has shown."""

    executions: int
    coverage: int
    finds: list[Path]


def main() -> int:
    """Run the targets asked for; 1 if there were finds, or a run that ended otherwise than by its time."""
    parser = argparse.ArgumentParser(prog="fuzz", description="Coverage-guided fuzzing of everything that reads bytes.")
    parser.add_argument("targets", nargs="*", help=f"of {', '.join(TARGETS)}; all of them by default")
    parser.add_argument("--seconds", type=int, default=60, help="for each target (default: 60)")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run the one target on this input, and show all")
    asked = parser.parse_args()
    targets = asked.targets or list(TARGETS)
    if unknown := sorted(set(targets) - set(TARGETS)):
        parser.error(f"no such target: {', '.join(unknown)}")
    if asked.replay is not None:
        if len(targets) != 1:
            parser.error("--replay needs one target")
        TARGETS[targets[0]](asked.replay.read_bytes())  # without Atheris: tracebacks and debuggers show the source
        print(f"{targets[0]}: nothing wrong with {asked.replay}")
        return 0
    went_well = [_told(target, _run(target, asked.seconds)) for target in targets]
    return 0 if all(went_well) else 1


def _run(target: str, seconds: int) -> tuple[Outcome, str, int]:
    """Fuzz one target: what it showed, what it said, and how it ended."""
    FINDS.mkdir(exist_ok=True)
    before = set(FINDS.iterdir())
    with tempfile.TemporaryDirectory() as made:
        corpus, words = Path(made, "corpus"), Path(made, "words")
        corpus.mkdir()
        for number, seed in enumerate(seeds(target)):
            (corpus / f"seed-{number:04}").write_bytes(seed)
        escaped = ("".join(f"\\x{byte:02x}" for byte in word) for word in DICTIONARY)
        words.write_text("".join(f'"{word}"\n' for word in escaped))
        options = {
            "max_total_time": seconds,
            "max_len": MAX_LENGTH,
            "timeout": SLOWEST_SECONDS,
            "rss_limit_mb": MEMORY_MB,
            "dict": words,
            "artifact_prefix": f"{FINDS}/{target}-",
            "print_final_stats": 1,
        }
        command = [
            sys.executable,
            "-m",
            "fuzz.engine",
            target,
            *(f"-{name}={value}" for name, value in options.items()),
        ]
        ended = subprocess.run([*command, str(corpus)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    said = ended.stdout.decode(errors="replace")
    return _outcome(said, sorted(set(FINDS.iterdir()) - before)), said, ended.returncode


def _outcome(said: str, finds: list[Path]) -> Outcome:
    executions = re.findall(r"^stat::number_of_executed_units: (\d+)", said, re.MULTILINE)
    executions = executions or re.findall(r"^#(\d+)\t", said, re.MULTILINE)
    coverage = re.findall(r" cov: (\d+) ", said)
    return Outcome(int(executions[-1]) if executions else 0, int(coverage[-1]) if coverage else 0, finds)


def _told(target: str, run: tuple[Outcome, str, int]) -> bool:
    """Print how it went; whether it went well."""
    outcome, said, code = run
    well = not outcome.finds and code == 0
    print(
        f"{target}: {outcome.executions:,} executions, {outcome.coverage:,} edges covered, {len(outcome.finds)} finds",
        flush=True,
    )
    if not well:
        print(_what_went_wrong(said), flush=True)
    for find in outcome.finds:
        print(f"  again: nox -s fuzz -- --replay {find} {target}", flush=True)
    return well


def _what_went_wrong(said: str) -> str:
    """The uncaught exception or libFuzzer's complaint, without the progress and the dictionary around it."""
    lines = said.splitlines()
    first = next((i for i, line in enumerate(lines) if "===" in line or "ERROR" in line), max(0, len(lines) - 40))
    return "\n".join(f"  {line}" for line in lines[first : first + 60])


if __name__ == "__main__":
    sys.exit(main())
