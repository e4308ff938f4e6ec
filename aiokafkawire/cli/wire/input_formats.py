"""What the user gave, whatever the notation: plain hex, hexdumps, Python literals, captures, raw bytes."""

import ast
import base64
import binascii
import re
import warnings
from typing import Final

from ..exit_status import CommandFailed
from .dumps import read_dump
from .pcap import packets_of_pcap, streams_of
from .streams import ByteStream, CapturedInput

__all__ = ("read_base64", "read_bytes", "read_text")

_LITERAL: Final = re.compile(r"""\b[bB]('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")""", re.DOTALL)
_PLAIN: Final = re.compile(r"0[xX]|\\x|[\s:,;_\-{}\[\]()<>'\"|]+")
"""What may stand around hex digits and means nothing."""
_RUN: Final = re.compile(r"(?<![0-9a-zA-Z])(?:0x)?((?:[0-9a-fA-F]{2}){8,})(?![0-9a-zA-Z])")
"""Hex that is long enough to be meant, within other text."""


def read_bytes(data: bytes, *, raw: bool = False) -> CapturedInput:
    """What a file or a pipe held: a capture, text in one of the notations, or else the bytes themselves.

    Args:
        data: the whole of it.
        raw: not to look for text.

    Raises:
        CommandFailed: it is text that begins well and then makes no sense, or a capture without TCP.
    """
    packets = None if raw else packets_of_pcap(data)
    if packets is not None:
        return _captured(packets, "pcap file")
    if not raw and (text := _as_text(data)) is not None:
        try:
            return read_text(text)
        except CommandFailed:
            # Text of which a part looks like hex is a mistake to tell; text without any is a binary file that is
            # short, or a server that speaks text.
            if _dumpish(text):
                raise
    return CapturedInput("raw bytes", (ByteStream(data),))


def read_text(text: str) -> CapturedInput:
    """Hex in any notation.

    Raises:
        CommandFailed: there is none; the message says what is in the way.
    """
    literals = list(_LITERAL.finditer(text))
    if literals:
        data = b"".join(_literal(found[0]) for found in literals)
        return CapturedInput("a bytes literal of Python", (ByteStream(data),))
    dumps = read_dump(text)
    if dumps is not None:
        segments = streams_of(dumps)
        if segments:
            return CapturedInput(f"{_counted(len(dumps), 'dumped packet')} with TCP", segments)
        labels = [f"dump {number}" for number in range(1, len(dumps) + 1)] if len(dumps) > 1 else [""]
        form = "a hexdump" if len(dumps) == 1 else f"{len(dumps)} hexdumps"
        return CapturedInput(form, tuple(ByteStream(data, label) for data, label in zip(dumps, labels, strict=True)))
    return _plain(text)


def read_base64(text: str) -> CapturedInput:
    """Base64, as ``--json`` prints bytes.

    Raises:
        CommandFailed: it is not.
    """
    packed = "".join(text.split()).strip("\"'").replace("-", "+").replace("_", "/")
    try:
        return CapturedInput(
            "base64", (ByteStream(base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)),)
        )
    except (binascii.Error, ValueError) as error:
        raise CommandFailed(f"this is no base64: {error}") from None


def _plain(text: str) -> CapturedInput:
    # The shell takes the quotes off b'\x00'.
    digits = _PLAIN.sub("", re.sub(r"^\s*b(?=\\x)", "", text))
    wrong = re.search(r"[^0-9a-fA-F]", digits)
    if wrong is None:
        if len(digits) % 2:
            raise CommandFailed(f"{len(digits)} hex digits: bytes have two each, so one is missing or too many")
        return CapturedInput("hex", (ByteStream(bytes.fromhex(digits)),))
    runs = sorted(_RUN.finditer(text), key=lambda found: -len(found[1]))
    if not runs:
        raise CommandFailed(f"no hex: {wrong[0]!r} is no hex digit, and no run of 16 digits or more is in it")
    line = text.count("\n", 0, runs[0].start()) + 1
    others = f", the longest of {len(runs)} runs of hex" if len(runs) > 1 else ""
    form = f"{_counted(len(runs[0][1]), 'hex digit')} within line {line}{others}"
    return CapturedInput(form, (ByteStream(bytes.fromhex(runs[0][1])),))


def _literal(text: str) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of escapes that Python does not know
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError) as error:
            raise CommandFailed(f"a bytes literal that Python does not take: {error}") from None
    assert isinstance(value, bytes)
    return value


def _captured(packets: list[bytes], form: str) -> CapturedInput:
    streams = streams_of(packets)
    if not streams:
        raise CommandFailed(f"a {form} of {_counted(len(packets), 'packet')}, none of which carries bytes over TCP")
    return CapturedInput(f"{_counted(len(packets), 'packet')} of a {form}", streams)


def _as_text(data: bytes) -> str | None:
    """The data as text, if it is: a frame always has control characters."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return text if all(char.isprintable() or char in "\t\r\n\f" for char in text) and text.strip() else None


def _dumpish(text: str) -> bool:
    return re.search(r"(?:[0-9a-fA-F]{2}[ :]?){8}", text) is not None


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
