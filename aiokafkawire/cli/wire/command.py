"""``aiokafkawire wire``: where the bytes come from and the words go to."""

import argparse
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..exit_status import FAILED, MISSING, CommandFailed
from .apis import api_named, message_named
from .describe import Describer
from .frame_decoder import PendingRequest
from .input_formats import read_base64, read_bytes, read_text
from .json_renderer import json_of
from .report import object_of, records_lines, tell
from .session import FrameReport, Hints, read_frames, read_messages
from .streams import ByteStream, CapturedInput
from .text_renderer import Style
from .view_model import Leaf, NamedValue, Struct

__all__ = ("run_wire",)


def run_wire(args: argparse.Namespace) -> int:
    """Run the command: 0 if all was read, 1 if not, or if its reader has gone.

    Raises:
        CommandFailed: the arguments do not go together, or the input is nothing that can be taken for bytes.
        OSError: a file cannot be read.
    """
    _check(args)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names may have letters that the terminal's encoding lacks
    try:
        status = _Wire(args).run()
        sys.stdout.flush()
    except BrokenPipeError:
        # What Python still has to write when it exits goes nowhere, instead of into another error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
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
            asked = PendingRequest()
            self._tell(read_frames(self._direction(args.requests), Hints(prefixed=args.prefixed), asked))
            answers = Hints(prefixed=args.prefixed, answers=True)
            self._tell(read_frames(self._direction(args.responses), answers, asked))
        elif args.message is not None:
            cls, version = message_named(args.message)
            self._tell(read_messages(self._input(), cls, version))
        elif args.records:
            for stream in self._input():
                self._records(stream)
        else:
            response = None if args.response is None else api_named(args.response)
            hints = Hints(prefixed=args.prefixed, response=response, guess=args.guess)
            self._tell(read_frames(self._input(), hints, PendingRequest()))
        return 0 if self._ok and not self._describer.damaged else FAILED

    def _tell(self, frames: Iterable[FrameReport]) -> None:
        for told in frames:
            self._number += 1
            self._ok = self._ok and (told.is_read or bool(told.guesses))
            if self._args.json:
                self._print_json(object_of(told, self._number, self._describer, self._style))
                continue
            print()
            self._print(tell(told, self._number, self._describer, self._style, self._args.secrets))
            self._print(self._advice(told))

    def _advice(self, told: FrameReport) -> Iterator[str]:
        """What to try on what could not be read, if nothing better is known."""
        args, reading = self._args, told.reading
        if told.is_read or told.guesses or args.message is not None or (reading is not None and reading.others):
            return
        if reading is not None and reading.kind == "request" and not args.guess:
            yield "  If it is a response, say what it answers: --response API[:VERSION]; or try --guess."
        if args.prefixed is None and told.frame.start == 0 and (reading is None or reading.header is None):
            without = told.frame.length is None
            how, other = ("with", "--length") if without else ("without", "--no-length")
            yield f"  If it should be taken {how} a length before it: {other}."

    def _records(self, stream: ByteStream) -> None:
        batches = self._describer.records(stream.data)
        if self._args.json:
            held = Struct((NamedValue("records", Leaf(stream.data, holds=batches)),))
            self._print_json({"stream": stream.label, "batches": json_of(held)["records_means"]})
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
            raise CommandFailed("standard input is closed: give the bytes as arguments, or with --file", MISSING)
        if sys.stdin.isatty():
            print("Paste the bytes in hex, and end with Ctrl-D on a line of its own.", file=sys.stderr)
        return self._announced(self._source(sys.stdin.buffer.read()), "standard input: ")

    def _file(self, path: str) -> tuple[ByteStream, ...]:
        return self._announced(self._source(Path(path).read_bytes()), f"{path}: ")

    def _direction(self, path: str) -> tuple[ByteStream, ...]:
        """One of two files, which every frame of it names."""
        return tuple(ByteStream(one.data, one.label or path) for one in self._file(path))

    def _source(self, data: bytes) -> CapturedInput:
        notation = self._args.notation
        if notation == "hex":
            return read_text(data.decode("utf-8", "replace"))
        if notation == "base64":
            return read_base64(data.decode("utf-8", "replace"))
        return read_bytes(data, raw=notation == "raw")

    def _announced(self, source: CapturedInput, where: str) -> tuple[ByteStream, ...]:
        """Say what the input was taken for; with ``--json`` not where the objects go."""
        size = sum(len(stream.data) for stream in source.streams)
        streams = f", {len(source.streams)} streams" if len(source.streams) > 1 else ""
        count = "1 byte" if size == 1 else f"{size} bytes"
        print(f"{where}{count}{streams}, from {source.form}", file=sys.stderr if self._args.json else sys.stdout)
        return source.streams

    def _print(self, lines: Iterable[str]) -> None:
        for line in lines:
            print(line)

    def _print_json(self, value: object) -> None:
        print(json.dumps(value, allow_nan=False))


def _check(args: argparse.Namespace) -> None:
    ways = [name for name in ("response", "requests", "message", "records", "guess") if getattr(args, name)]
    if len(ways) > 1:
        told = " and ".join(f"--{name}" for name in ways)
        raise CommandFailed(f"{told} do not go together", MISSING)
    if (args.requests is None) != (args.responses is None):
        raise CommandFailed("--requests and --responses need each other", MISSING)
    sources = [given for given in (args.hex, args.file, args.requests) if given]
    if len(sources) > 1:
        raise CommandFailed("the bytes come from arguments, from --file, or from --requests and --responses", MISSING)
    if args.notation == "raw" and args.hex and args.hex != ["-"]:
        raise CommandFailed("--raw is for files and the standard input: arguments are text", MISSING)
