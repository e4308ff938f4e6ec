"""Reports of decoded frames, as text lines and as JSON."""

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

__all__ = ("object_of", "records_lines", "report_lines")

_SECRET_APIS = ("SaslAuthenticate", "AlterUserScramCredentials", "DelegationToken", "AlterConfigs", "Envelope")


def report_lines(report: FrameReport, number: int, describer: Describer, style: Style, secrets: bool) -> Iterator[str]:
    """Yield the text lines of one frame's report; ``secrets``: whether a hexdump may show secrets."""
    yield f"{_location(report, number)}{_length(report)}"
    reading = report.reading
    if reading is None:
        yield f"  {report.frame.problem}"
        return
    if report.guesses is not None and len(report.guesses) > 1:
        yield "  these decode the whole frame, the newest versions first:"
        yield from (f"    {line}" for line in spelled(report.guesses))
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
        yield from _problem(report, reading, secrets)
    if report.guesses == ():
        yield "  no other API decodes it"


def object_of(report: FrameReport, number: int, describer: Describer, style: Style) -> dict[str, Any]:
    """Return one frame's report as an object for ``--json``.

    Its ``position``, where decoding failed, counts from the end of the frame's length prefix.
    """
    frame, reading = report.frame, report.reading
    out: dict[str, Any] = {"frame": number, "stream": report.label, "start": frame.start, "end": frame.end}
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
    if report.guesses is not None:
        out["guesses"] = [*spelled(report.guesses)]
    return out


def records_lines(data: bytes, batches: Array, style: Style) -> Iterator[str]:
    """Yield the text lines for a buffer of record batches."""
    yield from lines_of(Struct((NamedValue("records", Leaf(data, holds=batches)),)), style)


def _location(report: FrameReport, number: int) -> str:
    frame = report.frame
    bytes_ = f"bytes {frame.start}-{frame.end - 1}" if frame.end > frame.start else f"at byte {frame.start}"
    return f"frame {number}: {bytes_}{f' of {report.label}' if report.label else ''}"


def _length(report: FrameReport) -> str:
    frame = report.frame
    if frame.length is None:
        return f", {len(frame.data)} without a length prefix"
    return f", {len(frame.data)} after the length prefix" if not frame.problem else ""


def _title(reading: Reading) -> str | None:
    if reading.request is None:
        return None if reading.kind == "message" else reading.kind
    known = f"API key {int(reading.request.api_key)}, known versions: {_versions(reading.request.versions)}"
    return f"{reading.kind} {name_of(reading.request)} v{reading.version} ({known})"


def _versions(versions: Versions) -> str:
    return f"v{versions.first}" if versions.first == versions.last else f"v{versions.first} to v{versions.last}"


def _problem(report: FrameReport, reading: Reading, secrets: bool) -> Iterator[str]:
    yield f"  cannot be decoded: {reading.problem}"
    if reading.others:
        versions = [f"v{version}" for version in reading.others]
        yield f"  versions that decode it: {' and '.join(filter(None, (', '.join(versions[:-1]), versions[-1])))}"
    elif reading.request is not None and reading.version is not None:
        yield f"  no version of {name_of(reading.request)} decodes it"
    if reading.position is not None and report.frame.data:
        # Look for secret APIs in the problem and in the frame's header, since the user may have named the wrong API.
        titles = f"{_title(reading)} {reading.problem} {_title(read_request(report.frame.data))}"
        if secrets or not any(api in titles for api in _SECRET_APIS):
            counted = "" if report.frame.length is None else ", counted from the end of its length prefix"
            yield f"  the bytes around it{counted}:"
            for line in hexdump(report.frame.data, reading.position):
                yield f"    {line}"
        else:
            yield "    (no hexdump, because it may contain a secret: --secrets shows it)"
