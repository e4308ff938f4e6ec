"""Sums the lag of many groups: a few requests to each broker, whatever the number of groups."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from ...admin.admin import Admin
from ...admin.descriptions import GroupListing
from ...errors import AdminError, KafkaError
from ..shell.outcomes import partial_results
from .end_offsets import EndOffsets
from .rows import group_lag, group_type, partition_lag

__all__ = ("GROUPS_AT_ONCE", "groups_of_those_that_answer", "in_batches", "lag_of_groups")

GROUPS_AT_ONCE: Final = 250
"""The number of groups whose offsets are in memory at a time."""


async def groups_of_those_that_answer(
    admin: Admin, *, states: Collection[str] | None = None, types: Collection[str] | None = None
) -> tuple[list[GroupListing], list[KafkaError]]:
    """Return the groups of the brokers that answer, sorted by id, and the errors of the others.

    Raises:
        KafkaError: the only broker has an error.
    """
    try:
        return await admin.list_groups(states=states, types=types), []
    except AdminError as some:
        # A group that moves from one broker to another may be listed by both.
        listed = {listing.group_id: listing for together in some.results.values() for listing in together}
        return [listed[group_id] for group_id in sorted(listed)], list(some.errors.values())


async def lag_of_groups(
    admin: Admin, listings: Iterable[GroupListing]
) -> tuple[Mapping[str, int | None], list[KafkaError]]:
    """Return the summed lag of each group, None if it is not known; and the errors of groups and of leaders.

    Raises:
        KafkaError: brokers do not answer.
    """
    lags: dict[str, int | None] = {}
    errors: dict[str, KafkaError] = {}
    ends = EndOffsets(admin)
    by_share: dict[bool, list[str]] = {False: [], True: []}
    for listing in listings:
        if not listing.group_id:  # of very old clients; no request can name it
            continue
        by_share[group_type(listing) == "share"].append(listing.group_id)
    for some in in_batches(by_share[False]):
        offsets, failed = await partial_results(some, admin.list_offsets_of_groups(some))
        known = await ends.look_up(partition for committed in offsets.values() for partition in committed)
        for group_id, committed in offsets.items():
            lags[group_id] = group_lag(
                partition_lag(at.offset, known[partition]) for partition, at in committed.items()
            )
        errors |= failed
    for some in in_batches(by_share[True]):
        shared, failed = await partial_results(some, admin.list_offsets_of_share_groups(some))
        for group_id, infos in shared.items():
            lags[group_id] = group_lag(info.lag for info in infos.values())
        errors |= failed
    return lags, [*errors.values(), *ends.errors]


def in_batches(group_ids: Sequence[str]) -> Iterable[list[str]]:
    """Yield the groups in lists of at most :data:`GROUPS_AT_ONCE`."""
    for start in range(0, len(group_ids), GROUPS_AT_ONCE):
        yield list(group_ids[start : start + GROUPS_AT_ONCE])
