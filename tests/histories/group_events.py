"""The events of a group's history: assignments, finished records and commits."""

import attrs

from .events import Event, Partition

__all__ = (
    "AssignmentSent",
    "CommitAcknowledged",
    "CommitRequested",
    "MemberEnded",
    "OffsetCommitted",
    "OffsetFetched",
    "PartitionAssigned",
    "PartitionRevoked",
    "RecordFinished",
    "SeekBack",
)


@attrs.frozen
class AssignmentSent(Event):
    """The coordinator has assigned a partition, in a generation or member epoch."""

    partition: Partition
    generation: int
    owner: str
    client: str = ""
    members: frozenset[str] | None = None
    """The clients of the group's members, if the coordinator waits until no other member reads the partition."""

    def __str__(self) -> str:
        return f"{self.owner} is assigned {self.partition} in generation {self.generation}"


@attrs.frozen
class PartitionAssigned(Event):
    """A member was told that it reads a partition from now on."""

    member: str
    partition: Partition

    def __str__(self) -> str:
        return f"{self.member} gets {self.partition}"


@attrs.frozen
class PartitionRevoked(Event):
    """A member was told that it reads a partition no more."""

    member: str
    partition: Partition
    commits: bool = False
    """Whether it has committed before what its user has finished: it commits by itself, and nothing goes wrong."""
    in_hand: int | None = None
    """The offset of the first record that the user may not have finished; None if all are finished."""

    def __str__(self) -> str:
        return f"{self.member} gives up {self.partition}"


@attrs.frozen
class MemberEnded(Event):
    """A member is no more."""

    member: str

    def __str__(self) -> str:
        return f"{self.member} is gone"


@attrs.frozen
class RecordFinished(Event):
    """Some member's user is done with a record."""

    partition: Partition
    offset: int

    def __str__(self) -> str:
        return f"{self.partition}:{self.offset} is finished"


@attrs.frozen
class SeekBack(Event):
    """A member's user goes back, and may commit that."""

    member: str
    partition: Partition
    offset: int

    def __str__(self) -> str:
        return f"{self.member} goes back to {self.partition}:{self.offset}"


@attrs.frozen
class CommitRequested(Event):
    """A user has asked to commit an offset."""

    member: str
    partition: Partition
    offset: int

    def __str__(self) -> str:
        return f"{self.member} is to commit {self.offset} of {self.partition}"


@attrs.frozen
class OffsetCommitted(Event):
    """The coordinator has stored an offset."""

    member: str
    partition: Partition
    offset: int
    generation: int = 0
    member_id: str = ""
    owner: str = ""
    """Whom the coordinator counts it for: the member, or a static member's id."""
    connection: int = 0
    """The number of the connection that it came on; later connections have larger numbers."""

    @property
    def membership(self) -> tuple[int, str]:
        """The generation and the member."""
        return self.generation, self.member_id

    def __str__(self) -> str:
        return f"{self.member} commits {self.offset} of {self.partition} in generation {self.generation}"


@attrs.frozen
class CommitAcknowledged(Event):
    """A user was told that an offset is committed."""

    member: str
    partition: Partition
    offset: int

    def __str__(self) -> str:
        return f"{self.member} is told that {self.offset} of {self.partition} is committed"


@attrs.frozen
class OffsetFetched(Event):
    """The coordinator has answered a request for a group's offset; -1 for none. A member begins there."""

    group: str
    partition: Partition
    offset: int
    member: str = ""
    """Who has asked; empty for someone outside the group."""

    def __str__(self) -> str:
        return f"{self.member or 'an observer'} finds {self.offset} of {self.partition} committed by {self.group}"
