"""The command ``topics offsets``: the first and the last offsets of partitions, or those at a time."""

import time
from typing import Any, Final

import click

from ...errors import KafkaError
from ...types import OffsetAndTimestamp, OffsetSpec, TopicPartition
from ..exit_status import MISSING, CommandFailed
from ..records.points import parse_point
from ..shell.arguments import chosen_partitions
from ..shell.command import ShellCommand
from ..shell.outcomes import note_errors
from ..shell.output import note, print_rows
from ..shell.partition_names import partition_text
from ..shell.session import Session, run_with_client
from ..shell.shared_options import SharedOptions
from ..shell.visibility import note_none_visible
from .asking import all_partitions, existing_partitions, leaders_of, offsets_at_leaders

__all__ = ("list_offsets",)

_ENDS: Final = ("topic", "partition", "log_start_offset", "log_end_offset", "records")
_AT: Final = ("topic", "partition", "offset", "timestamp", "leader_epoch")
_NEWEST: Final = "max-timestamp"


@click.command(
    "offsets",
    cls=ShellCommand,
    examples=(
        "aiokafkawire topics offsets orders payments:0,1       the first offset and the end of each partition",
        "aiokafkawire topics offsets orders --time 2h          the first record of the last two hours",
        "aiokafkawire topics offsets --time max-timestamp      the newest record of each partition of all topics",
        "aiokafkawire topics offsets orders --json | jq -s 'map(.records) | add'",
    ),
)
@click.argument("topics", nargs=-1, metavar="[TOPIC[:N,...]...]")
@click.option(
    "--time",
    "point",
    metavar="POINT",
    help="The offset at a point: earliest, latest, max-timestamp, or a time; see consume --from.",
)
@click.option("--internal", is_flag=True, help="Without TOPIC: internal topics, too.")
def list_offsets(shared: SharedOptions, *, topics: tuple[str, ...], point: str | None, internal: bool) -> int:
    """Print the first offset and the end of each partition, or with --time one offset of it; by default of all topics.

    "records" is the number of offsets between; compacted records and markers of transactions count. A partition without
    a record at or after the time has no offset.
    """
    chosen = chosen_partitions("TOPIC", topics)
    spec = None if point is None else _spec(point)

    async def run(session: Session) -> int:
        admin = session.kafka.admin
        if chosen:
            partitions = await existing_partitions(admin, chosen)
        else:
            partitions = await all_partitions(admin, await admin.list_topics(internal=internal))
        leaders = await leaders_of(admin, {one.topic for one in partitions})
        led = {one: leaders[one] for one in partitions if one in leaders}
        errors: dict[int, KafkaError] = {}
        if spec is None:
            starts = await offsets_at_leaders(admin, led, OffsetSpec.EARLIEST, errors)
            ends = await offsets_at_leaders(admin, led, OffsetSpec.LATEST, errors)
            print_rows(shared, _ENDS, [_ends_row(one, starts.get(one), ends.get(one)) for one in partitions])
        else:
            found = await offsets_at_leaders(admin, led, spec, errors)
            print_rows(shared, _AT, [_row(one, found.get(one)) for one in partitions])
        if not partitions:
            await note_none_visible(session, "topics")
        for one in partitions:
            if one not in led:
                note(f"aiokafkawire: {partition_text(one)} has no leader, so its offsets are not known")
        return note_errors(errors.values()) or (0 if len(led) == len(partitions) else 1)

    return run_with_client(shared, run)


def _ends_row(
    partition: TopicPartition, start: OffsetAndTimestamp | None, end: OffsetAndTimestamp | None
) -> dict[str, Any]:
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "log_start_offset": None if start is None else start.offset,
        "log_end_offset": None if end is None else end.offset,
        "records": None if start is None or end is None else end.offset - start.offset,
    }


def _row(partition: TopicPartition, at: OffsetAndTimestamp | None) -> dict[str, Any]:
    is_known = at is not None and at.offset >= 0  # max-timestamp of a partition without records is -1
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "offset": at.offset if at is not None and is_known else None,
        "timestamp": at.timestamp if at is not None and at.timestamp >= 0 else None,
        "leader_epoch": at.leader_epoch if at is not None and is_known else None,
    }


def _spec(text: str) -> OffsetSpec:
    if text == _NEWEST:
        return OffsetSpec.MAX_TIMESTAMP
    point = parse_point("--time", text, time.time_ns() // 1_000_000)
    if not isinstance(point, OffsetSpec):
        raise CommandFailed(f"--time takes earliest, latest, {_NEWEST} or a time, got the offset {text!r}", MISSING)
    return point
