"""``aiokafkawire migrate``: finds what a code base needs to move from aiokafka, confluent-kafka or kafka-python."""

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import attrs
import click

from ..exit_status import FAILED, MISSING, CommandFailed
from ..shell.command import ShellCommand
from ..shell.output import confirm, note, print_rows, write_output
from ..shell.safe_text import safe_text
from ..shell.shared_options import SharedOptions

if TYPE_CHECKING:
    from ..migrate.source_files import SourceFile

__all__ = ("FOUND", "command")

FOUND: Final = 3
"""The exit status of ``--check`` if another client is still in use."""


@click.command(
    cls=ShellCommand,
    connects=False,
    examples=(
        "aiokafkawire migrate src                      what to change, line by line",
        "aiokafkawire migrate . --json | jq -r .name | sort | uniq -c",
        "                                              how often each name is used",
        "aiokafkawire migrate src --write              show the imports of aiokafka that change, ask, and change them",
        "aiokafkawire migrate src --check              status 3 while another client is in use",
    ),
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="PATH...")
@click.option("--write", is_flag=True, help="Change imports of aiokafka to its drop-in, where that is certain.")
@click.option("--check", is_flag=True, help="Exit with status 3 if anything is found.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--json", is_flag=True, help="JSON for programs, one object per line.")
def command(shared: SharedOptions, *, paths: tuple[str, ...], write: bool, check: bool, yes: bool) -> int:
    """Find what a code base needs to move from aiokafka, confluent-kafka or kafka-python to this client.

    Reads Python files and lists of dependencies, and prints a line for each place: drop-in (the package has a module
    with the same names, aiokafkawire.aiokafka, so that the import alone changes), look, or no-counterpart. The first
    line about a name says most. Hidden folders, virtual environments and node_modules are skipped. --write shows a
    diff, asks, changes imports and nothing else, and says how many places are left. The status is 1 if a file could not
    be read, with --write and --check as well, 3 if --check finds a place, and otherwise 0. Needs pip install
    "aiokafkawire[migrate]".
    """
    if find_spec("libcst") is None:
        raise CommandFailed(
            'migrate needs libcst, which is not installed: pip install "aiokafkawire[migrate]"', MISSING
        )
    if write and (shared.json or check):
        raise CommandFailed("--write prints a diff: leave --json and --check out", MISSING)
    from ..migrate.source_files import source_files

    files = source_files(paths)
    return _write(shared, files, yes=yes) if write else _list(shared, files, check=check)


def _list(shared: SharedOptions, files: "list[SourceFile]", *, check: bool) -> int:
    """Print the findings, and return the exit status."""
    from ..migrate.migrating import CodeBase, finding_line

    code = CodeBase(files)
    explained: set[str] = set()
    # Lines on the same terminal are progress enough.
    hidden = not sys.stderr.isatty() or sys.stdout.isatty()
    with click.progressbar(files, label="reading", file=sys.stderr, hidden=hidden) as progress:
        for each in code.findings(progress):
            if shared.json:
                rows = ({"path": str(each.path), **attrs.asdict(found)} for found in each.findings)
                print_rows(shared, (), rows)
            else:
                text = ""
                for found in each.findings:
                    text += finding_line(each.path, found, at_length=found.name not in explained) + "\n"
                    explained.add(found.name)
                write_output(text.encode("utf-8", "surrogateescape"))
    note(code.summary())
    if code.sections and not shared.json:
        note(code.reference())
    if code.skipped:
        return FAILED
    return FOUND if check and code.using else 0


def _write(shared: SharedOptions, files: "list[SourceFile]", *, yes: bool) -> int:
    """Change the imports that are certain, say what is left, and return the exit status."""
    from ..counted import counted
    from ..migrate.migrating import CodeBase, PlacesLeft, changed_imports, diff_of, finding_line
    from ..migrate.source_files import write_files

    code = CodeBase(files)
    found = list(code.findings(files))
    changed = changed_imports(files)
    for path, (before, after) in changed.items():
        write_output(diff_of(path, before, after))
    if changed:
        confirm(f"change {counted(len(changed), 'file')}", [str(path) for path in changed], yes=yes, options=shared)
    failed = write_files(changed)
    for path, why in failed.items():
        note(f"{safe_text(str(path), sys.maxsize)}: it stays as it is: {why}")
    written = {path: change for path, change in changed.items() if path not in failed}
    left = PlacesLeft.after(found, written, files)
    for path, place in left.hidden:
        note(finding_line(path, place, at_length=True))
    done = f"{counted(len(written), 'file')} changed" if changed else "no import of aiokafka can be changed by itself"
    note(f"{done}; {left.summary()}{code.unread()}")
    return FAILED if code.skipped or failed else 0
