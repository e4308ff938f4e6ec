"""Reads the secrets that changes need from their places: environment variables and files."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..exit_status import CommandFailed
from ..shell.passwords import password_of_file, password_of_variable
from .changes import AlterConfigs, Change, SetUser
from .cluster_settings import Secret

__all__ = ("present_secrets", "read_secrets")


def read_secrets(changes: Iterable[Change], folder: Path, environment: Mapping[str, str]) -> dict[Secret, bytes]:
    """Return the secrets that changes need, by their places.

    Args:
        changes: the changes of a plan.
        folder: the folder that relative paths begin at, which is that of the state file.
        environment: the environment variables.

    Raises:
        CommandFailed: a secret is not in its place, or is empty (exit status 2).
    """
    return {secret: _read(what, secret, folder, environment) for what, secret in _needed(changes)}


def present_secrets(
    changes: Iterable[Change], folder: Path, environment: Mapping[str, str]
) -> tuple[dict[Secret, bytes], list[str]]:
    """Return the secrets that are in their places, and a line for each that is not. Arguments as of read_secrets."""
    found: dict[Secret, bytes] = {}
    missing: dict[str, None] = {}
    for what, secret in _needed(changes):
        try:
            found[secret] = _read(what, secret, folder, environment)
        except CommandFailed as error:
            missing[str(error)] = None
    return found, list(missing)


def _needed(changes: Iterable[Change]) -> Iterator[tuple[str, Secret]]:
    for change in changes:
        if isinstance(change, SetUser) and change.user.password is not None:
            yield f"the password of user {change.name}", change.user.password
        elif isinstance(change, AlterConfigs):
            for name, value in change.changes.items():
                if isinstance(value, Secret):
                    yield f"{name} of {change.kind} {change.name}", value


def _read(what: str, secret: Secret, folder: Path, environment: Mapping[str, str]) -> bytes:
    if secret.environment is not None:
        return password_of_variable(what, secret.environment, environment)
    assert secret.file is not None
    return password_of_file(what, str(folder / secret.file))
