"""What an Apache Kafka release says of the messages, beside what the package declares: ``nox -s definitions``."""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.definitions import OURS, Definition, extended, read, write
from support.differences import absences, differences
from support.vectors import declared_messages

__all__ = ("main",)

_EPILOG = """\
examples:
  nox -s definitions -- 4.1.1             a release, fetched by Maven
  nox -s definitions -- clients.jar       a jar at hand; a folder of Kafka's JSON files will do as well
  nox -s definitions -- 4.4.0 --write     keep what the newest release says, as what the tests go by

A difference reads `FetchRequest.topics[].partitions[].high_watermark: declared 18+, Kafka has 17+`. Versions that the
release lacks are not compared; they are named at the end.

When a new Kafka is out: see what is new, take it over with --write, declare it in aiokafkawire/protocol/messages until
tests/protocol/test_definitions.py is content, and get golden vectors of the new versions (tests/data/README.md).

exit status: 0 when nothing differs, 1 when something does, 2 (of which nox makes 1) without anything to compare
"""
_GLUE = "\N{NO-BREAK SPACE}"
_TIMEOUT = 600.0


class NotFound(Exception):
    """The definitions cannot be had; the message says why, in a line."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    try:
        release = _definitions(options.source)
        if options.write:
            # Before anything is printed: a release that is too old should not look as if it were taken.
            written = extended(read(OURS), release)
    except (NotFound, OSError, ValueError) as error:
        print(f"{options.source}: {error}", file=sys.stderr)
        return 2
    status = _report(options.source, release)
    if options.write:
        write(written.values(), OURS)
        print(f"written to {OURS}")
    return status


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="nox -s definitions --",
        description="Compare the declared messages with the definitions that an Apache Kafka release carries.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("source", help="a version of kafka-clients (3.0.0 or later), a jar of it, or a folder")
    parser.add_argument("--write", action="store_true", help="take the release into tests/data/definitions.jsonl.gz")
    return parser.parse_args(arguments)


def _report(source: str, release: dict[str, Definition]) -> int:
    declared = declared_messages()
    found = differences(declared, release)
    groups = [list(lines) for _, lines in groupby(found, key=lambda line: re.split(r"\W", line)[0])]
    for lines in groups:
        print(*lines, sep="\n", end="\n\n")
    where = f" in {_count(len(groups), 'message')}" if found else ""
    print(f"{source}: {_count(len(found), 'difference')}{where}; {len(declared.keys() & release.keys())} compared")
    if lacking := absences(declared, release):
        # A name stays on the line of its versions.
        text = f"not compared, as they are not in it: {', '.join(one.replace(' ', _GLUE) for one in lacking)}"
        print(textwrap.fill(text, 120, subsequent_indent="  ", break_on_hyphens=False).replace(_GLUE, " "))
    return 1 if found else 0


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'s' if number != 1 else ''}"


def _definitions(source: str) -> dict[str, Definition]:
    """The definitions in a file or folder, or else of a version.

    Raises:
        NotFound: it is neither, or Maven does not bring it.
        ValueError: it holds something else.
        OSError: it cannot be read.
    """
    if Path(source).exists():
        return read(Path(source))
    if re.fullmatch(r"\d+\.\d+[\w.-]*", source) is None:
        raise NotFound("no such file, and a version looks like 4.1.1")
    with tempfile.TemporaryDirectory(prefix="aiokafkawire-clients-") as folder:
        return read(_by_maven(source, Path(folder)))


def _by_maven(version: str, folder: Path) -> Path:
    """The jar of kafka-clients, copied by Maven, whose settings and mirrors hold."""
    maven = shutil.which("mvn")
    if maven is None:
        raise NotFound("fetching a release needs Maven, and there is no `mvn` on PATH")
    # Maven remembers what it did not find; --update-snapshots makes it look again.
    command = [maven, "--batch-mode", "--quiet", "--no-transfer-progress", "--update-snapshots", "dependency:copy"]
    command += [f"-Dartifact=org.apache.kafka:kafka-clients:{version}", f"-DoutputDirectory={folder}"]
    try:
        done = subprocess.run(
            command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=folder, timeout=_TIMEOUT
        )
    except subprocess.TimeoutExpired:
        raise NotFound(f"Maven took more than {_TIMEOUT:.0f} s") from None
    jar = folder / f"kafka-clients-{version}.jar"
    if done.returncode == 0 and jar.exists():
        return jar
    told = re.sub(r"\x1b\[[\d;]*m", "", done.stderr + done.stdout)
    if "Could not find artifact" in told:
        raise NotFound("Maven finds no such version of org.apache.kafka:kafka-clients")
    lines = sorted(filter(None, told.splitlines()), key=lambda line: not line.startswith("[ERROR]"))
    raise NotFound(f"Maven failed with status {done.returncode}: {lines[0] if lines else 'it said nothing'}")


if __name__ == "__main__":
    sys.exit(main())
