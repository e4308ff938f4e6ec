"""``aiokafkawire consume``: prints the records of topics."""

import time
from collections.abc import Iterable
from functools import partial
from itertools import islice
from typing import Final

import attrs
import click

from ...config import ConsumerOptions
from ...errors import UsageError
from ...types import OffsetSpec, TopicPartition
from ..exit_status import MISSING, CommandFailed
from ..records.filters import Filter, make_filter
from ..records.formats import FORMATS, Formatter, Record, hex_formatter, json_formatter, plain_formatter
from ..records.points import POINTS_HELP, BeforeEnd, Point, parse_point, parse_time
from ..records.reading import read_group, read_partitions, resolve_point
from ..records.templates import TEMPLATE_HELP, template_formatter, unescape
from ..shell.command import ShellCommand
from ..shell.meter import Meter, summary
from ..shell.output import write_output
from ..shell.session import Session, run_with_client
from ..shell.shared_options import SharedOptions

__all__ = ("ConsumeOptions", "command", "consume")

_PARTITION_FETCH_BYTES: Final = 8 * 1024 * 1024
"""The bytes of a partition in one response: fewer requests for one large partition; ``fetch.max.bytes`` limits all."""
_RESETS: Final = {OffsetSpec.EARLIEST: "earliest", OffsetSpec.LATEST: "latest"}


@attrs.frozen(kw_only=True)
class ConsumeOptions:
    """The records to read, and how to print them."""

    topics: tuple[str, ...]
    partitions: tuple[int, ...] = ()
    """The partitions to read of each topic; all if empty."""
    start: Point | None = None
    end: Point | None = None
    last: int | None = None
    """The number of newest records to read."""
    follow: bool = False
    group: str | None = None
    count: int | None = None
    """The number of records after which to stop."""
    keep: Filter | None = None
    """The filter; None keeps all records."""
    write: Formatter
    quiet: bool = False


@click.command(
    cls=ShellCommand,
    examples=(
        "aiokafkawire consume orders                           all records, and stop at the end",
        "aiokafkawire consume orders --follow                  new records, until Ctrl-C",
        "aiokafkawire consume orders --last 10 --follow        the 10 newest records, then new ones",
        "aiokafkawire consume orders --from 2h --to 1h         between two hours ago and one hour ago",
        "aiokafkawire consume orders -p 0 --from 42 --count 1  the record at an offset",
        "aiokafkawire consume orders --grep 'EWR|JFK' --key '^UA'",
        r"aiokafkawire consume orders -f '%t-%p %o %D %k: %v\n'",
        "aiokafkawire consume orders --json | jq .value",
        "aiokafkawire consume orders --json | aiokafkawire produce copy --json",
        "aiokafkawire consume orders -g billing                as a member of a group, and commit",
    ),
)
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@click.option(
    "-p", "--partition", "partitions", multiple=True, metavar="N[-N]", help="Only these partitions; may be repeated."
)
@click.option("--from", "start", metavar="POINT", help=f"Where to begin: {POINTS_HELP}. By default the beginning.")
@click.option("--to", "end", metavar="POINT", help="Where to stop, before this point; by default the current end.")
@click.option("--last", type=click.IntRange(1), metavar="N", help="Only the N newest records of all partitions.")
@click.option("-F", "--follow", is_flag=True, help="Wait for new records; without --from or --last only new ones.")
@click.option("-g", "--group", metavar="ID", help="Join this group, begin where it has committed, and commit.")
@click.option("-n", "--count", type=click.IntRange(1), metavar="N", help="Stop after N records are printed.")
@click.option("--key", metavar="REGEX", help="Only records whose key matches.")
@click.option("--grep", metavar="REGEX", help="Only records whose value matches.")
@click.option("--header", "headers", multiple=True, metavar="NAME[=REGEX]", help="Only records with this header.")
@click.option("--after", metavar="TIME", help="Only records with this timestamp or a later one.")
@click.option("--before", metavar="TIME", help="Only records with an earlier timestamp.")
@click.option("-i", "--ignore-case", is_flag=True, help="Match upper and lower case alike.")
@click.option("--invert", is_flag=True, help="Only records that do not pass these conditions.")
@click.option(
    "-f",
    "--format",
    "form",
    metavar="FORMAT",
    default="plain",
    help=f"plain (the default), json, hex, or a template: {TEMPLATE_HELP}.",
)
@click.option("-D", "--delimiter", default=r"\n", metavar="TEXT", help=r"In plain: after each record; by default \n.")
@click.option("-K", "--key-separator", metavar="TEXT", help="In plain: print keys too, with this text after them.")
@click.option("--null", default="", metavar="TEXT", help="What a null key or value looks like; by default nothing.")
@click.option("-q", "--quiet", is_flag=True, help="Print no count and no rate at the end.")
def command(
    shared: SharedOptions,
    *,
    topics: tuple[str, ...],
    partitions: tuple[str, ...],
    start: str | None,
    end: str | None,
    last: int | None,
    follow: bool,
    group: str | None,
    count: int | None,
    key: str | None,
    grep: str | None,
    headers: tuple[str, ...],
    after: str | None,
    before: str | None,
    ignore_case: bool,
    invert: bool,
    form: str,
    delimiter: str,
    key_separator: str | None,
    null: str,
    quiet: bool,
) -> int:
    """Print the records of topics, and stop at the end; a count and a rate go to standard error.

    A point is resolved in each partition by itself. Records of several partitions are printed in the order of arrival;
    with --last by timestamp.
    """
    now_ms = int(time.time() * 1000)
    keep = make_filter(
        key=key,
        value=grep,
        headers=headers,
        after_ms=None if after is None else parse_time("--after", after, now_ms),
        before_ms=None if before is None else parse_time("--before", before, now_ms),
        ignore_case=ignore_case,
        invert=invert,
    )
    options = ConsumeOptions(
        topics=tuple(dict.fromkeys(topics)),
        partitions=_partitions(partitions),
        start=None if start is None else parse_point("--from", start, now_ms),
        end=None if end is None else parse_point("--to", end, now_ms),
        last=last,
        follow=follow,
        group=group,
        count=count,
        keep=keep,
        write=_formatter("json" if shared.json else form, delimiter, key_separator, null.encode()),
        quiet=quiet,
    )
    _check(options)
    return run_with_client(shared, partial(consume, options=options), quiet=quiet, on_fast_loop=True)


