"""``aiokafkawire log-dirs``: describes the log directories of brokers, and moves replicas between them."""

from collections.abc import Mapping
from typing import Final, Literal

import click

from ...types import TopicPartitionReplica
from ..exit_status import FAILED, CommandFailed
from ..log_dirs.rows import directory_rows, replica_rows, topic_rows
from ..shell.arguments import chosen_partitions
from ..shell.command import ShellGroup
from ..shell.outcomes import partial_results, print_found, print_outcomes
from ..shell.output import Columns, print_rows
from ..shell.session import Session, run_with_client
from ..shell.shared_options import SharedOptions
from ..topics.asking import existing_partitions

__all__ = ("command",)

_BROKER_ID: Final = click.IntRange(0, 2**31 - 1)
_COLUMNS: Final[Mapping[str, Columns]] = {
    "directory": (
        *("node_id", "log_dir", "replica_count", "moving_here", "size_bytes", "usable_bytes", "total_bytes"),
        *("is_cordoned", "error"),
    ),
    "topic": ("node_id", "topic", "replica_count", "size_bytes"),
    "replica": ("node_id", "log_dir", "topic", "partition", "size_bytes", "offset_lag", "is_future"),
}
_MOVED: Final = ("topic", "partition", "node_id", "log_dir", "target_log_dir")


@click.group(
    cls=ShellGroup,
    examples=(
        "aiokafkawire log-dirs describe",
        "aiokafkawire log-dirs describe --topic orders --by replica",
        "aiokafkawire log-dirs move orders:0,1 --broker 2 --to /data/2",
    ),
)
def command() -> None:
    """Describe the log directories of brokers, and move replicas between those of a broker."""


@command.command(
    "describe",
    examples=(
        "aiokafkawire log-dirs describe --broker 1 --broker 2",
        "aiokafkawire log-dirs describe --by topic",
        "aiokafkawire log-dirs describe --by replica --json | jq 'select(.is_future)'",
    ),
)
@click.option("--broker", "brokers", multiple=True, type=_BROKER_ID, metavar="ID", help="Only of this broker.")
@click.option("--topic", "topics", multiple=True, metavar="TOPIC[:N,...]", help="Only replicas of this topic.")
@click.option(
    "--by",
    type=click.Choice(("directory", "topic", "replica")),
    default="directory",
    help="What has a row, with sums over its replicas; by default each directory.",
)
def describe_log_dirs(
    shared: SharedOptions,
    *,
    brokers: tuple[int, ...],
    topics: tuple[str, ...],
    by: Literal["directory", "topic", "replica"],
) -> int:
    """Describe the log directories of brokers: replicas, their sizes in bytes, and the space of the volume.

    A replica that moves to another directory is counted there as moving.
    """
    wanted = chosen_partitions("--topic", topics) if topics else None

    async def run(session: Session) -> int:
        admin = session.kafka.admin
        partitions = None if wanted is None else await existing_partitions(admin, wanted)
        found, errors = await partial_results(brokers, admin.describe_log_dirs(brokers or None, partitions=partitions))
        rows = {"directory": directory_rows, "topic": topic_rows, "replica": replica_rows}[by](found)
        return print_found(session, _COLUMNS[by], rows, errors.values())

    return run_with_client(shared, run)


@command.command(
    "move",
    examples=(
        "aiokafkawire log-dirs move orders --broker 2 --to /data/2        all of its replicas on broker 2",
        "aiokafkawire log-dirs move orders:0,1 --broker 2 --to /data/2 --dry-run",
    ),
)
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC[:N,...]...")
@click.option("--broker", required=True, type=_BROKER_ID, metavar="ID", help="The broker whose replicas move.")
@click.option("--to", "target", required=True, metavar="PATH", help="The directory, one of the broker's log.dirs.")
@click.option("--dry-run", is_flag=True, help="Print what would move, and move nothing.")
def move_replicas(shared: SharedOptions, *, topics: tuple[str, ...], broker: int, target: str, dry_run: bool) -> int:
    """Start to move replicas of a broker to another of its log directories.

    'describe --by replica' shows those that still move.
    """
    wanted = chosen_partitions("TOPIC", topics)

    async def run(session: Session) -> int:
        admin = session.kafka.admin
        replicas = [
            TopicPartitionReplica(*one, broker) for one in await existing_partitions(admin, wanted, held_by=broker)
        ]
        if not replicas:
            raise CommandFailed(f"broker {broker} has no replica of these topics", FAILED)
        infos = await admin.describe_replica_log_dirs(replicas)
        rows = {
            one: {
                "topic": one.topic,
                "partition": one.partition,
                "node_id": broker,
                "log_dir": infos[one].current_log_dir,
                "target_log_dir": target,
            }
            for one in replicas
        }
        if not dry_run:
            change = admin.alter_replica_log_dirs(dict.fromkeys(rows, target))
            return await print_outcomes(session, _MOVED, rows, change, done="started")
        known = (await admin.describe_log_dirs(broker, partitions=[]))[broker]
        if target not in known:
            raise CommandFailed(f"broker {broker} has no log directory {target}; it has {', '.join(known)}", FAILED)
        would = [{**row, "outcome": "is there" if row["log_dir"] == target else "would move"} for row in rows.values()]
        print_rows(shared, (*_MOVED, "outcome"), would)
        return 0

    return run_with_client(shared, run)
