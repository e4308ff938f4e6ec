"""``aiokafkawire groups``: lists, describes, resets and deletes groups, their offsets and their members."""

from typing import Any, Final

import click

from ...admin.descriptions import GroupMember
from ...errors import GroupIdNotFound, UnknownMemberId
from ...types import TopicPartition
from ..exit_status import MISSING, CommandFailed
from ..groups.describe import Subject, describe, describe_each, groups_to_describe
from ..groups.listing import groups_of_those_that_answer, lag_of_groups
from ..groups.reset_command import reset_groups
from ..groups.rows import (
    LISTED,
    LISTED_WITH_LAG,
    MEMBERS,
    OFFSETS,
    SHARE_OFFSETS,
    STATES,
    Row,
    group_type,
    listed_row,
)
from ..shell.arguments import chosen_partitions
from ..shell.command import ShellGroup
from ..shell.outcomes import note_errors, print_outcomes
from ..shell.output import Columns, confirm, note, print_rows, write_output
from ..shell.session import Session, run_with_client
from ..shell.shared_options import SharedOptions
from ..shell.visibility import note_none_visible

__all__ = ("command",)

_STATES: Final = (
    *("Stable", "Empty", "Dead", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"),
    "NotReady",
)
_GROUP: Final = ("group_id",)
_PARTITION: Final = ("group_id", "topic", "partition")
_TOPIC: Final = ("group_id", "topic")
_MEMBER: Final = ("group_id", "member_id", "group_instance_id", "client_id")


@click.group(
    cls=ShellGroup,
    examples=(
        "aiokafkawire groups list --lag",
        "aiokafkawire groups describe billing",
        "aiokafkawire groups reset billing --all-topics --to 2h              show what would be set",
        "aiokafkawire groups reset billing --all-topics --to 2h --execute    set it",
        "aiokafkawire groups list --lag --json | jq -r 'select(.lag > 1000) | .group_id'",
    ),
)
def command() -> None:
    """List, describe, reset and delete groups: classic, consumer, share and streams groups."""


# --- looking -------------------------------------------------------------------------------------------------------


@command.command(
    "list",
    examples=(
        "aiokafkawire groups list --lag",
        "aiokafkawire groups list --state Empty --type consumer --type classic",
    ),
)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(_STATES, case_sensitive=False),
    metavar="STATE",
    help="Only groups in this state, such as Stable or Empty (brokers since 2.6); may be repeated.",
)
@click.option(
    "--type",
    "types",
    multiple=True,
    type=click.Choice(("classic", "consumer", "share", "streams"), case_sensitive=False),
    help="Only groups of this type (brokers since 3.8); may be repeated.",
)
@click.option("--lag", is_flag=True, help="The lag of each group: the sum of its partitions.")
def list_groups(shared: SharedOptions, *, states: tuple[str, ...], types: tuple[str, ...], lag: bool) -> int:
    """List groups: type, protocol, state and coordinator."""

    async def run(session: Session) -> int:
        admin = session.kafka.admin
        listings, failures = await groups_of_those_that_answer(admin, states=states or None, types=types or None)
        rows = [listed_row(listing) for listing in listings]
        if not rows and not failures:
            await note_none_visible(session, "groups")
        if not lag:
            print_rows(shared, LISTED, rows)
            return note_errors(failures)
        lags, errors = await lag_of_groups(admin, listings)
        print_rows(shared, LISTED_WITH_LAG, [{**row, "lag": lags.get(row["group_id"])} for row in rows])
        return note_errors([*failures, *errors])

    return run_with_client(shared, run)


@command.command(
    "describe",
    examples=(
        "aiokafkawire groups describe billing",
        "aiokafkawire groups describe billing invoices --members",
        "aiokafkawire groups describe --all --state",
    ),
)
@click.argument("group_ids", nargs=-1, metavar="[GROUP]...")
@click.option("--all", "everything", is_flag=True, help="All groups.")
@click.option("--members", "subject", flag_value="members", help="The members, and what they read.")
@click.option("--state", "subject", flag_value="state", help="The state, the coordinator, and the number of members.")
@click.option("--offsets", "subject", flag_value="offsets", default="offsets", help="The partitions: the default.")
def describe_groups(
    shared: SharedOptions, *, group_ids: tuple[str, ...], everything: bool, subject: Subject | None
) -> int:
    """Describe groups: the committed offset, the end, the lag and the member of each partition.

    Share groups have start offsets and a lag instead.
    """
    if bool(group_ids) == everything:
        raise CommandFailed("name the groups to describe, or use --all", MISSING)
    chosen: Subject = subject or "offsets"

    async def run(session: Session) -> int:
        admin = session.kafka.admin
        listings, failures = await groups_to_describe(admin)
        names = [name for name in listings or {} if name] if everything else list(dict.fromkeys(group_ids))
        report = await describe(admin, names, listings, chosen)
        columns = {"members": MEMBERS, "state": STATES}.get(chosen, OFFSETS)
        errors = [*report.errors.values(), *report.leader_errors]
        if everything or report.errors:  # otherwise no group was missed
            errors += failures
        if report.rows or report.share_rows or not (errors or report.notes):
            _print_parts(shared, [(columns, report.rows), (SHARE_OFFSETS, report.share_rows)])
        for line in report.notes:
            note(line)
        if everything and not names and not failures:
            await note_none_visible(session, "groups")
        return note_errors(errors)

    return run_with_client(shared, run)


