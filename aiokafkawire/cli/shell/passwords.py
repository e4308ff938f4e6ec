"""Reads passwords from a terminal, an environment variable or a file. No message shows a password."""

import getpass
import sys
from collections.abc import Mapping
from pathlib import Path

from ..exit_status import FAILED, MISSING, CommandFailed
from .shared_options import SharedOptions

__all__ = ("password_of_file", "password_of_variable", "read_password")


def read_password(
    what: str, options: SharedOptions, environment: Mapping[str, str], *, variable: str | None, file: str | None
) -> bytes:
    """Return a password as UTF-8 bytes: of an environment variable, of a file, or typed twice on the terminal.

    Args:
        what: the password, for the prompt and the errors, such as "the password of alice".
        options: the shared options.
        environment: the environment variables.
        variable: the name of the variable that has the password; None if none was given.
        file: the path of the file that has the password; None if none was given.

    Raises:
        CommandFailed: there is no password, it is empty, or the two passwords that were typed differ.
    """
    if variable is not None and file is not None:
        raise CommandFailed("--password-env and --password-file cannot be combined", MISSING)
    if variable is not None:
        return password_of_variable(what, variable, environment)
    if file is not None:
        return password_of_file(what, file)
    if "stdin" in options.closed or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise CommandFailed(f"without a terminal, {what} needs --password-env NAME or --password-file FILE", MISSING)
    try:
        password = getpass.getpass(f"{what}: ", sys.stderr)
        again = getpass.getpass(f"{what}, again: ", sys.stderr) if password else password
    except EOFError:
        raise CommandFailed("nothing is done", FAILED) from None
    if password != again:
        raise CommandFailed("nothing is done: the two passwords differ", FAILED)
    return _checked(what, password.encode("utf-8", "surrogateescape"))


def password_of_variable(what: str, variable: str, environment: Mapping[str, str]) -> bytes:
    """Return the password that an environment variable has. Raise CommandFailed (2) if there is none."""
    if variable not in environment:
        raise CommandFailed(f"{what}: there is no environment variable {variable!r}", MISSING)
    return _checked(f"{what} in {variable}", environment[variable].encode("utf-8", "surrogateescape"))


def password_of_file(what: str, file: str) -> bytes:
    """Return the password that a file has, without the end of its last line. Raise CommandFailed (2) if none."""
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        raise CommandFailed(f"cannot read {what} in {file}: {error.strerror}", MISSING) from None
    return _checked(f"{what} in {file}", content.removesuffix(b"\n").removesuffix(b"\r"))


def _checked(what: str, password: bytes) -> bytes:
    if not password:
        raise CommandFailed(f"{what} is empty", MISSING)
    return password
