"""Texts of brokers and other servers in errors and lines of the log."""

from typing import Final

__all__ = ("printable",)

_MOST: Final = 10_000
_JOINERS: Final = "\u200c\u200d"
"""These are in words of some languages."""


def printable(text: str, most: int = _MOST) -> str:
    """Return a server's text, truncated, without control characters, which could forge lines of a log."""
    if len(text) <= most and text.isprintable():
        return text
    return "".join(map(_printable, text[:most])).strip()


def _printable(letter: str) -> str:
    return letter if letter.isprintable() or letter in _JOINERS else "?"
