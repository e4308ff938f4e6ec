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
    """Revoke the partitions that have to be revoked, and build the subscription. If ``lost``, the membership has ended
    for ``reason``, and other members may have the partitions already.
    """

    lost: bool
    reason: str = ""


@attrs.frozen(eq=False)
class Assign:
    """Compute the assignment of all members, as the leader. If it is ``decided`` already (KIP-814), only learn what
    this member leads.
    """

    protocol: str
    members: Sequence[JoinedMember]
    decided: bool


@attrs.frozen(eq=False)
class ApplyAssignment:
    """Apply the assignment. A ``leader`` also watches for topic changes that require a rebalance."""

    protocol: str
    generation: int
    assignment: bytes
    leader: bool


@attrs.frozen(eq=False)
class LosePartitions:
    """Drop all partitions: the membership has ended, for ``reason``."""

    reason: str


@attrs.frozen(eq=False)
class Resume:
    """Read on the partitions that were revoked for a JoinGroup that no coordinator answers: no other member can have
    them yet.
    """


Task: TypeAlias = PrepareRejoin | Assign | ApplyAssignment | LosePartitions | Resume
