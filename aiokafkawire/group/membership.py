"""The state machines of group members: the interface that they share, with their states, requests and tasks."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Protocol, TypeAlias
from uuid import UUID

from .._lazy_classes import frozen
from ..cluster.request_variants import RequestVariant
from ..errors import BrokerError, KafkaError
from ..protocol.schema import Request
from ..types import GroupMetadata

__all__ = (
    "ApplyAssignment",
    "Assign",
    "CoordinatorRequest",
    "GroupState",
    "JoinedMember",
    "LosePartitions",
    "MemberSettings",
    "Membership",
    "PrepareRejoin",
    "Reconcile",
    "RequestKind",
    "Task",
    "TopicIdPartitions",
    "loses_partitions",
)

TopicIdPartitions: TypeAlias = Mapping[UUID, Sequence[int]]
"""Partitions by topic id, as the coordinators of consumer groups name them."""


class GroupState(Enum):
    """The state of a membership; the value completes the sentence "the member is ..."."""

    OUTSIDE = "not in the group"
    PREPARING = "revoking partitions before it rejoins"
    JOINING = "waiting for the other members to join"
    ENTERING = "sending its first heartbeat"
    ASSIGNING = "computing the assignment"
    SYNCING = "waiting for its assignment"
    STABLE = "a member"
    LEAVING = "leaving"
    FAILED = "refused"


class RequestKind(Enum):
    """The kind of a member's request to its coordinator.

    OffsetCommit is sent by the offset committer; its errors can end the membership too. Members of consumer groups join
    and leave by heartbeats.
    """

    JOIN = "JoinGroup"
    SYNC = "SyncGroup"
    HEARTBEAT = "Heartbeat"
    LEAVE = "LeaveGroup"
    COMMIT = "OffsetCommit"

    @property
    def is_slow(self) -> bool:
        """Whether the coordinator responds only after requests of other members."""
        return self in (RequestKind.JOIN, RequestKind.SYNC)


@frozen
class MemberSettings:
    """The settings of a member, which are the same in all generations.

    ``protocol_type`` is "consumer" for consumers. ``rack`` and ``remote_assignor``, the coordinator's assignor, are for
    consumer groups. Times are in seconds, those in attributes named ``_ms`` in ms.
    """

    group_id: str
    protocol_type: str = "consumer"
    group_instance_id: str | None = None
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    max_poll_interval_ms: int | None = None
    """How long the user may process records between two polls; None for ``rebalance_timeout_ms``."""
    heartbeat_interval: float = 3.0
    retry_backoff: float = 0.1
    rack: str | None = None
    remote_assignor: str | None = None

    @property
    def max_poll_interval(self) -> float:
        """How many seconds the user may process records between two polls."""
        limit = self.rebalance_timeout_ms if self.max_poll_interval_ms is None else self.max_poll_interval_ms
        return limit / 1000

    @property
    def named(self) -> str:
        """The group's name in errors and log lines."""
        return f"group {self.group_id!r}"


@frozen(eq=False)
class CoordinatorRequest:
    """A request, with variants for newer and older brokers.

    ``again`` is what retries send instead, if the coordinator may have handled an attempt without a response.
    """

    kind: RequestKind
    forms: tuple[RequestVariant[Any], ...]
    again: Request[Any] | None = None

    @property
    def name(self) -> str:
        """The request's name in Kafka's protocol."""
        return type(self.forms[0].request).__name__.removesuffix("Request")


