"""Parses .properties files as Java does.

Errors contain line numbers, but no values, which may be secret.
"""

import re
from collections.abc import Iterator
from typing import Final

from ..errors import ConfigError

__all__ = ("comments_in", "parse_properties")

_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LINE: Final = re.compile(r"([^\r\n]*)(?:\r\n|\r|\n|\Z)")
_KEY: Final = re.compile(r"(?P<key>(?:\\.|[^\\=:\s])*)[ \t\f]*[=:]?[ \t\f]*(?P<value>.*)", re.S)
_ESCAPED: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.S)


def parse_properties(text: str) -> dict[str, str]:
    """Parse the text of a .properties file into keys and values. If a key is repeated, its last value is used.

    Raises:
        ConfigError: an escape sequence is invalid; the message has the number of the line.
    """
    found = {}
    for number, line in _logical_lines(text):
        match = _KEY.match(line)
        assert match is not None  # the pattern matches every line
        found[_unescaped(match["key"], number)] = _unescaped(match["value"], number)
    return found


def comments_in(text: str) -> list[range]:
    """Return the positions of the comments in the text of a .properties file."""
    found: list[range] = []
    continued = False
    for match in _LINE.finditer(text):
        line = match[1]
        if not continued and line.lstrip(" \t\f").startswith(("#", "!")):
            found.append(range(match.start(), match.end()))
        else:
            continued = _is_continued(line)
    return found


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the logical lines with their numbers: join continued lines, skip comments and empty lines."""
    gathered, began = "", 0
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = line.lstrip(" \t\f")
        if not gathered:
            began = number
            if not line or line[0] in "#!":
                continue
        if _is_continued(line):
            gathered += line[:-1]
            continue
        yield began, gathered + line
        gathered = ""
    if gathered:
        yield began, gathered


def _unescaped(text: str, line: int) -> str:
    def plain(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] != "u":
            return _ESCAPES.get(code, code)
        if len(code) != 5:
            raise ConfigError(f"line {line} of the properties has a broken \\u escape")
        return chr(int(code[1:], 16))

    made = _ESCAPED.sub(plain, text)
    # Java writes characters beyond 16 bits as surrogate pairs.
    return made.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
