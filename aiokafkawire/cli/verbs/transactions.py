"""``aiokafkawire transactions``: lists and describes transactions, finds hanging ones, aborts and fences."""

import time
from typing import Final

import click

from ...admin.transaction_descriptions import (
    TRANSACTION_STATES,
    AbortTransactionSpec,
    ProducerState,
)
from ...argument_checks import INT16, INT32, INT64
from ...errors import AdminError, KafkaError
from ..exit_status import MISSING, CommandFailed
from ..shell.arguments import one_partition
from ..shell.command import ShellGroup
from ..shell.durations import parse_duration
from ..shell.outcomes import partial_results, print_found, print_outcomes
from ..shell.output import confirm, print_rows
from ..shell.partition_names import partition_text
from ..shell.session import Session, run_with_client
from ..shell.shared_options import SharedOptions
from ..shell.visibility import note_none_visible
from ..transactions.known_ids import change_known
from ..transactions.rows import (
    ABORTED,
    DESCRIBED,
    HANGING,
    ID,
    LISTED,
    PRODUCERS,
    described_row,
    hanging_row,
    listed_row,
    producer_row,
)

__all__ = ("command",)

_RUNNING: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")


@click.group(
    cls=ShellGroup,
    examples=(
        "aiokafkawire transactions list --running-longer 10m",
        "aiokafkawire transactions describe invoices",
        "aiokafkawire transactions find-hanging",
        "aiokafkawire transactions abort orders:0 --start-offset 4711",
        "aiokafkawire transactions fence invoices --yes",
    ),
)
def command() -> None:
    """List and describe transactions, find hanging ones, abort them, and fence producers."""


# --- transactional ids ---------------------------------------------------------------------------------------------


@command.command(
    "list",
    examples=("aiokafkawire transactions list --state Ongoing", "aiokafkawire transactions list --running-longer 15m"),
)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(TRANSACTION_STATES, case_sensitive=False),
    metavar="STATE",
    help="Only ids in this state, such as Ongoing; may be repeated.",
)
@click.option(
    "--producer-id",
    "producer_ids",
    multiple=True,
    type=click.IntRange(0, INT64),
    metavar="N",
    help="Only this producer; may be repeated.",
)
@click.option(
    "--running-longer",
    metavar="DURATION",
    help="Only open transactions that began more than 90s, 15m, 2h ago (brokers since 3.8).",
)
@click.option("--pattern", metavar="REGEX", help="Only ids that this RE2 expression matches (brokers since 4.1).")
def list_transactions(
    shared: SharedOptions,
    *,
    states: tuple[str, ...],
    producer_ids: tuple[int, ...],
    running_longer: str | None,
    pattern: str | None,
) -> int:
    """List transactional ids: coordinator, producer id and state."""
    longer = None if running_longer is None else parse_duration("--running-longer", running_longer)
    if longer is not None and not states:
        states = _RUNNING  # brokers would add ids without an open transaction

    async def run(session: Session) -> int:
        failures: list[KafkaError] = []
        try:
            found = await session.kafka.admin.list_transactions(
                states=states or None,
                producer_ids=producer_ids or None,
                running_longer_than_ms=longer,
                transactional_id_pattern=pattern,
            )
        except AdminError as some:
            failures += some.errors.values()
            listed = {one.transactional_id: one for together in some.results.values() for one in together}
            found = [listed[name] for name in sorted(listed)]
        status = print_found(session, LISTED, [listed_row(one) for one in found], failures)
        if not found and not failures:
            await note_none_visible(session, "transactional ids")
        return status

    return run_with_client(shared, run)


@command.command("describe", examples=("aiokafkawire transactions describe invoices",))
@click.argument("ids", nargs=-1, required=True, metavar="TRANSACTIONAL_ID...")
def describe_transactions(shared: SharedOptions, *, ids: tuple[str, ...]) -> int:
    """Describe transactional ids: the producer, and the partitions of an open transaction."""

    async def run(session: Session) -> int:
        names = list(dict.fromkeys(ids))
        found, errors = await partial_results(names, session.kafka.admin.describe_transactions(names))
        now_ms = _now_ms()
        rows = [described_row(one, now_ms) for one in found.values()]
        return print_found(session, DESCRIBED, rows, errors.values())

    return run_with_client(shared, run)


@command.command("fence", examples=("aiokafkawire transactions fence invoices payments --yes",))
@click.argument("ids", nargs=-1, required=True, metavar="TRANSACTIONAL_ID...")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def fence_producers(shared: SharedOptions, *, ids: tuple[str, ...], yes: bool) -> int:
    """Fence the producers of transactional ids, which aborts their open transactions; refuse unknown ids."""
    names = list(dict.fromkeys(ids))
    confirm(f"fence {len(names)} {'producer' if len(names) == 1 else 'producers'}", names, yes=yes, options=shared)

    async def run(session: Session) -> int:
        admin = session.kafka.admin
        rows = {name: {"transactional_id": name} for name in names}
        return await print_outcomes(session, ID, rows, change_known(admin, names, admin.fence_producers), done="fenced")

    return run_with_client(shared, run)


@command.command("force-terminate", examples=("aiokafkawire transactions force-terminate invoices --yes",))
@click.argument("transactional_id", metavar="TRANSACTIONAL_ID")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def force_terminate(shared: SharedOptions, *, transactional_id: str, yes: bool) -> int:
    """Abort the open or prepared transaction of a transactional id, such as one of a two-phase commit."""
    confirm("abort the transaction, and fence its producer", [transactional_id], yes=yes, options=shared)

    async def run(session: Session) -> int:
        admin = session.kafka.admin
        change = change_known(admin, [transactional_id], lambda _: admin.force_terminate_transaction(transactional_id))
        rows = {transactional_id: {"transactional_id": transactional_id}}
        return await print_outcomes(session, ID, rows, change, done="terminated")

    return run_with_client(shared, run)