def _print_parts(shared: SharedOptions, parts: list[tuple[Columns, list[Row]]]) -> None:
    """Print the parts that have rows, in tables with an empty line between; without rows the first heading."""
    filled = [(columns, rows) for columns, rows in parts if rows] or parts[:1]
    for number, (columns, rows) in enumerate(filled):
        if number and not shared.json:
            write_output(b"\n")
        print_rows(shared, columns, rows)


# --- changing ------------------------------------------------------------------------------------------------------

command.add_command(reset_groups)


@command.command("delete", examples=("aiokafkawire groups delete billing invoices --yes",))
@click.argument("group_ids", nargs=-1, required=True, metavar="GROUP...")
@click.option("--if-exists", is_flag=True, help="A group that does not exist is no failure.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def delete_groups(shared: SharedOptions, *, group_ids: tuple[str, ...], if_exists: bool, yes: bool) -> int:
    """Delete groups without members, of any type, with their offsets."""
    what = f"delete {len(group_ids)} {'group' if len(group_ids) == 1 else 'groups'} with all offsets"
    confirm(what, group_ids, yes=yes, options=shared)
    names = list(dict.fromkeys(group_ids))

    async def run(session: Session) -> int:
        return await print_outcomes(
            session,
            _GROUP,
            {name: {"group_id": name} for name in names},
            session.kafka.admin.delete_groups(names),
            done="deleted",
            accepted=GroupIdNotFound if if_exists else None,
            skipped="absent",
        )

    return run_with_client(shared, run)


@command.command(
    "delete-offsets",
    examples=("aiokafkawire groups delete-offsets billing --topic orders --topic payments:0,1 --yes",),
)
@click.argument("group_id", metavar="GROUP")
@click.option(
    "--topic", "topics", multiple=True, required=True, metavar="TOPIC[:0,1]", help="The topic, or some partitions."
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def delete_offsets(shared: SharedOptions, *, group_id: str, topics: tuple[str, ...], yes: bool) -> int:
    """Delete the offsets of a group for topics that it does not read; of a share group for whole topics."""
    chosen = chosen_partitions("--topic", topics)
    confirm(f"delete the offsets of group {group_id}", topics, yes=yes, options=shared)

    async def run(session: Session) -> int:
        admin = session.kafka.admin
        listings, failures = await groups_to_describe(admin)
        if failures and listings is not None and group_id not in listings:
            raise failures[0]  # it may be a share group
        if group_type((listings or {}).get(group_id)) == "share":
            if any(indexes is not None for indexes in chosen.values()):
                raise CommandFailed(f"{group_id} is a share group: name whole topics, without partitions", MISSING)
            rows = {topic: {"group_id": group_id, "topic": topic} for topic in chosen}
            change = admin.delete_share_group_offsets(group_id, list(chosen))
            return await print_outcomes(session, _TOPIC, rows, change, done="deleted")
        committed = await admin.list_consumer_group_offsets(group_id)
        partitions = [
            *(at for at in committed if chosen.get(at.topic, ()) is None),
            *(TopicPartition(topic, index) for topic, indexes in chosen.items() for index in indexes or ()),
        ]
        absent = sorted(
            name for name, some in chosen.items() if some is None and name not in {at[0] for at in committed}
        )
        for name in absent:
            note(f"aiokafkawire: group {group_id!r} has no offsets of topic {name!r}")
        if not partitions:
            return 1
        where = {at: {"group_id": group_id, "topic": at.topic, "partition": at.partition} for at in partitions}
        change_each = admin.delete_consumer_group_offsets(group_id, partitions)
        status = await print_outcomes(session, _PARTITION, where, change_each, done="deleted")
        return 1 if absent else status

    return run_with_client(shared, run)


@command.command(
    "remove-members",
    examples=(
        "aiokafkawire groups remove-members billing --instance-id worker-3 --yes",
        "aiokafkawire groups remove-members billing --all --reason 'moving to new hosts'",
    ),
)
@click.argument("group_id", metavar="GROUP")
@click.option("--instance-id", "instances", multiple=True, metavar="ID", help="A static member; may be repeated.")
@click.option("--all", "everyone", is_flag=True, help="All members.")
@click.option("--reason", metavar="TEXT", help="A reason that the brokers log.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def remove_members(
    shared: SharedOptions, *, group_id: str, instances: tuple[str, ...], everyone: bool, reason: str | None, yes: bool
) -> int:
    """Remove members from a classic group or a consumer group. Members that run join again."""
    if bool(instances) == everyone:
        raise CommandFailed("name static members by --instance-id, or use --all", MISSING)
    confirm(f"remove members from group {group_id}", instances or ("all",), yes=yes, options=shared)

    async def run(session: Session) -> int:
        admin = session.kafka.admin
        members: list[GroupMember | str] = list(dict.fromkeys(instances))
        if everyone:
            described, errors = await describe_each(admin, [group_id], {})
            for error in errors.values():
                raise error
            members = [member for member in described[group_id].members if isinstance(member, GroupMember)]
        rows: dict[GroupMember | str, dict[str, Any]] = {member: _removed(group_id, member) for member in members}
        return await print_outcomes(
            session,
            _MEMBER,
            rows,
            admin.remove_members(group_id, members, reason=reason),
            done="removed",
            accepted=UnknownMemberId if everyone else None,
            skipped="gone",
        )

    return run_with_client(shared, run)


def _removed(group_id: str, member: GroupMember | str) -> dict[str, Any]:
    if isinstance(member, str):
        return {"group_id": group_id, "member_id": None, "group_instance_id": member, "client_id": None}
    return {
        "group_id": group_id,
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
    }
