"""``aiokafkawire wire``: the command's input and output."""

import argparse
import io
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..exit_status import FAILED, MISSING, CommandFailed
from ..standard_streams import discard_output
from .apis import api_named, message_named
from .describe import Describer
from .frame_decoder import PendingRequests
from .input_formats import read_base64, read_bytes, read_text
from .json_renderer import json_of
from .report import object_of, records_lines, report_lines
from .session import FrameReport, Hints, read_frames, read_messages
from .streams import ByteStream, CapturedInput
from .text_renderer import Style
from .view_model import Leaf, NamedValue, Struct

__all__ = ("run_wire",)


def run_wire(args: argparse.Namespace) -> int:
    """Run the command; return 0, or 1 if a frame is not decoded, a batch is damaged, or the output pipe is closed.

    Raises:
        CommandFailed: the arguments contradict each other, or the input has no valid notation.
        OSError: a file cannot be read.
    """
    _check(args)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names may have characters that the terminal cannot encode
    try:
        status = _Wire(args).run()
        sys.stdout.flush()
    except BrokenPipeError:
        # Redirect the output that Python flushes at exit, to avoid another error.
        discard_output()
        return FAILED
    return status


class _Wire:
    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._describer = Describer(secrets=args.secrets)
        self._style = Style(full=args.full, brief=args.brief)
        self._ok = True
        self._number = 0

    def run(self) -> int:
        args = self._args
        if args.requests is not None:
            pending = PendingRequests()
            self._report(read_frames(self._direction(args.requests), Hints(prefixed=args.prefixed), pending))
            answers = Hints(prefixed=args.prefixed, answers=True)
            self._report(read_frames(self._direction(args.responses), answers, pending))
        elif args.message is not None:
            cls, version = message_named(args.message)
            self._report(read_messages(self._input(), cls, version))
        elif args.records:
            for stream in self._input():
                self._records(stream)
        else:
            response = None if args.response is None else api_named(args.response)
            hints = Hints(prefixed=args.prefixed, response=response, guess=args.guess)
            self._report(read_frames(self._input(), hints, PendingRequests()))
        return 0 if self._ok and not self._describer.damaged else FAILED

    def _report(self, frames: Iterable[FrameReport]) -> None:
        for report in frames:
            self._number += 1
            self._ok = self._ok and (report.is_read or bool(report.guesses))
            if self._args.json:
                self._print_json(object_of(report, self._number, self._describer, self._style))
                continue
            print()
            self._print(report_lines(report, self._number, self._describer, self._style, self._args.secrets))
            self._print(self._advice(report))

    def _advice(self, report: FrameReport) -> Iterator[str]:
        """Yield command-line options to try for a frame that could not be decoded."""
        args, reading = self._args, report.reading
        if report.is_read or report.guesses or args.message is not None or (reading is not None and reading.others):
            return
        if reading is not None and reading.kind == "request" and not args.guess:
            yield "  If the frame is a response, name its API: --response API[:VERSION]; or try --guess."
        if args.prefixed is None and report.frame.start == 0 and (reading is None or reading.header is None):
            without = report.frame.length is None
            how, other = ("has a", "--length") if without else ("has no", "--no-length")
            yield f"  If the frame {how} length prefix: {other}."

    def _records(self, stream: ByteStream) -> None:
        batches = self._describer.records(stream.data)
        if self._args.json:
            struct = Struct((NamedValue("records", Leaf(stream.data, holds=batches)),))
            self._print_json({"stream": stream.label, "batches": json_of(struct)["records_means"]})
            return
        print()
        self._print(records_lines(stream.data, batches, self._style))

    def _input(self) -> tuple[ByteStream, ...]:
        args = self._args
        if args.file is not None:
            return self._file(args.file)
        if args.hex and args.hex != ["-"]:
            text = " ".join(args.hex)
            source = read_base64(text) if args.notation == "base64" else read_text(text)
            return self._announced(source, "")
        if "stdin" in getattr(args, "closed", ()):
            raise CommandFailed("standard input is closed: pass the bytes as arguments or with --file", MISSING)
        if sys.stdin.isatty():
            print("Paste the bytes in hex, and end with Ctrl-D on a line of its own.", file=sys.stderr)
        return self._announced(self._source(sys.stdin.buffer.read()), "standard input: ")

    def _file(self, path: str) -> tuple[ByteStream, ...]:
        return self._announced(self._source(Path(path).read_bytes()), f"{path}: ")

    def _direction(self, path: str) -> tuple[ByteStream, ...]:
        """Read a file with the bytes of one direction; give its streams the path as label, unless they have a label."""
        return tuple(ByteStream(stream.data, stream.label or path) for stream in self._file(path))

    def _source(self, data: bytes) -> CapturedInput:
        notation = self._args.notation
        if notation == "hex":
            return read_text(data.decode("utf-8", "replace"))
        if notation == "base64":
            return read_base64(data.decode("utf-8", "replace"))
        return read_bytes(data, raw=notation == "raw")

    def _announced(self, source: CapturedInput, prefix: str) -> tuple[ByteStream, ...]:
        """Print ``prefix``, the input's size and its notation, and return the input's streams.

        With ``--json`` the line goes to standard error.
        """
        size = sum(len(stream.data) for stream in source.streams)
        streams = f", {len(source.streams)} streams" if len(source.streams) > 1 else ""
        count = "1 byte" if size == 1 else f"{size} bytes"
        print(f"{prefix}{count}{streams}, from {source.form}", file=sys.stderr if self._args.json else sys.stdout)
        return source.streams

    def _print(self, lines: Iterable[str]) -> None:
        for line in lines:
            print(line)

    def _print_json(self, value: object) -> None:
        print(json.dumps(value, allow_nan=False))


def _check(args: argparse.Namespace) -> None:
    modes = [name for name in ("response", "requests", "message", "records", "guess") if getattr(args, name)]
    if len(modes) > 1:
        names = " and ".join(f"--{name}" for name in modes)
        raise CommandFailed(f"{names} cannot be combined", MISSING)
    if (args.requests is None) != (args.responses is None):
        raise CommandFailed("--requests and --responses must be used together", MISSING)
    sources = [given for given in (args.hex, args.file, args.requests) if given]
    if len(sources) > 1:
        raise CommandFailed("use only one input: arguments, --file, or --requests and --responses", MISSING)
    if args.notation == "raw" and args.hex and args.hex != ["-"]:
        raise CommandFailed("--raw needs --file or the standard input: arguments are text", MISSING)
