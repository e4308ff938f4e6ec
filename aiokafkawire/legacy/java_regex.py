"""Translates Java's regular expressions to Python's. An error names the part that cannot be translated.

Some expressions have different meanings in Java and Python, such as ``\\p{Lower}``, ``[a-z&&[^b]]`` and ``\\d``. If the
members of a group matched different topics, some partitions would be read twice and others never, so the translation
checks every part.
"""

import re
from typing import Final

__all__ = ("UnsupportedRegex", "java_regex")


class UnsupportedRegex(ValueError):
    """A regular expression is invalid in Java, or cannot be translated; the message names the invalid part."""


_DOT: Final = "[^\\n\\r\\x85\\u2028\\u2029]"
_AT_END: Final = "(?=(?:\\r\\n|[\\n\\r\\x85\\u2028\\u2029])?\\Z)"
_PROPERTIES: Final = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": "\\x00-\\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": "!-/:-@\\[-`{-~",
    "Graph": "!-~",
    "Print": "\\x20-~",
    "Blank": "\\x20\\t",
    "Cntrl": "\\x00-\\x1f\\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": "\\x20\\t-\\r",
}
"""Java's POSIX character classes, which contain only ASCII."""
_CHARACTERS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_CLASSES: Final = frozenset("dDwWsS")
_GROUPS: Final = ("(?:", "(?=", "(?!", "(?<=", "(?<!", "(?i:")
_CODE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4}))")
_PROPERTY: Final = re.compile(r"\\[pP](?:\{([^{}]*)\}|.)", re.DOTALL)
_TIMES: Final = re.compile(r"\{([0-9]{1,9})\}")
_CONSTRUCT: Final = re.compile(r"\(\?<?[^:()<>=!]*[:)>=!]?")
_BRACES: Final = re.compile(r"\{[^{}]*\}?")


def java_regex(regex: str) -> re.Pattern[str]:
    """Compile a Java regular expression. Its ``fullmatch`` corresponds to Java's ``String.matches``.

    Raises:
        UnsupportedRegex: the expression is invalid in Java, or cannot be translated.
    """
    translation = _Translation(regex)
    try:
        return re.compile(translation.run(), re.ASCII | (re.IGNORECASE if translation.ignores_case else 0))
    except (re.error, OverflowError, RecursionError) as cause:
        raise UnsupportedRegex(f"it cannot be compiled: {cause}") from cause


class _Translation:
    """The translation of one Java regular expression to Python's syntax, from left to right."""

    def __init__(self, regex: str) -> None:
        self._text, self._at = regex, 0
        self._out: list[str] = []
        self._groups: list[str] = []
        """The syntax that began each open group, such as ``(?:``."""
        self._repeatable = False
        self.ignores_case: bool = regex.startswith("(?i)")

    def run(self) -> str:
        """Return the translation. Raises as :func:`java_regex`."""
        if self.ignores_case:
            self._at = len("(?i)")
        while self._at < len(self._text):
            self._part(self._text[self._at])
        if self._groups:
            raise UnsupportedRegex(f"a group that begins with {self._groups[-1]!r} has no end")
        return "".join(self._out)

    def _part(self, char: str) -> None:
        match char:
            case "*" | "+" | "?" | "{":
                self._repeat(char)
            case "(":
                self._open_group()
            case ")":
                self._close_group()
            case "[":
                self._class()
            case "\\":
                self._escape()
            case "|" | "^":
                self._write(char, 1, repeatable=False)
            case "$":
                self._write(_AT_END, 1, repeatable=False)
            case ".":
                self._write(_DOT, 1)
            case _:
                self._write(re.escape(char), 1)

    def _write(self, translated: str, length: int, *, repeatable: bool = True) -> None:
        """Append the translation of the next ``length`` characters; ``repeatable``: whether a quantifier may follow."""
        self._out.append(translated)
        self._at += length
        self._repeatable = repeatable

    def _repeat(self, char: str) -> None:
        found = _TIMES.match(self._text, self._at)
        if char == "{" and found is None:
            braces = _BRACES.match(self._text, self._at)
            assert braces is not None
            raise UnsupportedRegex(f"{braces[0]!r} is not a repetition: only a number may stand in it, such as '{{3}}'")
        said = found[0] if found is not None else char
        if not self._repeatable:
            raise UnsupportedRegex(f"{said!r} at index {self._at} has nothing to repeat")
        self._write(said, len(said), repeatable=False)
        if self._text.startswith("?", self._at):
            self._write("?", 1, repeatable=False)
        elif self._text.startswith("+", self._at):
            raise UnsupportedRegex(f"the possessive quantifier {said + '+'!r} is not supported")

    # --- groups -------------------------------------------------------------------------------------------------------

    def _open_group(self) -> None:
        begin = next((group for group in _GROUPS if self._text.startswith(group, self._at)), "(")
        if begin == "(" and self._text.startswith("(?", self._at):
            named = _CONSTRUCT.match(self._text, self._at)
            assert named is not None
            where = "; '(?i)' may stand at the beginning alone" if named[0] == "(?i)" else ""
            raise UnsupportedRegex(f"{named[0]!r} is not supported{where}")
        self._groups.append(begin)
        self._write("(?:" if begin == "(" else begin, len(begin), repeatable=False)

    def _close_group(self) -> None:
        if not self._groups:
            raise UnsupportedRegex(f"the ')' at index {self._at} closes no group")
        begin = self._groups.pop()
        self._write(")", 1, repeatable=begin in ("(", "(?:", "(?i:"))

    # --- escapes ------------------------------------------------------------------------------------------------------

    def _escape(self) -> None:
        name = self._text[self._at + 1 : self._at + 2]
        if name == "Q":
            self._quotation()
        elif name in ("A", "z", "Z"):
            self._write({"A": "\\A", "z": "\\Z", "Z": _AT_END}[name], 2, repeatable=False)
        elif name in ("p", "P"):
            body, length = self._property()
            self._write(f"[{'^' * (name == 'P')}{body}]", length)
        elif name in _CLASSES and name:
            self._write(f"\\{name}", 2)
        else:
            char, length = self._escaped_character()
            self._write(re.escape(char), length)

    def _quotation(self) -> None:
        """Copy everything up to ``\\E``, or to the end, literally."""
        begin = self._at + 2
        end = self._text.find("\\E", begin)
        quoted = self._text[begin:] if end < 0 else self._text[begin:end]
        for char in quoted:
            self._write(re.escape(char), 1)
        self._at = len(self._text) if end < 0 else end + 2

    def _property(self) -> tuple[str, int]:
        found = _PROPERTY.match(self._text, self._at)
        said = found[0] if found is not None else self._text[self._at :]
        body = _PROPERTIES.get(found[1] or "") if found is not None else None
        if body is None:
            raise UnsupportedRegex(f"{said!r} is not supported; of \\p{{...}} there are {', '.join(_PROPERTIES)}")
        if said[3:-1] in ("Lower", "Upper") and (self.ignores_case or "(?i:" in self._groups):
            raise UnsupportedRegex(f"{said!r} is not supported where case is ignored: releases of Java differ there")
        return body, len(said)

    def _escaped_character(self) -> tuple[str, int]:
        """Return the character of an escape, and the length of the escape."""
        code = _CODE.match(self._text, self._at)
        if code is not None:
            number = int(code[1] or code[2], 16)
            if 0xD800 <= number < 0xE000:
                raise UnsupportedRegex(f"{code[0]!r} is half of a character")
            return chr(number), len(code[0])
        name = self._text[self._at + 1 : self._at + 2]
        if not name:
            raise UnsupportedRegex("it ends with a backslash")
        if name in _CHARACTERS:
            return _CHARACTERS[name], 2
        if name.isascii() and name.isalnum():
            raise UnsupportedRegex(f"{self._text[self._at : self._at + 2]!r} is not supported")
        return name, 2

    # --- character classes --------------------------------------------------------------------------------------------

    def _class(self) -> None:
        begin, at_begin = self._text[self._at : self._at + 2], self._at
        self._out.append("[^" if begin == "[^" else "[")
        self._at += 2 if begin == "[^" else 1
        if self._text.startswith("]", self._at):
            raise UnsupportedRegex(f"the ']' at index {self._at} is not escaped, and is first in its character class")
        while not self._text.startswith("]", self._at):
            if self._at >= len(self._text):
                raise UnsupportedRegex(f"the character class at index {at_begin} has no end")
            self._member()
        self._write("]", 1)

    def _member(self) -> None:
        """Translate a member of a character class: a character, a range, or another class."""
        name = self._text[self._at + 1 : self._at + 2] if self._text[self._at] == "\\" else ""
        if name in ("p", "P") or (name and name in _CLASSES):
            if name == "P":
                raise UnsupportedRegex("'\\P' is not supported in a character class")
            body, length = self._property() if name == "p" else (f"\\{name}", 2)
            self._write(body, length)
            if self._is_range():
                raise UnsupportedRegex(f"the '-' at index {self._at} follows a class of characters: escape it")
            return
        first = self._single()
        if not self._is_range():
            self._out.append(_in_class(first))
            return
        self._at += 1
        last = self._single()
        if last < first:
            raise UnsupportedRegex(f"the range {first}-{last} has its ends in the wrong order")
        self._out.append(f"{_in_class(first)}-{_in_class(last)}")

    def _is_range(self) -> bool:
        """Return whether a ``-`` follows that means a range, that is, does not end the character class."""
        return self._text.startswith("-", self._at) and not self._text.startswith("-]", self._at)

    def _single(self) -> str:
        """Read and return one character of a character class."""
        rest = self._text[self._at : self._at + 2]
        if rest[:1] == "[":
            raise UnsupportedRegex(f"the '[' at index {self._at}, a character class in another, is not supported")
        if rest == "&&":
            raise UnsupportedRegex(f"'&&' at index {self._at}, the intersection of character classes, is not supported")
        if not rest:
            raise UnsupportedRegex("a character class has no end")
        char, length = self._escaped_character() if rest[0] == "\\" else (rest[0], 1)
        self._at += length
        return char


def _in_class(char: str) -> str:
    return f"\\{char}" if char.isascii() and not char.isalnum() else char
