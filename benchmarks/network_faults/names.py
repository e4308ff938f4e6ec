"""A name server's answers for a zone that may change, fail or fall silent. Pure: from one message to another."""

import struct
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Final, Literal, TypeAlias

Mood: TypeAlias = Literal["answers", "fails", "silent"]

_A: Final = 1
_AAAA: Final = 28
_INTERNET: Final = 1
_OK, _SERVER_FAILURE, _NO_SUCH_NAME = 0, 2, 3
_ANSWER: Final = 0x8580  # a response, authoritative, recursion desired and available
_HEADER: Final = 12


def answer(query: bytes, zone: Mapping[str, Sequence[str]], mood: Mood) -> bytes | None:
    """Return the response to a query of DNS; None if there is none.

    ``zone`` has the addresses of each name. The answer for a name without addresses of the requested family is empty.
    """
    if mood == "silent" or len(query) < _HEADER:
        return None
    name, end = _name(query, _HEADER)
    if end + 4 > len(query):
        return None
    kind, _ = struct.unpack_from(">HH", query, end)
    question = query[_HEADER : end + 4]
    if mood == "fails":
        return query[:2] + struct.pack(">5H", _ANSWER | _SERVER_FAILURE, 1, 0, 0, 0) + question
    if name not in zone:
        return query[:2] + struct.pack(">5H", _ANSWER | _NO_SUCH_NAME, 1, 0, 0, 0) + question
    found = [ip_address(one).packed for one in zone[name]]
    wanted = [one for one in found if len(one) == {_A: 4, _AAAA: 16}.get(kind)]
    # Each record names the question's name by its place, lives for 0 s, and has one address.
    records = b"".join(struct.pack(">HHHIH", 0xC000 | _HEADER, kind, _INTERNET, 0, len(one)) + one for one in wanted)
    return query[:2] + struct.pack(">5H", _ANSWER | _OK, 1, len(wanted), 0, 0) + question + records


def _name(message: bytes, at: int) -> tuple[str, int]:
    """Return the name at a place, in lower case, and where it ends."""
    labels: list[str] = []
    while at < len(message) and message[at]:
        size = message[at]
        labels.append(message[at + 1 : at + 1 + size].decode("ascii", "replace").lower())
        at += 1 + size
    return ".".join(labels), at + 1
