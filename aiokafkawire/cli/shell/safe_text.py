"""Text from a cluster, made safe for a terminal: control characters and invalid bytes are escaped."""

from typing import Final

__all__ = ("safe_bytes", "safe_text")

_SHORT: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_MORE: Final = "…"


def safe_text(text: str, limit: int = 200) -> str:
    r"""Return the text with escapes for what a terminal might obey or hide, and at most ``limit`` characters.

    Control characters, as of a terminal's escape sequences, become ``\x1b``; marks that change the direction of text or
    have no width become ``\u202e``. A text that is cut ends with an ellipsis.
    """
    shown: list[str] = []
    length = 0
    for character in text:
        escaped = character if character.isprintable() else _SHORT.get(character) or _escaped(character)
        length += len(escaped)
        if length > limit:
            return "".join(shown)[: max(0, limit - 1)] + _MORE
        shown.append(escaped)
    return "".join(shown)


def safe_bytes(data: bytes | None, limit: int = 200) -> str:
    r"""Return bytes as text: UTF-8 where they are, ``\xff`` where they are not, and "null" for None."""
    if data is None:
        return "null"
    # A character has at most four bytes, so these are more than ``limit`` characters.
    some = bytes(data[: 4 * limit + 4])
    return safe_text(some.decode("utf-8", "backslashreplace"), limit)


def _escaped(character: str) -> str:
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
