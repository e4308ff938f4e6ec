"""The record of a group in ``__consumer_offsets``, which outlives the coordinator."""

from typing import Self

import attrs

from .group import ClassicGroup
from .members import MemberRecord
from .states import CoordinatorState

__all__ = ("GroupImage",)


@attrs.frozen
class GroupImage:
    """A group as its coordinator last wrote it to the log.

    Coordinators write only groups that are empty or stable: a generation that is not stable yet is lost with its
    coordinator. Of each member's metadata, only the part for the chosen protocol is written.
    """

    group_id: str
    generation: int
    protocol_type: str | None
    protocol: str | None
    leader: str | None
    empty_since: int
    members: tuple[MemberRecord, ...]

    @classmethod
    def of(cls, group: ClassicGroup) -> Self:
        """Return the record of a group."""
        members = tuple(_written(member, group.protocol) for member in group.members.values())
        return cls(
            group.group_id,
            group.generation,
            group.protocol_type,
            group.protocol,
            group.leader,
            group.empty_since,
            members,
        )

    def group(self) -> ClassicGroup:
        """Return the group that a new coordinator loads from this record."""
        group = ClassicGroup(
            self.group_id,
            state=CoordinatorState.STABLE if self.members else CoordinatorState.EMPTY,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            empty_since=self.empty_since,
        )
        for member in self.members:
            group.add(_written(member, self.protocol), self.protocol_type or "")
        group.leader = self.leader
        group.find_subscribed_topics()
        return group


def _written(member: MemberRecord, protocol: str | None) -> MemberRecord:
    return MemberRecord(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.session_timeout_ms,
        ((protocol, member.metadata(protocol)),) if protocol is not None else (),
        member.assignment,
    )
