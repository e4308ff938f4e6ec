"""Regular expressions of subscribed topics: RE2 syntax, as far as Python's ``re`` agrees with it."""

import re
from typing import Final

from ...errors import ErrorCode
from ..cluster.api_error import ApiError

__all__ = ("compile_regex",)

_POSIX: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "upper": "A-Z",
    "word": r"\w",
    "xdigit": "0-9A-Fa-f",
}
_GROUPS: Final = re.compile(r"\(\?(?:P?<(?P<name>\w+)>|(?P<flags>[ims]+)\)|:)")
_REPEAT: Final = re.compile(r"[*+?]|\{\d+(?:,\d*)?\}")
_ESCAPE: Final = re.compile(r"\\(?:[AbBdDsSwWafnrtv]|x[0-9A-Fa-f]{2}|z|[^\w\s])")
_DESCRIPTIONS: Final = (
    ("unterminated character set", "missing closing ]"),
    ("missing )", "missing closing )"),
    ("unbalanced parenthesis", "unexpected )"),
    ("nothing to repeat", "missing argument to repetition operator"),
    ("bad character range", "invalid character class range"),
)


def compile_regex(regex: str) -> re.Pattern[str]:
    """Compile a regular expression that must match a topic's whole name.

    Raises:
        ApiError: INVALID_REGULAR_EXPRESSION, also for valid syntax that ``re`` does not have.
    """
    try:
        return re.compile(_Translation(regex).translated(), re.ASCII)
    except (re.error, OverflowError) as error:
        text = str(error)
        description = next((theirs for ours, theirs in _DESCRIPTIONS if text.startswith(ours)), text)
    message = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {description}."
    raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, message)


class _Translation:
    def __init__(self, regex: str) -> None:
        self._regex = regex
        self._at = 0
        self._flags = ""

    def translated(self) -> str:
        parts = []
        while self._at < len(self._regex):
            parts.append(self._part())
        return f"(?{self._flags}){''.join(parts)}" if self._flags else "".join(parts)

    def _part(self) -> str:
        match self._regex[self._at]:
            case "\\":
                return self._escape()
            case "[":
                return self._set()
            case "(" if self._regex.startswith("(?", self._at):
                return self._group()
        repeat = _REPEAT.match(self._regex, self._at)
        if repeat is None:
            return self._take(1)
        self._at = repeat.end()
        text = repeat[0]
        if self._regex.startswith("?", self._at):
            text += self._take(1)
        if _REPEAT.match(self._regex, self._at):
            raise re.error("invalid nested repetition operator")
        return text

    def _take(self, count: int) -> str:
        first, self._at = self._at, self._at + count
        return self._regex[first : self._at]

    def _escape(self) -> str:
        found = _ESCAPE.match(self._regex, self._at)
        if found is None:
            last = self._at + 1 == len(self._regex)
            raise re.error("trailing backslash at end of expression" if last else "invalid escape sequence")
        self._at = found.end()
        return r"\Z" if found[0] == r"\z" else found[0]

    def _group(self) -> str:
        found = _GROUPS.match(self._regex, self._at)
        if found is None:
            raise re.error("invalid or unsupported Perl syntax")
        if found["flags"]:
            if self._at:
                raise re.error("flags after the start are not supported")
            self._flags += found["flags"]
        self._at = found.end()
        return "" if found["flags"] else f"(?P<{found['name']}>" if found["name"] else "(?:"

    def _set(self) -> str:
        parts = [self._take(2 if self._regex.startswith("[^", self._at) else 1)]
        if self._regex.startswith("]", self._at):
            parts.append("\\" + self._take(1))
        while not self._regex.startswith("]", self._at):
            if self._at >= len(self._regex):
                raise re.error("unterminated character set")
            posix = re.compile(r"\[:(\w+):\]").match(self._regex, self._at)
            if posix is not None:
                if posix[1] not in _POSIX:
                    raise re.error("invalid character class range")
                parts.append(_POSIX[posix[1]])
                self._at = posix.end()
            elif self._regex[self._at] == "\\":
                parts.append(self._escape())
            else:
                character = self._take(1)
                twice = character == "-" and self._regex.startswith("-", self._at)
                parts.append("\\" + character if character in "[&~|" or twice else character)
        return "".join(parts) + self._take(1)
