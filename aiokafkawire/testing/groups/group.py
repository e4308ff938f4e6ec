"""A classic group: its members and what they have agreed on. When it changes is decided in rebalance.py."""

from collections.abc import Sequence
from typing import Final

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
"""The protocol type whose metadata brokers can read."""


@attrs.define(eq=False)
class ClassicGroup:
    """A group. Members are kept in the order they came in."""

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
    """Who was given a member id and has not joined with it yet (KIP-394); the timers forget them."""
    pending_sync: dict[str, None] = attrs.field(factory=dict)
    """Who has not asked for its part of this generation yet."""
    subscribed_topics: frozenset[str] | None = None
    """What its members read; None if it cannot be known."""
    empty_since: int = -1
    """When its last member left, in ms since the epoch."""
    new_member_added: bool = False
    """Whether someone came while the first rebalance was being delayed."""
    join_timer: Timer | None = None
    sync_timer: Timer | None = None

    def go(self, state: CoordinatorState) -> None:
        """Enter another state."""
        assert self.state in BEFORE[state], (self.state, state)
        self.previous_state, self.state = self.state, state

    def stop(self) -> None:
        """Forget all that would happen later."""
        for timer in (self.join_timer, self.sync_timer, *self.pending.values()):
            if timer is not None:
                timer.cancel()
        for member in self.members.values():
            member.end_session()

    # --- members -----------------------------------------------------------------------------------------------

    def check_member(self, member_id: str, group_instance_id: str | None) -> MemberRecord:
        """The member of that id.

        Raises:
            Refused: UNKNOWN_MEMBER_ID; FENCED_INSTANCE_ID, another has taken its instance id.
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
        """Take a member in; the first one leads, and says of which type the group is."""
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if not self.members:
            self.protocol_type = protocol_type
        self.members[member.member_id] = member
        self.leader = self.leader or member.member_id
        self.forget_pending(member.member_id)

    def remove(self, member_id: str) -> None:
        """Put a member out, or one who has not joined yet; if it led, another does."""
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
        """Give a static member, which is back, a new id; it keeps its part and its place."""
        assert member.group_instance_id is not None
        old, member.member_id = member.member_id, member_id
        self.members = {one.member_id: one for one in self.members.values()}
        self.static_members[member.group_instance_id] = member_id
        if self.leader == old:
            self.leader = member_id

    def forget_pending(self, member_id: str) -> None:
        """No longer expect someone to join."""
        timer = self.pending.pop(member_id, None)
        if timer is not None:
            timer.cancel()

    @property
    def awaiting_join(self) -> list[MemberRecord]:
        """The members that have joined and wait for the others."""
        return [member for member in self.members.values() if member.awaiting_join is not None]

    @property
    def all_have_joined(self) -> bool:
        """Whether nobody has to be waited for."""
        return len(self.awaiting_join) == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long to wait for all members: as long as the slowest may take."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """Have a member lead that has joined; False if there is none."""
        if self.leader is None:
            return False
        joined = self.awaiting_join
        if self.members[self.leader].awaiting_join is None and joined:
            self.leader = joined[0].member_id
        return bool(joined)

    # --- protocols ---------------------------------------------------------------------------------------------

    def supports(self, protocol_type: str, protocols: Sequence[Protocol]) -> bool:
        """Whether who comes with these protocols has one in common with all members."""
        if self.state == CoordinatorState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        common = self._common()
        return protocol_type == self.protocol_type and any(not self.members or name in common for name, _ in protocols)

    def select_protocol(self) -> str:
        """The protocol that most members like best, of those that all know."""
        common = self._common()
        votes = [member.vote(common) for member in self.members.values()]
        # Of equals Kafka takes the one that comes first in a HashMap, so it is decided here as well.
        return max(sorted(dict.fromkeys(votes), key=_bucket), key=votes.count)

    def next_generation(self) -> None:
        """Close the joining: everyone who is a member now belongs to the next generation."""
        self.generation += 1
        self.protocol = self.select_protocol() if self.members else None
        self.find_subscribed_topics()
        self.go(CoordinatorState.COMPLETING_REBALANCE if self.members else CoordinatorState.EMPTY)
        self.pending_sync.clear()

    def find_subscribed_topics(self) -> None:
        """Read from what the members said for the chosen protocol which topics they read."""
        self.subscribed_topics = self._subscribed_topics()

    def reads(self, topic: str) -> bool:
        """Whether members are subscribed to a topic; all topics are, as long as it cannot be known."""
        if self.subscribed_topics is None:
            return self.protocol_type == CONSUMER
        return topic in self.subscribed_topics

    def roster(self) -> list[JoinGroupResponseMember]:
        """The members as their leader is told."""
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
        return [name for name in members[0].knows if all(name in one.knows for one in members)] if members else []

    def _subscribed_topics(self) -> frozenset[str] | None:
        if self.protocol_type != CONSUMER:
            return None
        topics: list[str] = []
        for member in self.members.values():
            data = member.metadata(self.protocol)
            try:
                # Every version begins as version 0 does, after the version's own two bytes.
                topics += decode_prefix(ConsumerProtocolSubscription, 0, data, 2)[0].topics
            except WireError:
                return None
        return frozenset(topics)


def _bucket(name: str) -> int:
    spread = java_hash(name)
    return (spread ^ spread >> 16) & 15
