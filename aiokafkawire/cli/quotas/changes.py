"""The changes of ``quotas alter`` as users write them."""

import math
from collections.abc import Iterable

from ..exit_status import MISSING, CommandFailed
from ..shell.arguments import key_values
from .limits import rounding_of

__all__ = ("quota_changes",)


def quota_changes(settings: Iterable[str], deleted: Iterable[str]) -> dict[str, float | None]:
    """Return the new values of quotas, by key; None removes a quota.

    Args:
        settings: ``KEY=NUMBER`` texts.
        deleted: the keys of the quotas to remove.

    Raises:
        CommandFailed: a text is not ``KEY=NUMBER``, a number cannot be kept exactly, a key is set and deleted, or there
            is no change (exit status 2).
    """
    changes: dict[str, float | None] = {}
    for key, text in key_values("a quota", settings).items():
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise CommandFailed(f"{key} must be a number, such as {key}=1000000; got {text!r}", MISSING)
        if text.isdecimal() and (why := rounding_of(int(text))):
            raise CommandFailed(f"{key} {why}", MISSING)
        changes[key] = value
    for key in deleted:
        if key in changes:
            raise CommandFailed(f"{key} is both set and deleted", MISSING)
        changes[key] = None
    if not changes:
        raise CommandFailed("nothing to change: give KEY=NUMBER or --delete KEY", MISSING)
    return changes
