"""``aiokafkawire produce``: sends lines, JSON lines or files to a topic."""

import re
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final, Literal, cast

import anyio
import attrs
import click

from ...config import ProducerConfig, ProducerOptions
from ...errors import KafkaError
from ...observe import BatchEnded, Observer
from ...producer.producer import Producer
from ...types import BytesLike, Header
from ..error_text import error_text
from ..exit_status import MISSING, CommandFailed
from ..records.input_files import STDIN, read_pieces, total_size
from ..records.lines import InputRecord, LineSplitter, decode_json, split_keys
from ..records.points import parse_time
from ..records.templates import unescape
from ..shell.command import ShellCommand
from ..shell.meter import Meter, summary
from ..shell.output import note
from ..shell.session import Session, run_with_client
from ..shell.shared_options import SharedOptions

__all__ = ("ProduceOptions", "command", "produce")

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_BATCH_SIZE: Final = 512 * 1024
_LINGER_MS: Final = 5
_JSON_SIZE: Final = 8
"""How many times as long as its record a line of JSON may be, since JSON has escapes."""

_Producer = Producer[BytesLike, BytesLike]


@attrs.frozen(kw_only=True)
class ProduceOptions:
    """The records to send, and how to send them."""

    topic: str
    files: tuple[str, ...] = (STDIN,)
    form: Literal["lines", "json", "whole"] = "lines"
    """Whether a record is a line, a line of JSON that describes it, or a whole file."""
    delimiter: bytes = b"\n"
    key: bytes | None = None
    """The key of all records."""
    key_separator: bytes | None = None
    null: bytes | None = None
    """The text that means null as a key or value."""
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: tuple[Header, ...] = ()
    producer: ProducerOptions = attrs.field(factory=ProducerOptions)
    """Settings of the producer, which replace those of files and ``-X``."""
    quiet: bool = False


