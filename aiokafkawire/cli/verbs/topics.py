"""``aiokafkawire topics``: lists, describes, creates, extends and deletes topics, their records and leaders."""

import time
from collections.abc import Iterable
from typing import Any, Final

import click

from ...admin.new_topics import NewTopic
from ...errors import TopicAlreadyExists, UnknownTopicOrPartition
from ...types import ElectionType, TopicPartition
from ..exit_status import FAILED, MISSING, CommandFailed
from ..records.points import parse_point
from ..shell.arguments import chosen_partitions, key_values
from ..shell.command import ShellGroup
from ..shell.outcomes import note_errors, partial_results, print_outcomes, saying_what_is_unknown
from ..shell.output import confirm, print_gap, print_rows
from ..shell.partition_names import partition_text
from ..shell.session import Session, ask_with_client, run_with_client
from ..shell.shared_options import SharedOptions
from ..shell.visibility import note_none_visible
from ..top.options import pattern
from ..topics.asking import configs_of_topics, existing_partitions, min_isr_of_topics, moving_partitions
from ..topics.offsets_command import list_offsets
from ..topics.record_points import REFUSED, deletion_outcome, deletion_rows
from ..topics.rows import (
    is_at_min_isr,
    is_below_min_isr,
    is_unavailable,
    is_under_replicated,
    partition_row,
    topic_row,
)

__all__ = ("command",)

_LISTED: Final = ("topic",)
_TOPICS: Final = ("topic", "topic_id", "partitions", "replication_factor", "configs")
_DESCRIBED: Final = ("topic", "partition", "leader_id", "leader_epoch", "replicas", "isr")
_DELETED: Final = ("topic", "partition", "log_start_offset", "log_end_offset", "before_offset", "records")


@click.group(
    cls=ShellGroup,
    examples=(
        "aiokafkawire topics list",
        "aiokafkawire topics describe orders",
        "aiokafkawire topics describe --under-replicated",
        "aiokafkawire topics offsets orders",
        "aiokafkawire topics create orders --partitions 6 --topic-config cleanup.policy=compact",
        "aiokafkawire topics add-partitions orders --partitions 12",
        "aiokafkawire topics delete-records orders --before 7d",
        "aiokafkawire topics delete orders --yes",
        "aiokafkawire topics list --json | jq -r .topic",
    ),
)
def command() -> None:
    """List, describe, create, extend and delete topics, their offsets and records, and elect leaders."""


@command.command(
    "list", examples=("aiokafkawire topics list", "aiokafkawire topics list 'orders-.*' --internal --json")
)
@click.argument("regex", required=False, metavar="[REGEX]")
@click.option("--internal", is_flag=True, help="Internal topics, too, such as __consumer_offsets.")
def list_topics(shared: SharedOptions, *, regex: str | None, internal: bool) -> int:
    """List the names of all topics that you may see, or of those whose whole name the expression matches."""
    chosen = pattern("REGEX", regex)

    async def run(session: Session) -> int:
        names = await session.kafka.admin.list_topics(internal=internal)
        print_rows(shared, _LISTED, [{"topic": name} for name in names if chosen.matches(name)])
        if not names:
            await note_none_visible(session, "topics")
        return 0

    return run_with_client(shared, run)


