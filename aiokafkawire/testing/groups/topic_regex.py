"""Regular expressions of subscribed topics: RE2 syntax, translated for Python's ``re``."""

import re
from collections.abc import Set as AbstractSet
from typing import Final

from ...errors import ErrorCode
from ..cluster.api_error import ApiError
from .character_sets import ASCII, PERL, as_python, folded, posix, unicode_class

__all__ = ("compile_regex",)

_ANCHORS: Final = {r"\A": r"\A", r"\z": r"\Z", r"\b": r"\b", r"\B": r"\B"}
_CONTROLS: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_FLAGS: Final = re.compile(r"\(\?(?P<on>[imsU]*)(?:-(?P<off>[imsU]+))?(?P<end>[:)])")
_HEX: Final = re.compile(r"\\x(?:\{(?P<long>[0-9A-Fa-f]+)\}|(?P<two>[0-9A-Fa-f]{2}))")
_NAMED: Final = re.compile(r"\(\?P?<(?P<name>[0-9A-Za-z_]+)>")
_OCTAL: Final = re.compile(r"\\(?:0[0-7]{0,2}|[1-7][0-7]{1,2})")
_POSIX: Final = re.compile(r"\[:(.*?):\]", re.DOTALL)
_REPEAT: Final = re.compile(r"[*+?]|\{(?P<least>\d+)(?:,(?P<most>\d*))?\}", re.ASCII)
_UNICODE: Final = re.compile(r"\\(?P<kind>[pP])(?:\{(?P<negated>\^?)(?P<name>[^}]*)\}|(?P<letter>[^{]))", re.DOTALL)
_HIGHEST_REPEAT: Final = 1000
_HIGHEST_CHARACTER: Final = 0x10FFFF
_BAD_ESCAPE: Final = "invalid escape sequence"
_BAD_RANGE: Final = "invalid character class range"


def compile_regex(regex: str) -> re.Pattern[str]:
    """Compile a regular expression that must match a topic's whole name.

    Raises:
        ApiError: INVALID_REGULAR_EXPRESSION.
    """
    try:
        return re.compile(_Translation(regex).translated())
    except re.error as error:
        description = str(error)
    except (OverflowError, RecursionError):
        description = "expression nests too deeply"
    message = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {description}."
    raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, message)


