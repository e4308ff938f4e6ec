r"""Templates of records on standard output, such as ``%o %k: %v\n``, as kcat and rpk have them."""

import re
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from ..exit_status import MISSING, CommandFailed
from ..shell.times import iso_time
from .formats import Formatter, Record

__all__ = ("TEMPLATE_HELP", "template_formatter", "unescape")

TEMPLATE_HELP: Final = (
    r"%k key, %v or %s value, %t topic, %p partition, %o offset, %T timestamp in ms, %D as a date, %h headers, "
    r"%K and %S the sizes of key and value (-1 for null), %% a percent sign; \n, \t and \xHH"
)

_Part: TypeAlias = bytes | Callable[[Record], bytes]

_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\"}
_ESCAPED: Final = re.compile(r"\\(x[0-9A-Fa-f]{2}|.)", re.S)
_TOKEN: Final = re.compile(r"%(.?)", re.S)


def unescape(text: str) -> bytes:
    r"""Return the bytes that a text with escapes such as ``\n``, ``\t`` and ``\xHH`` means; other text is UTF-8."""
    found, at = b"", 0
    for match in _ESCAPED.finditer(text):
        code = match[1]
        found += text[at : match.start()].encode("utf-8", "surrogateescape")
        if len(code) == 3:
            found += bytes.fromhex(code[1:])
        else:
            found += _ESCAPES.get(code, match[0]).encode("utf-8", "surrogateescape")
        at = match.end()
    return found + text[at:].encode("utf-8", "surrogateescape")


def template_formatter(template: str, null: bytes) -> Formatter:
    """Return a formatter that fills in the template for each record; nothing stands between records.

    Args:
        template: the text, with the tokens of :data:`TEMPLATE_HELP`.
        null: stands for a key, value or header that is null.

    Raises:
        CommandFailed: the template has an unknown token (exit status 2).
    """
    parts = _parts(template, null)

    def write(records: Iterable[Record]) -> tuple[int, bytes]:
        count, found = 0, bytearray()
        for record in records:
            count += 1
            for part in parts:
                found += part if isinstance(part, bytes) else part(record)
        return count, bytes(found)

    return write


def _parts(template: str, null: bytes) -> list[_Part]:
    tokens = _tokens(null)
    parts: list[_Part] = []
    at = 0
    for match in _TOKEN.finditer(template):
        parts.append(unescape(template[at : match.start()]))
        letter = match[1]
        if letter == "%":
            parts.append(b"%")
        elif letter in tokens:
            parts.append(tokens[letter])
        else:
            raise CommandFailed(f"--format: unknown token {match[0]!r}; known: {TEMPLATE_HELP}", MISSING)
        at = match.end()
    parts.append(unescape(template[at:]))
    return [part for part in parts if part != b""]


def _tokens(null: bytes) -> dict[str, Callable[[Record], bytes]]:
    def text(data: bytes | None) -> bytes:
        return null if data is None else data

    def headers(record: Record) -> bytes:
        return b",".join(name.encode() + b"=" + text(value) for name, value in record.headers)

    return {
        "k": lambda record: text(record.raw_key),
        "v": lambda record: text(record.raw_value),
        "s": lambda record: text(record.raw_value),
        "t": lambda record: record.topic.encode(),
        "p": lambda record: b"%d" % record.partition,
        "o": lambda record: b"%d" % record.offset,
        "T": lambda record: b"%d" % record.timestamp,
        "D": lambda record: iso_time(record.timestamp).encode(),
        "h": headers,
        "K": lambda record: b"%d" % _size(record.raw_key),
        "S": lambda record: b"%d" % _size(record.raw_value),
    }


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)