@command.command(
    "describe",
    examples=(
        "aiokafkawire topics describe orders payments",
        "aiokafkawire topics describe --under-replicated --internal",
        "aiokafkawire topics describe --unavailable --json",
    ),
)
@click.argument("topics", nargs=-1, metavar="[TOPIC...]")
@click.option("--internal", is_flag=True, help="Without TOPIC: internal topics, too.")
@click.option("--under-replicated", is_flag=True, help="Only partitions with replicas that are not in sync.")
@click.option("--unavailable", is_flag=True, help="Only partitions without a leader in service.")
@click.option("--under-min-isr", is_flag=True, help="Only those with fewer replicas in sync than acks=all needs.")
@click.option("--at-min-isr", is_flag=True, help="Only those with just as many.")
def describe_topics(
    shared: SharedOptions,
    *,
    topics: tuple[str, ...],
    internal: bool,
    under_replicated: bool,
    unavailable: bool,
    under_min_isr: bool,
    at_min_isr: bool,
) -> int:
    """Describe topics, by default all: ids, own configs, and the leaders and replicas of their partitions.

    A filter leaves out the table of topics, and the partitions for which it does not hold; several add up. With --json,
    each object is a partition, with the id and the own configs of its topic (null with a filter).
    """
    filtered = under_replicated or unavailable or under_min_isr or at_min_isr

    async def run(session: Session) -> int:
        admin = session.kafka.admin
        names = list(dict.fromkeys(topics)) or list(await admin.list_topics(internal=internal))
        found, errors = await partial_results(names, admin.describe_topics(names))
        configs = {} if filtered else await configs_of_topics(admin, [topic.name for topic in found.values()])
        moving = await moving_partitions(admin) if under_replicated else {}
        brokers = (await admin.describe_cluster()).nodes if unavailable else {}
        with_min_isr = [topic.name for topic in found.values()] if under_min_isr or at_min_isr else []
        min_isr = await min_isr_of_topics(admin, with_min_isr) if with_min_isr else {}
        rows = [
            partition_row(topic, one, configs.get(topic.name))
            for topic in found.values()
            for one in topic.partitions
            if not filtered
            or (under_replicated and is_under_replicated(TopicPartition(topic.name, one.index), one, moving))
            or (unavailable and is_unavailable(one, brokers))
            or (under_min_isr and is_below_min_isr(one, min_isr[topic.name]))
            or (at_min_isr and is_at_min_isr(one, min_isr[topic.name]))
        ]
        if found and not filtered and not shared.json:
            print_rows(shared, _TOPICS, [topic_row(topic, configs.get(topic.name)) for topic in found.values()])
            print_gap(shared)
        if rows or not errors:
            print_rows(shared, _DESCRIBED, rows)
        if not names:
            await note_none_visible(session, "topics")
        return note_errors(errors.values())

    return run_with_client(shared, run)


command.add_command(list_offsets)


@command.command(
    "create",
    examples=(
        "aiokafkawire topics create orders payments --partitions 6 --replication-factor 3",
        "aiokafkawire topics create prices --topic-config cleanup.policy=compact --if-not-exists",
    ),
)
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@click.option("--partitions", type=click.IntRange(1, 2**31 - 1), metavar="N", help="By default as the brokers say.")
@click.option(
    "--replication-factor", type=click.IntRange(1, 2**15 - 1), metavar="N", help="By default as the brokers say."
)
@click.option("--topic-config", "configs", multiple=True, metavar="KEY=VALUE", help="A setting of the topics.")
@click.option("--if-not-exists", is_flag=True, help="A topic that exists is no failure.")
@click.option("--validate-only", is_flag=True, help="Let the broker check the request, and create nothing.")
def create_topics(
    shared: SharedOptions,
    *,
    topics: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    validate_only: bool,
) -> int:
    """Create topics."""
    new = NewTopic(partitions or -1, replication_factor or -1, key_values("--topic-config", configs))

    names = dict.fromkeys(topics)

    async def run(session: Session) -> int:
        return await print_outcomes(
            session,
            _LISTED,
            _rows(names),
            session.kafka.admin.create_topics(dict.fromkeys(names, new), validate_only=validate_only),
            done="would be created" if validate_only else "created",
            accepted=TopicAlreadyExists if if_not_exists else None,
            skipped="exists",
        )

    return run_with_client(shared, run)


