"""Reads the user's input in any notation: plain hex, hexdumps, Python literals, captures, raw bytes."""

import ast
import base64
import binascii
import re
import warnings
from typing import Final

from ..counted import counted
from ..exit_status import CommandFailed
from .dumps import read_dump
from .pcap import packets_of_pcap, streams_of
from .streams import ByteStream, CapturedInput

__all__ = ("read_base64", "read_bytes", "read_text")

_LITERAL: Final = re.compile(r"""\b[bB]('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")""", re.DOTALL)
_PLAIN: Final = re.compile(r"0[xX]|\\x|[\s:,;_\-{}\[\]()<>'\"|]+")
"""Prefixes and separators of hex digits, which are ignored."""
_RUN: Final = re.compile(r"(?<![0-9a-zA-Z])(?:0x)?((?:[0-9a-fA-F]{2}){8,})(?![0-9a-zA-Z])")
"""A run of 16 or more hex digits within other text, which is long enough to be the input."""


def read_bytes(data: bytes, *, raw: bool = False) -> CapturedInput:
    """Read the contents of a file or a pipe: a capture, text in one of the notations, or else raw bytes.

    Args:
        data: the contents.
        raw: whether to skip the detection of captures and text.

    Raises:
        CommandFailed: text that looks like hex is invalid, or a capture has no TCP data.
    """
    packets = None if raw else packets_of_pcap(data)
    if packets is not None:
        return _captured(packets, "pcap file")
    if not raw and (text := _as_text(data)) is not None:
        try:
            return read_text(text)
        except CommandFailed:
            # Report an error for text that looks partly like hex; other text may be a short binary file, or the
            # output of a server with a text protocol.
            if _dumpish(text):
                raise
    return CapturedInput("raw bytes", (ByteStream(data),))


def read_text(text: str) -> CapturedInput:
    """Read hex in any notation.

    Raises:
        CommandFailed: the text has no hex; the message names the first invalid character.
    """
    literals = list(_LITERAL.finditer(text))
    if literals:
        data = b"".join(_literal(found[0]) for found in literals)
        return CapturedInput("a bytes literal of Python", (ByteStream(data),))
    dumps = read_dump(text)
    if dumps is not None:
        segments = streams_of(dumps)
        if segments:
            return CapturedInput(f"{counted(len(dumps), 'dumped packet')} with TCP", segments)
        labels = [f"dump {number}" for number in range(1, len(dumps) + 1)] if len(dumps) > 1 else [""]
        form = "a hexdump" if len(dumps) == 1 else f"{len(dumps)} hexdumps"
        return CapturedInput(form, tuple(ByteStream(data, label) for data, label in zip(dumps, labels, strict=True)))
    return _plain(text)


def read_base64(text: str) -> CapturedInput:
    """Read base64, the form in which ``--json`` prints bytes; raise CommandFailed for other text."""
    packed = "".join(text.split()).strip("\"'").replace("-", "+").replace("_", "/")
    try:
        return CapturedInput(
            "base64", (ByteStream(base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)),)
        )
    except (binascii.Error, ValueError) as error:
        raise CommandFailed(f"the input is not base64: {error}") from None


def _plain(text: str) -> CapturedInput:
    # The shell removes the quotes of b'\x00'.
    digits = _PLAIN.sub("", re.sub(r"^\s*b(?=\\x)", "", text))
    wrong = re.search(r"[^0-9a-fA-F]", digits)
    if wrong is None:
        if len(digits) % 2:
            raise CommandFailed(f"{len(digits)} hex digits, but a byte has two: a digit is missing or too many")
        return CapturedInput("hex", (ByteStream(bytes.fromhex(digits)),))
    runs = sorted(_RUN.finditer(text), key=lambda found: -len(found[1]))
    if not runs:
        raise CommandFailed(f"no hex: {wrong[0]!r} is not a hex digit, and there is no run of 16 hex digits or more")
    line = text.count("\n", 0, runs[0].start()) + 1
    others = f", the longest of {len(runs)} runs of hex" if len(runs) > 1 else ""
    form = f"{counted(len(runs[0][1]), 'hex digit')} within line {line}{others}"
    return CapturedInput(form, (ByteStream(bytes.fromhex(runs[0][1])),))


def _literal(text: str) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of invalid escapes
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError) as error:
            raise CommandFailed(f"invalid bytes literal of Python: {error}") from None
    assert isinstance(value, bytes)
    return value


def _captured(packets: list[bytes], form: str) -> CapturedInput:
    streams = streams_of(packets)
    if not streams:
        raise CommandFailed(f"a {form} of {counted(len(packets), 'packet')}, none of which carries bytes over TCP")
    return CapturedInput(f"{counted(len(packets), 'packet')} of a {form}", streams)


def _as_text(data: bytes) -> str | None:
    """Return the data as text, or None if it is not printable; a frame always has control characters."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return text if all(char.isprintable() or char in "\t\r\n\f" for char in text) and text.strip() else None


def _dumpish(text: str) -> bool:
    return re.search(r"(?:[0-9a-fA-F]{2}[ :]?){8}", text) is not None
