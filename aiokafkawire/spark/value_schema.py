"""The check of the option ``valueSchema``, in Spark's DDL, before Spark parses it as a part of the whole schema.

Spark's own error shows the schema of all columns, and no process that plans a query can call Spark's parser.
"""

import re
from difflib import get_close_matches
from typing import Final

from ..errors import ConfigError

__all__ = ("check_value_schema",)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TYPES: Final = _words(
    "array bigint binary boolean byte char character date dec decimal double float geography geometry int integer"
    " interval long map numeric real short smallint string struct time timestamp timestamp_ltz timestamp_ntz"
    " tinyint varchar variant void"
)
"""The names of Spark's types, up to Spark 4.3."""
_AFTER_A_TYPE: Final = _words(
    "collate comment default generated not null precision with without to year month day hour minute second"
    " years months days hours minutes seconds"
)
"""The words that may follow a type; others begin a field whose comma is missing."""
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<name>`(?:[^`]|``)+`|\w+)|(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<mark>\S))""", re.DOTALL
)
_PAIRS: Final = {"<": ">", "(": ")"}


def check_value_schema(text: str) -> None:
    """Check the types of the fields in ``text``, and of those inside of them; leave the rest to Spark.

    Raises:
        ConfigError: a field has no type or an unknown one, or a bracket is open; the message names the field.
    """
    parser = _Parser([found for found in _TOKEN.finditer(text) if found.group().strip()], text)
    parser.fields(end=None)


class _Parser:
    def __init__(self, tokens: list[re.Match[str]], text: str) -> None:
        self._tokens = tokens
        self._text = text
        self._at = 0

    def fields(self, *, end: str | None) -> None:
        """Check ``name type, name: type`` up to the mark ``end``, or to the end of the text."""
        while True:
            name = self._next()
            if name is None or name.lastgroup != "name":
                where = "at the end" if name is None else f"before {name.group().strip()!r}"
                raise self._error(f"a field's name is missing {where}")
            field = name.group("name").strip("`")
            if self._peek() == ":":
                self._next()
            self._type(field)
            self._skip(field, end)
            mark = self._next()
            if mark is None or mark.group("mark") == end:
                return

    def _type(self, field: str) -> None:
        token = self._next()
        if token is None or token.lastgroup != "name":
            raise self._error(f"the field {field!r} has no type")
        kind = token.group("name")
        if kind.lower() not in _TYPES:
            near = get_close_matches(kind.lower(), _TYPES, n=1)
            hint = f"did you mean {near[0].upper()}?" if near else "types are such as STRING, INT, DOUBLE, ARRAY<INT>"
            raise self._error(f"the field {field!r} has the unknown type {kind!r}: {hint}")
        if self._peek() != "<":
            return
        self._next()
        if kind.lower() == "struct":
            if self._peek() == ">":
                self._next()
            else:
                self.fields(end=">")
            return
        while True:  # of an array or a map
            self._type(field)
            self._skip(field, ">")
            mark = self._next()
            if mark is None or mark.group("mark") == ">":
                return

    def _skip(self, field: str, end: str | None) -> None:
        """Pass over what may follow a type, such as ``NOT NULL COMMENT '...'``, up to a comma or ``end``."""
        inside: list[str] = []
        word = self._peek() or ""
        if (word[:1] == "`" or word.isidentifier()) and word.lower() not in _AFTER_A_TYPE:
            raise self._error(f"a comma is missing between the field {field!r} and {word!r}")
        while (mark := self._peek()) is not None:
            if not inside and mark in (",", end):
                return
            if mark in _PAIRS:
                inside.append(_PAIRS[mark])
            elif inside and mark == inside[-1]:
                inside.pop()
            self._next()
        missing = inside[-1] if inside else end
        if missing is not None:
            raise self._error(f"{missing!r} is missing after the field {field!r}")

    def _peek(self) -> str | None:
        return self._tokens[self._at].group().strip() if self._at < len(self._tokens) else None

    def _next(self) -> re.Match[str] | None:
        if self._at == len(self._tokens):
            return None
        self._at += 1
        return self._tokens[self._at - 1]

    def _error(self, why: str) -> ConfigError:
        return ConfigError(f"valueSchema must be fields like 'carrier STRING, delay INT', got {self._text!r}: {why}")
