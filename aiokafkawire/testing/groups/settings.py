"""The brokers' settings for groups and their offsets."""

from typing import Any, Final

import attrs

__all__ = ("MIGRATION_POLICIES", "GroupSettings")

MIGRATION_POLICIES: Final = ("bidirectional", "upgrade", "downgrade", "disabled")
"""The values of ``group.consumer.migration.policy``: the changes of a group's type that are allowed."""


def _least(name: str, default: int) -> Any:
    """Return a field for the lower limit of the groups' own settings, which the brokers' setting ``name`` obeys."""
    return attrs.field(default=attrs.Factory(lambda self: min(default, getattr(self, name)), takes_self=True))


def _most(name: str, default: int) -> Any:
    """Return a field for the upper limit, as :func:`_least`."""
    return attrs.field(default=attrs.Factory(lambda self: max(default, getattr(self, name)), takes_self=True))


@attrs.frozen
class GroupSettings:
    """The settings for groups, with Kafka's names and defaults; only the waits of rebalances are shorter."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = 2**31 - 1
    group_initial_rebalance_delay_ms: int = 0  # Kafka's default is 3000, which would slow down every test
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_min_session_timeout_ms: int = _least("group_consumer_session_timeout_ms", 45_000)
    group_consumer_max_session_timeout_ms: int = _most("group_consumer_session_timeout_ms", 60_000)
    group_consumer_min_heartbeat_interval_ms: int = _least("group_consumer_heartbeat_interval_ms", 5_000)
    group_consumer_max_heartbeat_interval_ms: int = _most("group_consumer_heartbeat_interval_ms", 15_000)
    group_consumer_assignment_interval_ms: int = 0  # Kafka's default is 1000, which would slow down every test
    group_consumer_max_size: int = 2**31 - 1
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    group_consumer_migration_policy: str = "bidirectional"
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