@command.command("delete", examples=("aiokafkawire topics delete orders payments --yes",))
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@click.option("--if-exists", is_flag=True, help="A topic that does not exist is no failure.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def delete_topics(shared: SharedOptions, *, topics: tuple[str, ...], if_exists: bool, yes: bool) -> int:
    """Delete topics, with all their records; asks before on a terminal, and otherwise needs --yes."""
    what = f"delete {len(topics)} {'topic' if len(topics) == 1 else 'topics'} with all records"
    confirm(what, topics, yes=yes, options=shared)

    names = dict.fromkeys(topics)

    async def run(session: Session) -> int:
        return await print_outcomes(
            session,
            _LISTED,
            _rows(names),
            session.kafka.admin.delete_topics(list(names)),
            done="deleted",
            accepted=UnknownTopicOrPartition if if_exists else None,
            skipped="absent",
        )

    return run_with_client(shared, run)


@command.command(
    "add-partitions",
    examples=(
        "aiokafkawire topics add-partitions orders --partitions 12",
        "aiokafkawire topics add-partitions orders payments --partitions 12 --validate-only",
    ),
)
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@click.option(
    "--partitions",
    type=click.IntRange(1, 2**31 - 1),
    required=True,
    metavar="N",
    help="How many each topic shall have, with those that exist.",
)
@click.option("--validate-only", is_flag=True, help="Let the broker check the request, and add nothing.")
def add_partitions(shared: SharedOptions, *, topics: tuple[str, ...], partitions: int, validate_only: bool) -> int:
    """Add partitions to topics. Records stay where they are, but new records of a key may go to another partition."""
    names = dict.fromkeys(topics)

    async def run(session: Session) -> int:
        return await print_outcomes(
            session,
            ("topic", "partitions"),
            {name: {"topic": name, "partitions": partitions} for name in names},
            session.kafka.admin.create_partitions(dict.fromkeys(names, partitions), validate_only=validate_only),
            done="would be extended" if validate_only else "extended",
        )

    return run_with_client(shared, run)


@command.command(
    "delete-records",
    examples=(
        "aiokafkawire topics delete-records orders --before 7d --dry-run",
        "aiokafkawire topics delete-records orders:0,2 --before 1000 --yes",
        "aiokafkawire topics delete-records orders --before end --yes       all of them",
    ),
)
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC[:N,...]...")
@click.option("--before", "point", required=True, metavar="POINT", help="The first record to keep; see consume --from.")
@click.option("--dry-run", is_flag=True, help="Print what would be deleted, and delete nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def delete_records(shared: SharedOptions, *, topics: tuple[str, ...], point: str, dry_run: bool, yes: bool) -> int:
    """Delete the records of partitions before an offset, a time or the end; asks before, and otherwise needs --yes.

    A point is resolved in each partition by itself, before the question.
    """
    chosen = chosen_partitions("TOPIC", topics)
    before = parse_point("--before", point, int(time.time() * 1000))

    async def look(session: Session) -> dict[TopicPartition, dict[str, Any]]:
        return await deletion_rows(session.kafka.admin, await existing_partitions(session.kafka.admin, chosen), before)

    rows = ask_with_client(shared, look)
    if dry_run:
        would = [{**row, "outcome": deletion_outcome(row)} for row in rows.values()]
        print_rows(shared, (*_DELETED, "outcome"), would)
        return FAILED if any(row["outcome"] == REFUSED for row in would) else 0
    records = sum(row["records"] for row in rows.values())
    confirm(f"delete {records:,} records", [*map(partition_text, rows)], yes=yes, options=shared)

    async def run(session: Session) -> int:
        change = session.kafka.admin.delete_records({one: row["before_offset"] for one, row in rows.items()})
        done: dict[str, Any] = {"outcome": "deleted"}
        return await print_outcomes(session, _DELETED, rows, change, done=lambda low: {"low_watermark": low, **done})

    return run_with_client(shared, run)


@command.command(
    "elect-leaders",
    examples=(
        "aiokafkawire topics elect-leaders --all",
        "aiokafkawire topics elect-leaders orders:0 --unclean",
    ),
)
@click.argument("topics", nargs=-1, metavar="[TOPIC[:N,...]...]")
@click.option("--all", "all_partitions", is_flag=True, help="All partitions of the cluster that need an election.")
@click.option("--unclean", is_flag=True, help="Any live replica where there is no leader, which may lose records.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def elect_leaders(
    shared: SharedOptions, *, topics: tuple[str, ...], all_partitions: bool, unclean: bool, yes: bool
) -> int:
    """Make the preferred leaders, which are the first replicas, the leaders of partitions.

    An unclean election asks before on a terminal, and otherwise needs --yes.
    """
    if bool(topics) is all_partitions:
        raise CommandFailed("name topics or partitions, or give --all", MISSING)
    chosen = chosen_partitions("TOPIC", topics)
    if unclean:
        what = "elect leaders that may lack records, which are then lost"
        confirm(what, list(topics) or ["all partitions without a leader"], yes=yes, options=shared)

    async def run(session: Session) -> int:
        wanted = None if all_partitions else await existing_partitions(session.kafka.admin, chosen)
        kind = ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED
        with saying_what_is_unknown():
            found, errors = await partial_results(wanted or (), session.kafka.admin.elect_leaders(kind, wanted))
        rows = [
            {"topic": one.topic, "partition": one.partition, "outcome": "elected" if is_new else "not needed"}
            for one, is_new in found.items()
        ]
        if rows or not errors:
            print_rows(shared, ("topic", "partition", "outcome"), rows)
        return note_errors(errors.values())

    return run_with_client(shared, run)


def _rows(names: Iterable[str]) -> dict[str, dict[str, str]]:
    return {name: {"topic": name} for name in names}
