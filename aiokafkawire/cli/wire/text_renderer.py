"""Renders the view model as lines for a terminal or a bug report."""

import base64
from collections.abc import Iterator
from typing import Final
from uuid import UUID

import attrs

from ..counted import counted
from .view_model import Array, Hidden, Leaf, NamedValue, Scalar, Shown, Struct

__all__ = ("Style", "hexdump", "lines_of", "quoted")

_INDENT: Final = "  "
_TEXT: Final = 100
_BYTES: Final = 32
_ITEMS: Final = 24
_ROW: Final = 16


@attrs.frozen
class Style:
    """The amount of output: ``full`` shortens nothing, ``brief`` omits fields with their default value."""

    full: bool = False
    brief: bool = False


def lines_of(struct: Struct, style: Style, depth: int = 0) -> Iterator[str]:
    """Yield the lines for a struct's fields, indented by ``depth`` steps."""
    for entry in struct.entries:
        if (style.brief and entry.is_default) or (entry.name in struct.in_title and not style.full):
            continue
        yield from _named(entry, style, depth)


def _named(entry: NamedValue, style: Style, depth: int) -> Iterator[str]:
    label = _INDENT * depth + f"{entry.name}:"
    tag = "" if entry.tag is None else f" (tag {entry.tag})"
    yield from _shown(label, entry.shown, tag, style, depth)


def _shown(label: str, shown: Shown, tag: str, style: Style, depth: int) -> Iterator[str]:
    if isinstance(shown, Leaf):
        yield from _leaf(label, shown, tag, style, depth)
    elif isinstance(shown, Struct):
        yield f"{label}{' ' if shown.title else ''}{shown.title}{tag}"
        yield from lines_of(shown, style, depth + 1)
    elif all(isinstance(item, Leaf) and item.holds is None for item in shown.items):
        yield f"{label} [{_items(shown, style)}]{tag}"
    else:
        yield f"{label} {len(shown.items)}{tag}"
        yield from _elements(shown, style, depth + 1)


def _elements(array: Array, style: Style, depth: int) -> Iterator[str]:
    for index, item in enumerate(array.items):
        yield from _shown(f"{_INDENT * depth}[{index}]", item, "", style, depth)


def _leaf(label: str, leaf: Leaf, tag: str, style: Style, depth: int) -> Iterator[str]:
    if leaf.holds is None or not isinstance(leaf.value, bytes):
        yield f"{label} {_value(leaf.value, style)}{_meaning(leaf)}{tag}"
        return
    length = counted(len(leaf.value), "byte")
    if isinstance(leaf.holds, Array):
        batches = "" if not leaf.holds.items else f", {counted(len(leaf.holds.items), 'batch', 'es')}"
        yield f"{label} {length}{batches}{tag}"
        yield from _elements(leaf.holds, style, depth + 1)
    elif isinstance(leaf.holds, Struct):
        yield f"{label} {length}, {leaf.holds.title}{tag}"
        yield from lines_of(leaf.holds, style, depth + 1)


def _items(array: Array, style: Style) -> str:
    shown = array.items if style.full else array.items[:_ITEMS]
    parts = [f"{_value(item.value, style)}{_meaning(item)}" for item in shown if isinstance(item, Leaf)]
    left = len(array.items) - len(shown)
    return ", ".join(parts) + (f", and {left} more" if left else "")


def _meaning(leaf: Leaf) -> str:
    return f" ({leaf.meaning})" if leaf.meaning else ""


def _value(value: Scalar, style: Style) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value, style)
    if isinstance(value, bytes):
        return _bytes(value, style)
    if isinstance(value, UUID):
        return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    if isinstance(value, Hidden):
        return f"hidden, {value.length} long: it may be a secret (--secrets shows it)"
    return repr(value)


def _text(text: str, style: Style) -> str:
    if style.full or len(text) <= _TEXT:
        return quoted(text)
    return f"{quoted(text[:_TEXT])}... ({len(text)} characters)"


def _bytes(data: bytes, style: Style) -> str:
    length = counted(len(data), "byte")
    if not data:
        return length
    text = _as_text(data)
    if text is not None:
        return f"{length} {_text(text, style)}"
    if style.full or len(data) <= _BYTES:
        return f"{length} {data.hex(' ')}"
    return f"{length} {data[:_BYTES].hex(' ')} ..."


def _as_text(data: bytes) -> str | None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if all(char.isprintable() or char in "\t\r\n" for char in text) else None


def quoted(text: str) -> str:
    """Quote a string, and escape control and invisible characters."""
    return '"' + "".join(_escaped(char) for char in text) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if char.isprintable():
        return char
    return char.encode("unicode_escape").decode()


def hexdump(data: bytes, position: int, rows: int = 3) -> Iterator[str]:
    """Yield a hexdump that marks the byte at ``position``, with ``rows`` lines before and after the byte's line."""
    position = min(position, len(data))
    row = position // _ROW
    if position == len(data) and position % _ROW == 0 and row:
        row -= 1  # the missing byte follows the last row
    first, last = max(row - rows, 0), min(row + rows, max(len(data) - 1, 0) // _ROW)
    for number in range(first, last + 1):
        begin = number * _ROW
        part = data[begin : begin + _ROW]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        yield f"{begin:08x}  {part.hex(' '):<{3 * _ROW - 1}}  |{text}|"
        if number == row:
            end = " (the end)" if position == len(data) else ""
            yield f"{'':10}{'':{3 * (position - begin)}}^^ byte {position}{end}"
