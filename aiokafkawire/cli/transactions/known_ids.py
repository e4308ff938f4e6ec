"""Changes transactional ids that coordinators know: to initialise another one would create it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from ...admin.admin import Admin
from ...errors import AdminError, UnsupportedVersion
from ..shell.outcomes import partial_results

__all__ = ("change_known",)


async def change_known(
    admin: Admin, ids: Sequence[str], change: Callable[[Sequence[str]], Awaitable[Mapping[str, Any] | None]]
) -> Mapping[str, Any]:
    """Change the transactional ids that coordinators know; brokers before 3.0 cannot be asked, and change all.

    Raises:
        TransactionalIdNotFound, ...: the only id is unknown, or it is not known whether it is; nothing is changed.
        AdminError: some ids are so, or could not be changed.
        KafkaError: the request failed.
    """
    try:
        _, errors = await partial_results(ids, admin.describe_transactions(ids))
    except UnsupportedVersion:
        errors = {}
    known = [one for one in ids if one not in errors]
    results, failed = await partial_results(known, change(known)) if known else ({}, {})
    if len(ids) == 1:
        for error in (*errors.values(), *failed.values()):
            raise error
    if errors or failed:
        raise AdminError("changing transactional ids", {**errors, **failed}, results)
    return results
