"""Where secrets come from that settings only refer to: the environment, and files (Java's config providers).

A value may hold ``${env:NAME}`` (KIP-887), ``${file:/path/to.properties:key}`` (KIP-297) or ``${directory:/path:file}``
(KIP-421). What they stand for is looked up here, by whoever asks for it: reading settings alone opens no file.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from ..errors import ConfigError
from .properties_parser import parse_properties

__all__ = ("PROVIDERS", "Provider", "resolved")

Provider: TypeAlias = Callable[[str, str], str]
"""Gives what stands at a path, empty for none, under a key."""

_LARGEST: Final = 1024 * 1024
_REFERENCE: Final = re.compile(r"\$\{([A-Za-z]\w*):(?:([^{}]*):)?([^{}:]+)\}")


def resolved(text: str, providers: Mapping[str, Provider] | None = None) -> str:
    """The text of a ``.properties`` file, with what its references stand for.

    What a reference stands for is not looked into for others. ``settings_from(resolved(text))`` reads the outcome.

    Args:
        text: as Java's ``client.properties``.
        providers: by name; :data:`PROVIDERS` if not given.

    Raises:
        ConfigError: no such provider, variable, file or key; the message names the reference, and no value.
    """
    known = PROVIDERS if providers is None else providers

    def look_up(match: re.Match[str]) -> str:
        name, path, key = match.group(1), match.group(2) or "", match.group(3)
        provider = known.get(name)
        if provider is None:
            raise ConfigError(f"{match.group()}: there is no provider {name!r}, but {', '.join(sorted(known))}")
        try:
            return _escaped(provider(path, key))
        except (LookupError, OSError, ValueError) as error:
            told = error.strerror if isinstance(error, OSError) else "nothing is there of that name"
            raise ConfigError(f"{match.group()}: {told}") from None

    return _REFERENCE.sub(look_up, text)


def _escaped(value: str) -> str:
    """As a properties file has it, where a backslash and the end of a line mean something."""
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    # Where a value begins, blanks are passed over.
    return "\\" + escaped if escaped[:1] in (" ", "\f") else escaped


def _of_environment(path: str, key: str) -> str:
    if path:
        raise LookupError(path)
    return os.environ[key]


def _of_file(path: str, key: str) -> str:
    return parse_properties(_read(Path(path)))[key]


def _of_directory(path: str, key: str) -> str:
    if Path(key).name != key:
        raise LookupError(key)  # it would be of another directory
    return _read(Path(path, key))


def _read(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError(path)
    return data.decode()


PROVIDERS: Final[Mapping[str, Provider]] = {"env": _of_environment, "file": _of_file, "directory": _of_directory}
"""Those of Java's that read the environment and files."""