# --- partitions ----------------------------------------------------------------------------------------------------


@command.command(
    "producers",
    examples=(
        "aiokafkawire transactions producers orders:0",
        "aiokafkawire transactions producers orders:0 --broker 2",
    ),
)
@click.argument("partitions", nargs=-1, required=True, metavar="TOPIC:PARTITION...")
@click.option("--broker", type=click.IntRange(0, INT32), metavar="ID", help="This replica instead of the leader.")
def describe_producers(shared: SharedOptions, *, partitions: tuple[str, ...], broker: int | None) -> int:
    """Describe the producers that have written to partitions lately, with their open transactions."""
    wanted = list(dict.fromkeys(map(one_partition, partitions)))

    async def run(session: Session) -> int:
        call = session.kafka.admin.describe_producers(wanted, broker_id=broker)
        found, errors = await partial_results(wanted, call)
        rows = [producer_row(at, producer) for at, producers in found.items() for producer in producers]
        return print_found(session, PRODUCERS, rows, errors.values())

    return run_with_client(shared, run)


@command.command(
    "find-hanging",
    examples=("aiokafkawire transactions find-hanging", "aiokafkawire transactions find-hanging --broker 2 --idle 1h"),
)
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="Search this topic; may be repeated.")
@click.option("--broker", type=click.IntRange(0, INT32), metavar="ID", help="Search the replicas of this broker.")
@click.option(
    "--idle",
    default="15m",
    show_default=True,
    metavar="DURATION",
    help="Only producers that have written nothing for so long: at least transaction.max.timeout.ms of the brokers.",
)
def find_hanging(shared: SharedOptions, *, topics: tuple[str, ...], broker: int | None, idle: str) -> int:
    """Find open transactions that no coordinator will end. They keep consumers with read_committed from reading on."""
    idle_ms = parse_duration("--idle", idle)
    if idle_ms > INT32:
        raise CommandFailed(f"--idle is at most 24d, got {idle}", MISSING)

    async def run(session: Session) -> int:
        found = await session.kafka.admin.find_hanging_transactions(
            list(dict.fromkeys(topics)) or None, broker_id=broker, max_transaction_timeout_ms=idle_ms
        )
        now_ms = _now_ms()
        print_rows(shared, HANGING, [hanging_row(one, now_ms) for one in found])
        return 0

    return run_with_client(shared, run)


@command.command(
    "abort",
    examples=(
        "aiokafkawire transactions abort orders:0 --start-offset 4711",
        "aiokafkawire transactions abort orders:0 --producer-id 9000 --yes",
    ),
)
@click.argument("partition", metavar="TOPIC:PARTITION")
@click.option("--start-offset", type=click.IntRange(0, INT64), metavar="N", help="The transaction's first offset.")
@click.option("--producer-id", type=click.IntRange(0, INT64), metavar="N", help="The transaction's producer.")
@click.option(
    "--producer-epoch",
    type=click.IntRange(0, INT16),
    metavar="N",
    help="With --producer-id, for brokers before 2.8, which describe no producers.",
)
@click.option(
    "--coordinator-epoch",
    type=click.IntRange(-1, INT32),
    metavar="N",
    help="With --producer-epoch; by default 0, which every coordinator has reached.",
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def abort_transaction(
    shared: SharedOptions,
    *,
    partition: str,
    start_offset: int | None,
    producer_id: int | None,
    producer_epoch: int | None,
    coordinator_epoch: int | None,
    yes: bool,
) -> int:
    """Abort a hanging transaction in a partition; find-hanging shows it. Its records will never be read."""
    at = one_partition(partition)
    if (start_offset is None) == (producer_id is None):
        raise CommandFailed("which transaction? Use --start-offset or --producer-id", MISSING)
    if (producer_epoch is not None and producer_id is None) or (
        coordinator_epoch is not None and producer_epoch is None
    ):
        raise CommandFailed("--producer-epoch needs --producer-id, and --coordinator-epoch both", MISSING)
    which = f"start offset {start_offset}" if producer_id is None else f"producer id {producer_id}"
    name = partition_text(at)
    confirm(f"abort the transaction in {name}", [which], yes=yes, options=shared)

    async def run(session: Session) -> int:
        admin = session.kafka.admin
        if producer_id is not None and producer_epoch is not None:
            spec = AbortTransactionSpec(at, producer_id, producer_epoch, max(0, coordinator_epoch or 0))
        else:
            producers = (await admin.describe_producers(at))[at]
            spec = AbortTransactionSpec.of(at, _open(name, which, producers, start_offset, producer_id))
        row = {
            "topic": at.topic,
            "partition": at.partition,
            "producer_id": spec.producer_id,
            "producer_epoch": spec.producer_epoch,
        }
        return await print_outcomes(session, ABORTED, {at: row}, admin.abort_transaction(spec), done="aborted")

    return run_with_client(shared, run)


def _open(
    partition: str, which: str, producers: tuple[ProducerState, ...], start_offset: int | None, producer_id: int | None
) -> ProducerState:
    """Return the producer of the open transaction with this start offset or producer id."""
    for producer in producers:
        start = producer.current_transaction_start_offset
        if start is not None and (start == start_offset or producer.producer_id == producer_id):
            return producer
    raise CommandFailed(f"partition {partition} has no open transaction with {which}")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