def _formatter(form: str, delimiter: str, key_separator: str | None, null: bytes) -> Formatter:
    if "%" in form:
        return template_formatter(form, null)
    if form == "plain":
        separator = None if key_separator is None else unescape(key_separator)
        return plain_formatter(unescape(delimiter), separator, null)
    if form == "json":
        return json_formatter
    if form == "hex":
        return hex_formatter
    raise CommandFailed(f"--format: {form!r} is none of {', '.join(FORMATS)}, and no template, as it has no %", MISSING)


def _partitions(texts: Iterable[str]) -> tuple[int, ...]:
    """Return the partitions that texts such as "3", "0-2" and "1,4" name."""
    found: dict[int, None] = {}
    for text in ",".join(texts).split(",") if texts else ():
        first, dash, last = text.partition("-")
        is_range = first.isdecimal() and (not dash or last.isdecimal())
        if not is_range or not 0 <= int(last or first) - int(first) <= 100_000:
            raise CommandFailed(f"--partition: {text!r} is no partition; write 3, 0-2 or 1,4", MISSING)
        found |= dict.fromkeys(range(int(first), int(last or first) + 1))
    return tuple(found)


def _check(options: ConsumeOptions) -> None:
    """Raise CommandFailed if options contradict each other."""
    given = {
        "--from": options.start,
        "--to": options.end,
        "--last": options.last,
        "--partition": options.partitions or None,
        "--follow": options.follow or None,
        "--group": options.group,
    }
    for one, other in (("--last", "--from"), ("--last", "--to"), ("--follow", "--to")):
        if given[one] is not None and given[other] is not None:
            raise CommandFailed(f"{one} and {other} cannot be combined", MISSING)
    if options.group is None:
        return
    for name in ("--to", "--last", "--partition"):
        if given[name] is not None:
            raise CommandFailed(f"--group and {name} cannot be combined: the group decides what is read", MISSING)
    if options.start is not None and options.start not in _RESETS:
        raise CommandFailed("with --group, --from must be beginning or end: other offsets are the group's", MISSING)


