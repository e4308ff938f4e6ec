"""Hexdumps whose lines begin with an offset: xxd, hexdump -C, od -t x1, tcpdump -x and -X, Wireshark's."""

import re
from typing import Final, NamedTuple

from ..exit_status import CommandFailed

__all__ = ("read_dump",)

_LINE: Final = re.compile(
    r"(?P<indent>[ \t]*)(?P<offset>(?:0x)?[0-9a-fA-F]{4,16})"
    # After the offset: xxd, tcpdump: a colon; hexdump -C, Wireshark: two spaces; od: one space before a single byte.
    r"(?:(?P<colon>:[ \t]+)|[ \t]{2,}|(?<=[0-9a-fA-F]{6})[ \t](?=[0-9a-fA-F]{2}(?:\s|$)))(?P<rest>\S.*)"
)
_WORDS: Final = re.compile(r"0{7}(?:[ \t]+[0-9a-fA-F]{4})+\s*")
_GROUP: Final = re.compile(r"((?:[0-9a-fA-F]{2})+)([ \t]*)")
_RADICES: Final = (16, 8, 10)  # 16 for the offsets of nearly all dumps, 8 for those of od, 10 for those of xxd -d

_MAX_REPEATED: Final = 64 * 1024 * 1024  # the maximum number of bytes that one "*" may stand for


class _Row(NamedTuple):
    line: int
    indent: str
    offset: str
    data: bytes
    repeats: bool
    """Whether a ``*`` before this line stands for repetitions of the previous line."""


def read_dump(text: str) -> list[bytes] | None:
    """Return the bytes of each dump in the text, or None if it has no dump.

    A dump begins at offset 0; lines of another indentation belong to another dump (Wireshark indents responses). Lines
    without an offset, such as tcpdump's packet summaries, are ignored.

    Raises:
        CommandFailed: an offset is not the number of bytes before it, or the dump has words in machine byte order.
    """
    lines = text.splitlines()
    if any(_WORDS.fullmatch(line) for line in lines):
        raise CommandFailed("the dump has words in the machine's byte order: write it with hexdump -C or xxd instead")
    rows = _rows(lines)
    if not rows or int(rows[0].offset, 16):
        return None
    wrong: CommandFailed | None = None
    for radix in _RADICES:
        try:
            return _join(rows, radix)
        except CommandFailed as error:
            wrong = wrong or error
        except ValueError:  # an offset has digits that are not of this radix
            continue
    assert wrong is not None
    raise wrong


def _rows(lines: list[str]) -> list[_Row]:
    rows: list[_Row] = []
    repeats = False
    for number, line in enumerate(lines, 1):
        if line.strip() == "*":
            repeats = True
        elif (found := _LINE.fullmatch(line.rstrip())) is not None:
            data = _bytes_of(found["rest"], found["colon"] is not None)
            if data:
                rows.append(_Row(number, found["indent"], found["offset"].lower(), data, repeats))
            repeats = False
        elif repeats and re.fullmatch(r"[ \t]*[0-9a-fA-F]{4,16}", line.rstrip()):  # repetitions end here
            rows.append(_Row(number, line[: len(line) - len(line.lstrip())], line.strip().lower(), b"", True))
            repeats = False
    return rows


def _bytes_of(text: str, colon: bool) -> bytes:
    """Return the bytes between a line's offset and its text column; ``colon``: whether the offset ends with a colon."""
    data, position = b"", 0
    text = text.partition("|")[0]
    while (found := _GROUP.match(text, position)) is not None:
        data += bytes.fromhex(found[1])
        position, gap = found.end(), found[2].expandtabs()
        # After a colon two spaces end the bytes; elsewhere they may separate the halves of a line.
        if not gap or len(gap) > 2 or (len(gap) == 2 and (colon or len(data) != 8)):
            break
    return data


def _join(rows: list[_Row], radix: int) -> list[bytes]:
    dumps: list[bytearray] = []
    growing: dict[str, bytearray] = {}
    last: dict[str, bytes] = {}
    for row in rows:
        offset = int(row.offset, radix)
        dump = growing.get(row.indent)
        if dump is None or (offset == 0 and row.data):
            dump = growing[row.indent] = bytearray()
            dumps.append(dump)
        if row.repeats and len(dump) < offset <= len(dump) + _MAX_REPEATED and (repeated := last.get(row.indent)):
            dump += (repeated * ((offset - len(dump)) // len(repeated) + 1))[: offset - len(dump)]
        if offset != len(dump):
            raise CommandFailed(f"line {row.line}: it begins at offset {row.offset}, after {len(dump)} bytes")
        dump += row.data
        last[row.indent] = row.data
    return [bytes(dump) for dump in dumps]
