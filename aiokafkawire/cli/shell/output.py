"""Prints the data of commands to standard output, and all else to standard error."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ..exit_status import FAILED, MISSING, CommandFailed
from ..standard_streams import SignalWhileBlocked, discard_output, limited_by_signals
from .safe_text import safe_text
from .shared_options import SharedOptions
from .table import table
from .times import iso_time
from .vocabulary import heading, is_moment

__all__ = ("Columns", "confirm", "note", "print_gap", "print_rows", "rows_table", "write_output")

Columns = Sequence[str]
"""The columns of a table: keys of its rows, whose headings are in the vocabulary."""

_NAMED: Final = 10
"""The number of names in a question; the others are counted."""


def write_output(data: bytes) -> None:
    """Write bytes to standard output at once; if it is a terminal, with escapes for what the terminal might obey.

    Raises:
        CommandFailed: the output has no reader any more, or one that does not read, and there was a signal; the
            message is empty, so that the command ends silently.
    """
    try:
        with limited_by_signals():
            rest = memoryview(_for_terminal(data) if sys.stdout.isatty() else data)
            while rest:
                # With PYTHONUNBUFFERED it may write a part only, as when the process is stopped and continued.
                rest = rest[sys.stdout.buffer.write(rest) :]
            sys.stdout.buffer.flush()
    except BrokenPipeError:
        discard_output()
        raise CommandFailed("", FAILED) from None
    except SignalWhileBlocked as blocked:
        discard_output()
        raise CommandFailed("", 128 + blocked.number) from None


def _for_terminal(data: bytes) -> bytes:
    lines = (line.split("\t") for line in data.decode("utf-8", "backslashreplace").split("\n"))
    return "\n".join("\t".join(safe_text(part, sys.maxsize) for part in line) for line in lines).encode()


def print_rows(options: SharedOptions, columns: Columns, rows: Iterable[Mapping[str, Any]]) -> None:
    """Print rows: with ``--json`` each as a JSON object with all its keys, otherwise the columns as a table."""
    if options.json:
        text = "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
    else:
        text = rows_table(columns, rows)
    write_output(text.encode("utf-8", "surrogateescape"))


def rows_table(columns: Columns, rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the columns of rows as a table for people, where moments are dates."""
    return table([heading(key) for key in columns], ([_cell(key, row[key]) for key in columns] for row in rows))


def _cell(key: str, value: object) -> object:
    return iso_time(value) if isinstance(value, int) and is_moment(key) else value


def print_gap(options: SharedOptions) -> None:
    """Print an empty line between two tables; none between JSON objects."""
    if not options.json:
        write_output(b"\n")


def note(text: str) -> None:
    """Print a line to standard error; print nothing if its reader has gone away, which no command depends on."""
    try:
        print(text, file=sys.stderr, flush=True)
    except BrokenPipeError:
        discard_output(sys.stderr)


def confirm(what: str, names: Sequence[str], *, yes: bool, options: SharedOptions) -> None:
    """Ask the user on the terminal before something is destroyed; do nothing with ``yes``.

    Args:
        what: the question without a question mark, such as "delete 2 topics with their records".
        names: what is to be destroyed, for the question; may be empty.
        yes: whether the user has agreed on the command line.
        options: the shared options.

    Raises:
        CommandFailed: the user does not agree (1), or there is no terminal to ask on (2).
    """
    if yes:
        return
    if "stdin" in options.closed or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise CommandFailed(f"nothing is done: there is no terminal to ask on; add --yes to {what}", MISSING)
    others = f", and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    listed = f" ({', '.join(names[:_NAMED])}{others})" if names else ""
    print(f"{what}{listed}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandFailed("nothing is done", FAILED)