async def consume(session: Session, options: ConsumeOptions) -> int:
    """Print the records, and return the exit status."""
    meter = Meter()
    with summary(meter, quiet=options.quiet):
        read = _read if options.group is None else _read_as_member
        await read(session, options, _Printer(options, meter))
    return 0


class _Printer:
    """Filters, counts and prints records."""

    def __init__(self, options: ConsumeOptions, meter: Meter) -> None:
        self._keep, self._write, self._meter = options.keep, options.write, meter
        self._left = options.count

    def limit(self) -> int | None:
        """Return how many records are still to be printed; None without a limit."""
        return self._left

    def print(self, records: Iterable[Record]) -> bool:
        """Print the records that pass the filter, and return whether all records that were asked for are printed."""
        if self._keep is not None:
            records = filter(self._keep, records)
        if self._left is not None:
            records = islice(records, self._left)
        count, data = self._write(records)
        if count:
            write_output(data)
            self._meter.add(count, len(data))
        if self._left is None:
            return False
        self._left -= count
        return self._left == 0


async def _read(session: Session, options: ConsumeOptions, printer: _Printer) -> None:
    partitions = await _assigned(session, options)
    consumer_options: ConsumerOptions = {
        "auto_offset_reset": "earliest",
        "max_partition_fetch_bytes": _PARTITION_FETCH_BYTES,
        **session.settings.consumer,
    }
    consumer_options.pop("group_id", None)
    consumer_options.pop("group_instance_id", None)
    async with session.kafka.consumer(**consumer_options) as consumer:
        earliest, ends = [
            {
                partition: found.offset
                for partition, found in (await consumer.offsets(dict.fromkeys(partitions, spec))).items()
                if found is not None
            }
            for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
        ]
        if options.last is not None:
            starts = await resolve_point(consumer, BeforeEnd(options.last), earliest, ends)
            newest: list[Record] = []
            await read_partitions(consumer, starts, ends, partial(_gather, newest))
            newest.sort(key=lambda record: (record.timestamp, record.topic, record.partition, record.offset))
            if printer.print(newest[-options.last :]) or not options.follow:
                return
            starts = ends
        else:
            by_default = OffsetSpec.LATEST if options.follow else OffsetSpec.EARLIEST
            start = by_default if options.start is None else options.start
            starts = await resolve_point(consumer, start, earliest, ends)
        if options.end is not None:
            ends = await resolve_point(consumer, options.end, earliest, ends)
        await read_partitions(consumer, starts, None if options.follow else ends, printer.print)


def _gather(into: list[Record], records: Iterable[Record]) -> bool:
    into.extend(records)
    return False


async def _assigned(session: Session, options: ConsumeOptions) -> list[TopicPartition]:
    """Return the partitions to read.

    Raises:
        UnknownTopicOrPartition: a topic does not exist.
        UsageError: a topic has no such partition.
    """
    found = []
    for name in options.topics:
        topic = await session.kafka.admin.describe_topic(name)
        known = [partition.index for partition in topic.partitions]
        for index in options.partitions:
            if index not in known:
                raise UsageError(f"topic {name!r} has no partition {index}: it has {len(known)}")
        found += [TopicPartition(name, index) for index in options.partitions or known]
    return found


async def _read_as_member(session: Session, options: ConsumeOptions, printer: _Printer) -> None:
    for name in options.topics:
        await session.kafka.admin.describe_topic(name)  # raises if the topic does not exist
    settings: ConsumerOptions = {
        "auto_offset_reset": "earliest",
        "max_partition_fetch_bytes": _PARTITION_FETCH_BYTES,
        **session.settings.consumer,
    }
    if isinstance(options.start, OffsetSpec):
        settings["auto_offset_reset"] = _RESETS[options.start]
    settings["group_id"] = options.group
    async with session.kafka.consumer(*options.topics, **settings) as consumer:
        await read_group(
            consumer,
            follow=options.follow,
            handle=printer.print,
            limit=printer.limit,
            commits=settings.get("enable_auto_commit", True),
        )
