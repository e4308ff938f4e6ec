"""The command ``groups reset``: shows the plan of a reset, and executes it with ``--execute``."""

import time

import click

from ..exit_status import MISSING, CommandFailed
from ..records.points import POINTS_HELP, parse_point
from ..shell.arguments import chosen_partitions
from ..shell.command import ShellCommand
from ..shell.outcomes import print_outcomes
from ..shell.output import confirm, note, print_rows, rows_table, write_output
from ..shell.session import Session, run_with_client
from ..shell.shared_options import SharedOptions
from .reset import PLANNED, ResetPlans, ResetRequest, plan_resets, planned_rows, set_offsets
from .reset_file import parse_reset_file, read_reset_file, reset_file_text
from .reset_plan import CURRENT, ResetTarget, Shift

__all__ = ("reset_groups",)

_POINTS = f"Where to go on: 'current', {POINTS_HELP}."


@click.command(
    "reset",
    cls=ShellCommand,
    examples=(
        "aiokafkawire groups reset billing --all-topics --to beginning",
        "aiokafkawire groups reset billing --topic orders --to 2026-11-23T17:30 --execute",
        "aiokafkawire groups reset billing --topic orders:0,1 --shift-by -100 --execute --yes",
        "aiokafkawire groups reset billing --all-topics --to current --export > before.csv",
        "aiokafkawire groups reset billing --from-file before.csv --execute",
    ),
)
@click.argument("group_ids", nargs=-1, required=True, metavar="GROUP...")
@click.option("--to", metavar="POINT", help=_POINTS)
@click.option("--shift-by", type=int, metavar="N", help="Move the committed offsets: back if N is negative.")
@click.option(
    "--from-file",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Lines of topic,partition,offset, or of group,topic,partition,offset, as kafka-consumer-groups exports them.",
)
@click.option("--topic", "topics", multiple=True, metavar="TOPIC[:0,1]", help="A topic, or some of its partitions.")
@click.option("--all-topics", is_flag=True, help="All partitions that the group has offsets of.")
@click.option("--execute", is_flag=True, help="Set the offsets; without it, only show what would be set.")
@click.option("--dry-run", is_flag=True, help="Only show what would be set: the default.")
@click.option("--export", is_flag=True, help="Print the plan as CSV for --from-file.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask before the offsets are set.")
def reset_groups(
    shared: SharedOptions,
    *,
    group_ids: tuple[str, ...],
    to: str | None,
    shift_by: int | None,
    from_file: str | None,
    topics: tuple[str, ...],
    all_topics: bool,
    execute: bool,
    dry_run: bool,
    export: bool,
    yes: bool,
) -> int:
    """Set the offsets of groups without members: where they go on.

    Shows the plan; --execute sets the offsets, after asking on a terminal, and otherwise with --yes.
    """
    if execute and dry_run:
        raise CommandFailed("--execute and --dry-run exclude each other", MISSING)
    if export and (execute or shared.json):
        raise CommandFailed("--export prints the plan as CSV: leave out --execute and --json", MISSING)
    request = _request(group_ids, to, shift_by, from_file, topics, all_topics=all_topics)
    found = ResetPlans()

    async def plan(session: Session) -> int:
        nonlocal found
        found = await plan_resets(session.kafka.admin, request)
        return 0

    interrupted = run_with_client(shared, plan)
    if interrupted:
        return interrupted
    status = _note_refusals(found)
    if not execute:
        _print_plans(shared, found, export=export, several=len(group_ids) > 1)
        return status
    if not found.plans:
        return status
    return _execute(shared, found, yes=yes) or status


def _request(
    group_ids: tuple[str, ...],
    to: str | None,
    shift_by: int | None,
    from_file: str | None,
    topics: tuple[str, ...],
    *,
    all_topics: bool,
) -> ResetRequest:
    group_ids = tuple(dict.fromkeys(group_ids))
    if [to, shift_by, from_file].count(None) != 2:
        raise CommandFailed("where to go on? Use one of --to, --shift-by and --from-file", MISSING)
    if from_file is not None:
        if topics or all_topics:
            raise CommandFailed("--from-file names the partitions: leave out --topic and --all-topics", MISSING)
        return ResetRequest(group_ids, from_file=parse_reset_file(from_file, read_reset_file(from_file), group_ids))
    if bool(topics) == all_topics:
        raise CommandFailed("which partitions? Use --topic TOPIC[:0,1], or --all-topics", MISSING)
    chosen = None if all_topics else chosen_partitions("--topic", topics)
    return ResetRequest(group_ids, _target(to, shift_by), chosen)


def _target(to: str | None, shift_by: int | None) -> ResetTarget:
    if shift_by is not None:
        return Shift(shift_by)
    assert to is not None
    return CURRENT if to == "current" else parse_point("--to", to, time.time_ns() // 1_000_000)


def _note_refusals(found: ResetPlans) -> int:
    for line in found.refused:
        note(f"aiokafkawire: {' '.join(line.split())}")
    return 1 if found.refused else 0


def _print_plans(shared: SharedOptions, found: ResetPlans, *, export: bool, several: bool) -> None:
    if export:
        offsets = {
            plan.group_id: {partition: planned.offset for partition, planned in plan.planned.items()}
            for plan in found.plans
        }
        write_output(reset_file_text(offsets, name_groups=several).encode())
        return
    rows = [{**row, "outcome": "would be set"} for row in planned_rows(found.plans).values()]
    if rows or not found.refused:
        print_rows(shared, (*PLANNED, "outcome"), rows)


def _execute(shared: SharedOptions, found: ResetPlans, *, yes: bool) -> int:
    rows = planned_rows(found.plans)
    if not yes:
        note(rows_table(PLANNED, rows.values()).rstrip())
    count = f"{len(rows)} {'offset' if len(rows) == 1 else 'offsets'}"
    confirm(f"set {count} of groups", [plan.group_id for plan in found.plans], yes=yes, options=shared)

    async def run(session: Session) -> int:
        change = set_offsets(session.kafka.admin, found.plans)
        return await print_outcomes(session, PLANNED, rows, change, done="set")

    return run_with_client(shared, run)
