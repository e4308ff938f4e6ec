"""The tasks of a classic group's member between its requests to the coordinator."""

from collections.abc import Sequence
from typing import TypeAlias

import attrs

__all__ = ("Assign", "LosePartitions", "JoinedMember", "PrepareRejoin", "Resume", "ApplyAssignment", "Task")


@attrs.frozen
class JoinedMember:
    """A member as the leader sees it, with its metadata for the chosen protocol."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@attrs.frozen(eq=False)
class PrepareRejoin:
    """The task to revoke partitions before a rejoin, and to build the subscription.

    If ``lost``, the membership has ended for ``reason``, and other members may have the partitions already.
    """

    lost: bool
    reason: str = ""


@attrs.frozen(eq=False)
class Assign:
    """The leader's task to compute the assignment of all members.

    If the assignment is ``decided`` already (KIP-814), the leader only has to watch the members' topics for changes.
    """

    protocol: str
    members: Sequence[JoinedMember]
    decided: bool


@attrs.frozen(eq=False)
class ApplyAssignment:
    """The task to apply an assignment. A ``leader`` also watches for topic changes that require a rebalance."""

    protocol: str
    generation: int
    assignment: bytes
    leader: bool


@attrs.frozen(eq=False)
class LosePartitions:
    """The task to drop all partitions, since the membership has ended for ``reason``."""

    reason: str


@attrs.frozen(eq=False)
class Resume:
    """The task to resume the partitions that were revoked for a JoinGroup, while no coordinator answers it.

    No other member can have these partitions yet.
    """


Task: TypeAlias = PrepareRejoin | Assign | ApplyAssignment | LosePartitions | Resume
