"""The start of the command ``aiokafkawire``, and its end: exit status and error message."""

import gc
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Final, NoReturn

from .error_log import print_no_warnings
from .exit_status import FAILED, INTERRUPTED, MISSING, CommandFailed, explain
from .plain_verbs import parse_plain, plain_help
from .shell.verb_list import PLAIN_VERBS, SHELL_VERBS, extra_of
from .standard_streams import discard_output, open_closed_streams

__all__ = ("main", "run")

_OBJECTS_BEFORE_COLLECTING: Final = 50_000


def run() -> NoReturn:
    """Run the command of this process, and exit with its status."""
    # The modules of a command live until its end. Looking for garbage in them, meanwhile and as Python ends, takes a
    # sixth of the time of a command that prints one record.
    gc.set_threshold(_OBJECTS_BEFORE_COLLECTING)
    status = main()
    gc.freeze()
    sys.exit(status)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 0, 1 for a failure, 2 for wrong usage, 130 after Ctrl-C."""
    closed = open_closed_streams()
    print_no_warnings()
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        command = _parse(arguments, closed)
        if command is None:
            return MISSING
    except BrokenPipeError:  # the help has no reader
        discard_output()
        return FAILED
    except KeyboardInterrupt:  # while modules are imported
        return INTERRUPTED
    try:
        status = command()
        sys.stdout.flush()
    except BaseException as error:
        explained = explain(error)
        if explained is None:
            raise
        status, message = explained
        if message:
            print(f"aiokafkawire: {message}", file=sys.stderr)
    return status


def _parse(arguments: list[str], closed: frozenset[str]) -> Callable[[], int] | None:
    """Return the command to run; None if there is none, and the help was printed to standard error."""
    verb = arguments[0] if arguments else None
    if verb in PLAIN_VERBS or verb == "--version":
        return parse_plain(arguments, closed)
    if find_spec("click") is None:
        return _without_click(arguments, closed)
    # click is imported here, so that the verbs that do without it start faster.
    from .shell.app import COMPLETE, complete, help_text, parse

    if COMPLETE in os.environ:
        return partial(complete, os.environ[COMPLETE])
    if verb is None:
        print(help_text(), file=sys.stderr)
        return None
    return parse(arguments, closed)


def _without_click(arguments: list[str], closed: frozenset[str]) -> Callable[[], int] | None:
    if not arguments:
        print(plain_help(), file=sys.stderr)
        return None
    if arguments[0] not in SHELL_VERBS:
        return parse_plain(arguments, closed)

    def refuse() -> int:
        needs = f"{arguments[0]} needs click, which is not installed"
        raise CommandFailed(f'{needs}: pip install "aiokafkawire[{extra_of(arguments[0])}]"', MISSING)

    return refuse
