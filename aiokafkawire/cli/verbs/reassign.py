"""``aiokafkawire reassign``: plans which brokers hold partitions, and moves them."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from ...errors import KafkaError
from ...types import TopicPartition
from ..counted import counted
from ..exit_status import FAILED, MISSING, CommandFailed
from ..reassign.observing import PlanState, look_at_plan
from ..reassign.plan_file import plan_json, read_plan
from ..reassign.proposing import present_assignment, present_log_dirs, propose
from ..reassign.starting import MOVED, STARTED, PreparedPlan, log_dir_rows, move_log_dirs, prepare, start
from ..reassign.watching import remove_throttles, watch_plan
from ..shell.command import ShellGroup
from ..shell.outcomes import print_outcomes
from ..shell.output import Columns, confirm, note, print_gap, print_rows, write_output
from ..shell.parameter_types import Seconds
from ..shell.partition_names import partition_text
from ..shell.session import Session, ask_with_client, run_with_client
from ..shell.shared_options import SharedOptions

__all__ = ("command",)

_ONGOING: Final = ("topic", "partition", "replicas", "adding_replicas", "removing_replicas")
_STATES: Final = (
    *("topic", "partition", "replicas", "target_replicas", "adding_replicas", "removing_replicas", "state"),
)
_DIRECTORIES: Final = ("topic", "partition", "node_id", "log_dir", "target_log_dir", "state")
_RATE: Final = click.IntRange(1, 2**63 - 1)
_FILE: Final = click.Path(dir_okay=False)


@click.group(
    cls=ShellGroup,
    examples=(
        "aiokafkawire reassign plan orders --brokers 1,2,3,4 > plan.json",
        "aiokafkawire reassign plan orders --current > back.json     to undo it later",
        "aiokafkawire reassign start plan.json --dry-run",
        "aiokafkawire reassign start plan.json --throttle 50000000   50 MB/s for each broker",
        "aiokafkawire reassign watch plan.json                       until all is moved; removes the throttle",
    ),
)
def command() -> None:
    """Plan which brokers hold partitions, and move them there.

    Files have the JSON of kafka-reassign-partitions; each tool reads those of the other.
    """


@command.command(
    "plan",
    examples=(
        "aiokafkawire reassign plan orders payments --brokers 1,2,3,4 > plan.json",
        "aiokafkawire reassign plan --all --brokers 1,2,3           empty broker 4",
        "aiokafkawire reassign plan orders --replication-factor 3",
    ),
)
@click.argument("topics", nargs=-1, metavar="[TOPIC...]")
@click.option("--all", "all_topics", is_flag=True, help="All topics, and internal ones such as __consumer_offsets.")
@click.option("--brokers", metavar="ID[,...]", help="The brokers that may hold the partitions; by default all.")
@click.option("--replication-factor", type=click.IntRange(1, 2**15 - 1), metavar="N", help="By default as it is.")
@click.option("--ignore-racks", is_flag=True, help="Do not spread the replicas of a partition over racks.")
@click.option("--current", is_flag=True, help="The assignment as it is, with the log directories.")
def plan_reassignment(
    shared: SharedOptions,
    *,
    topics: tuple[str, ...],
    all_topics: bool,
    brokers: str | None,
    replication_factor: int | None,
    ignore_racks: bool,
    current: bool,
) -> int:
    """Print a plan for topics that moves few replicas, and change nothing.

    Replicas move off brokers that are not named, to get the replication factor, to spread over racks, and then only to
    balance: no broker has two replicas more than another, of a topic and of all these topics, if racks permit.
    Preferred leaders are balanced among the replicas. A plan has all partitions, also those that stay.
    """
    if bool(topics) is all_topics:
        raise CommandFailed("name topics, or give --all", MISSING)
    wanted = None if brokers is None else _broker_ids(brokers)

    async def run(session: Session) -> int:
        admin = session.kafka.admin
        names = await admin.list_topics(internal=True) if all_topics else tuple(dict.fromkeys(topics))
        if current:
            now = await present_assignment(admin, names)
            write_output(f"{plan_json(now, await present_log_dirs(admin, now))}\n".encode())
            return 0
        proposal = await propose(
            admin, names, brokers=wanted, replication_factor=replication_factor, ignore_racks=ignore_racks
        )
        write_output(f"{plan_json(proposal.after)}\n".encode())
        note(str(proposal))
        return 0

    return run_with_client(shared, run)


def _broker_ids(text: str) -> list[int]:
    ids = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and int(part) < 2**31 for part in ids):
        raise CommandFailed(f"--brokers takes the ids of brokers with commas, such as 1,2,3; got {text!r}", MISSING)
    return list(dict.fromkeys(map(int, ids)))


@command.command(
    "start",
    examples=(
        "aiokafkawire reassign start plan.json --dry-run",
        "aiokafkawire reassign start plan.json --throttle 50000000 --rollback back.json --yes",
    ),
)
@click.argument("file", type=_FILE, metavar="FILE")
@click.option("--throttle", type=_RATE, metavar="BYTES", help="Limit copying to so many bytes/s for each broker.")
@click.option("--log-dir-throttle", type=_RATE, metavar="BYTES", help="The same between directories of a broker.")
@click.option("--additional", is_flag=True, help="Also while others move; may change their throttle, too.")
@click.option("--rollback", type=_FILE, metavar="FILE", help="Write the present assignment to this new file before.")
@click.option("--dry-run", is_flag=True, help="Print what would move, and change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def start_reassignment(
    shared: SharedOptions,
    *,
    file: str,
    throttle: int | None,
    log_dir_throttle: int | None,
    additional: bool,
    rollback: str | None,
    dry_run: bool,
    yes: bool,
) -> int:
    """Start to move partitions as a plan says; asks before on a terminal, and otherwise needs --yes.

    Partitions that are already as planned are left out. A throttle is set on the brokers and topics, and stays
    until 'watch' or 'cancel' removes it.
    """
    plan = read_plan(file)

    async def look(session: Session) -> PreparedPlan:
        return await prepare(session, plan, additional=additional, rate=throttle, log_dir_rate=log_dir_throttle)

    prepared = ask_with_client(shared, look)
    rows = prepared.rows
    if dry_run:
        _print_would(shared, prepared)
        for resource, limits in prepared.throttles.items():
            note(f"would set on {resource}: {', '.join(f'{name}={value}' for name, value in limits.items())}")
        return 0
    if not rows and not prepared.log_dirs:
        note(f"nothing to do: all partitions are as {file} says")
        return 0
    what = f"move {len(rows)} partitions, and copy {prepared.moves} replicas of {prepared.bytes:,} bytes"
    if prepared.log_dirs:
        what += f", and move {counted(len(prepared.log_dirs), 'replica')} between log directories"
    confirm(what, [*map(partition_text, rows)] or [*map(str, prepared.log_dirs)], yes=yes, options=shared)
    if rollback is not None:
        _write(rollback, plan_json(prepared.before))

    async def run(session: Session) -> int:
        return await start(session, prepared)

    return run_with_client(shared, run)


def _print_would(shared: SharedOptions, prepared: PreparedPlan) -> None:
    """Print the partitions that would move to other brokers, and the replicas that would to other log directories."""
    parts: list[tuple[Columns, Iterable[Mapping[str, Any]]]] = []
    if prepared.rows or not prepared.log_dirs:
        parts.append((STARTED, prepared.rows.values()))
    if prepared.log_dirs:
        parts.append((MOVED, log_dir_rows(prepared.log_dirs).values()))
    for number, (columns, rows) in enumerate(parts):
        if number:
            print_gap(shared)
        print_rows(shared, (*columns, "outcome"), [{**row, "outcome": "would start"} for row in rows])


def _write(path: str, text: str) -> None:
    try:
        with Path(path).open("x", encoding="utf-8") as file:  # an older rollback is never overwritten
            file.write(f"{text}\n")
    except OSError as error:
        raise CommandFailed(f"nothing is done: cannot write {path}: {error.strerror}", FAILED) from None


@command.command("status", examples=("aiokafkawire reassign status plan.json",))
@click.argument("file", type=_FILE, metavar="FILE")
def show_status(shared: SharedOptions, *, file: str) -> int:
    """Print how far each partition of a plan is; the exit status is 1 unless all are complete."""
    plan = read_plan(file)

    async def run(session: Session) -> int:
        return _print_state(session, await look_at_plan(session.kafka.admin, plan))

    return run_with_client(shared, run)


@command.command("watch", examples=("aiokafkawire reassign watch plan.json --interval 10",))
@click.argument("file", type=_FILE, metavar="FILE")
@click.option("--interval", type=Seconds(0.05), default=1.0, metavar="SECONDS", help="Between two looks.")
@click.option("--keep-throttle", is_flag=True, help="Do not remove throttles at the end.")
def watch_reassignment(shared: SharedOptions, *, file: str, interval: float, keep_throttle: bool) -> int:
    """Wait until all partitions of a plan are moved, with a progress bar, and print their state.

    At the end, throttles are removed from the topics of the plan and from all brokers, unless other partitions still
    move. The exit status is 1 unless all are complete.
    """
    plan = read_plan(file)

    async def run(session: Session) -> int:
        state = await watch_plan(session.kafka.admin, plan, interval=interval)
        try:
            if not keep_throttle:
                await remove_throttles(session.kafka.admin, plan)
        except KafkaError:
            _print_state(session, state)
            raise
        return _print_state(session, state)

    return run_with_client(shared, run)


def _print_state(session: Session, state: PlanState) -> int:
    print_rows(session.options, _STATES, state.partitions)
    if state.directories:
        print_gap(session.options)
        print_rows(session.options, _DIRECTORIES, state.directories)
    return 0 if state.is_complete else 1


@command.command("cancel", examples=("aiokafkawire reassign cancel plan.json --yes",))
@click.argument("file", type=_FILE, metavar="FILE")
@click.option("--keep-throttle", is_flag=True, help="Do not remove throttles.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def cancel_reassignment(shared: SharedOptions, *, file: str, keep_throttle: bool, yes: bool) -> int:
    """Stop moving the partitions of a plan: they go back, and what is copied is lost.

    Asks before on a terminal, and otherwise needs --yes. Throttles are removed as by 'watch'.
    """
    plan = read_plan(file)

    async def look(session: Session) -> PlanState:
        return await look_at_plan(session.kafka.admin, plan)

    state = ask_with_client(shared, look)
    rows = {one: _ongoing_row(one, state) for one in state.moving}
    if state.is_moving:
        confirm("stop moving these partitions", [*map(partition_text, rows)], yes=yes, options=shared)

    async def run(session: Session) -> int:
        admin, status = session.kafka.admin, 0
        if rows:
            change = admin.alter_partition_reassignments(dict.fromkeys(rows))
            status = await print_outcomes(session, _ONGOING, rows, change, done="cancelled")
        back = state.directories_to_go_back_to
        if back:
            status = max(status, await move_log_dirs(session, back))
        if not rows and not back:
            note(f"no partition of {file} moves")
        if not keep_throttle:
            await remove_throttles(admin, plan)
        return status

    return run_with_client(shared, run)


@command.command("list", examples=("aiokafkawire reassign list",))
def list_reassignments(shared: SharedOptions) -> int:
    """List the partitions of the cluster that move to other brokers."""

    async def run(session: Session) -> int:
        found = await session.kafka.admin.list_partition_reassignments()
        state = PlanState([], [], found)
        print_rows(shared, _ONGOING, [_ongoing_row(partition, state) for partition in found])
        return 0

    return run_with_client(shared, run)


def _ongoing_row(partition: TopicPartition, state: PlanState) -> dict[str, Any]:
    move = state.ongoing[partition]
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "replicas": list(move.replicas),
        "adding_replicas": list(move.adding_replicas),
        "removing_replicas": list(move.removing_replicas),
    }