@click.command(
    cls=ShellCommand,
    examples=(
        "echo hello | aiokafkawire produce orders              a line is a record",
        "aiokafkawire produce orders orders.txt -z zstd        lines of a file, with a progress bar",
        "aiokafkawire produce orders -K: <<< 'UA1545:EWR-IAH'  a key before each value",
        "aiokafkawire produce orders -k UA1545 -H source=shell <<< EWR-IAH",
        "aiokafkawire produce orders -K: --null '' <<< 'UA1545:'",
        "                                                      a null value, which deletes a key of a compacted topic",
        """echo '{"key": "UA1545", "value": {"delay": 2}, "headers": {"source": "shell"}}' | \\""",
        "  aiokafkawire produce orders --json                  records that JSON describes",
        "aiokafkawire produce images --whole *.png             each file is a record",
        "aiokafkawire produce orders day.txt --transactional-id import-1",
        "                                                      all lines or none",
    ),
)
@click.argument("topic", metavar="TOPIC")
@click.argument("files", nargs=-1, metavar="[FILE...]", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("-D", "--delimiter", default=r"\n", metavar="TEXT", help=r"Stands after each record; by default \n.")
@click.option("-K", "--key-separator", metavar="TEXT", help="Stands between key and value in each line.")
@click.option("-k", "--key", metavar="TEXT", help="The key of all records.")
@click.option("--null", metavar="TEXT", help="A key or value that equals this text is null.")
@click.option("-H", "--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header of all records.")
@click.option("-p", "--partition", type=click.IntRange(0, 2**31 - 1), metavar="N", help="The partition of all records.")
@click.option("--timestamp", metavar="TIME", help="The timestamp of all records; by default now.")
@click.option("-z", "--compression", type=click.Choice(CODECS), help="The codec that compresses batches.")
@click.option("--acks", type=click.Choice(("all", "1", "0")), help="The replicas that must have it; by default all.")
@click.option("--transactional-id", metavar="ID", help="Send all records in one transaction of this id.")
@click.option("--whole", is_flag=True, help="Each file, or all of standard input, is one record.")
@click.option("-q", "--quiet", is_flag=True, help="Print no progress bar, and no count and no rate at the end.")
def command(
    shared: SharedOptions,
    *,
    topic: str,
    files: tuple[str, ...],
    delimiter: str,
    key_separator: str | None,
    key: str | None,
    null: str | None,
    headers: tuple[str, ...],
    partition: int | None,
    timestamp: str | None,
    compression: str | None,
    acks: str | None,
    transactional_id: str | None,
    whole: bool,
    quiet: bool,
) -> int:
    """Send the lines of files, or of standard input, to a topic, and wait until all are acknowledged.

    With --json each line describes a record, as consume --json prints it: its key, value, headers, partition and
    timestamp. A wrong line ends the command; the lines before it are sent, except in a transaction.
    """
    if whole and (shared.json or key_separator is not None):
        raise CommandFailed(f"--whole and {'--json' if shared.json else '--key-separator'} cannot be combined", MISSING)
    if shared.json and (key_separator is not None or key is not None):
        raise CommandFailed("--json lines have the key as a field: leave --key and --key-separator out", MISSING)
    if key is not None and key_separator is not None:
        raise CommandFailed("--key and --key-separator cannot be combined", MISSING)
    settings: dict[str, Any] = {
        "compression_type": compression,
        "acks": None if acks is None else acks if acks == "all" else int(acks),
        "transactional_id": transactional_id,
    }
    options = ProduceOptions(
        topic=topic,
        files=files or (STDIN,),
        form="json" if shared.json else "whole" if whole else "lines",
        delimiter=_not_empty("--delimiter", delimiter),
        key=None if key is None else unescape(key),
        key_separator=None if key_separator is None else _not_empty("--key-separator", key_separator),
        null=None if null is None else unescape(null),
        partition=partition,
        timestamp_ms=None if timestamp is None else parse_time("--timestamp", timestamp, int(time.time() * 1000)),
        headers=tuple(map(_header, headers)),
        producer=cast("ProducerOptions", {name: value for name, value in settings.items() if value is not None}),
        quiet=quiet,
    )
    if STDIN in options.files and "stdin" in shared.closed:
        raise CommandFailed("standard input is closed: name a file to send", MISSING)
    failures = _Failures()
    return run_with_client(shared, partial(produce, options=options, failures=failures), quiet=quiet, observer=failures)


def _not_empty(option: str, text: str) -> bytes:
    if not text:
        raise CommandFailed(f"{option} must not be empty", MISSING)
    return unescape(text)


def _header(text: str) -> Header:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise CommandFailed(f"--header takes NAME=VALUE, got {text!r}", MISSING)
    return name, value.encode("utf-8", "surrogateescape")


class _Failures(Observer):
    """Counts the records that are not delivered, and ends the reading of more at the first of them."""

    def __init__(self) -> None:
        self.records: int = 0
        self.reading: anyio.CancelScope | None = None

    def batch_ended(self, event: BatchEnded) -> None:
        """Count the records of a batch that has failed."""
        if event.error is not None:
            self.records += event.records
            if self.reading is not None:
                self.reading.cancel()


async def produce(session: Session, options: ProduceOptions, failures: _Failures) -> int:
    """Send the records, and return the exit status."""
    settings: ProducerOptions = {"batch_size": _BATCH_SIZE, "linger_ms": _LINGER_MS}
    settings = {**settings, **session.settings.producer, **options.producer}
    if not session.settings.client.get("allow_auto_create_topics"):
        await session.kafka.admin.describe_topic(options.topic)  # raises at once if the topic does not exist
    meter = Meter()
    in_transaction = settings.get("transactional_id") is not None
    with summary(meter, quiet=options.quiet), _noting(failures, in_transaction), _progress(options) as advance:
        async with session.kafka.producer(**settings) as producer, _transaction(producer, begin=in_transaction):
            sender = _Sender(options, producer, meter, ProducerConfig(**settings).max_request_size)
            try:
                # Standard input may stay open for days, so a failure must not wait for its end.
                with anyio.CancelScope() as failures.reading:
                    for path in options.files:
                        async with aclosing(read_pieces(path)) as pieces:
                            async for piece in pieces:
                                await sender.feed(piece)
                                advance(len(piece))
                        await sender.finish()
            except (KafkaError, CommandFailed) as error:
                what = str(error) if isinstance(error, CommandFailed) else f"{sender.place}: {error_text(error)}"
                fate = "the transaction is aborted" if in_transaction else await _fate(producer, meter.records)
                raise CommandFailed(f"{what}; {fate}") from error
            await producer.flush()
    return 0


async def _fate(producer: _Producer, records: int) -> str:
    """Return what has become of the records before an error."""
    try:
        await producer.flush()
    except KafkaError as failed:
        return error_text(failed)
    return f"{records:,} {'record before it is' if records == 1 else 'records before it are'} sent"


@contextmanager
def _noting(failures: _Failures, in_transaction: bool) -> Iterator[None]:
    """Print how many records are not acknowledged if the command is cancelled, unless their transaction is aborted."""
    try:
        yield
    except anyio.get_cancelled_exc_class():
        if failures.records and not in_transaction:
            noun = "record was" if failures.records == 1 else "records were"
            note(f"aiokafkawire: {failures.records:,} {noun} not acknowledged, and may be lost")
        raise


@asynccontextmanager
async def _transaction(producer: _Producer, *, begin: bool) -> AsyncIterator[None]:
    """Run the body in a transaction, if there is one to begin."""
    if not begin:
        yield
        return
    try:
        async with producer.transaction():
            yield
    except anyio.get_cancelled_exc_class():
        note("the transaction is aborted")
        raise


@contextmanager
def _progress(options: ProduceOptions) -> Iterator[Callable[[int], object]]:
    """Show a progress bar on a terminal, and provide the function that advances it by bytes."""
    size = total_size(options.files)
    if options.quiet or not size or not sys.stderr.isatty():
        yield lambda _: None
        return
    with click.progressbar(
        length=size, label=options.topic, file=sys.stderr, update_min_steps=max(1, size // 200)
    ) as bar:
        yield bar.update


class _Sender:
    """Turns the bytes of files into records of at most ``max_size`` bytes, and sends them."""

    def __init__(self, options: ProduceOptions, producer: _Producer, meter: Meter, max_size: int) -> None:
        self._options, self._producer, self._meter, self._max_size = options, producer, meter, max_size
        self._lines = LineSplitter(options.delimiter)
        self._whole = bytearray()
        asked = (options.key, options.key_separator, options.null)
        self._are_lines_values = options.form == "lines" and asked == (None, None, None)
        self.number: int = 1
        """The number of the next line, or of the line that failed; lines of all files are counted."""

    async def feed(self, piece: bytes) -> None:
        """Take a piece of a file, and send the records that are complete."""
        self._meter.add(0, len(piece))
        if self._options.form == "whole":
            self._whole += piece
            self._check_size(len(self._whole), self._max_size)
            return
        if self._are_lines_values:
            values = self._lines.feed_values(piece)
            if values:
                await self._send_values(values, None)
        else:
            await self._send(self._lines.feed(piece))
        is_json = self._options.form == "json"
        self._check_size(self._lines.unfinished, self._max_size * (_JSON_SIZE if is_json else 1))

    def _check_size(self, size: int, limit: int) -> None:
        """Raise an error if a record is too large already, before its end: there may be none."""
        if size > limit:
            end = "" if self._options.form == "whole" else f", and no delimiter ({self._options.delimiter!r}) yet"
            raise CommandFailed(
                f"{self.place} has more than {limit:,} bytes{end}; a record may have {self._max_size:,} "
                "(max_request_size, which -X sets)"
            )

    @property
    def place(self) -> str:
        """Names the line or the file that is being read."""
        return f"{'file' if self._options.form == 'whole' else 'line'} {self.number}"

    async def finish(self) -> None:
        """Send the last record of a file."""
        if self._options.form == "whole":
            await self._send([bytes(self._whole)])
            self._whole.clear()
        else:
            await self._send(self._lines.finish())

    async def _send(self, lines: list[bytes]) -> None:
        if not lines:
            return
        if self._options.form == "json":
            for line in lines:
                await self._send_record(decode_json(line, self.number))
            return
        separator = self._options.key_separator
        if separator is None:
            await self._send_values(lines, None if self._options.key is None else [self._options.key] * len(lines))
            return
        keys, values, wrong = split_keys(lines, separator, self.number)
        await self._send_values(values, keys)
        if wrong is not None:
            raise wrong

    async def _send_values(self, values: Sequence[bytes | None], keys: Sequence[bytes | None] | None) -> None:
        options = self._options
        if options.null is not None:
            values = [None if value == options.null else value for value in values]
            keys = None if keys is None else [None if key == options.null else key for key in keys]
        try:
            await self._producer.enqueue_many(
                options.topic,
                values,
                keys=keys,
                partition=options.partition,
                timestamp_ms=options.timestamp_ms,
                headers=options.headers,
            )
        except KafkaError as error:
            self._count(_accepted(error))
            raise
        self._count(len(values))

    def _count(self, records: int) -> None:
        self._meter.add(records, 0)
        self.number += records

    async def _send_record(self, record: InputRecord) -> None:
        options = self._options
        await self._producer.enqueue(
            options.topic,
            record.value,
            key=record.key,
            partition=record.partition if options.partition is None else options.partition,
            timestamp_ms=record.timestamp_ms if options.timestamp_ms is None else options.timestamp_ms,
            headers=(*options.headers, *record.headers),
        )
        self._count(1)


def _accepted(error: KafkaError) -> int:
    """Return how many records ``enqueue_many`` accepted before the error, which is in the error's note."""
    notes = " ".join(getattr(error, "__notes__", ()))
    found = re.search(r"(\d+) records before it were accepted", notes)
    return int(found[1]) if found else 0
