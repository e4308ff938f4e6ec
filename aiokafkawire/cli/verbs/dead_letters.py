"""``aiokafkawire dead-letters``: counts, shows and replays the records of dead-letter topics."""

import re
import time
from functools import partial

import click

from ...processing.failures import failure_of
from ..dead_letters.reading import bounds_of, progress_bar, read_letter, reader
from ..dead_letters.replaying import ReplayOptions, replay
from ..dead_letters.rows import LISTED, REPLAYED, FailureCounts, letter_row, letter_text, replay_rows
from ..dead_letters.selection import Selection
from ..exit_status import MISSING, CommandFailed
from ..records.points import parse_time
from ..shell.command import ShellGroup
from ..shell.output import print_rows, write_output
from ..shell.session import Session, run_with_client
from ..shell.shared_options import SharedOptions

__all__ = ("command",)


@click.group(
    cls=ShellGroup,
    examples=(
        "aiokafkawire dead-letters list orders.dead",
        "aiokafkawire dead-letters show orders.dead 0:42",
        "aiokafkawire dead-letters replay orders.dead --dry-run",
        "aiokafkawire dead-letters replay orders.dead --error TimeoutError --rate 100",
    ),
)
def command() -> None:
    """Count, show and replay the records of dead-letter topics."""


@command.command(
    "list",
    examples=("aiokafkawire dead-letters list orders.dead", "aiokafkawire dead-letters list orders.dead --json"),
)
@click.argument("topic", metavar="TOPIC")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress bar.")
def list_letters(shared: SharedOptions, *, topic: str, quiet: bool) -> int:
    """Count the dead letters of a topic by origin topic, group and error, with the first and the last time.

    All of them are counted, also those that were replayed. Records without a failure in their headers are counted
    in a row without names.
    """

    async def run(session: Session) -> int:
        bounds = await bounds_of(session, topic)
        counts = FailureCounts()
        unread = {one: first for one, (first, end) in bounds.items() if first < end}
        length = sum(bounds[one][1] - first for one, first in unread.items())
        with progress_bar(topic, length, quiet=quiet) as advance:
            if unread:
                async with reader(session, topic, unread) as records:
                    async for record in records:
                        counts.add(failure_of(record.headers), record.timestamp)
                        advance(1)
        print_rows(shared, LISTED, counts.rows())
        return 0

    return run_with_client(shared, run)


@command.command(
    "show",
    examples=(
        "aiokafkawire dead-letters show orders.dead 0:42",
        "aiokafkawire dead-letters show orders.dead 0:42 --json | jq -r .stack",
    ),
)
@click.argument("topic", metavar="TOPIC")
@click.argument("place", metavar="PARTITION:OFFSET")
def show_letter(shared: SharedOptions, *, topic: str, place: str) -> int:
    """Show one dead letter: where it was read, why it failed, and its key, headers and value."""
    found = re.fullmatch(r"(\d{1,9}):(\d{1,18})", place)
    if found is None:
        raise CommandFailed(f"a record is named PARTITION:OFFSET, such as 0:42, got {place!r}", MISSING)
    partition, offset = int(found[1]), int(found[2])

    async def run(session: Session) -> int:
        record = await read_letter(session, topic, partition, offset)
        if shared.json:
            print_rows(shared, (), [letter_row(record)])
        else:
            write_output(letter_text(record).encode("utf-8", "surrogateescape"))
        return 0

    return run_with_client(shared, run)


@command.command(
    "replay",
    examples=(
        "aiokafkawire dead-letters replay orders.dead --dry-run",
        "aiokafkawire dead-letters replay orders.dead --limit 1     try one of them first",
        "aiokafkawire dead-letters replay orders.dead --origin orders --error TimeoutError --since 2h --rate 100",
    ),
)
@click.argument("topic", metavar="TOPIC")
@click.option("--origin", "origins", multiple=True, metavar="TOPIC", help="Only those of this topic; may be repeated.")
@click.option(
    "--error",
    "errors",
    multiple=True,
    metavar="TYPE",
    help="Only those with this error, such as TimeoutError or http.client.BadStatusLine; may be repeated.",
)
@click.option("--since", metavar="TIME", help="Only those that failed at this time or later; see consume --after.")
@click.option("--until", metavar="TIME", help="Only those that failed before.")
@click.option("-n", "--limit", type=click.IntRange(1), metavar="N", help="Stop after N records.")
@click.option("--rate", type=click.IntRange(1), metavar="N", help="At most N records per second.")
@click.option("--dry-run", is_flag=True, help="Print what would be replayed, and write nothing.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress bar.")
def replay_letters(
    shared: SharedOptions,
    *,
    topic: str,
    origins: tuple[str, ...],
    errors: tuple[str, ...],
    since: str | None,
    until: str | None,
    limit: int | None,
    rate: int | None,
    dry_run: bool,
    quiet: bool,
) -> int:
    """Write dead letters back to their origin topics; those that were replayed before are left out.

    A record gets its key, value and headers as they were, without the headers of the failure, and the header
    aiokafkawire.replayed-from. Acknowledged records are committed for the group aiokafkawire-replay-TOPIC: a
    crash repeats at most the 500 records in flight.
    """
    now_ms = int(time.time() * 1000)
    options = ReplayOptions(
        topic=topic,
        selection=Selection(
            origins=frozenset(origins),
            errors=frozenset(errors),
            since_ms=None if since is None else parse_time("--since", since, now_ms),
            until_ms=None if until is None else parse_time("--until", until, now_ms),
        ),
        limit=limit,
        rate=rate,
        dry_run=dry_run,
        quiet=quiet,
    )
    return run_with_client(shared, partial(_print_replayed, options=options))


async def _print_replayed(session: Session, options: ReplayOptions) -> int:
    counts = await replay(session, options)
    print_rows(session.options, REPLAYED, replay_rows(counts, "would be replayed" if options.dry_run else "replayed"))
    return 0
