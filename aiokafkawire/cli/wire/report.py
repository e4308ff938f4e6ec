"""Frames and their readings, in lines and in JSON."""

from collections.abc import Iterator
from typing import Any

from ...protocol.schema import Versions
from .api_guesser import spelled
from .apis import name_of
from .describe import Describer
from .frame_decoder import Reading, read_request
from .json_renderer import json_of
from .session import FrameReport
from .text_renderer import Style, hexdump, lines_of
from .view_model import Array, Leaf, NamedValue, Struct

__all__ = ("object_of", "records_lines", "tell")

_SECRET_APIS = ("SaslAuthenticate", "AlterUserScramCredentials", "DelegationToken", "AlterConfigs", "Envelope")


def tell(told: FrameReport, number: int, describer: Describer, style: Style, secrets: bool) -> Iterator[str]:
    """The lines about one frame."""
    yield f"{_place(told, number)}{_length(told)}"
    reading = told.reading
    if reading is None:
        yield f"  {told.frame.problem}"
        return
    if told.guesses is not None and len(told.guesses) > 1:
        yield "  what reads it, each to the last byte, the newest versions first:"
        yield from (f"    {line}" for line in spelled(told.guesses))
        return
    if (title := _title(reading)) is not None:
        yield title
    for note in reading.notes:
        yield f"  note: {note}"
    if reading.header is not None:
        yield f"  header v{reading.header_version}"
        yield from lines_of(describer.message(reading.header, reading.header_version), style, 2)
    if reading.message is not None:
        assert reading.version is not None
        yield f"  {type(reading.message).__name__} v{reading.version}"
        yield from lines_of(describer.message(reading.message, reading.version), style, 2)
    else:
        yield from _problem(told, reading, secrets)
    if told.guesses == ():
        yield "  nothing else reads it either"


def object_of(told: FrameReport, number: int, describer: Describer, style: Style) -> dict[str, Any]:
    """The same for ``--json``; absent is what does not apply. A position counts from the end of the length prefix."""
    frame, reading = told.frame, told.reading
    out: dict[str, Any] = {"frame": number, "stream": told.label, "start": frame.start, "end": frame.end}
    out["length"] = frame.length
    if reading is None:
        return out | {"problem": frame.problem, "missing": frame.missing}
    out["kind"] = reading.kind
    if reading.request is not None:
        out |= {"api": name_of(reading.request), "api_key": int(reading.request.api_key)}
    out["version"] = reading.version
    if reading.header is not None:
        described = describer.message(reading.header, reading.header_version)
        out["header"] = json_of(described, brief=style.brief)
    if reading.message is not None and reading.version is not None:
        out["message"] = type(reading.message).__name__
        out["body"] = json_of(describer.message(reading.message, reading.version), brief=style.brief)
    if reading.notes:
        out["notes"] = [*reading.notes]
    if reading.problem:
        out |= {"problem": reading.problem, "position": reading.position, "other_versions": [*reading.others]}
    if told.guesses is not None:
        out["guesses"] = [*spelled(told.guesses)]
    return out


def records_lines(data: bytes, batches: Array, style: Style) -> Iterator[str]:
    """The lines about a buffer of batches."""
    yield from lines_of(Struct((NamedValue("records", Leaf(data, holds=batches)),)), style)


def _place(told: FrameReport, number: int) -> str:
    frame = told.frame
    bytes_ = f"bytes {frame.start}-{frame.end - 1}" if frame.end > frame.start else f"at byte {frame.start}"
    return f"frame {number}: {bytes_}{f' of {told.label}' if told.label else ''}"


def _length(told: FrameReport) -> str:
    frame = told.frame
    if frame.length is None:
        return f", {len(frame.data)} without a length prefix"
    return f", {len(frame.data)} after the length prefix" if not frame.problem else ""


def _title(reading: Reading) -> str | None:
    if reading.request is None:
        return None if reading.kind == "message" else reading.kind
    known = f"API key {int(reading.request.api_key)}, known are {_versions(reading.request.versions)}"
    return f"{reading.kind} {name_of(reading.request)} v{reading.version} ({known})"


def _versions(versions: Versions) -> str:
    return f"v{versions.first}" if versions.first == versions.last else f"v{versions.first} to v{versions.last}"


def _problem(told: FrameReport, reading: Reading, secrets: bool) -> Iterator[str]:
    yield f"  cannot be read: {reading.problem}"
    if reading.others:
        versions = [f"v{version}" for version in reading.others]
        yield f"  {' and '.join(filter(None, (', '.join(versions[:-1]), versions[-1])))} would read it"
    elif reading.request is not None and reading.version is not None:
        yield f"  no version of {name_of(reading.request)} reads it"
    if reading.position is not None and told.frame.data:
        # The problem begins with the message's name.
        # The user may have named another API than the bytes are of.
        titles = f"{_title(reading)} {reading.problem} {_title(read_request(told.frame.data))}"
        if secrets or not any(api in titles for api in _SECRET_APIS):
            counted = "" if told.frame.length is None else ", counted from the end of its length prefix"
            yield f"  the bytes around it{counted}:"
            for line in hexdump(told.frame.data, reading.position):
                yield f"    {line}"
        else:
            yield "    (no hexdump, a secret may be in it: --secrets shows it)"