class _Translation:
    """The translation of one expression. Of the flags only ``i`` matters for names, which have no line breaks."""

    def __init__(self, regex: str) -> None:
        self._regex = regex
        self._at = 0
        self._ignores_case = False
        self._outer: list[bool] = []
        """``_ignores_case`` before each open group."""
        self._names: set[str] = set()
        self._may_repeat = False
        self._repeat_end = -1
        """The end of the last repetition operator; Kafka's library takes a literal ``{`` for one, too."""

    def translated(self) -> str:
        parts = []
        while self._at < len(self._regex):
            parts.append(self._part())
        if self._outer:
            raise re.error("missing closing )")
        return "".join(parts)

    def _part(self) -> str:
        repeat = _REPEAT.match(self._regex, self._at)
        if repeat is not None:
            return self._repeat(repeat)
        match self._regex[self._at]:
            case "(":
                return self._group()
            case ")":
                return self._close()
            case "|":
                self._may_repeat = False
                return self._take(1)
            case "[":
                return self._matching(self._set())
            case "\\":
                return self._escape()
            case "^" | "$" as anchor:
                self._at += 1
                return self._anchor(r"\A" if anchor == "^" else r"\Z")
            case ".":
                self._at += 1
                return self._matching(ASCII - {"\n"})
        character = self._take(1)
        if character == "{":
            self._repeat_end = self._at
        return self._literal(character)

    def _take(self, count: int) -> str:
        first, self._at = self._at, self._at + count
        return self._regex[first : self._at]

    # --- what is matched -------------------------------------------------------------------------------------------

    def _matching(self, characters: AbstractSet[str]) -> str:
        self._may_repeat = True
        return as_python(characters)

    def _literal(self, character: str) -> str:
        return self._matching(self._fold({character}) & ASCII)

    def _fold(self, characters: AbstractSet[str]) -> AbstractSet[str]:
        return folded(characters) if self._ignores_case else characters

    def _anchor(self, anchor: str) -> str:
        self._may_repeat = True
        return f"(?:{anchor})"

    def _repeat(self, found: re.Match[str]) -> str:
        least, most = int(found["least"] or 0), int(found["most"] or found["least"] or 0)
        if max(least, most) > _HIGHEST_REPEAT or most < least:
            raise re.error("invalid repeat count")
        if self._at == self._repeat_end:
            raise re.error("invalid nested repetition operator")
        if not self._may_repeat:
            raise re.error("missing argument to repetition operator")
        self._at = found.end()
        lazy = self._take(1) if self._regex.startswith("?", self._at) else ""
        self._repeat_end = self._at
        return found[0] + lazy

    # --- groups ----------------------------------------------------------------------------------------------------

    def _group(self) -> str:
        if not self._regex.startswith("(?", self._at):
            self._at += 1
            return self._open()
        if self._regex.startswith(("(?P<", "(?<"), self._at):
            return self._named()
        found = _FLAGS.match(self._regex, self._at)
        if found is None:
            raise re.error("invalid or unsupported Perl syntax")
        self._at = found.end()
        ignores_case = "i" not in (found["off"] or "") and (self._ignores_case or "i" in found["on"])
        if found["end"] == ")":
            self._ignores_case = ignores_case
            return ""
        opened = self._open()
        self._ignores_case = ignores_case
        return opened

    def _named(self) -> str:
        found = _NAMED.match(self._regex, self._at)
        if found is None:
            raise re.error("invalid named capture")
        if found["name"] in self._names:
            raise re.error("duplicate capture group name")
        self._names.add(found["name"])
        self._at = found.end()
        return self._open()

    def _open(self) -> str:
        self._outer.append(self._ignores_case)
        self._may_repeat = False
        return "(?:"

    def _close(self) -> str:
        if not self._outer:
            raise re.error("regexp/syntax: internal error")  # as Kafka's library describes it
        self._at += 1
        self._ignores_case = self._outer.pop()
        self._may_repeat = True
        return ")"

    # --- escapes ---------------------------------------------------------------------------------------------------

    def _escape(self) -> str:
        start = self._regex[self._at : self._at + 2]
        if start in _ANCHORS:
            self._at += 2
            return self._anchor(_ANCHORS[start])
        if start == r"\Q":
            text, _, _ = self._regex[self._at + 2 :].partition(r"\E")
            self._at += 2 + len(text) + 2
            return "".join(map(self._literal, text))
        found = self._class()
        return self._literal(self._character()) if found is None else self._matching(found)

    def _class(self) -> AbstractSet[str] | None:
        r"""Return the characters of a class such as ``\d`` or ``\pL``, if there is one here."""
        kind = self._regex[self._at + 1 : self._at + 2]
        if kind in PERL:
            self._at += 2
            return PERL[kind]
        if kind not in ("p", "P"):
            return None
        found = _UNICODE.match(self._regex, self._at)
        members = unicode_class(found["letter"] or found["name"]) if found else None
        if found is None or members is None:
            raise re.error(_BAD_RANGE)
        self._at = found.end()
        members = self._fold(members)
        return ASCII - members if (kind == "P") != bool(found["negated"]) else members

    def _character(self) -> str:
        r"""Return the character that an escape such as ``\.`` or ``\x41`` stands for."""
        if self._at + 1 == len(self._regex):
            raise re.error("trailing backslash at end of expression")
        octal, hexadecimal = _OCTAL.match(self._regex, self._at), _HEX.match(self._regex, self._at)
        number = None
        if octal is not None:
            number, self._at = int(octal[0][1:], 8), octal.end()
        elif hexadecimal is not None:
            number, self._at = int(hexadecimal["long"] or hexadecimal["two"], 16), hexadecimal.end()
        if number is not None:
            if number > _HIGHEST_CHARACTER:
                raise re.error(_BAD_ESCAPE)
            return chr(number)
        character = self._regex[self._at + 1]
        if character not in _CONTROLS and character.isascii() and character.isalnum():
            raise re.error(_BAD_ESCAPE)
        self._at += 2
        return _CONTROLS.get(character, character)

    # --- sets ------------------------------------------------------------------------------------------------------

    def _set(self) -> AbstractSet[str]:
        negated = self._regex.startswith("[^", self._at)
        self._at += 2 if negated else 1
        members, first = set[str](), True
        while first or not self._regex.startswith("]", self._at):
            if self._at >= len(self._regex):
                raise re.error("missing closing ]")
            members |= self._members()
            first = False
        self._at += 1
        return ASCII - members if negated else members

    def _members(self) -> AbstractSet[str]:
        named = _POSIX.match(self._regex, self._at)
        if named is not None:
            members = posix(named[1])
            if members is None:
                raise re.error(_BAD_RANGE)
            self._at = named.end()
            return self._fold(members)
        found = self._class() if self._regex[self._at] == "\\" else None
        if found is not None:
            return found
        lowest = highest = self._member()
        rest = self._regex[self._at : self._at + 2]
        if rest.startswith("-") and rest not in ("-", "-]"):
            self._at += 1
            highest = self._member()
        if highest < lowest:
            raise re.error(_BAD_RANGE)
        return self._fold({character for character in ASCII if lowest <= character <= highest})

    def _member(self) -> str:
        return self._character() if self._regex[self._at] == "\\" else self._take(1)
