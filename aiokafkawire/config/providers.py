"""Resolves references to secrets in the environment and in files (Java's config providers).

A value may contain ``${env:NAME}`` (KIP-887), ``${file:/path/to.properties:key}`` (KIP-297) or
``${directory:/path:file}`` (KIP-421). Only :func:`resolved` replaces references; :func:`.properties.settings_from`
never does, so it opens no files.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from ..errors import ConfigError
from .properties_parser import comments_in, parse_properties

__all__ = ("PROVIDERS", "Provider", "resolved")

Provider: TypeAlias = Callable[[str, str], str]
"""A function that returns the value for a path and a key; the path is empty if the reference has none."""

_MAX_SIZE: Final = 1024 * 1024
_REFERENCE: Final = re.compile(r"\$\{([A-Za-z][\w.-]*):(?:([^{}]*):)?([^{}:]+)\}")


def resolved(text: str, providers: Mapping[str, Provider] | None = None) -> str:
    """Return the text of a ``.properties`` file with its references replaced by their values.

    References inside values are not replaced, nor those in comments. ``settings_from(resolved(text))`` reads the
    result.

    Args:
        text: the text, such as Java's ``client.properties``.
        providers: the providers by name; :data:`PROVIDERS` by default.

    Raises:
        ConfigError: a provider, variable, file or key does not exist; the message has the reference, but no value.
    """
    known, comments = PROVIDERS if providers is None else providers, comments_in(text)

    def look_up(match: re.Match[str]) -> str:
        if any(match.start() in comment for comment in comments):
            return match.group()
        name, path, key = match.group(1), match.group(2) or "", match.group(3)
        provider = known.get(name)
        if provider is None:
            raise ConfigError(f"{match.group()}: unknown provider {name!r}; known: {', '.join(sorted(known))}")
        try:
            return _escaped(provider(path, key))
        except (LookupError, OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "there is no value of that name"
            raise ConfigError(f"{match.group()}: {reason}") from None

    return _REFERENCE.sub(look_up, text)


def _escaped(value: str) -> str:
    """Escape a value's backslashes, line ends and leading blanks for a .properties file."""
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    # The parser would skip unescaped blanks at the beginning of a value.
    return "\\" + escaped if escaped[:1] in (" ", "\f") else escaped


def _of_environment(path: str, key: str) -> str:
    if path:
        raise LookupError(path)
    return os.environ[key]


def _of_file(path: str, key: str) -> str:
    return parse_properties(_read(Path(path)))[key]


def _of_directory(path: str, key: str) -> str:
    if Path(key).name != key:
        raise LookupError(key)  # the key must not lead to another directory
    return _read(Path(path, key))


def _read(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(_MAX_SIZE + 1)
    if len(data) > _MAX_SIZE:
        raise ValueError(path)
    return data.decode()


PROVIDERS: Final[Mapping[str, Provider]] = {"env": _of_environment, "file": _of_file, "directory": _of_directory}
"""The default providers, equal to Java's: environment variables, .properties files and directories."""
