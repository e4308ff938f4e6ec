"""What a member of a classic group has to do itself, between what it asks its coordinator."""

from collections.abc import Sequence
from typing import TypeAlias

import attrs

__all__ = ("Assign", "LosePartitions", "JoinedMember", "PrepareRejoin", "Resume", "ApplyAssignment", "Task")


@attrs.frozen
class JoinedMember:
    """A member as its leader sees it: what it sent for the protocol that was chosen."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@attrs.frozen(eq=False)
class PrepareRejoin:
    """Give up what has to be given up, and say what to join with. ``lost``: it is no member, so what it may still have
    is another's already, for ``reason``.
    """

    lost: bool
    reason: str = ""


@attrs.frozen(eq=False)
class Assign:
    """Decide for all members, as their leader. If that is ``decided`` already (KIP-814), who was away has only to look
    at what it leads.
    """

    protocol: str
    members: Sequence[JoinedMember]
    decided: bool


@attrs.frozen(eq=False)
class ApplyAssignment:
    """Take what was assigned. A ``leader`` has to look out for what would change it."""

    protocol: str
    generation: int
    assignment: bytes
    leader: bool


@attrs.frozen(eq=False)
class LosePartitions:
    """The member is out of the group, for ``reason``: what it had is another's."""

    reason: str


@attrs.frozen(eq=False)
class Resume:
    """There is no coordinator to answer the JoinGroup: go on meanwhile with what was given up for it, which nobody else
    can have been given yet.
    """


Task: TypeAlias = PrepareRejoin | Assign | ApplyAssignment | LosePartitions | Resume
