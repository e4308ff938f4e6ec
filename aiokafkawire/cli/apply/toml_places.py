"""Finds the place of a key in a TOML text, for error messages: the parser keeps no places."""

import re
import tomllib
from collections.abc import Sequence
from typing import Any, TypeAlias

__all__ = ("TomlPath", "find_place", "path_text")

TomlPath: TypeAlias = Sequence[str | int]
"""The keys, and the positions in lists, that lead to a value."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def path_text(path: TomlPath) -> str:
    """Return a path as a file would have it, such as ``topics."with.dots".partitions`` or ``acls[0].name``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + (part if _BARE.fullmatch(part) else f'"{part}"')
    return text


def find_place(text: str, path: TomlPath) -> tuple[int, int]:
    """Return the line and the column, from 1, of the key at a path, or of the nearest one around it that is there.

    The statement with the key is the one that the first part of the text that has the key ends with. The text must be
    valid TOML.
    """
    lines = [f"{line}\n" for line in text.split("\n")]
    whole = tomllib.loads(text)
    there = list(path)
    while there and not _has(whole, there):
        there.pop()
    if not there:
        return 1, 1
    lacks, unknown_until = 0, len(lines)
    while lacks < unknown_until - 1:
        middle = (lacks + unknown_until) // 2
        parts = ((count, _parsed(lines[:count])) for count in range(middle, unknown_until))
        count, part = next(((count, part) for count, part in parts if part is not None), (0, None))
        if part is None or _has(part, there):
            unknown_until = middle
        else:
            lacks = count
    line = lines[lacks]
    key = next(part for part in reversed(there) if isinstance(part, str))
    found = re.search(rf"(?<![\w-])[\"']?{re.escape(key)}", line)
    indent = len(line) - len(line.lstrip())
    return lacks + 1, (found.start() if found else indent) + 1


def _parsed(lines: Sequence[str]) -> dict[str, Any] | None:
    try:
        return tomllib.loads("".join(lines))
    except tomllib.TOMLDecodeError:  # the last statement is not complete
        return None


def _has(value: Any, path: TomlPath) -> bool:
    for part in path:
        if isinstance(part, int):
            if not isinstance(value, list) or len(value) <= part:
                return False
        elif not isinstance(value, dict) or part not in value:
            return False
        value = value[part]
    return True