@frozen
class JoinedMember:
    """A member as the leader sees it, with its metadata for the chosen protocol."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@frozen(eq=False)
class PrepareRejoin:
    """The task to revoke partitions before a rejoin, and to build the subscription.

    If ``lost``, the membership has ended for ``reason``, and other members may have the partitions already.
    """

    lost: bool
    reason: str = ""


@frozen(eq=False)
class Assign:
    """The leader's task to compute the assignment of all members.

    If the assignment is ``decided`` already (KIP-814), the leader only has to watch the members' topics for changes.
    """

    protocol: str
    members: Sequence[JoinedMember]
    decided: bool


@frozen(eq=False)
class ApplyAssignment:
    """The task to apply an assignment. A ``leader`` also watches for topic changes that require a rebalance."""

    protocol: str
    generation: int
    assignment: bytes
    leader: bool


@frozen(eq=False)
class Reconcile:
    """The task to change the member's partitions to the ``assignment`` of a consumer group's coordinator."""

    epoch: int
    assignment: TopicIdPartitions


@frozen(eq=False)
class LosePartitions:
    """The task to drop all partitions, since the membership has ended for ``reason``."""

    reason: str


Task: TypeAlias = PrepareRejoin | Assign | ApplyAssignment | Reconcile | LosePartitions
"""The client's work between requests to the coordinator, one task at a time. Once :attr:`Membership.task` is another
task, or None, the task in progress is obsolete."""


def loses_partitions(task: Task | None) -> bool:
    """Return whether the task is to drop all partitions, since the membership has ended."""
    return isinstance(task, LosePartitions) or (isinstance(task, PrepareRejoin) and task.lost)


class Membership(Protocol):
    """The membership of one member under one group protocol, without I/O.

    This object alone has the member id and the generation. :class:`~.membership_driver.MembershipDriver` sends the
    requests that are :meth:`due`, reports their results, and has :attr:`task` executed. Times are in seconds.
    """

    settings: MemberSettings
    state: GroupState
    error: KafkaError | None
    """The error that led to the state FAILED."""
    task: Task | None
    """The task to execute now."""
    last_group: GroupMetadata | None
    """The current or last membership. Once other members may own its partitions, the broker rejects its commits."""
    confirmed_at: float | None
    """When the coordinator last confirmed the membership."""
    rebalances: int
    """The number of assignments that the member has received."""
    reason: str
    """The reason why the member last joined or left."""
    protocol: str
    """The name of the group's assignor; empty until it is chosen."""
    leads: bool
    """Whether the member leads its generation."""
    heartbeat_interval: float
    """The seconds between heartbeats, as the coordinator decides in consumer groups."""
    is_in_consumer_group: bool
    """Whether the group is one of KIP-848, whose coordinator checks the member epoch."""
    generation_name: str
    """What this group protocol calls the generation in :attr:`group`, for logs."""
    on_enter: Callable[[GroupState], None]
    """Called after every change of the state, with the previous state."""

    @property
    def group(self) -> GroupMetadata:
        """The membership under which offsets are committed now."""

    @property
    def is_member(self) -> bool:
        """Whether the member has a generation that has not ended, as far as this client knows."""

    @property
    def is_rebalancing(self) -> bool:
        """Whether a rebalance is in progress."""

    @property
    def sends_heartbeats(self) -> bool:
        """Whether the member sends heartbeats now, at intervals."""

    @property
    def request_timeout(self) -> float:
        """The seconds that the coordinator may take to respond; then there is time to find another in the session."""

    def request_rejoin(self, reason: str) -> None:
        """Join or rejoin the group, now or after the rebalance or the leave in progress."""

    def leave(self, reason: str, *, stays: bool | None = None) -> None:
        """Leave the group; the state is OUTSIDE once the member has left.

        If it ``stays``, its partitions stay assigned for the session timeout (KIP-1092); None for static members only.
        """

    def poll_timeout(self, reason: str) -> None:
        """Leave the group because poll() was not called in time, and lose all partitions."""

    def back_off(self, now: float, seconds: float | None = None) -> None:
        """Send only heartbeats for this time, by default ``retry_backoff``."""

    def task_done(self, task: Task) -> None:
        """End a :class:`LosePartitions`."""

    def task_failed(self, task: Task, error: KafkaError) -> None:
        """End the membership with this error, since the task has failed with it."""

    def due(self, now: float) -> list[CoordinatorRequest]:
        """Return the requests to send now; each is returned again only after its result was reported."""

    def wait(self, now: float) -> float | None:
        """Return the seconds until the next request is due; None if only a call of another method makes one due."""

    def is_current(self, request: CoordinatorRequest) -> bool:
        """Return whether the response to this request still counts."""

    def answered(self, request: CoordinatorRequest, response: Any, now: float) -> None:
        """Handle the coordinator's response, with or without an error."""

    def refused(self, request: CoordinatorRequest, error: KafkaError, now: float) -> None:
        """Handle a request that failed, after all its retries."""

    def commit_refused(self, group: GroupMetadata, error: BrokerError, now: float) -> None:
        """Handle the error of a commit under ``group``: it may be the first sign that this membership has ended."""

    def thread_heartbeat(self) -> Request[Any]:
        """Build the heartbeat that the heartbeat thread sends while the event loop is blocked."""

    def on_thread_heartbeat(self, group: GroupMetadata, code: int, now: float, epoch: int | None = None) -> None:
        """Handle the result of a heartbeat that the heartbeat thread has sent for this member.

        ``epoch`` is the member epoch in the response, if the group protocol has one.
        """
