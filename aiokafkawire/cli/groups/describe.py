"""Describes groups of all types: their partitions with the lag, their members, or their states."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import attrs

from ...admin.admin import Admin
from ...admin.descriptions import GroupListing
from ...errors import BrokerError, GroupIdNotFound, KafkaError, UnsupportedVersion
from ...types import OffsetAndMetadata, TopicPartition
from ..shell.outcomes import partial_results
from .end_offsets import EndOffsets
from .listing import groups_of_those_that_answer, in_batches
from .rows import (
    Described,
    Row,
    group_type,
    member_rows,
    offset_rows,
    owners_of,
    share_offset_rows,
    state_row,
)

__all__ = ("Subject", "GroupReport", "describe", "describe_each", "groups_to_describe")

Subject: TypeAlias = Literal["offsets", "members", "state"]

_DEAD: Final = "Dead"


@attrs.define
class GroupReport:
    """The rows of groups and of share groups, the errors of groups and of leaders, and lines for standard error."""

    rows: list[Row] = attrs.Factory(list)
    share_rows: list[Row] = attrs.Factory(list)
    errors: dict[str, KafkaError] = attrs.Factory(dict)
    leader_errors: list[KafkaError] = attrs.Factory(list)
    notes: list[str] = attrs.Factory(list)


async def groups_to_describe(admin: Admin) -> tuple[dict[str, GroupListing] | None, list[KafkaError]]:
    """Return the groups of the brokers that answer by id, and the errors of the others.

    Instead of groups it is None if the brokers list none, since they are older than 0.9. A client may be allowed to
    describe a group, and not to list all: brokers before 2.1 then refuse it.
    """
    try:
        listings, failures = await groups_of_those_that_answer(admin)
    except UnsupportedVersion as older:
        return None, [older]
    except BrokerError as refused:
        return {}, [refused]
    return {listing.group_id: listing for listing in listings}, failures


async def describe(
    admin: Admin, group_ids: Sequence[str], listings: Mapping[str, GroupListing] | None, subject: Subject
) -> GroupReport:
    """Describe groups, in batches.

    Args:
        admin: the admin.
        group_ids: the groups.
        listings: what :func:`groups_to_describe` returned.
        subject: what to describe of each group.

    Raises:
        KafkaError: brokers do not answer.
    """
    report, ends = GroupReport(), EndOffsets(admin)
    if listings is None and subject == "offsets":
        for group_id in group_ids:
            committed = await admin.list_consumer_group_offsets(group_id)
            known = await ends.look_up(committed)
            report.rows += offset_rows(group_id, "classic", committed, known, {})
            if not committed:
                report.notes.append(f"group {group_id!r} has no committed offsets")
        report.leader_errors += ends.errors
        return report
    for some in in_batches(group_ids):
        described, errors = await describe_each(admin, some, listings or {})
        report.errors |= errors
        if subject == "members":
            report.rows += [row for group in described.values() for row in member_rows(group)]
            report.notes += [f"group {name!r} has no members" for name, group in described.items() if not group.members]
        elif subject == "state":
            report.rows += [state_row(group) for group in described.values()]
        else:
            await _add_offsets(admin, described, listings or {}, ends, report)
    report.leader_errors += ends.errors
    return report


async def describe_each(
    admin: Admin, group_ids: Sequence[str], listings: Mapping[str, GroupListing]
) -> tuple[dict[str, Described], dict[str, KafkaError]]:
    """Describe groups of any type; return the descriptions, in the order of ``group_ids``, and the errors.

    A group that is not listed has the error of a classic group, which is GroupIdNotFound if it does not exist.

    Raises:
        KafkaError: brokers do not answer.
    """
    calls: dict[str, Callable[[Sequence[str]], Awaitable[Mapping[str, Any]]]] = {
        "share": admin.describe_share_groups,
        "streams": admin.describe_streams_groups,
        "classic": admin.describe_groups,
    }
    by_call: dict[str, list[str]] = {}
    for group_id in group_ids:
        kind = group_type(listings.get(group_id))
        by_call.setdefault(kind if kind in calls else "classic", []).append(group_id)
    found: dict[str, Described] = {}
    errors: dict[str, KafkaError] = {}
    for kind, some in by_call.items():
        described, failed = await partial_results(some, calls[kind](some))
        found |= described
        errors |= failed
    for group_id, group in list(found.items()):
        # Brokers before 4.0 describe a group that does not exist as dead.
        if group.state == _DEAD and not getattr(group, "offsets", None):
            del found[group_id]
            errors[group_id] = GroupIdNotFound(f"there is no group {group_id!r}")
    return {group_id: found[group_id] for group_id in group_ids if group_id in found}, errors


async def _add_offsets(
    admin: Admin,
    described: Mapping[str, Described],
    listings: Mapping[str, GroupListing],
    ends: EndOffsets,
    report: GroupReport,
) -> None:
    share = [name for name in described if group_type(listings.get(name)) == "share"]
    streams = [name for name in described if group_type(listings.get(name)) == "streams"]
    shared, errors = await partial_results(share, admin.list_offsets_of_share_groups(share))
    report.errors |= errors
    committed, errors = await partial_results(streams, admin.list_offsets_of_groups(streams))
    report.errors |= errors
    owners = {name: owners_of(group) for name, group in described.items()}
    offsets: dict[str, Mapping[TopicPartition, OffsetAndMetadata]] = {
        name: committed.get(name, getattr(group, "offsets", {})) for name, group in described.items()
    }
    known = await ends.look_up(partition for name in described for partition in (*offsets[name], *owners[name]))
    for name in described:
        if name in report.errors:
            continue
        if name in shared:
            rows = share_offset_rows(name, shared[name])
            report.share_rows += rows
        else:
            kind = group_type(listings.get(name))
            rows = offset_rows(name, kind, offsets[name], known, owners[name])
            report.rows += rows
        if not rows:
            report.notes.append(f"group {name!r} has no offsets and no members with partitions")
