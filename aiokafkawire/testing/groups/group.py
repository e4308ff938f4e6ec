"""A classic group: its members and their protocol. The state changes are in rebalance.py."""

from collections.abc import Sequence
from typing import ClassVar, Final

import attrs

from ...errors import ErrorCode, WireError
from ...protocol.compiler import decode_prefix
from ...protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from ...protocol.messages.group import JoinGroupResponseMember
from ..cluster.api_error import ApiError
from ..cluster.java_hash import java_hash
from ..cluster.timers import Timer
from .members import MemberRecord, Protocol
from .states import BEFORE, CoordinatorState

__all__ = ("CONSUMER", "ClassicGroup")

CONSUMER: Final = "consumer"
"""The protocol type of consumers, whose metadata brokers can read."""


@attrs.define(eq=False)
class ClassicGroup:
    """A classic group. Its members are in the order in which they joined."""

    kind: ClassVar[str] = "classic"
    """The type of the group, as ListGroups spells it."""
    group_id: str
    state: CoordinatorState = CoordinatorState.EMPTY
    previous_state: CoordinatorState = CoordinatorState.DEAD
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, MemberRecord] = attrs.field(factory=dict)
    static_members: dict[str, str] = attrs.field(factory=dict)
    """Member ids by instance ids (KIP-345)."""
    pending: dict[str, Timer] = attrs.field(factory=dict)
    """Member ids that were sent to clients and have not joined yet (KIP-394), each with the timer that removes it."""
    pending_sync: dict[str, None] = attrs.field(factory=dict)
    """The members that have not sent SyncGroup in this generation yet."""
    subscribed_topics: frozenset[str] | None = None
    """The topics that the members read; None if unknown."""
    empty_since: int = -1
    """The time when the last member left, in ms since the epoch."""
    new_member_added: bool = False
    """Whether a member has joined since the initial rebalance delay was last started."""
    join_timer: Timer | None = None
    sync_timer: Timer | None = None

    def go(self, state: CoordinatorState) -> None:
        """Enter another state."""
        assert self.state in BEFORE[state], (self.state, state)
        self.previous_state, self.state = self.state, state

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return self.state == CoordinatorState.EMPTY

    def stop(self) -> None:
        """Cancel all timers of the group and its members."""
        for timer in (self.join_timer, self.sync_timer, *self.pending.values()):
            if timer is not None:
                timer.cancel()
        for member in self.members.values():
            member.end_session()

    # --- members -----------------------------------------------------------------------------------------------

    def check_member(self, member_id: str, group_instance_id: str | None) -> MemberRecord:
        """Return the member with this id, and with this instance id if one is given.

        Raises:
            ApiError: UNKNOWN_MEMBER_ID; FENCED_INSTANCE_ID, another member has this instance id.
        """
        if group_instance_id is not None:
            current = self.static_members.get(group_instance_id)
            if current is not None and current != member_id:
                raise ApiError(ErrorCode.FENCED_INSTANCE_ID)
            if current is None:
                raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    def add(self, member: MemberRecord, protocol_type: str) -> None:
        """Add a member; the first member leads and sets the group's protocol type."""
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if not self.members:
            self.protocol_type = protocol_type
        self.members[member.member_id] = member
        self.leader = self.leader or member.member_id
        self.forget_pending(member.member_id)

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending member id; another member replaces a removed leader."""
        member = self.members.pop(member_id, None)
        if member is not None:
            member.end_session()
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.forget_pending(member_id)
        self.pending_sync.pop(member_id, None)

    def replace(self, member: MemberRecord, member_id: str) -> None:
        """Give a returning static member a new id; the member keeps its assignment and its place in the order."""
        assert member.group_instance_id is not None
        old, member.member_id = member.member_id, member_id
        self.members = {known.member_id: known for known in self.members.values()}
        self.static_members[member.group_instance_id] = member_id
        if self.leader == old:
            self.leader = member_id

    def forget_pending(self, member_id: str) -> None:
        """Stop waiting for a JoinGroup with this pending member id."""
        timer = self.pending.pop(member_id, None)
        if timer is not None:
            timer.cancel()

    @property
    def awaiting_join(self) -> list[MemberRecord]:
        """The members that have joined and wait for the response to JoinGroup."""
        return [member for member in self.members.values() if member.awaiting_join is not None]

    @property
    def all_have_joined(self) -> bool:
        """Whether all members have joined and no member id is pending."""
        return len(self.awaiting_join) == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """The rebalance timeout of the group: the longest of its members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """Make a joined member the leader if the current one has not joined; return whether any member has joined."""
        if self.leader is None:
            return False
        joined = self.awaiting_join
        if self.members[self.leader].awaiting_join is None and joined:
            self.leader = joined[0].member_id
        return bool(joined)

    # --- protocols ---------------------------------------------------------------------------------------------

    def supports(self, protocol_type: str, protocols: Sequence[Protocol]) -> bool:
        """Return whether a member may join: it has the group's type, and a protocol that all members support.

        An empty group accepts any type and any protocols, but both must be given.
        """
        if self.state == CoordinatorState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        common = self._common()
        return protocol_type == self.protocol_type and any(not self.members or name in common for name, _ in protocols)

    def select_protocol(self) -> str:
        """Return the protocol with the most votes, of those that all members support."""
        common = self._common()
        votes = [member.vote(common) for member in self.members.values()]
        # Of protocols with equally many votes, Kafka selects the first one in a HashMap; this code does the same.
        return max(sorted(dict.fromkeys(votes), key=_bucket), key=votes.count)

    def next_generation(self) -> None:
        """End the join phase: all present members belong to the next generation."""
        self.generation += 1
        self.protocol = self.select_protocol() if self.members else None
        self.find_subscribed_topics()
        self.go(CoordinatorState.COMPLETING_REBALANCE if self.members else CoordinatorState.EMPTY)
        self.pending_sync.clear()

    def find_subscribed_topics(self) -> None:
        """Determine the topics of the members from their metadata for the chosen protocol."""
        self.subscribed_topics = self._subscribed_topics()

    def reads(self, topic: str) -> bool:
        """Return whether any member is subscribed to a topic; True if the subscriptions of consumers are unknown."""
        if self.subscribed_topics is None:
            return self.protocol_type == CONSUMER
        return topic in self.subscribed_topics

    def roster(self) -> list[JoinGroupResponseMember]:
        """Return the list of members for the JoinGroup response to the leader."""
        return [
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata(self.protocol),
            )
            for member in self.members.values()
        ]

    def _common(self) -> list[str]:
        members = list(self.members.values())
        return [name for name in members[0].knows if all(name in member.knows for member in members)] if members else []

    def _subscribed_topics(self) -> frozenset[str] | None:
        if self.protocol_type != CONSUMER:
            return None
        topics: list[str] = []
        for member in self.members.values():
            data = member.metadata(self.protocol)
            try:
                # The fields of version 0 come first in every version, after the two bytes of the version.
                topics += decode_prefix(ConsumerProtocolSubscription, 0, data, 2)[0].topics
            except WireError:
                return None
        return frozenset(topics)


def _bucket(name: str) -> int:
    spread = java_hash(name)
    return (spread ^ spread >> 16) & 15
