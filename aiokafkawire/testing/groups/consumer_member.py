"""A member of a consumer group: its subscription and its part of the assignment (KIP-848)."""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

import attrs

__all__ = ("LEAVES", "LEAVES_FOR_NOW", "ClassicMember", "ConsumerMember", "Epochs", "MemberState", "TopicIdPartition")

LEAVES: Final = -1
"""The member epoch of a heartbeat with which a member leaves."""
LEAVES_FOR_NOW: Final = -2
"""The member epoch of a heartbeat with which a static member leaves and announces that it will return."""


class TopicIdPartition(NamedTuple):
    """A partition of the topic with this id."""

    topic_id: UUID
    partition: int


Epochs: TypeAlias = Mapping[TopicIdPartition, int]
"""Partitions of a member, each with the epoch in which the member got it (KIP-1251)."""


class MemberState(Enum):
    """The progress of a member towards its target assignment."""

    STABLE = auto()
    """The member has the target assignment of its epoch."""
    UNREVOKED_PARTITIONS = auto()
    """The member has not acknowledged the revocation of some partitions yet."""
    UNRELEASED_PARTITIONS = auto()
    """Other members still hold partitions of the target assignment."""


@attrs.frozen
class ClassicMember:
    """The data of a member that uses the classic protocol in a consumer group, from its JoinGroup."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@attrs.frozen
class ConsumerMember:
    """A member of a consumer group. Changes make a new object."""

    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    group_instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str = ""
    """The regular expression of the subscribed topics; empty for none."""
    assignor: str | None = None
    assigned: Epochs = attrs.field(factory=dict)
    revoking: Epochs = attrs.field(factory=dict)
    """The partitions whose revocation the member has not acknowledged yet."""
    classic: ClassicMember | None = None
    """None for a member that uses the consumer protocol."""

    @property
    def held(self) -> set[TopicIdPartition]:
        """The partitions that no other member may get."""
        return {*self.assigned, *self.revoking}

    def is_reconciled(self, epoch: int) -> bool:
        """Return whether the member has its part of the target assignment of this epoch."""
        return self.state is MemberState.STABLE and self.epoch == epoch
